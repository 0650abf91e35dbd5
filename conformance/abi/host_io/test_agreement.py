"""Members that have to agree with one another, and ranges of bytes (Host - IO_CPU document, D5 to D7)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import Reading, connected
from tessera_conformance.chapters.abi.host_io.kit.members import sound
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT, changed, scalar
from tessera_conformance.marks import clause

END = 1 << 64
FILLS = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4, "fill_fp16": 2, "fill_fp32": 4}
"""The bytes of the element of each kind."""


@clause("HIO-D5-10", "HIO-D5-11")
def test_a_write_of_a_pattern_without_one_is_refused(impl, check):
    """The pattern is absent or null (AMB-HIO-18)."""
    host = connected(impl, check)
    host.refused({"no pattern": host.write(pattern=ABSENT), "null": host.write(pattern=None)}, host.write())


@clause("HIO-D5-19", "HIO-D5-20")
@pytest.mark.parametrize("kind", FILLS)
def test_a_fill_without_a_value_is_refused(impl, check, kind):
    """The value is absent or null (AMB-HIO-18)."""
    host = connected(impl, check)
    wrong = {"no value": {"pattern_kind": kind}, "null": {"pattern_kind": kind, "value": None}}
    twin = host.write(pattern={"pattern_kind": kind, "value": 0})
    host.refused({name: host.write(pattern=pattern) for name, pattern in wrong.items()}, twin)


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        pytest.param("fill_u8", 2**8 - 1, marks=clause("HIO-D5-14", "HIO-D5-19"), id="fill_u8"),
        pytest.param("fill_u16", 2**16 - 1, marks=clause("HIO-D5-15", "HIO-D5-19"), id="fill_u16"),
        pytest.param("fill_u32", 2**32 - 1, marks=clause("HIO-D5-16", "HIO-D5-19"), id="fill_u32"),
    ],
)
def test_the_value_of_an_integer_fill_is_one_in_range(impl, check, kind, most):
    """Values just outside the range, far outside it, and between two whole numbers are refused (AMB-HIO-06)."""
    host = connected(impl, check)
    values = [-1, -most, most + 1, most + 2, 2 * most + 2, 2**64, 0.5, -0.5, most - 0.5, 1e30, 1e-30]
    wrong = {f"value {value}": host.write(pattern={"pattern_kind": kind, "value": value}) for value in values}
    whole = [f"value {value}" for value in values if isinstance(value, int)]
    wraps = Reading("AMB-HIO-06", "wrap", whole, whole=True)
    host.refused(wrong, host.write(pattern={"pattern_kind": kind, "value": most}), wraps)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        pytest.param("fill_u16", 2, marks=clause("HIO-D5-07", "HIO-D5-15"), id="fill_u16"),
        pytest.param("fill_u32", 4, marks=clause("HIO-D5-07", "HIO-D5-16"), id="fill_u32"),
        pytest.param("fill_fp16", 2, marks=clause("HIO-D5-07", "HIO-D5-17"), id="fill_fp16"),
        pytest.param("fill_fp32", 4, marks=clause("HIO-D5-07", "HIO-D5-18"), id="fill_fp32"),
    ],
)
def test_a_fill_is_of_whole_elements(impl, check, kind, size):
    """Fewer bytes than an element has, and every remainder behind some (AMB-HIO-05)."""
    host = connected(impl, check)
    pattern = {"pattern_kind": kind, "value": 1}
    parts = [count * size + rest for count in (0, 1, 36) for rest in range(1, size)]
    wrong = {f"{nbytes} bytes": host.write(pattern=pattern, nbytes=nbytes) for nbytes in parts}
    host.refused(
        wrong, host.write(pattern=pattern, nbytes=37 * size), Reading("AMB-HIO-05", "truncate the last element", wrong)
    )


@pytest.mark.parametrize(
    "build",
    [
        pytest.param("write", marks=clause("HIO-D5-06", "HIO-D5-07"), id="write"),
        pytest.param("read", marks=clause("HIO-D6-06", "HIO-D6-07"), id="read"),
    ],
)
def test_the_bytes_lie_within_one_memory(impl, check, build):
    """Bytes past a memory's end, across it, before its beginning or past 2^64 are refused (AMB-HIO-34, AMB-HIO-46)."""
    host = connected(impl, check)
    make, address = (host.write, "dst_pa") if build == "write" else (host.read, "src_pa")
    wrong = {"past 2^64": make(**{address: END - 1, "nbytes": 2})}
    wrong["everything"] = make(**{address: 0, "nbytes": END - 1})
    for memory in host.machine.memories:
        end = memory.base + memory.bytes
        wrong[f"one byte past {memory.kind}"] = make(**{address: end - 63})
        wrong[f"one byte more than {memory.kind}"] = make(**{address: memory.base, "nbytes": memory.bytes + 1})
        if not any(other.base <= end < other.base + other.bytes for other in host.machine.memories):
            wrong[f"behind {memory.kind}"] = make(**{address: end})
        if memory.base and not any(
            other.base <= memory.base - 1 < other.base + other.bytes for other in host.machine.memories
        ):
            wrong[f"before {memory.kind}"] = make(**{address: memory.base - 1})
    host.refused(wrong, make())


