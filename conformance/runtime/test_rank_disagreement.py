"""Ranks that issue collectives for themselves, and errors where these do not match.

Runtime specification, 7, 11, 13 and Appendix A; needs ranks that issue on their own (AMB-RT-41). A difference in the
plan is TESS_ERR_COLLECTIVE_MISMATCH, one in descriptor or policy TESS_ERR_DETERMINISM_VIOLATION (AMB-RT-13); both are
reported by the next synchronization of the stream, once (AMB-RT-14).
"""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import FUNCTIONS, parts_of
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, MAX, SUM, MeshSession, opened
from tessera_conformance.chapters.runtime.kit.policies import STRICT
from tessera_conformance.chapters.runtime.kit.readings import hung, rejected
from tessera_conformance.chapters.runtime.kit.schedules import seeded, under_seeds
from tessera_conformance.chapters.runtime.kit.stream_fixture import by_launches
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

MISMATCH = "TESS_ERR_COLLECTIVE_MISMATCH"
VIOLATION = "TESS_ERR_DETERMINISM_VIOLATION"

pytestmark = feature("per-rank-issue")

DESCRIPTOR = {"seed": 7, "stream": 3, "reduction_order": "pairwise"}

COUNT = 6
WHOLE: dict[str, Any] = {
    "collective": "all_reduce",
    "count": COUNT,
    "dtype": DTYPE_IDS["int32"],
    "op": SUM,
    "axis": "dp",
    "algorithm": "ring",
}
"""The call of ranks that agree."""

GATHER = {"collective": "all_gather", "count": COUNT, "dtype": DTYPE_IDS["int32"], "axis": "dp"}
BROADCAST = {"collective": "broadcast", "count": COUNT, "dtype": DTYPE_IDS["int32"], "root": 0}

MISMATCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the count": (WHOLE, WHOLE | {"count": 3}),
    "a count of nothing": (WHOLE, WHOLE | {"count": 0}),
    "the dtype": (WHOLE, WHOLE | {"dtype": DTYPE_IDS["fp32"]}),
    "the operator": (WHOLE, WHOLE | {"op": MAX}),
    "the axis": (WHOLE, WHOLE | {"axis": "tp"}),
    "the algorithm": (WHOLE, WHOLE | {"algorithm": "tree"}),
    "the root": (BROADCAST, BROADCAST | {"root": 1}),
    "reduction and gathering": (GATHER, {name: WHOLE[name] for name in ("collective", "count", "dtype", "op", "axis")}),
    "broadcast and gathering": (BROADCAST, GATHER),
    "reduce-scatter and all-reduce": (WHOLE | {"collective": "reduce_scatter"}, WHOLE),
    "the count of a broadcast": (BROADCAST, BROADCAST | {"count": 5}),
    "the dtype of a gathering": (GATHER, GATHER | {"dtype": DTYPE_IDS["int64"]}),
}
"""Two calls of which each is legal; the ranks that make them do not agree on the plan."""

VIOLATIONS: dict[str, dict[str, Any]] = {
    "the seed": {"descriptor": DESCRIPTOR | {"seed": 8}},
    "the stream of random numbers": {"descriptor": DESCRIPTOR | {"stream": 4}},
    "the order": {"descriptor": DESCRIPTOR | {"reduction_order": "fold"}},
    "the ring": {"descriptor": DESCRIPTOR | {"reduction_order": {"ring": 1}}},
    "no descriptor": {"descriptor": None},
    "stable reductions": {"policy": STRICT | {"stableReductions": 0}},
    "determinism": {"policy": STRICT | {"deterministic": 0}},
    "stateless random numbers": {"policy": STRICT | {"rngStateless": 0}},
    "fast math": {"policy": STRICT | {"allowFastMath": 1}},
}
"""Descriptors and policies other than those of `AGREED`."""
AGREED = {"descriptor": DESCRIPTOR, "policy": STRICT}


def issue(session: MeshSession, rank: int, buffer: int, asked: dict[str, Any]) -> None:
    """A collective of one rank; the call succeeds whatever the other ranks issue."""
    given = {name: value for name, value in asked.items() if value is not None}
    session.ask("tessxIssue", mesh=session.mesh, rank=rank, buffer=buffer, stream=session.stream, **given)


def reported(session: MeshSession, status: str) -> None:
    """The next synchronization reports this status, the one after that none, and the stream takes work again."""
    session.reports(status)
    takes_work_again(session)


