"""Launches: grid, block, shared memory and argument bytes (runtime specification, 4.5, 6 and 10)."""

from __future__ import annotations

import struct
from time import perf_counter

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of, wrapped
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    D2D,
    devices,
    meshed,
    opened,
    refused,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.readings import INVALID, judge_partial_block, rejected
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

# Kernels of the language


PROGRAM = """module m {
  kernel scale(a: fp32, x: tensor<8x48xfp32>, y: tensor<8x48xfp32>) { y = x * a; }
  kernel named(N: int32, a: int32, x: tensor<Nxint32>) { x = x + a; }
  kernel turn(M: int32, N: int32, x: tensor<MxNxint32>, y: tensor<NxMxint32>) { y = op.transpose(x); }
}
"""

CONFIGURATIONS = [
    ([1, 1, 1], [0, 0, 0]),
    ([1, 1, 1], [128, 1, 1]),
    ([256, 1, 1], [128, 1, 1]),
    ([3, 5, 7], [0, 0, 0]),
    ([2, 1, 1], [1, 1, 1]),
    ([1, 1, 9], [32, 4, 1]),
    ([1000, 1, 1], [0, 2, 2]),
]


@clause("RT-04.5-17", "RT-18-04")
@pytest.mark.parametrize(("grid", "block"), CONFIGURATIONS)
def test_a_kernel_of_the_language_computes_all_of_its_result(impl, check, grid, block):
    """Whatever the grid: its tiles are dealt over the blocks that are launched (AMB-RT-08, AMB-RT-84)."""
    session = opened(impl, check)
    numbers = [float(place - 100) for place in range(8 * 48)]
    x, y = session.upload(elements("fp32", *numbers)), session.upload(bytes(4 * 8 * 48))
    arguments, expected = packed(("fp32", 4.0), ("ptr", x), ("ptr", y)), [4 * number for number in numbers]
    kernel = session.kernel("scale", PROGRAM)

    def result() -> list[float]:
        return values_of("fp32", session.download(y, 4 * 8 * 48))

    def is_whole(*other: int) -> bool:
        launched = session.launching(kernel, arguments, grid=list(other), block=block)
        return isinstance(launched, Returned) and result() == expected

    answer = session.launching(kernel, arguments, grid=grid, block=block)
    if rejected(answer, INVALID):
        taken = [blocks for blocks in (1, 2, 3, 6, 8, 12) if is_whole(blocks, 1, 1)]
        check.reading("AMB-RT-84", "the grid must be the compiler's", len(taken) == 1)
    check.returns(answer, "tessLaunch succeeds")
    actual = result()
    if 0 < sum(map(bool, actual)) < len(actual) - 1:
        part = all(one in (0, other) for one, other in zip(actual, expected, strict=True))
        check.reading("AMB-RT-84", "blocks beyond the grid are left out", part and is_whole(1000, 1, 1))
    check.equal(actual, expected, "four times x")


@clause("RT-04.5-09")
@pytest.mark.parametrize("block", [[0, 0, 0], [64, 0, 0], [0, 1, 1], [0, 2, 0], [0, 0, 1]])
def test_a_kernel_of_the_language_takes_a_zero_in_block(impl, check, block):
    """The compiler chooses; the result is the same (AMB-RT-08)."""
    session = opened(impl, check)
    pointer = session.upload(elements("int32", *range(COUNT)))
    kernel, arguments = session.kernel("digit"), packed(("int32", 3), ("ptr", pointer))
    answer = session.launching(kernel, arguments, block=block)
    judge_partial_block(session, kernel, arguments, block, answer)
    check.returns(answer, "tessLaunch succeeds")
    check.equal(session.integers(pointer), [10 * place + 3 for place in range(COUNT)], "what the kernel left")


@clause("RT-04.5-17", "RT-10.1-01")
@pytest.mark.parametrize("extent", [0, 1, 7, 64])
def test_extents_come_with_the_arguments(impl, check, extent):
    """A named dimension has the extent that the parameter of its name says (AMB-RT-85); more is not touched."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("named", PROGRAM), session.upload(elements("int32", *[5] * 70))
    session.launch(kernel, packed(("int32", extent), ("int32", 3), ("ptr", pointer)))
    actual = values_of("int32", session.download(pointer, 280))
    check.equal(actual, [8] * extent + [5] * (70 - extent), "what the kernel left")


@clause("RT-19.A-01", "RT-04.5-17")
@pytest.mark.parametrize("extent", [-1, -64, -(1 << 31)])
def test_a_negative_extent_is_refused(impl, check, extent):
    """The call answers with TESS_ERR_INVALID_VALUE, and no element is touched; the next launch runs (AMB-RT-85)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("named", PROGRAM), session.upload(elements("int32", *[5] * 70))
    answer = session.launching(kernel, packed(("int32", extent), ("int32", 3), ("ptr", pointer)))
    check.status(answer, INVALID)
    session.launch(kernel, packed(("int32", 7), ("int32", 3), ("ptr", pointer)))
    actual = values_of("int32", session.download(pointer, 280))
    check.equal(actual, [8] * 7 + [5] * 63, "what the kernels left")


