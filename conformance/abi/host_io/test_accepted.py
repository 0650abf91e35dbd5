"""Sound requests of every kind are accepted (Host - IO_CPU document, D2, D3, D5 to D7)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.abi.host_io.kit.exchange import connected
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT, SCALARS, deploy, scalar, shard, tensor
from tessera_conformance.marks import clause


def listed(clauses: dict[Any, str]) -> list[Any]:
    """The parameters of cases, one for each value and its clause."""
    return [pytest.param(value, marks=clause(name), id=str(value)) for value, name in clauses.items()]


# D2, D3


@pytest.mark.parametrize(
    "kind", listed({"write": "HIO-D2-02", "read": "HIO-D2-03", "launch": "HIO-D2-04"}), ids=["write", "read", "launch"]
)
def test_a_request_of_each_type_is_accepted(impl, check, kind):
    """For each PE: the three types are all that a host has (AMB-HIO-02)."""
    host = connected(impl, check)
    if kind == "launch" and host.machine.builtins:
        host.builtin_launch()
    if kind == "launch":
        kernel = host.deploy()
        requests = [host.launch(kernel, host.arguments(["tensor"], place)) for place in host.machine.neighbours()]
    else:
        build = host.write if kind == "write" else host.read
        requests = [build(place) for place in host.machine.places]
    host.accepted(*requests)


@clause("HIO-D2-06")
def test_a_tensor_is_initialized_by_writes(impl, check):
    """The parts of a tensor, each in the memory of its PE, are filled with zeros and with ones (AMB-HIO-04)."""
    host = connected(impl, check)
    ones = {"pattern_kind": "fill_fp32", "value": 1}
    writes = [host.write(place, pattern={"pattern_kind": "zero"}) for place in host.machine.places]
    host.accepted(*writes, *(host.write(place, pattern=ones) for place in host.machine.places))


@clause("HIO-D2-08")
def test_a_kernel_is_run_by_writes_and_a_launch(impl, check):
    """Its binary and its tensors are written, then it is launched with them (AMB-HIO-04)."""
    host = connected(impl, check)
    kernel = host.deploy()
    base, places = host.machine.memories[0].base, host.machine.neighbours()
    host.accepted(*(host.write(place, dst_pa=base + 64, nbytes=96) for place in places))
    shards = [shard(place, base + 64, 96, 96 * number) for number, place in enumerate(places)]
    host.accepted(host.launch(kernel, [tensor(*shards), scalar("i32", 96 * len(places))]))


LONG = {"timestamp_tag": "HIO-D3-08", "debug_label": "HIO-D5-24", "args": "HIO-D7-04", "shards": "HIO-D7-18"}


@pytest.mark.parametrize("member", listed(LONG))
def test_long_texts_and_lists_are_taken(impl, check, member):
    """1,024 characters and arguments, and 4,096 shards (AMB-HIO-68)."""
    host = connected(impl, check)
    kernel = host.deploy()
    place, base = host.machine.places[0], host.machine.memories[0].base

    def message(count: int) -> Any:
        match member:
            case "args":
                return host.launch(kernel, [tensor(shard(place, base, 64)), *[scalar("i32", 1)] * (count - 1)])
            case "shards":
                return host.launch(kernel, [tensor(*[shard(place, base + 4 * n, 4, 4 * n) for n in range(4 * count)])])
        return host.write(**{member: "x" * count})

    host.accepted(message(1))
    (completion,) = host.completions(message(1024))
    check.reading("AMB-HIO-68", "lower bounds", not completion["ok"])
    check.true(completion["ok"], f"success with long {member}", completion)


@clause("HIO-D3-07")
def test_every_device_that_is_told_takes_requests(impl, check):
    """target_device has one of the names of `host_io.describe` (AMB-HIO-32)."""
    host = connected(impl, check)
    first = {place["sip"]: place for place in reversed(host.machine.places)}
    host.accepted(*(host.write(place) for place in first.values()), *(host.read(place) for place in first.values()))
    check.equal(sorted(first), sorted(host.machine.devices), "the SIPs of the places, and of the devices")


# D5

PATTERNS = {
    "zero": ("HIO-D5-13", [None], 1),
    "fill_u8": ("HIO-D5-14", [0, 1, 127, 128, 255], 1),
    "fill_u16": ("HIO-D5-15", [0, 256, 32768, 65535], 2),
    "fill_u32": ("HIO-D5-16", [0, 65536, 2**31, 2**32 - 1], 4),
    "fill_fp16": ("HIO-D5-17", [0, 1, -1.5, 0.1, -65504, 6e-8, 1e-30, -0.0], 2),
    "fill_fp32": ("HIO-D5-18", [0, 1, -1.5, 0.1, 3.4028234663852886e38, -1e-45, 1e-300, 16777217, -0.0], 4),
}
"""The clause of each kind, values that it takes, and the bytes of its element (AMB-HIO-06, AMB-HIO-36)."""


@pytest.mark.parametrize(
    ("kind", "values", "size"),
    [
        pytest.param(kind, *row[1:], marks=clause(row[0], "HIO-D5-09", "HIO-D5-19"), id=kind)
        for kind, row in PATTERNS.items()
    ],
)
def test_a_pattern_of_each_kind_is_accepted(impl, check, kind, values, size):
    """With the least and the largest value, over one element and over a number of them that is prime."""
    host = connected(impl, check)
    patterns = [{"pattern_kind": kind, "value": value} for value in values]
    host.accepted(*(host.write(pattern=pattern, nbytes=size * count) for pattern in patterns for count in (1, 37)))


@clause("HIO-D5-21")
def test_the_value_beside_zero_may_be_anything(impl, check):
    """The value of a fill with zero may be null or any number (AMB-HIO-37)."""
    host = connected(impl, check)
    values = [0, -1, 256, 1.5, -0.0, 2**64, 1e300]
    patterns = [{"pattern_kind": "zero", "value": value} for value in (None, *values)]
    host.accepted(*(host.write(pattern=pattern) for pattern in patterns))


@pytest.mark.parametrize("kind", listed({"HBM": "HIO-D5-27", "TCM": "HIO-D5-28", "AUTO": "HIO-D5-29"}))
def test_a_memory_of_each_kind_is_written_to(impl, check, kind):
    """By its own name at its own addresses, its first and its last ones; by AUTO in every memory (AMB-HIO-46)."""
    host = connected(impl, check)
    memories = [memory for memory in host.machine.memories if kind in (memory.kind, "AUTO")]
    check.given(bool(memories), f"the endpoint has a memory of kind {kind}", host.machine.memories)
    ends = [pa for memory in memories for pa in (memory.base, memory.base + 1, memory.base + memory.bytes - 64)]
    host.accepted(*(host.write(dst_pa=pa, dst_mem_kind=kind) for pa in ends))


@clause("HIO-D5-23")
def test_without_a_kind_of_memory_the_address_decides(impl, check):
    """An absent kind is AUTO: every memory is written to, and addresses behind it are refused (AMB-HIO-46)."""
    host = connected(impl, check)
    kinds: tuple[dict[str, str], ...] = ({}, {"dst_mem_kind": "AUTO"})
    for memory in host.machine.memories:
        end = memory.base + memory.bytes
        host.accepted(*(host.write(dst_pa=pa, **kind) for pa in (memory.base, end - 64) for kind in kinds))
        host.refused(
            {f"{kind} past {memory.kind}": host.write(dst_pa=end - 63, **kind) for kind in kinds}, host.write()
        )


@clause("HIO-D5-30")
def test_a_buffer_of_the_host_is_written(impl, check):
    """The buffer of the request's ids, as long as what is written; without one it is refused (AMB-HIO-03, -41)."""
    host = connected(impl, check)
    sizes = [1, 64, 4099]
    writes = [host.write(src_kind="host_buffer_ref", pattern=ABSENT, nbytes=nbytes) for nbytes in sizes]
    wrong = [host.another(writes[0]), host.write(src_kind="host_buffer_ref", pattern=ABSENT)]
    sent = zip([*writes, wrong[1]], [*sizes, 63], strict=True)
    buffers = [
        {"correlation_id": message["correlation_id"], "request_id": message["request_id"], "data": "a5" * nbytes}
        for message, nbytes in sent
    ]
    completions = host.completions(*writes, *wrong, buffers=buffers)
    expected = [True, True, True, False, False]
    check.equal(
        [completion["ok"] for completion in completions],
        expected,
        "success with a buffer, without one, with a shorter one",
    )


