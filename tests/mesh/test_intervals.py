"""Ranges of bytes against plain sets of positions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.mesh.memory import Intervals

RANGES = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(st.lists(RANGES, max_size=12), RANGES)
def test_intervals_are_the_set_of_their_positions(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    held, positions = Intervals(), set[int]()
    for start, stop in added:
        held.add(start, stop)
        positions |= set(range(start, stop))
    wanted = set(range(*asked))
    assert {at for start, stop in held for at in range(start, stop)} == positions
    assert held.covers(*asked) == (wanted <= positions)
    gaps = list(held.gaps(*asked))
    assert sorted(at for start, stop in gaps for at in range(start, stop)) == sorted(wanted - positions)
    for ranges in (list(held), gaps):
        assert all(start < stop for start, stop in ranges)
        assert all(before[1] < after[0] for before, after in pairwise(ranges)), "they never touch"


def test_ranges_that_touch_are_merged() -> None:
    held = Intervals()
    for start, stop in [(0, 4), (8, 12), (4, 8), (20, 24)]:
        held.add(start, stop)
    assert list(held) == [(0, 12), (20, 24)]
    assert list(held.gaps(2, 30)) == [(12, 20), (24, 30)]