@clause("RT-19.A-01", "RT-04.5-17")
def test_two_negative_extents_are_refused(impl, check):
    """Their product is that of a matrix, of which no dimension has fewer than no elements (AMB-RT-85)."""
    session = opened(impl, check)
    x, y = session.upload(elements("int32", *range(6))), session.upload(elements("int32", *[9] * 6))
    arguments = packed(("int32", -2), ("int32", -3), ("ptr", x), ("ptr", y))
    check.status(session.launching(session.kernel("turn", PROGRAM), arguments), INVALID)
    check.equal(session.integers(y, 6), [9] * 6, "what would be the result")


@clause("RT-04.5-17", "RT-10.1-01")
def test_every_launch_has_extents_of_its_own(impl, check):
    """One kernel transposes matrices of which one extent, or none, is that of the launch before (AMB-RT-85)."""
    session = opened(impl, check)
    kernel = session.kernel("turn", PROGRAM)
    for rows, columns in [(2, 3), (2, 5), (4, 5), (4, 3), (2, 3), (3, 2), (5, 2), (5, 4)]:
        count = rows * columns
        x, y = session.upload(elements("int32", *range(count))), session.allocate(4 * count)
        session.launch(kernel, packed(("int32", rows), ("int32", columns), ("ptr", x), ("ptr", y)))
        expected = [row * columns + column for column in range(columns) for row in range(rows)]
        check.equal(session.integers(y, count), expected, f"{rows}x{columns}, transposed")


@feature("rank-memory")
@clause("RT-04.5-17")
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_a_launch_runs_on_every_rank(impl, check, ranks):
    """Each with its own memory behind the one pointer (AMB-RT-05)."""
    session = opened(impl, check, ranks=ranks)
    pointer = session.allocate(BYTES)
    for rank in range(ranks):
        session.poke(rank, pointer, elements("int32", *[rank] * COUNT))
    session.launch(session.kernel("digit"), packed(("int32", 7), ("ptr", pointer)))
    for rank in range(ranks):
        check.equal(session.integers_of_rank(rank, pointer), [10 * rank + 7] * COUNT, f"what rank {rank} has")


# Shared memory


@clause("RT-04.5-18")
@pytest.mark.parametrize("hint", [0, 1, 16, 1000, 16384])
def test_shared_bytes_are_a_hint(impl, check, hint):
    """Zero is accepted, and a hint changes no result (AMB-RT-09)."""
    session = opened(impl, check)
    pointer = session.upload(elements("int32", *range(COUNT)))
    kernel = session.kernel("digit")
    for _ in range(2):
        session.launch(kernel, packed(("int32", 1), ("ptr", pointer)), shmemBytes=hint)
    check.equal(session.integers(pointer), [100 * place + 11 for place in range(COUNT)], "what the kernel left")


# The argument buffer


@clause("RT-04.5-17", "RT-06-05")
@pytest.mark.parametrize("launches", [1, 3])
def test_the_argument_buffer_is_read_when_the_call_returns(impl, check, launches):
    """It is overwritten at once, before the stream is waited for, and used for the next launch (AMB-RT-72)."""
    session = opened(impl, check)
    kernel, pointers = session.kernel("fill"), [session.allocate(BYTES) for _ in range(launches)]
    buffer_of_host = session.host(bytes(16))
    for value, pointer in enumerate(pointers):
        arguments = packed(("int32", value + 5), ("ptr", pointer))
        session.host_write(buffer_of_host, arguments)
        session.launch(kernel, argBuffer=buffer_of_host, argSize=len(arguments))
        session.ask("tessxHostWrite", hostPtr=buffer_of_host, data="ff" * 16)
    for value, pointer in enumerate(pointers):
        check.equal(session.integers(pointer), [value + 5] * COUNT, f"what launch {value} left")