def takes_work_again(session: MeshSession) -> None:
    """The next synchronization reports nothing, and a collective completes."""
    session.synchronize()
    pointer = session.upload(elements("int32", *range(COUNT)))
    whole = {"mesh": session.mesh, "buffer": pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"], "root": 0}
    session.ask("tessBroadcast", stream=session.stream, **whole)
    session.synchronize()


# Ranks that agree


@clause("RT-07-08", "RT-19.A-07", "RT-11-08")
@pytest.mark.parametrize("collective", FUNCTIONS)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=["in order", "backwards", "mixed"])
def test_ranks_that_agree_complete_their_collective(impl, check, collective, order):
    """They may arrive in any order; there is nothing to report (AMB-RT-04)."""
    session = opened(impl, check, ranks=3)
    pointer = session.upload(elements("int32", *[1] * 9))
    session.synchronize()
    request = {"collective": collective, "count": 9, "dtype": DTYPE_IDS["int32"]} | parts_of(collective)
    for rank in order:
        issue(session, rank, pointer, request | AGREED)
    session.synchronize()


@feature("rank-memory")
@clause("RT-11-08", "RT-19.A-07")
@pytest.mark.parametrize("streams", [1, 2])
def test_collectives_of_a_stream_are_matched_in_the_order_of_each_rank(impl, check, streams):
    """The n-th collectives of all ranks belong together, though each rank issues all of its own at once."""
    session = opened(impl, check, ranks=2)
    sessions = [session, *(session.another_stream() for _ in range(streams - 1))]
    pointers = [session.allocate(4 * COUNT) for _ in range(2 * streams)]
    for rank in range(2):
        for place, pointer in enumerate(pointers):
            session.poke(rank, pointer, elements("int32", *[10 * place + rank] * COUNT))
    places = range(len(pointers))
    for rank, order in ((1, sorted(places, key=lambda place: -(place % streams))), (0, places)):
        for place in order:
            issue(sessions[place % streams], rank, pointers[place], WHOLE)
    for owner in sessions:
        owner.synchronize()
    for place, pointer in enumerate(pointers):
        for rank in range(2):
            actual = values_of("int32", session.peek(rank, pointer, 4 * COUNT))
            check.equal(actual, [20 * place + 1] * COUNT, f"collective {place} on rank {rank}")


@seeded
@clause("RT-11-08")
def test_ranks_that_agree_complete_their_collective_under_seeded_schedules(impl, check, block, untimed):
    """Two collectives and a launch between them, each rank issuing for itself."""
    under_seeds(by_launches(impl, check), issued_twice, 421, block, untimed, ranks=2)


def issued_twice(stream) -> int:
    """The sum of ones on two ranks, a digit, the sum of that on two ranks, a digit."""
    pointer = stream.full(1)
    asked = WHOLE | {"count": stream.extent}
    for rank in (1, 0):
        issue(stream, rank, pointer, asked)
    stream.digit(1, pointer)
    for rank in (0, 1):
        issue(stream, rank, pointer, asked)
    stream.digit(1, pointer)
    return stream.number(pointer)


# Ranks that do not


@clause("RT-07-08", "RT-19.A-07")
@pytest.mark.parametrize("odd", [0, 1, 2])
@pytest.mark.parametrize(("agreed", "other"), MISMATCHES.values(), ids=MISMATCHES)
def test_ranks_that_disagree_on_the_plan_are_reported(impl, check, agreed, other, odd):
    """Each call succeeds; whichever rank differs, the synchronization reports it, once (AMB-RT-04)."""
    session = opened(impl, check, ranks=3)
    pointer = session.upload(elements("int32", *range(16)))
    for rank in range(3):
        issue(session, rank, pointer, other if rank == odd else agreed)
    reported(session, MISMATCH)


@clause("RT-07-09", "RT-11-09", "RT-19.A-08")
@pytest.mark.parametrize("odd", [0, 1, 2])
@pytest.mark.parametrize("other", VIOLATIONS.values(), ids=VIOLATIONS)
def test_ranks_with_different_descriptors_or_policies_are_reported(impl, check, other, odd):
    """Each call succeeds; whichever rank differs, the synchronization reports it, once."""
    session = opened(impl, check, ranks=3)
    pointer = session.upload(elements("int32", *range(COUNT)))
    for rank in range(3):
        issue(session, rank, pointer, WHOLE | AGREED | (other if rank == odd else {}))
    if "policy" in other:  # appendix A names the mismatch for it
        observed = session.attempt("tessStreamSynchronize", stream=session.stream)
        mismatch = isinstance(observed, Rejected) and observed.code == MISMATCH
        check.reading("AMB-RT-13", "either code passes for a policy difference", mismatch)
        check.status(observed, VIOLATION)
        session.errors[session.stream] = VIOLATION
    else:
        session.reports(VIOLATION)
    takes_work_again(session)


