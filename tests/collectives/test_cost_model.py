"""Costs and scores, against exact fractions and against a count of every picosecond."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.collectives.selection import estimate, overlap_score

INTERVAL = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)
QUEUE = st.lists(INTERVAL, max_size=5)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(0, 1 << 60), st.integers(1, 1 << 60))
def test_a_cost_is_the_exact_one_rounded_up(alpha: int, hops: int, bytes: int, bandwidth: int) -> None:
    assert estimate(alpha, hops, bytes, bandwidth) == ceil(alpha * hops + Fraction(bytes * 10**12, bandwidth))


@given(QUEUE, QUEUE)
def test_a_score_counts_the_picoseconds(compute: list[list[int]], communication: list[list[int]]) -> None:
    one, other = ({at for start, end in queue for at in range(start, end)} for queue in (compute, communication))
    assert overlap_score(compute, communication) == (Fraction(len(one & other), len(one | other)) if one | other else 1)