@clause("RT-04.5-17", "RT-06-05")
def test_arguments_that_are_overwritten_are_not_those_of_a_queued_launch(impl, check):
    """Other arguments, of a legal launch too, are written to the buffer before the stream is waited for (AMB-RT-72)."""
    session = opened(impl, check)
    kernel, (first, second) = session.kernel("fill"), [session.upload(bytes(BYTES)) for _ in range(2)]
    session.synchronize()
    buffer = session.host(packed(("int32", 5), ("ptr", first)))
    answer = session.launching(kernel, argBuffer=buffer, argSize=16)
    check.returns(answer, "tessLaunch succeeds")
    session.host_write(buffer, packed(("int32", 6), ("ptr", second)))
    actual = [session.integers(pointer) for pointer in (first, second)]
    in_use = actual == [[0] * COUNT, [6] * COUNT]
    check.reading("AMB-RT-72", "the buffer stays in use until the launch has completed", in_use)
    check.equal(actual, [[5] * COUNT, [0] * COUNT], "what the launch left")


@clause("RT-04.5-17")
def test_launches_have_arguments_of_their_own(impl, check):
    """Ten of one kernel are queued with other values and other pointers, and run with those."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.allocate(10 * BYTES)
    for value in range(10):
        session.launch(kernel, packed(("int32", value * value), ("ptr", pointer + value * BYTES)))
    actual = values_of("int32", session.download(pointer, 10 * BYTES))
    check.equal(actual, [value * value for value in range(10) for _ in range(COUNT)], "what all launches left")


@clause("RT-04.5-17")
@pytest.mark.parametrize("filler", [0x00, 0xFF, 0xA5])
def test_padding_has_no_meaning(impl, check, filler):
    """The bytes between an int32 and a pointer, and behind the last argument, may hold anything (AMB-RT-55)."""
    source = "module m { kernel k(a: int32, x: tensor<4xint32>, b: int32) { x = x * a + b; } }"
    session = opened(impl, check)
    kernel, pointer = session.kernel("k", source), session.upload(elements("int32", 1, 2, 3, 4))
    padding = bytes([filler]) * 4
    arguments = elements("int32", 3) + padding + struct.pack("<Q", pointer) + elements("int32", -5) + padding
    session.launch(kernel, arguments)
    check.equal(values_of("int32", session.download(pointer, 16)), [-2, 1, 4, 7], "what the kernel left")


@clause("RT-10.1-04", "RT-04.5-17")
def test_the_rounded_size_is_taken(impl, check):
    """argSize is the size of the buffer, 24 here, where the last argument ends at 20 (AMB-RT-16)."""
    source = "module m { kernel k(a: int32, x: tensor<4xint32>, b: int32) { x = x * a + b; } }"
    session = opened(impl, check)
    kernel, pointer = session.kernel("k", source), session.upload(elements("int32", 1, 2, 3, 4))
    arguments = packed(("int32", 2), ("ptr", pointer), ("int32", 1))
    check.equal(len(arguments), 24, "the size of the buffer")
    session.launch(kernel, arguments, argSize=24)
    check.equal(values_of("int32", session.download(pointer, 16)), [3, 5, 7, 9], "what the kernel left")
    check.status(session.launching(kernel, arguments, argSize=19), "TESS_ERR_INVALID_VALUE")
    check.status(session.launching(kernel, arguments, argSize=0), "TESS_ERR_INVALID_VALUE")
    check.equal(values_of("int32", session.download(pointer, 16)), [3, 5, 7, 9], "what refused launches left")


@clause("RT-04.5-17")
def test_a_pointer_may_lead_into_an_allocation(impl, check):
    """A kernel writes its tensor there and nothing around it."""
    session = opened(impl, check)
    pointer = session.upload(elements("int32", *[9] * (3 * COUNT)))
    session.launch(session.kernel("fill"), packed(("int32", 4), ("ptr", pointer + BYTES)))
    actual = values_of("int32", session.download(pointer, 3 * BYTES))
    check.equal(actual, [9] * COUNT + [4] * COUNT + [9] * COUNT, "the allocation")


LAUNCHES = 600


@clause("RT-04.5-17", "RT-04.4-14")
def test_launches_leave_nothing_behind(impl, check):
    """After six hundred launches two fifths of the device, and a handle of each kind, are available (AMB-RT-126)."""
    session = opened(impl, check)
    module, pointer = session.load(), session.upload(bytes(BYTES))
    kernel, arguments = session.kernel_of(module, "fill"), packed(("int32", 3), ("ptr", pointer))
    for turn in range(LAUNCHES):
        session.launch(kernel, arguments)
        if turn % 100 == 99:
            session.synchronize()
    session.allocate(session.ask("tessxDevices")["devices"][0]["memory_bytes"] // 5 * 2)
    other = session.another_stream()
    other.record(other.event())
    session.kernel_of(session.load(), "digit")
    check.equal(session.integers(pointer), [3] * COUNT, "what the launches left")


# When a launch runs, and how its failure is reported


@feature("fault-injection")
@clause("RT-06-05")
@pytest.mark.parametrize("kind", ["kernel_hang", "kernel_slow"])
def test_a_launch_does_not_wait_for_its_kernel(impl, check, kind):
    """tessLaunch returns though the kernel never ends, or only after an hour of the machine's time."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    fault = {"kind": kind, "kernel": "fill", "nth": 1} | (
        {"nanoseconds": 3600 * 10**9} if kind == "kernel_slow" else {}
    )
    session.ask("tessxSetFaults", context=session.context, faults=[fault])
    session.launch(kernel, packed(("int32", 1), ("ptr", pointer)))
    session.launch(session.kernel("nothing"))
    answer = session.attempt("tessStreamSynchronize", stream=session.stream)
    if kind == "kernel_hang":
        check.status(answer, "TESS_ERR_LAUNCH_FAILED")
        return
    check.returns(answer, "the kernel ends at last")
    check.equal(session.integers(pointer), [1] * COUNT, "what the kernel left")