# D6


@pytest.mark.parametrize("kind", listed({"host_sink": "HIO-D6-13", "discard": "HIO-D6-14"}))
def test_a_read_of_each_destination_is_accepted(impl, check, kind):
    """From the first and the last addresses of every memory, without alignment (AMB-HIO-17, AMB-HIO-38, AMB-HIO-41)."""
    host = connected(impl, check)
    ends = [
        pa for memory in host.machine.memories for pa in (memory.base, memory.base + 1, memory.base + memory.bytes - 64)
    ]
    host.accepted(*(host.read(src_pa=pa, dst_kind=kind) for pa in ends))


# D7


@clause("HIO-D7-36")
def test_a_deployed_kernel_is_launched(impl, check):
    """A pattern wrote its binary; it may be on any PE and takes any arguments (AMB-HIO-04, AMB-HIO-56)."""
    host = connected(impl, check)
    kernels = [host.written(host.binary(place), place) for place in host.machine.neighbours()]
    launches = [host.launch(kernel, host.arguments(["tensor"])) for kernel in kernels]
    done = [completion["ok"] for completion in host.completions(*launches)]
    check.reading("AMB-HIO-56", "patterns refused", not any(done))
    check.equal(done, [True] * len(done), "success of a launch from each PE")


@clause("HIO-D7-37")
def test_a_builtin_kernel_is_launched(impl, check):
    """It has the described parameters; the place of a binary is not read (AMB-HIO-07, -25, -40)."""
    host = connected(impl, check)
    message = host.builtin_launch()
    name = message["kernel_ref"]["name"]
    far = deploy({"sip": 2**31 - 1, "cube": 2**31 - 1, "pe": 2**31 - 1})
    kernels = [host.builtin(name, **far, nbytes_code=4096), host.builtin(name, deploy_pa=ABSENT)]
    host.accepted(message, *(host.launch(kernel, message["args"]) for kernel in kernels), what=f"builtin {name}")


