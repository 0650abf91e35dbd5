"""The errors of the runtime: their content, the call that reports them, their effects (runtime specification, 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    D2D,
    DTYPE_IDS,
    SUM,
    MeshSession,
    meshed,
    opened,
    refused,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.chapters.runtime.kit.readings import no_kernel, wrong_argument, wrong_configuration
from tessera_conformance.marks import clause

INVALID = "TESS_ERR_INVALID_VALUE"
LAUNCH_FAILED = "TESS_ERR_LAUNCH_FAILED"
ONES = [1] * COUNT


def failing_launch(session: MeshSession, kernel: int, pointer: int) -> None:
    """Queue a launch of `divide` that divides by zero."""
    session.launch(kernel, packed(("int32", 0), ("ptr", pointer)))


def of_ones(session: MeshSession) -> int:
    """Device memory with a tensor of ones."""
    return session.upload(elements("int32", *ONES))


REFUSED_LAUNCHES: dict[str, dict[str, Any]] = {
    "grid": {"grid": [0, 1, 1]},
    "block": {"block": [-1, 1, 1]},
    "flags": {"flags": 1 << 31},
    "shared memory": {"shmemBytes": 1 << 60},
    "arguments": {"argSize": 4},
    "no arguments": {"argBuffer": None, "argSize": 16},
}


@clause("RT-07-02")
@pytest.mark.parametrize("wrong", REFUSED_LAUNCHES.values(), ids=REFUSED_LAUNCHES)
def test_a_launch_that_is_refused_does_not_run(impl, check, wrong):
    """The memory it would have written is as it was; without the mistake it is written (AMB-RT-10, AMB-RT-61)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), of_ones(session)
    arguments = packed(("int32", 5), ("ptr", pointer))
    answer = session.launching(kernel, arguments, **wrong)
    wrong_configuration(session, wrong, answer)
    refused(check, answer, INVALID)
    check.equal(session.integers(pointer), ONES, "the memory")
    session.launch(kernel, arguments)
    check.equal(session.integers(pointer), [5] * COUNT, "the memory")


COPIES = {"kind": {"kind": 3}, "far kind": {"kind": 99}, "negative kind": {"kind": -1}, "source": {"src": 0}}


@clause("RT-07-02")
@pytest.mark.parametrize("wrong", COPIES.values(), ids=COPIES)
def test_a_copy_that_is_refused_moves_nothing(impl, check, wrong):
    """The target is as it was; without the mistake it is written."""
    session = opened(impl, check)
    target, source = of_ones(session), session.upload(elements("int32", *[2] * COUNT))
    arguments = {"dst": target, "src": source, "bytes": BYTES, "kind": D2D, "stream": session.stream}
    refused(check, session.attempt("tessMemcpyAsync", **(arguments | wrong)), INVALID)
    check.equal(session.integers(target), ONES, "the target")
    session.ask("tessMemcpyAsync", **arguments)
    check.equal(session.integers(target), [2] * COUNT, "the target")