@clause("HIO-D5-22", "HIO-D5-27", "HIO-D5-28")
def test_the_address_lies_in_the_memory_that_is_named(impl, check):
    """HBM at an address of TCM and the other way round are refused (AMB-HIO-46)."""
    host = connected(impl, check)
    hbm, tcm = host.machine.memory("HBM"), host.machine.memory("TCM")
    check.given(hbm is not None and tcm is not None, "the endpoint has HBM and TCM", host.machine.memories)
    for name, kind, pa in (("HBM at TCM", "HBM", tcm.base), ("TCM at HBM", "TCM", hbm.base)):
        kind_wins = Reading("AMB-HIO-46", "the kind wins", [name])
        host.refused({name: host.write(dst_mem_kind=kind, dst_pa=pa)}, host.write(dst_pa=pa), kind_wins)


def beside(place: dict[str, int], name: str, places: list[dict[str, int]]) -> list[dict[str, int]]:
    """Places with another number that no PE has."""
    most = max(pe[name] for pe in places)
    return [{**place, name: number} for number in (most + 1, most + 256, 2**31 - 1)]


@pytest.mark.parametrize(
    ("build", "name"),
    [
        pytest.param(build, name, marks=clause(f"HIO-D{section}-0{number}"), id=f"{build}-{name}")
        for build, section in (("write", 5), ("read", 6))
        for number, name in enumerate(("sip", "cube", "pe"), 3)
    ],
)
def test_a_place_that_does_not_exist_is_refused(impl, check, build, name):
    """The next number that no PE has, and ones far away (AMB-HIO-44)."""
    host = connected(impl, check)
    make, prefix = (host.write, "dst") if build == "write" else (host.read, "src")
    places = beside(host.machine.places[0], name, host.machine.places)
    wrong = {f"{name} {place[name]}": make(**{f"{prefix}_{name}": place[name]}) for place in places}
    host.refused(wrong, make())


SHARD = ("args", 0, "tensor_pa_map", "shards")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=clause(f"HIO-D7-{number}"), id=name)
        for number, name in ((19, "sip"), (20, "cube"), (21, "pe"))
    ],
)
def test_a_shard_on_a_place_that_does_not_exist_is_refused(impl, check, name):
    """The first or the last shard of a tensor, under either policy (AMB-HIO-44)."""
    host = connected(impl, check)
    message = sound(host, "tensor_shard")
    places = beside(host.machine.places[0], name, host.machine.places)
    wrong = {
        f"{name} {place[name]} of shard {number}, {policy}": changed(message, (*SHARD, number, name), place[name])
        | {"failure_policy": policy}
        for place in places
        for number in (0, 1)
        for policy in ("fail_fast", "collect_all")
    }
    host.refused(wrong, message)