@clause("RT-07-08", "RT-07-09", "RT-11-09")
@pytest.mark.parametrize("odd", [5, 7])
@pytest.mark.parametrize(
    ("other", "status"),
    [({"count": 3}, MISMATCH), ({"descriptor": DESCRIPTOR | {"seed": 11}}, VIOLATION)],
    ids=["count", "descriptor"],
)
def test_a_disagreement_of_one_of_eight_ranks_is_reported(impl, check, odd, other, status):
    """Each call succeeds; the synchronization reports it, though seven ranks agree."""
    session = opened(impl, check, ranks=8)
    pointer = session.upload(elements("int32", *range(COUNT)))
    for rank in range(8):
        issue(session, rank, pointer, WHOLE | AGREED | (other if rank == odd else {}))
    reported(session, status)


@clause("RT-11-08", "RT-11-09", "RT-07-09")
@pytest.mark.parametrize("collective", FUNCTIONS)
def test_every_collective_requires_one_descriptor(impl, check, collective):
    """Also those that only move data (AMB-RT-04)."""
    session = opened(impl, check, ranks=2)
    pointer = session.upload(elements("int32", *range(COUNT)))
    request = {"collective": collective, "count": COUNT, "dtype": DTYPE_IDS["int32"]} | parts_of(collective)
    for rank in range(2):
        issue(session, rank, pointer, request | {"descriptor": DESCRIPTOR | {"seed": rank}})
    reported(session, VIOLATION)


@feature("rank-memory")
@clause("RT-11-08")
@pytest.mark.parametrize("collective", FUNCTIONS)
def test_a_collective_that_fails_leaves_the_data(impl, check, collective):
    """It does not complete: no rank has the result of ranks with different descriptors (AMB-RT-142, AMB-RT-04)."""
    session = opened(impl, check, ranks=2)
    pointer = session.allocate(4 * COUNT)
    for rank in range(2):
        session.poke(rank, pointer, elements("int32", *[rank + 1] * COUNT))
    request = {"collective": collective, "count": COUNT, "dtype": DTYPE_IDS["int32"]} | parts_of(collective)
    for rank in range(2):
        issue(session, rank, pointer, request | {"descriptor": DESCRIPTOR | {"seed": rank}})
    session.reports(VIOLATION)
    for rank in range(2):
        actual = values_of("int32", session.peek(rank, pointer, 4 * COUNT))
        check.reading("AMB-RT-142", "the content is undefined", actual != [rank + 1] * COUNT)
        check.equal(actual, [rank + 1] * COUNT, f"what rank {rank} has")


@clause("RT-07-08", "RT-19.A-07")
@pytest.mark.parametrize("absent", [0, 1, 2])
@pytest.mark.parametrize("before", [0, 2])
def test_a_missing_rank_is_reported(impl, check, absent, before):
    """The synchronization reports TESS_ERR_COLLECTIVE_MISMATCH; what was complete is done (AMB-RT-143)."""
    session = opened(impl, check, ranks=3)
    pointer = session.upload(elements("int32", *range(COUNT)))
    for _ in range(before):
        for rank in range(3):
            issue(session, rank, pointer, WHOLE)
    for rank in range(3):
        if rank != absent:
            issue(session, rank, pointer, WHOLE)
    answer = session.attempt("tessStreamSynchronize", stream=session.stream)
    check.reading("AMB-RT-143", "the synchronization hangs", hung(answer))
    check.reading("AMB-RT-143", "TESS_ERR_LAUNCH_FAILED", rejected(answer, "TESS_ERR_LAUNCH_FAILED"))
    check.status(answer, MISMATCH)
    session.errors[session.stream] = MISMATCH
    session.synchronize()


@clause("RT-07-08")
def test_two_mismatches_are_reported_once(impl, check):
    """The first of them by the next synchronization; the next round has its own (AMB-RT-14)."""
    session = opened(impl, check, ranks=2)
    pointer = session.upload(elements("int32", *range(COUNT)))
    for _ in range(3):
        for _ in range(2):
            issue(session, 0, pointer, WHOLE)
            issue(session, 1, pointer, WHOLE | {"count": 3})
        session.reports(MISMATCH)
        session.synchronize()


MISMATCHED = 40
"""More collectives than the links of two ranks have credits for, or a queue has room for."""


