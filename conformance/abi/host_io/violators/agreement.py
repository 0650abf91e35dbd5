"""Inconsistent members that are accepted (D5 to D7)."""

from decimal import Decimal

from tessera_reference.host_io.frames import ELEMENTS

from ....ir.violators.changes import breaks, wrapped
from .accepted import patterns, scalars
from .message_changes import read_as, requiring


def fitting(clause, name, description, change):
    """Return a violation that adjusts values of patterns; `change` takes the pattern and the dtype of its element."""

    def within(message):
        pattern = patterns(message)
        if isinstance(pattern, dict) and pattern.get("pattern_kind") in ELEMENTS:
            change(pattern, ELEMENTS[pattern["pattern_kind"]])

    return read_as(clause, name, description, within)


@breaks("HIO-D5-19", "cuts fractions off", fitting)
def cut_values(pattern, dtype):
    value = pattern.get("value")
    if dtype.startswith("u") and not isinstance(value, int | str | list | dict | None):
        pattern["value"] = int(value)


@breaks("HIO-D5-20", "fills with zero without a value", fitting)
def no_value_is_zero(pattern, dtype):
    if pattern.get("value") is None:
        pattern["value"] = 0


def saturated(clause, kind):
    def change(pattern, dtype):
        if pattern["pattern_kind"] == kind and isinstance(pattern.get("value"), int):
            pattern["value"] = min(max(pattern["value"], 0), (1 << int(dtype[1:])) - 1)

    return fitting(clause, f"saturated_{kind}", "limits values to the range", change)


@breaks("HIO-D5-11", "writes zeros without a pattern", read_as)
def no_pattern_is_zero(message):
    if message.get("msg_type") == "MemoryWrite" and message.get("pattern") is None:
        message["pattern"] = {"pattern_kind": "zero"}


@breaks("HIO-D5-14", "takes 256 for a byte", read_as)
def bytes_up_to_256(message):
    pattern = patterns(message)
    if pattern.get("value") == 256 and pattern.get("pattern_kind") == "fill_u8":
        pattern["value"] = 255


def one_more(prefix):
    """Return a change that counts one byte past the end of a memory as its own."""

    def change(machine, pa, nbytes, kind, field):
        ends = [memory.base + memory.bytes for memory in machine.memories]
        return pa, nbytes - (field.startswith(prefix) and pa + nbytes - 1 in ends), kind

    return change


@breaks("HIO-D5-23", "takes null for HBM", read_as)
def null_is_hbm(message):
    if message.get("dst_mem_kind", "AUTO") is None:
        message["dst_mem_kind"] = "HBM"


def deployed_at_2048(message):
    kernel = message.get("kernel_ref")
    if isinstance(kernel, dict) and kernel.get("kind") == "deployed" and kernel.get("deploy_pa") is None:
        kernel["deploy_pa"] = 2048


@breaks("HIO-D7-05", "strips names of kernels", read_as)
def stripped_names(message):
    kernel = message.get("kernel_ref")
    if isinstance(kernel, dict) and isinstance(kernel.get("name"), str):
        kernel["name"] = kernel["name"].strip() or "x"


def reading(clause, name, description, change):
    def within(message):
        if isinstance(message.get("args"), list) and all(isinstance(argument, dict) for argument in message["args"]):
            for scalar in scalars({"args": [argument for argument in message["args"] if "arg_kind" in argument]}):
                change(scalar)

    return read_as(clause, name, description, within)


@breaks("HIO-D7-27", "takes texts for booleans", reading)
def text_is_true(scalar):
    if scalar.get("dtype") == "bool" and isinstance(scalar.get("value"), str):
        scalar["value"] = scalar["value"] == "true"


@breaks("HIO-D7-46", "takes scalars by reference", reading)
def scalars_by_reference(scalar):
    if isinstance(scalar.get("value"), dict):
        scalar["value"] = 0


def integers(clause, name, description, dtype, change):
    def within(scalar):
        if scalar.get("dtype") == dtype and isinstance(scalar.get("value"), int | Decimal):
            scalar["value"] = change(scalar["value"])

    return reading(clause, name, description, within)


def taken_for(other, value):
    return lambda number: value if number == other else number


VIOLATORS = [
    *(saturated(f"HIO-D5-{number}", f"fill_u{bits}") for number, bits in ((14, 8), (15, 16), (16, 32))),
    requiring("HIO-D6-07", "read_more", "reads a byte more than memory has", one_more("src")),
    requiring("HIO-D7-22", "shard_one_behind", "takes a shard that ends behind memory", one_more("args")),
    requiring("HIO-D7-23", "shard_of_more", "takes a shard that is larger than memory", one_more("args")),
    read_as("HIO-D7-08", "code_at_an_address", "takes the usual address for a missing one", deployed_at_2048),
    read_as("HIO-D7-07", "null_is_an_address", "takes null for an address", deployed_at_2048),
    *(integers(clause, name, f"takes {other} for an {dtype}", dtype, taken_for(other, value))
        for clause, dtype, least in (("HIO-D7-38", "i32", -(2**31)), ("HIO-D7-39", "i64", -(2**63)))
        for name, other, value in ((f"{dtype}_one_more", -least, least), (f"{dtype}_one_less", least - 1, -least - 1))),
    integers("HIO-D7-38", "i32_cut", "cuts the fraction of an i32 off", "i32", int),
    integers("HIO-D7-39", "i64_cut", "cuts the fraction of an i64 off", "i64", int),
    wrapped("HIO-D5-30", "by_request_id", "finds buffers by the request id alone", "host_io.endpoint.Endpoint._buffer",
        lambda usual, self, pair, nbytes:
            usual(self, next((ids for ids in self._buffers if ids[1] == pair[1]), pair), nbytes)),
    wrapped("HIO-D5-30", "filled_up", "fills short buffers up", "host_io.endpoint.Endpoint._buffer",
        lambda usual, self, pair, nbytes:
            self._buffers[pair].ljust(nbytes, b"\0") if pair in self._buffers else usual(self, pair, nbytes)),
]  # fmt: skip