@clause("HIO-D7-17", "HIO-D7-18", "HIO-D7-47")
def test_tensors_of_one_and_of_many_shards_are_launched_with(impl, check):
    """One shard, one on every PE of a SIP, several on one PE, in any order; two tensors."""
    host = connected(impl, check)
    kernel, base = host.deploy(), host.machine.memories[0].base
    places = host.machine.neighbours()
    everywhere = [shard(place, base + 64 * number, 64, 64 * number) for number, place in enumerate(places)]
    on_one = [shard(places[-1], base + 40 * number, 40, 40 * number) for number in range(5)]
    tensors = [tensor(everywhere[0]), tensor(*everywhere), tensor(*reversed(everywhere)), tensor(*on_one)]
    host.accepted(*(host.launch(kernel, [tensor]) for tensor in tensors), host.launch(kernel, tensors[:2]))


LARGEST = {
    "i32": [0, -1, 2**31 - 1, -(2**31)],
    "i64": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "fp16": [0, 1, -0.0, 65504, -6e-8, 0.1],
    "fp32": [0, 1, -0.0, 3.4028234663852886e38, -1e-45, 0.1],
    "bool": [True, False],
}
"""Values of each dtype (AMB-HIO-14, AMB-HIO-36)."""
DTYPES = {"i32": "HIO-D7-38", "i64": "HIO-D7-39", "fp16": "HIO-D7-40", "fp32": "HIO-D7-41", "bool": "HIO-D7-42"}


@clause("HIO-D7-46", "HIO-D7-48")
@pytest.mark.parametrize("dtype", listed(DTYPES))
def test_a_scalar_of_each_dtype_is_launched_with(impl, check, dtype):
    """A launch has a scalar with its value in the message, least and largest, and a tensor (AMB-HIO-24)."""
    host = connected(impl, check)
    kernel, tensors = host.deploy(), host.arguments(["tensor"])
    scalars = [scalar(dtype, value) for value in LARGEST[dtype]]
    others = [scalar(other_dtype, value) for other_dtype, value in SCALARS.items()]
    lists = [*([scalar] for scalar in scalars), [*others, *scalars]]
    host.accepted(*(host.launch(kernel, [*tensors, *list_]) for list_ in lists))


@clause("HIO-D7-04")
def test_a_launch_without_arguments_is_accepted(impl, check):
    """An empty list is one, and so are scalars alone; tensors and scalars stand in any order (AMB-HIO-42)."""
    host = connected(impl, check)
    kernel = host.deploy()
    one, two = host.arguments(["tensor", "i32"])
    lists = [[one], [one, two], [two, one], [two, two, one, two, one, one]]
    host.accepted(*(host.launch(kernel, list_) for list_ in lists))
    without = [completion["ok"] for completion in host.completions(host.launch(kernel), host.launch(kernel, [two]))]
    check.reading("AMB-HIO-42", "refused", not all(without))
    check.equal(without, [True, True], "success without arguments, and with a scalar alone")


@pytest.mark.parametrize("policy", listed({"fail_fast": "HIO-D7-43", "collect_all": "HIO-D7-44"}))
def test_a_launch_with_each_failure_policy_is_accepted(impl, check, policy):
    """A launch of one tensor is accepted under each policy, and so is one with a scalar (AMB-HIO-11)."""
    host = connected(impl, check)
    kernel = host.deploy()
    lists = [host.arguments(["tensor"]), host.arguments(["tensor", "i32"])]
    host.accepted(*(host.launch(kernel, list_, failure_policy=policy) for list_ in lists))


@clause("HIO-D5-06", "HIO-D6-06", "HIO-D7-22")
def test_no_address_needs_alignment(impl, check):
    """Elements of four bytes, reads and shards at the first addresses of a memory (AMB-HIO-38)."""
    host = connected(impl, check)
    base, pattern = host.machine.memories[0].base, {"pattern_kind": "fill_u32", "value": 7}
    kernel, place = host.deploy(), host.machine.places[0]

    def at(pa):
        shards = tensor(shard(place, pa, 64))
        return [host.write(dst_pa=pa, pattern=pattern), host.read(src_pa=pa), host.launch(kernel, [shards])]

    host.accepted(*at(base), *at(base + 64))
    odd = [completion["ok"] for offset in (1, 2, 3) for completion in host.completions(*at(base + offset))]
    check.reading("AMB-HIO-38", "aligned to the element", not all(odd))
    check.equal(odd, [True] * len(odd), "success at addresses that are no multiple of four")