@clause("RT-07-08")
@pytest.mark.parametrize("together", [1, 4], ids=["one-a-round", "four-a-round"])
def test_many_mismatches_take_nothing_from_later_collectives(impl, check, together):
    """After forty of them, reported in rounds, two ranks that agree have their sum, twice; none is reported again."""
    session = opened(impl, check, ranks=2)
    pointer = session.upload(elements("int32", *range(COUNT)))
    for _ in range(MISMATCHED // together):
        for _ in range(together):
            issue(session, 0, pointer, WHOLE)
            issue(session, 1, pointer, WHOLE | {"count": 3})
        session.reports(MISMATCH)
        session.synchronize()
    session.write(pointer, elements("int32", *range(COUNT)))
    for times in (2, 4):
        for rank in (1, 0):
            issue(session, rank, pointer, WHOLE)
        actual = values_of("int32", session.download(pointer, 4 * COUNT))
        check.equal(actual, [times * place for place in range(COUNT)], "the sum of both ranks")


@clause("RT-07-08", "RT-07-09")
@pytest.mark.parametrize("first", [MISMATCH, VIOLATION])
def test_the_first_of_two_errors_is_reported(impl, check, first):
    """A mismatch and a violation of one stream: the synchronization reports the first (AMB-RT-14)."""
    session = opened(impl, check, ranks=2)
    pointer = session.upload(elements("int32", *range(COUNT)))
    differences = {MISMATCH: {"count": 3}, VIOLATION: {"descriptor": DESCRIPTOR | {"seed": 9}}}
    for status in (first, *(difference for difference in differences if difference != first)):
        issue(session, 0, pointer, WHOLE | AGREED)
        issue(session, 1, pointer, WHOLE | AGREED | differences[status])
    session.reports(first)
    session.synchronize()


@clause("RT-07-08", "RT-07-09")
@pytest.mark.parametrize("status", [MISMATCH, VIOLATION])
def test_an_error_is_not_reported_by_other_streams(impl, check, status):
    """The error belongs to the stream of the collective (AMB-RT-14)."""
    session = opened(impl, check, ranks=2)
    other = session.another_stream()
    pointer = session.upload(elements("int32", *range(COUNT)))
    difference = {"count": 3} if status == MISMATCH else {"descriptor": DESCRIPTOR | {"seed": 9}}
    issue(session, 0, pointer, WHOLE | AGREED)
    issue(session, 1, pointer, WHOLE | AGREED | difference)
    other.launch(other.kernel("nothing"))
    other.synchronize()
    session.reports(status)
    other.synchronize()


@seeded
@clause("RT-07-08", "RT-07-09")
def test_disagreement_is_found_under_seeded_schedules(impl, check, block, untimed):
    """A mismatch, then a violation, then an agreement, whichever rank arrives first (AMB-RT-14)."""
    under_seeds(by_launches(impl, check), three_rounds, [MISMATCH, VIOLATION, ""], block, untimed, ranks=2)


def three_rounds(stream) -> list[str]:
    """The status of the synchronization after each collective."""
    pointer, actual = stream.full(1), []
    for difference in ({"count": 1}, {"descriptor": DESCRIPTOR | {"seed": 9}}, {}):
        asked = WHOLE | AGREED | {"count": stream.extent}
        issue(stream, 0, pointer, asked)
        issue(stream, 1, pointer, asked | difference)
        answer = stream.attempt("tessStreamSynchronize", stream=stream.stream)
        actual.append(getattr(answer, "code", ""))
    return actual


# What waits for a rank that has not arrived


@clause("RT-06-05")
def test_a_launch_does_not_wait_for_what_is_before_it(impl, check):
    """tessLaunch returns while a collective before it still waits for a rank, which then arrives."""
    session = opened(impl, check, ranks=2)
    kernel, pointer = session.kernel("fill"), session.upload(elements("int32", *[0] * 64))
    issue(session, 0, pointer, WHOLE)
    for value in (1, 2, 3):
        session.launch(kernel, packed(("int32", value), ("ptr", pointer)))
    issue(session, 1, pointer, WHOLE)
    check.equal(values_of("int32", session.download(pointer, 256)), [3] * 64, "what the last launch left")


@clause("RT-04.3-10")
def test_a_synchronization_waits_for_what_a_stream_waits_for(impl, check):
    """It waits for the collective of another stream, too, if an event is between them."""
    session = opened(impl, check, ranks=2)
    other = session.another_stream()
    pointer, target = session.upload(elements("int32", *[5] * 64)), session.host(bytes(256))
    session.synchronize()
    for rank in (0, 1):
        issue(session, rank, pointer, WHOLE)
    other.wait_stream(session)
    other.copy(target, pointer, 256, 1)
    other.synchronize()
    check.equal(values_of("int32", session.host_bytes(target, 4 * COUNT)), [10] * COUNT, "what was copied to the host")
