"""Limits of the memory that a stream's queued work refers to (runtime specification, 15; AMB-RT-87)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.graphs import instantiated
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, CAPTURE, COUNT, D2D, MeshSession, opened
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Observation

OUT_OF_MEMORY = "TESS_ERR_OUT_OF_MEMORY"

# Every tensor is an allocation of its own, of BYTES bytes.


def tensors(session: MeshSession, count: int) -> list[int]:
    """Memory with ones, and nothing queued any more."""
    pointers = [session.upload(elements("int32", *[1] * COUNT)) for _ in range(count)]
    session.synchronize()
    return pointers


def limit(session: MeshSession, size: int) -> None:
    """Limit the stream; 0 lifts the limit."""
    session.ask("tessxSetStreamLimit", stream=session.stream, bytes=size)


def copying(session: MeshSession, dst: int, src: int) -> Observation:
    """Return the answer of a copy of a whole tensor to another."""
    return session.attempt("tessMemcpyAsync", dst=dst, src=src, bytes=BYTES, kind=D2D, stream=session.stream)


@feature("stream-memory-limits")
@clause("RT-15-03")
@pytest.mark.parametrize("room", [1, BYTES - 1, BYTES, 2 * BYTES - 1])
def test_work_beyond_the_limit_is_out_of_memory(impl, check, room):
    """A copy between two tensors needs room for both; it is refused when it is queued, and not done."""
    session = opened(impl, check)
    source, target = tensors(session, 2)
    session.write(source, elements("int32", *[7] * COUNT))
    session.synchronize()
    limit(session, room)
    check.status(copying(session, target, source), OUT_OF_MEMORY)
    session.synchronize()
    limit(session, 0)
    check.equal(session.integers(target), [1] * COUNT, "the target")


@feature("stream-memory-limits")
@clause("RT-15-03")
@pytest.mark.parametrize("room", [2 * BYTES, 2 * BYTES + 1, 1 << 40])
def test_work_within_the_limit_is_done(impl, check, room):
    """A copy between two tensors, exactly at the limit too."""
    session = opened(impl, check)
    source, target = tensors(session, 2)
    session.write(source, elements("int32", *[7] * COUNT))
    limit(session, room)
    check.returns(copying(session, target, source), "the copy succeeds")
    check.equal(session.integers(target), [7] * COUNT, "the target")


@feature("stream-memory-limits")
@clause("RT-15-03")
def test_memory_of_finished_work_does_not_count(impl, check):
    """With room for two of three tensors, the third has its turn after a synchronization; the same ones count once."""
    session = opened(impl, check)
    first, second, third = tensors(session, 3)
    limit(session, 2 * BYTES)
    for _ in range(3):
        check.returns(copying(session, second, first), "the same memory counts once")
    session.synchronize()
    check.returns(copying(session, third, second), "after the synchronization there is room again")
    session.synchronize()


@feature("stream-memory-limits")
@clause("RT-15-03")
@pytest.mark.parametrize("kind", ["launch", "collective", pytest.param("replay", marks=feature("graph-replay"))])
def test_launches_and_collectives_count_too(impl, check, kind):
    """All work that refers to device memory counts."""
    session = opened(impl, check)
    kernel = session.kernel("fill")
    pointer = tensors(session, 1)[0]
    graph = 0
    if kind == "replay":
        session.launch(kernel, packed(("int32", 2), ("ptr", pointer)), flags=CAPTURE)
        graph = instantiated(session)

    def work() -> Observation:
        if kind == "replay":
            return session.attempt("tessxGraphLaunch", graph=graph, stream=session.stream)
        if kind == "launch":
            return session.launching(kernel, packed(("int32", 2), ("ptr", pointer)))
        return session.reducing(pointer)

    limit(session, BYTES - 1)
    check.status(work(), OUT_OF_MEMORY)
    limit(session, BYTES)
    check.returns(work(), "there is room enough")
    session.synchronize()


@feature("stream-memory-limits")
@clause("RT-15-03")
def test_a_limit_is_that_of_its_stream(impl, check):
    """Another stream has none, and 0 lifts it."""
    session = opened(impl, check)
    other = session.another_stream()
    source, target = tensors(session, 2)
    limit(session, 1)
    check.returns(copying(other, target, source), "another stream has no limit")
    other.synchronize()
    check.status(copying(session, target, source), OUT_OF_MEMORY)
    limit(session, 0)
    check.returns(copying(session, target, source), "the limit is lifted")
    session.synchronize()


@feature("stream-memory-limits")
@clause("RT-15-03", "RT-19.A-01")
@pytest.mark.parametrize("size", [-1, -(1 << 63)])
def test_a_limit_below_nothing_is_refused(impl, check, size):
    """A negative limit is refused, and the limit before it stays."""
    session = opened(impl, check)
    source, target = tensors(session, 2)
    limit(session, 2 * BYTES)
    answer = session.attempt("tessxSetStreamLimit", stream=session.stream, bytes=size)
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    check.returns(copying(session, target, source), "the copy succeeds")
    session.synchronize()