APPROACHING = """module m { kernel approach(n: int32, x: tensor<4xfp32>) {
  let i: int32 = 0;
  while (i < n) { x = x * 0.5 + 1.0; i = i + 1; }
} }"""
LONG = 0.05
"""Seconds beside which the time of a call does not matter."""
MOST = 1 << 30


@clause("RT-06-05")
def test_a_launch_takes_a_small_part_of_the_time_of_its_kernel(impl, check):
    """Of three launches of a loop of a twentieth of a second or more, one returns before half of its time."""
    session = opened(impl, check)
    kernel = session.kernel("approach", APPROACHING)
    count, timed = 250, [(0.0, 0.0)]
    while min(map(sum, timed)) < LONG and count < MOST:
        count *= 4
        starts = [session.upload(elements("fp32", 8.0, start, 3.0, -5.0)) for start in (4.0, 6.0, 9.0)]
        timed = [durations(session, kernel, count, pointer) for pointer in starts]
        for pointer in starts:
            check.equal(values_of("fp32", session.download(pointer, 16)), [2.0] * 4, "the limit of the loop")
    check.given(min(map(sum, timed)) >= LONG, "a kernel can be made to run for a twentieth of a second", timed)
    quick = any(launching < waiting for launching, waiting in timed)
    check.true(quick, "a launch returned before half of its kernel's time had passed", timed)


def durations(session, kernel, count, pointer):
    """Return the seconds of a launch and of the synchronization behind it."""
    begin = perf_counter()
    session.launch(kernel, packed(("int32", count), ("ptr", pointer)))
    launched = perf_counter()
    session.synchronize()
    return launched - begin, perf_counter() - launched


@feature("fault-injection")
@clause("RT-04.3-10")
@pytest.mark.parametrize("last", ["launch", "copy"])
def test_a_synchronization_waits_for_a_slow_kernel(impl, check, last):
    """It returns when the kernel, and a copy behind it, are done, and not before."""
    session = opened(impl, check)
    kernel, pointer, target = session.kernel("fill"), session.upload(bytes(BYTES)), session.host(bytes(BYTES))
    session.synchronize()
    fault = {"kind": "kernel_slow", "kernel": "fill", "nth": 1, "nanoseconds": 10**9}
    session.ask("tessxSetFaults", context=session.context, faults=[fault])
    session.launch(kernel, packed(("int32", 6), ("ptr", pointer)))
    if last == "copy":
        session.copy(target, pointer, BYTES, 1)
    session.synchronize()
    if last == "launch":
        other = session.another_stream()
        other.copy(target, pointer, BYTES, 1)
        other.synchronize()
    check.equal(values_of("int32", session.host_bytes(target, BYTES)), [6] * COUNT, "what was copied")


