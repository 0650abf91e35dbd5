"""Work that outlasts its timeout (runtime specification, 19.A; AMB-RT-12, AMB-RT-67, AMB-RT-81, AMB-RT-168)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.graphs import digit_stream
from tessera_conformance.chapters.runtime.kit.mesh_session import D2H, DTYPE_IDS, SUM, opened, two_contexts
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause, feature

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
ENOUGH = 100 * MILLISECOND
"""For a copy or a kernel that does nothing, on slow devices too: no text says how long they take."""


def allowing(session, nanoseconds):
    """The session, whose context lets work take so long."""
    session.ask("tessxSetTimeout", context=session.context, nanoseconds=nanoseconds)
    return session


def faulty(session, **fault):
    """Inject a fault into all later calls."""
    session.ask("tessxSetFaults", context=session.context, faults=[fault])


def late(session):
    """The stream reports a timeout, once."""
    session.reports("TESS_ERR_TIMEOUT")
    session.synchronize()


@clause("RT-19.A-09")
@feature("fault-injection")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("allowed", [1000, MILLISECOND, SECOND])
def test_a_kernel_that_never_ends_is_a_timeout(impl, check, ranks, allowed):
    """The launch succeeds, the synchronization says TESS_ERR_TIMEOUT once for each, and the next launches run."""
    session = allowing(digit_stream(impl, check, ranks), allowed)
    nothing = session.kernel("nothing")
    for _ in range(2):
        faulty(session, kind="kernel_hang", kernel="nothing")
        session.launch(nothing)
        late(session)
    allowing(session, 0)
    pointer = session.zeros()
    session.append(7, pointer)
    session.require(pointer, 7, "what a later launch has written")


@clause("RT-19.A-09")
@feature("fault-injection")
@pytest.mark.parametrize("slower", [2 * ENOUGH, 10 * SECOND])
def test_a_kernel_that_is_too_slow_is_a_timeout(impl, check, slower):
    """One that takes at least twice as long as is allowed, and another one later."""
    session = allowing(opened(impl, check), ENOUGH)
    nothing = session.kernel("nothing")
    for _ in range(2):
        faulty(session, kind="kernel_slow", kernel="nothing", nanoseconds=slower)
        session.launch(nothing)
        late(session)
        session.launch(nothing)
        session.synchronize()


@clause("RT-19.A-09")
@feature("fault-injection")
@pytest.mark.parametrize("allowed", [0, SECOND, 60 * SECOND])
def test_a_slow_kernel_within_its_timeout_succeeds(impl, check, allowed):
    """Half a millisecond more, where a second is allowed, or anything."""
    session = allowing(digit_stream(impl, check), allowed)
    pointer = session.zeros()
    faulty(session, kind="kernel_slow", kernel="digit", nanoseconds=MILLISECOND // 2)
    session.append(7, pointer)
    session.require(pointer, 7, "what the slow kernel has written")


@clause("RT-19.A-09")
@feature("fault-injection")
def test_a_timeout_is_for_one_context_and_one_stream(impl, check):
    """A timeout on one stream leaves the other streams alone, and another context has no timeout."""
    session, second = two_contexts(impl, check)
    allowing(session, ENOUGH)
    other = session.another_stream()
    nothing = session.kernel("nothing")
    faulty(session, kind="kernel_hang", kernel="nothing")
    session.launch(nothing)
    other.launch(nothing)
    late(session)
    other.synchronize()
    slow = second.kernel("nothing")
    faulty(second, kind="kernel_slow", kernel="nothing", nanoseconds=SECOND)
    second.launch(slow)
    second.synchronize()


@clause("RT-19.A-09")
@feature("per-rank-issue")
@pytest.mark.parametrize("absent", [0, 1, 3])
def test_a_missing_participant_is_a_timeout(impl, check, absent):
    """Three of four ranks issue an all-reduce; the fourth does not (AMB-RT-168)."""
    session = allowing(opened(impl, check, 4), ENOUGH)
    pointer = session.upload(bytes(256))
    session.synchronize()
    whole = {"mesh": session.mesh, "collective": "all_reduce", "buffer": pointer, "count": 64}
    for rank in range(4):
        if rank != absent:
            request = {"dtype": DTYPE_IDS["int32"], "op": SUM, "axis": "dp", "stream": session.stream}
            session.ask("tessxIssue", rank=rank, **whole, **request)
    answer = session.attempt("tessStreamSynchronize", stream=session.stream)
    check.reading("AMB-RT-168", "always a mismatch", rejected(answer, "TESS_ERR_COLLECTIVE_MISMATCH"))
    check.status(answer, "TESS_ERR_TIMEOUT")
    session.errors[session.stream] = "TESS_ERR_TIMEOUT"
    session.synchronize()


@clause("RT-19.A-09")
@pytest.mark.parametrize("work", ["copy", "collective"])
def test_work_that_no_machine_does_in_a_nanosecond_is_a_timeout(impl, check, work):
    """A copy and an all-reduce of a mebibyte; without the timeout the same is done."""
    session = opened(impl, check, 2)
    pointer = session.upload(bytes(1 << 20))
    target = session.host(bytes(1 << 20))
    session.synchronize()

    def queued():
        if work == "copy":
            session.copy(target, pointer, 1 << 20, D2H)
        else:
            session.all_reduce(pointer, 1 << 18)

    allowing(session, 1)
    queued()
    late(session)
    allowing(session, 0)
    queued()
    session.synchronize()


@clause("RT-19.A-09")
def test_work_within_its_timeout_is_untouched(impl, check):
    """A minute for copies, launches and collectives of a few elements."""
    session = allowing(digit_stream(impl, check, 2), 60 * SECOND)
    pointer = session.zeros()
    for digit in (1, 2, 3):
        session.append(digit, pointer)
    whole = {"mesh": session.mesh, "buffer": pointer, "count": 64, "dtype": DTYPE_IDS["int32"]}
    session.ask("tessBroadcast", **whole, root=0, stream=session.stream)
    session.require(pointer, 123, "the result")
