"""Inconsistent members that are accepted (D5 to D7)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import ELEMENTS
from tessera_reference.host_io.machine import Machine

from .accepted import patterns, scalars
from .message_changes import Message, changed, read_as

_require = Machine.require
_buffer = Endpoint._buffer


def fitting(clause: str, name: str, description: str, change: Callable[[Message, str], Any]) -> Violation:
    """Return a violation that adjusts values of patterns; `change` takes the pattern and the dtype of its element."""

    def within(message: Message) -> None:
        pattern = patterns(message)
        if isinstance(pattern, dict) and pattern.get("pattern_kind") in ELEMENTS:
            change(pattern, ELEMENTS[pattern["pattern_kind"]])

    return read_as(clause, name, description, within)


def cut(pattern: Message, dtype: str) -> None:
    value = pattern.get("value")
    if dtype.startswith("u") and not isinstance(value, int | str | list | dict | None):
        pattern["value"] = int(value)


def nothing_is_zero(pattern: Message, dtype: str) -> None:
    if pattern.get("value") is None:
        pattern["value"] = 0


def saturated(kind: str) -> Callable[[Message, str], None]:
    """Return a change that limits the value of one kind to its range."""

    def change(pattern: Message, dtype: str) -> None:
        if pattern["pattern_kind"] == kind and isinstance(pattern.get("value"), int):
            pattern["value"] = min(max(pattern["value"], 0), (1 << int(dtype[1:])) - 1)

    return change


def no_pattern_is_zero(message: Message) -> None:
    """Add a pattern of zeros to a write without one."""
    if message.get("msg_type") == "MemoryWrite" and message.get("pattern") is None:
        message["pattern"] = {"pattern_kind": "zero"}


WRITES = [
    read_as("HIO-D5-11", "no_pattern_is_zero", "writes zeros without a pattern", no_pattern_is_zero),
    fitting("HIO-D5-20", "no_value_is_zero", "fills with zero without a value", nothing_is_zero),
    fitting("HIO-D5-19", "cut_values", "cuts fractions off", cut),
    *(
        fitting(clause, f"saturated_{kind}", "limits values to the range", saturated(kind))
        for clause, kind in {"HIO-D5-14": "fill_u8", "HIO-D5-15": "fill_u16", "HIO-D5-16": "fill_u32"}.items()
    ),
]


def filled_up(self: Endpoint, pair: tuple[str, str], nbytes: int) -> bytes:
    return self._buffers[pair].ljust(nbytes, b"\0") if pair in self._buffers else _buffer(self, pair, nbytes)


FILLED_UP = changed(
    "HIO-D5-30", "filled_up", "fills short buffers up", ("host_io.endpoint.Endpoint._buffer", filled_up)
)


def one_behind(message: Message) -> None:
    pattern = patterns(message)
    if pattern.get("value") == 256 and pattern.get("pattern_kind") == "fill_u8":
        pattern["value"] = 255


OFF_BY_ONE = read_as("HIO-D5-14", "bytes_up_to_256", "takes 256 for a byte", one_behind)


def placed(clause: str, name: str, description: str, change: Callable[..., tuple[Any, int, int, str]]) -> Violation:
    """Return a violation that checks other bytes than requested; `change` gives place, address, size and kind."""

    def require(self: Machine, place: Any, pa: int, nbytes: int, kind: str = "AUTO", field: str = "") -> None:
        _require(self, *change(self, place, pa, nbytes, kind, field), field)

    return changed(clause, name, description, ("host_io.machine.Machine.require", require))


def one_more(prefix: str) -> Callable[..., tuple[Any, int, int, str]]:
    """Return a change that counts one byte past the end of a memory as its own."""

    def change(machine: Machine, place: Any, pa: int, nbytes: int, kind: str, field: str) -> tuple[Any, int, int, str]:
        ends = [memory.base + memory.bytes for memory in machine.memories]
        return place, pa, nbytes - (field.startswith(prefix) and pa + nbytes - 1 in ends), kind

    return change


PLACES = [
    placed("HIO-D6-07", "read_more", "reads a byte more than memory has", one_more("src")),
    placed("HIO-D7-22", "shard_one_behind", "takes a shard that ends behind memory", one_more("args")),
    placed("HIO-D7-23", "shard_of_more", "takes a shard that is larger than memory", one_more("args")),
]


def null_is_hbm(message: Message) -> None:
    if message.get("dst_mem_kind", "AUTO") is None:
        message["dst_mem_kind"] = "HBM"


def deployed_at(pa: int) -> Callable[[Message], None]:
    """Return a change that gives a deployed kernel without an address this address."""

    def within(message: Message) -> None:
        kernel = message.get("kernel_ref")
        if isinstance(kernel, dict) and kernel.get("kind") == "deployed" and kernel.get("deploy_pa") is None:
            kernel["deploy_pa"] = pa

    return within


def stripped_names(message: Message) -> None:
    kernel = message.get("kernel_ref")
    if isinstance(kernel, dict) and isinstance(kernel.get("name"), str):
        kernel["name"] = kernel["name"].strip() or "x"


def scalar_value(change: Callable[[Message], Any]) -> Callable[[Message], None]:
    """Return a change of each scalar of a launch."""

    def within(message: Message) -> None:
        if isinstance(message.get("args"), list) and all(isinstance(argument, dict) for argument in message["args"]):
            for scalar in scalars({"args": [argument for argument in message["args"] if "arg_kind" in argument]}):
                change(scalar)

    return within


def booleans_of_texts(scalar: Message) -> None:
    if scalar.get("dtype") == "bool" and isinstance(scalar.get("value"), str):
        scalar["value"] = scalar["value"] == "true"


def integers(dtype: str, change: Callable[[Any], Any]) -> Callable[[Message], None]:
    """Return a change of the numbers in scalars of a dtype."""

    def within(scalar: Message) -> None:
        if scalar.get("dtype") == dtype and isinstance(scalar.get("value"), int | Decimal):
            scalar["value"] = change(scalar["value"])

    return scalar_value(within)


def taken_for(other: int, value: int) -> Callable[[Any], Any]:
    """Return a function that reads one number as another."""
    return lambda number: value if number == other else number


def dereferenced(scalar: Message) -> None:
    if isinstance(scalar.get("value"), dict):
        scalar["value"] = 0


LAUNCHES = [
    read_as("HIO-D7-08", "code_at_an_address", "takes the usual address for a missing one", deployed_at(2048)),
    read_as("HIO-D7-07", "null_is_an_address", "takes null for an address", deployed_at(2048)),
    read_as("HIO-D7-05", "stripped_names", "strips names of kernels", stripped_names),
    read_as("HIO-D7-27", "text_is_true", "takes texts for booleans", scalar_value(booleans_of_texts)),
    *(
        read_as(clause, name, f"takes {other} for an {dtype}", integers(dtype, taken_for(other, value)))
        for clause, dtype, least in (("HIO-D7-38", "i32", -(2**31)), ("HIO-D7-39", "i64", -(2**63)))
        for name, other, value in ((f"{dtype}_one_more", -least, least), (f"{dtype}_one_less", least - 1, -least - 1))
    ),
    read_as("HIO-D7-38", "i32_cut", "cuts the fraction of an i32 off", integers("i32", int)),
    read_as("HIO-D7-39", "i64_cut", "cuts the fraction of an i64 off", integers("i64", int)),
    read_as("HIO-D7-46", "scalars_by_reference", "takes scalars by reference", scalar_value(dereferenced)),
    read_as("HIO-D5-23", "null_is_hbm", "takes null for HBM", null_is_hbm),
]
