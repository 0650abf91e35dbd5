"""Each group of ranks along an axis meets for itself (runtime specification, 4.6; collectives specification, 2.1, 2.2).

Needs ranks that issue on their own (AMB-RT-41) and memory of single ranks (AMB-RT-79).
"""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, SUM, MeshSession, opened
from tessera_conformance.marks import clause, feature

pytestmark = feature("per-rank-issue", "rank-memory")

COUNT = 5
SIZES = {"dp": 2, "tp": 3}
"""Ranks 0 to 5, dp the faster axis."""
GROUPS = {"tp": [[0, 2, 4], [1, 3, 5]], "dp": [[0, 1], [2, 3], [4, 5]]}


def filled(impl: Any, check: Any) -> tuple[MeshSession, int]:
    """A mesh on which every rank has numbers of its own."""
    session = opened(impl, check, ranks=6, **SIZES)
    pointer = session.allocate(4 * COUNT)
    for rank in range(6):
        session.poke(rank, pointer, elements("int32", *brought(rank)))
    return session, pointer


def brought(rank: int) -> list[int]:
    """Return a rank's initial values."""
    return [10**rank * (place + 1) for place in range(COUNT)]


def summed(group: list[int]) -> list[int]:
    """Return the expected result of each rank of a group."""
    return [sum(column) for column in zip(*map(brought, group), strict=True)]


def issue(session: MeshSession, rank: int, pointer: int, axis: str, **other: Any) -> None:
    """An all-reduce of one rank along an axis."""
    call = {"collective": "all_reduce", "count": COUNT, "dtype": DTYPE_IDS["int32"], "op": SUM, "axis": axis, **other}
    session.ask("tessxIssue", mesh=session.mesh, rank=rank, buffer=pointer, stream=session.stream, **call)


def require(session: MeshSession, check: Any, pointer: int, expected: dict[int, list[int]]) -> None:
    """Check the ranks' tensors; ranks that are not named keep their initial ones."""
    for rank in range(6):
        actual = values_of("int32", session.peek(rank, pointer, 4 * COUNT))
        check.equal(actual, expected.get(rank, brought(rank)), f"what rank {rank} has")


@clause("COLL-02.1-03", "COLL-02.2-03")
@pytest.mark.parametrize(("axis", "which"), [("tp", 0), ("tp", 1), ("dp", 0), ("dp", 1), ("dp", 2)])
def test_a_group_whose_ranks_have_come_waits_for_no_other(impl, check, axis, which):
    """Ranks of the other groups issue nothing: there is no barrier, and nothing to report (AMB-COLL-76)."""
    session, pointer = filled(impl, check)
    group = GROUPS[axis][which]
    for rank in reversed(group):
        issue(session, rank, pointer, axis)
    session.synchronize()
    require(session, check, pointer, dict.fromkeys(group, summed(group)))


@clause("COLL-02.1-03", "COLL-02.2-03")
def test_groups_meet_in_any_order(impl, check):
    """Ranks of two groups by turns; a second collective of the first group before the other has begun."""
    session, pointer = filled(impl, check)
    first, second = GROUPS["tp"]
    for rank in first:
        issue(session, rank, pointer, "tp")
    for rank in first:
        issue(session, rank, pointer, "tp")
    for rank in second:
        issue(session, rank, pointer, "tp")
    session.synchronize()
    thrice = [3 * value for value in summed(first)]  # the sum of three sums
    require(session, check, pointer, dict.fromkeys(first, thrice) | dict.fromkeys(second, summed(second)))


@clause("RT-07-08", "COLL-02.2-03")
@pytest.mark.parametrize("absent", [0, 2, 4])
def test_a_group_that_lacks_a_rank_is_reported_and_the_other_is_done(impl, check, absent):
    """TESS_ERR_COLLECTIVE_MISMATCH; the ranks of the group that has all of its own have their sum (AMB-COLL-76)."""
    session, pointer = filled(impl, check)
    for rank in range(6):
        if rank != absent:
            issue(session, rank, pointer, "tp")
    session.reports("TESS_ERR_COLLECTIVE_MISMATCH")
    whole = next(group for group in GROUPS["tp"] if absent not in group)
    require(session, check, pointer, dict.fromkeys(whole, summed(whole)))


@clause("RT-07-08", "COLL-02.2-03")
@pytest.mark.parametrize("odd", [1, 5])
def test_a_group_that_disagrees_is_reported_and_the_other_is_done(impl, check, odd):
    """A rank with another count is reported; the other group completes (AMB-RT-142)."""
    session, pointer = filled(impl, check)
    for rank in range(6):
        issue(session, rank, pointer, "tp", **({"count": COUNT - 1} if rank == odd else {}))
    session.reports("TESS_ERR_COLLECTIVE_MISMATCH")
    whole = next(group for group in GROUPS["tp"] if odd not in group)
    require(session, check, pointer, dict.fromkeys(whole, summed(whole)))


@clause("RT-07-08")
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (3, 0, 4, 1, 5, 2)])
def test_ranks_that_come_along_different_axes_are_reported(impl, check, order):
    """Rank 1 uses dp where the others use tp: neither its group nor the one that waits for it can complete.

    As AMB-RT-142 has it.
    """
    session, pointer = filled(impl, check)
    for rank in order:
        issue(session, rank, pointer, "dp" if rank == 1 else "tp")
    session.reports("TESS_ERR_COLLECTIVE_MISMATCH")
    for rank in GROUPS["tp"][1]:
        actual = values_of("int32", session.peek(rank, pointer, 4 * COUNT))
        check.equal(actual, brought(rank), f"what rank {rank} has")