@clause("HIO-D7-22", "HIO-D7-23")
def test_a_shard_lies_within_one_memory(impl, check):
    """Past the end of a memory, past 2^64 (AMB-HIO-34, AMB-HIO-46)."""
    host = connected(impl, check)
    message = sound(host, "tensor_shard")
    pa, nbytes = (*SHARD, 1, "pa"), (*SHARD, 1, "nbytes")
    wrong = {"past 2^64": changed(message, pa, END - 31), "large": changed(message, nbytes, END - 1)}
    for memory in host.machine.memories:
        wrong[f"one byte past {memory.kind}"] = changed(message, pa, memory.base + memory.bytes - 31)
        wrong[f"more than {memory.kind}"] = changed(changed(message, pa, memory.base), nbytes, memory.bytes + 1)
    host.refused(wrong, changed(message, pa, host.machine.memories[0].base + 64))


@clause("HIO-D7-24")
def test_a_shard_ends_at_2_to_the_64_of_its_tensor_at_the_latest(impl, check):
    """A shard of 32 bytes begins 32 bytes before at the latest (AMB-HIO-34)."""
    host = connected(impl, check)
    message = sound(host, "tensor_shard")
    offset = (*SHARD, 1, "offset_bytes")
    last = changed(message, offset, END - 32)
    (actual,) = host.completions(host.another(last))
    check.reading("AMB-HIO-34", "2^63", not actual["ok"])
    wrong = {f"{END - distance} bytes before": changed(message, offset, distance) for distance in (END - 31, END - 1)}
    host.refused(wrong, last, Reading("AMB-HIO-34", "no bounds", wrong, whole=True))


@clause("HIO-D7-07", "HIO-D7-08")
def test_a_deployed_kernel_without_an_address_is_refused(impl, check):
    """The address is absent or null (AMB-HIO-18); binaries lie at the usual address and at the first of memory."""
    host = connected(impl, check)
    message = host.launch(host.deploy(), host.arguments(["tensor"]))
    path = ("kernel_ref", "deploy_pa")
    host.written(host.binary(deploy_pa=host.machine.memories[0].base))
    host.refused({"no address": changed(message, path, ABSENT), "null": changed(message, path, None)}, message)


@clause("HIO-D7-12")
def test_a_deployed_kernel_has_a_byte_at_least(impl, check):
    """0 is for builtin only (AMB-HIO-20, AMB-HIO-40); a binary does not pass 2^64 (AMB-HIO-34)."""
    host = connected(impl, check)
    message = host.launch(host.deploy(), host.arguments(["tensor"]))
    size = ("kernel_ref", "nbytes_code")
    wrong = {f"{nbytes} bytes": changed(message, size, nbytes) for nbytes in (0, END - 1)}
    nothing = Reading("AMB-HIO-20", "zero bytes complete at once", ["0 bytes"])
    host.refused(wrong, changed(message, size, 1), nothing)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=clause(f"HIO-D7-{number:02}"), id=name)
        for number, name in ((9, "deploy_sip"), (10, "deploy_cube"), (11, "deploy_pe"), (12, "nbytes_code"))
    ],
)
def test_the_deployment_of_a_builtin_keeps_its_bounds(impl, check, name):
    """Its bounds are those of a binary, though a built-in kernel does not use it (AMB-HIO-07, AMB-HIO-40)."""
    host = connected(impl, check)
    message = host.builtin_launch()
    most = END - 1 if name == "nbytes_code" else 2**31 - 1
    values = [ABSENT, None, -1, most + 1, 2 * most + 2, 0.5, "0", True, []]
    wrong = {f"{name} {value!r:.20}": changed(message, ("kernel_ref", name), value) for value in values}
    unbounded = Reading("AMB-HIO-34", "no bounds", [f"{name} {value!r:.20}" for value in (most + 1, 2 * most + 2)])
    as_number = Reading("AMB-HIO-14", "true and false count as numbers", [f"{name} True"])
    twin = changed(message, ("kernel_ref", name), most if name != "nbytes_code" else 4096)
    host.refused(wrong, twin, unbounded, as_number)