@clause("RT-04.3-10")
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_a_synchronization_waits_for_all_that_is_queued(impl, check, count):
    """When it returns, the host has all copies, and another stream may use the results of the launches."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("digit"), session.upload(bytes(BYTES))
    targets = [session.host(bytes(BYTES)) for _ in range(count)]
    for place, target in enumerate(targets):
        session.launch(kernel, packed(("int32", place % 2), ("ptr", pointer)))
        session.copy(target, pointer, BYTES, 1)
    session.synchronize()
    number, expected = 0, []
    for place in range(count):
        number = wrapped(number * 10 + place % 2)
        expected.append(number)
    actual = [int(values_of("int32", session.host_bytes(target, BYTES))[-1]) for target in targets]
    check.equal(actual, expected, "what each copy brought")
    other, spare = session.another_stream(), session.allocate(BYTES)
    other.copy(spare, pointer, BYTES, D2D)
    last = other.integers(spare)
    check.equal(last, [number] * COUNT, "what another stream finds")
    session.synchronize()


@clause("RT-04.3-10", "RT-04.5-17")
def test_each_of_many_queued_launches_runs(impl, check):
    """Of 1,500 launches on one stream, with nothing between them, each appends its digit to a number."""
    session = opened(impl, check)
    kernel, pointer, number = session.kernel("digit"), session.upload(bytes(BYTES)), 0
    for place in range(1500):
        session.launch(kernel, packed(("int32", place % 7), ("ptr", pointer)))
        number = wrapped(number * 10 + place % 7)
    session.synchronize()
    check.equal(session.integers(pointer), [number] * COUNT, "what they left")


FAILING = {
    "a division by zero": ("divide", 0),
    "an index behind the end": ("index", COUNT),
    "a step of 0": ("steps", 0),
}


@clause("RT-06-06")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(("name", "wrong"), FAILING.values(), ids=FAILING)
def test_a_failed_launch_is_reported(impl, check, name, wrong, ranks):
    """By the status of the call or of the synchronization."""
    session = opened(impl, check, ranks=ranks)
    pointer = session.allocate(BYTES)
    launched = session.launching(session.kernel(name), packed(("int32", wrong), ("ptr", pointer)))
    waited = session.attempt("tessStreamSynchronize", stream=session.stream)
    codes = [getattr(error, "code", "TESS_OK") for error in (launched, waited)]
    check.true("TESS_ERR_LAUNCH_FAILED" in codes, "the launch or the synchronization says so", codes)


@feature("fault-injection")
@clause("RT-06-06", "RT-07-07")
@pytest.mark.parametrize(("ranks", "rank"), [(1, 0), (4, 0), (4, 1), (4, 3), (4, None)])
def test_a_trap_on_any_rank_is_reported(impl, check, ranks, rank):
    """The second launch traps on that rank, or on all; the synchronization reports it, once (AMB-RT-14, AMB-RT-81)."""
    session = opened(impl, check, ranks)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    fault = {"kind": "kernel_trap", "kernel": "fill", "nth": 2} | ({} if rank is None else {"rank": rank})
    session.ask("tessxSetFaults", context=session.context, faults=[fault])
    for expected in ("", "TESS_ERR_LAUNCH_FAILED", ""):
        session.launch(kernel, packed(("int32", 1), ("ptr", pointer)))
        answer = session.attempt("tessStreamSynchronize", stream=session.stream)
        check.equal(getattr(answer, "code", ""), expected, "the status of the synchronization")


# Meshes and contexts


@clause("RT-04.5-17")
@pytest.mark.parametrize(("ranks", "others"), [(1, 1), (2, 1), (1, 2)])
def test_a_kernel_runs_on_every_mesh_of_its_context(impl, check, ranks, others):
    """A context loads a module, so its kernel runs on one mesh and then on another one, and on the first again."""
    session = opened(impl, check, ranks)
    other = meshed(impl, check, session.context, devices(impl, check, others), dp=others)
    kernel = session.kernel("fill")
    for value, on in enumerate((session, other, session), 5):
        pointer = on.allocate(BYTES)
        on.launch(kernel, packed(("int32", value), ("ptr", pointer)))
        check.equal(on.integers(pointer), [value] * COUNT, f"the result of launch {value - 4}")


@clause("RT-19.A-01")
def test_a_kernel_of_another_context_is_refused(impl, check):
    """Kernel and mesh are of one context (AMB-RT-187): memory stays as it is, and the context's own kernel runs."""
    stranger, session = two_contexts(impl, check)
    pointer = session.upload(elements("int32", *range(COUNT)))
    arguments = packed(("int32", 7), ("ptr", pointer))
    answer = session.launching(stranger.kernel("fill"), arguments)
    check.reading("AMB-RT-187", "the kernel runs on the mesh", isinstance(answer, Returned))
    refused(check, answer, INVALID)
    check.equal(session.integers(pointer), list(range(COUNT)), "the memory after the refusal")
    session.launch(session.kernel("fill"), arguments)
    check.equal(session.integers(pointer), [7] * COUNT, "the memory after a launch of its own kernel")