@clause("RT-07-02")
@pytest.mark.parametrize(
    "wrong",
    [{"op": 3}, {"dtype": 0}, {"axis": "xp"}, {"axis": None}],
    ids=["op", "dtype", "axis", "no axis"],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_collective_that_is_refused_changes_nothing(impl, check, ranks, wrong):
    """The buffer is as it was; without the mistake it holds the sum."""
    session = opened(impl, check, ranks)
    pointer = of_ones(session)
    arguments = {"mesh": session.mesh, "buffer": pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"], "op": SUM}
    whole = arguments | {"axis": "dp", "stream": session.stream}
    answer = session.attempt("tessAllReduce", **(whole | wrong))
    wrong_argument(check, "tessAllReduce", wrong, answer)
    refused(check, answer, INVALID)
    check.equal(session.integers(pointer), ONES, "the buffer")
    session.ask("tessAllReduce", **whole)
    check.equal(session.integers(pointer), [ranks] * COUNT, "the buffer")


@clause("RT-07-02", "RT-19.A-12")
def test_success_and_failure_alternate(impl, check):
    """A call that succeeds after one that failed says so, and the other way round."""
    session = opened(impl, check)
    pointer = of_ones(session)
    whole = {"dst": pointer, "src": pointer + 8, "bytes": 8, "stream": session.stream}
    for _ in range(5):
        session.ask("tessMemcpyAsync", **whole, kind=D2D)
        refused(check, session.attempt("tessMemcpyAsync", **whole, kind=3), INVALID)
        session.allocate(64)
        refused(check, session.attempt("tessMalloc", mesh=session.mesh, bytes=64, null=["devPtr"]), INVALID)


@clause("RT-07-02", "RT-19.A-12")
def test_kernels_are_found_and_not_found_by_turns(impl, check):
    """A name that the module has succeeds, also after one that it does not have."""
    session = opened(impl, check)
    module = session.load()
    for _ in range(5):
        session.kernel_of(module, "fill")
        no_kernel(check, session.attempt("tessKernelGet", module=module, name="none"))


@clause("RT-07-04")
@pytest.mark.parametrize("pending", [False, True], ids=["idle", "pending"])
def test_out_of_memory_is_reported_by_the_call(impl, check, pending):
    """By the call that finds none, also behind queued work, and the synchronization does not repeat it."""
    session = opened(impl, check)
    pointer = of_ones(session)
    if pending:
        session.write(pointer, elements("int32", *[3] * COUNT))
    for _ in range(3):
        check.status(session.attempt("tessMalloc", mesh=session.mesh, bytes=1 << 62), "TESS_ERR_OUT_OF_MEMORY")
    session.synchronize()
    expected = [3 if pending else 1] * COUNT
    check.equal(session.integers(pointer), expected, "the memory that there is")


@clause("RT-07-07")
def test_a_launch_that_fails_leaves_other_streams_alone(impl, check):
    """Their synchronization succeeds, before and after that of the stream with the error (AMB-RT-14)."""
    session = opened(impl, check)
    other, kernel, pointer = session.another_stream(), session.kernel("divide"), session.allocate(BYTES)
    failing_launch(session, kernel, pointer)
    other.launch(other.kernel("fill"), packed(("int32", 1), ("ptr", other.allocate(BYTES))))
    other.synchronize()
    session.reports(LAUNCH_FAILED)
    other.synchronize()


@clause("RT-07-07")
def test_a_launch_that_fails_leaves_other_meshes_alone(impl, check):
    """Another mesh over the same device is left alone, too (AMB-RT-14)."""
    session = opened(impl, check)
    other = meshed(impl, check, session.context, devices_of(impl, check, 1))
    failing_launch(session, session.kernel("divide"), session.allocate(BYTES))
    check.equal(values_of("int32", other.download(of_ones(other), BYTES)), ONES, "what the other mesh copies")
    session.reports(LAUNCH_FAILED)


@clause("RT-07-07", "RT-06-05")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_failed_launches_are_reported_once(impl, check, count):
    """Several before a synchronization are one error, and each round has its own (AMB-RT-14).

    The launches themselves succeed: one that waited for its kernel would know how it ended.
    """
    session = opened(impl, check)
    kernel, pointer = session.kernel("divide"), session.allocate(BYTES)
    for _ in range(3):
        for _ in range(count):
            failing_launch(session, kernel, pointer)
        session.reports(LAUNCH_FAILED)
        session.synchronize()


@clause("RT-07-07")
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_failed_launch_among_good_ones_is_found(impl, check, place):
    """It may be at any place of the queue; work launched before it has run."""
    session = opened(impl, check)
    module, pointer = session.load(), session.allocate(BYTES)
    good, bad = session.kernel_of(module, "fill"), session.kernel_of(module, "divide")
    for position in range(5):
        target = pointer if position < place else session.allocate(BYTES)
        if position == place:
            failing_launch(session, bad, target)
        else:
            session.launch(good, packed(("int32", 8), ("ptr", target)))
    session.reports(LAUNCH_FAILED)
    if place:
        check.equal(session.integers(pointer), [8] * COUNT, "what was launched before")
    session.synchronize()


@clause("RT-07-07", "RT-07-03")
def test_an_invalid_value_does_not_hide_a_failed_launch(impl, check):
    """The one is reported by its call, the other by the synchronization."""
    session = opened(impl, check)
    failing_launch(session, session.kernel("divide"), session.allocate(BYTES))
    refused(check, session.attempt("tessMalloc", mesh=session.mesh, bytes=64, null=["devPtr"]), INVALID)
    session.reports(LAUNCH_FAILED)
    session.synchronize()