@clause("HIO-D7-05")
def test_a_name_that_no_builtin_has_is_refused(impl, check):
    """Names are compared as they are (AMB-HIO-25)."""
    host = connected(impl, check)
    message = host.builtin_launch()
    known = message["kernel_ref"]["name"]
    names = [text for text in ("unknown kernel", f"{known} ", f" {known}") if text not in host.machine.builtins]
    host.refused({f"name {name!r}": changed(message, ("kernel_ref", "name"), name) for name in names}, message)


@clause("HIO-D7-27")
def test_a_boolean_goes_with_bool_and_with_nothing_else(impl, check):
    """0 and 1 are no booleans, true and false no numbers (AMB-HIO-14)."""
    host = connected(impl, check)
    kernel = host.deploy()
    tensors = host.arguments(["tensor"])

    def launch(dtype, value):
        return host.launch(kernel, [*tensors, scalar(dtype, value)])

    numbers = {f"{value!r} as bool": launch("bool", value) for value in (0, 1, 1.5, "true")}
    counted = Reading("AMB-HIO-14", "0 and 1 count as bool", ["0 as bool", "1 as bool", "1.5 as bool"])
    wrong = {
        f"{value} as {dtype}": launch(dtype, value)
        for dtype in ("i32", "i64", "fp16", "fp32")
        for value in (True, False)
    }
    host.accepted(*(launch(dtype, 1) for dtype in ("i32", "i64", "fp16", "fp32")))
    host.refused(
        wrong | numbers, launch("bool", False), Reading("AMB-HIO-14", "true and false count as numbers", wrong), counted
    )


@clause("HIO-D7-27")
@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        pytest.param("i32", 32, marks=clause("HIO-D7-38"), id="i32"),
        pytest.param("i64", 64, marks=clause("HIO-D7-39"), id="i64"),
    ],
)
def test_the_value_of_an_integer_scalar_is_one_in_range(impl, check, dtype, bits):
    """Values just outside the range, numbers with a fraction, and ones far outside are refused (AMB-HIO-69)."""
    host = connected(impl, check)
    kernel, tensors = host.deploy(), host.arguments(["tensor"])
    most = 2 ** (bits - 1) - 1
    whole = [most + 1, most + 2, 2**bits - 1, -most - 2]

    def launch(value):
        return host.launch(kernel, [*tensors, scalar(dtype, value)])

    wrong = {f"{dtype} {value}": launch(value) for value in [*whole, 0.5, -0.5, 1e-7, 1e30, -1e30]}
    host.accepted(launch(most), launch(-most - 1))
    unchecked = Reading("AMB-HIO-69", "not checked", list(wrong), whole=True)
    wrapped = Reading("AMB-HIO-69", "wrap", [f"{dtype} {value}" for value in whole], whole=True)
    host.refused(wrong, launch(1), unchecked, wrapped)


@clause("HIO-D7-46")
def test_a_scalar_by_reference_is_refused(impl, check):
    """A scalar by reference names an address or an object; neither is a value."""
    host = connected(impl, check)
    kernel, pa = host.deploy(), host.machine.memories[0].base
    place = host.machine.places[0]
    references = [{"pa": pa}, {**place, "pa": pa, "nbytes": 4}, [pa], "x", None, ABSENT]
    tensors = host.arguments(["tensor"])
    wrong = {
        f"value {reference!r:.40}": host.launch(kernel, [*tensors, scalar("i32", reference)])
        for reference in references
    }
    host.refused(wrong, host.launch(kernel, [*tensors, scalar("i32", pa % 1000)]))
