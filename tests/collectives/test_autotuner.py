"""The autotuner: percentiles by nearest rank, knobs within limits, pins that hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure
from tessera_reference.collectives.selection import WINDOW, Autotuner, Knobs, Limits, Measurement, percentile, tune

MEASUREMENTS = st.lists(
    st.tuples(st.integers(1, 1 << 30), st.integers(0, 10**9), st.integers(1, 10**12)).map(
        lambda drawn: Measurement(drawn[0], drawn[1], drawn[1] + drawn[2])
    ),
    max_size=40,
)
RANGE = st.tuples(st.integers(1, 1 << 20), st.integers(1, 1 << 20)).map(lambda drawn: (min(drawn), max(drawn)))


@given(st.lists(st.integers(), min_size=1, max_size=40), st.integers(0, 100))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(values: list[int], percent: int) -> None:
    reached = [each for each in values if 100 * sum(other <= each for other in values) >= percent * len(values)]
    assert percentile(values, percent) == min(reached)


@given(MEASUREMENTS, RANGE, RANGE)
def test_knobs_stay_within_limits_and_move_by_steps(
    measurements: list[Measurement], chunks: tuple[int, int], inflight: tuple[int, int]
) -> None:
    steps = tune(measurements, Knobs(chunks[1], inflight[0]), Limits(chunks, inflight))
    assert len(steps) == len(measurements)
    for step in steps:
        assert chunks[0] <= step.knobs.chunk_bytes <= chunks[1]
        assert inflight[0] <= step.knobs.max_inflight <= inflight[1]
    for before, after in pairwise(steps):
        assert before.knobs.chunk_bytes // 2 <= after.knobs.chunk_bytes <= 2 * before.knobs.chunk_bytes
        assert after.pinned or not before.pinned
        assert after == before or not before.pinned


def test_knobs_are_pinned_when_the_window_is_full() -> None:
    tuner = Autotuner(Knobs(4096, 1))
    steps = [tuner.observe(Measurement(1 << 20, 1000, 10**9)) for _ in range(WINDOW + 1)]
    assert [step.pinned for step in steps] == [False] * (WINDOW - 1) + [True] * 2


def test_a_link_without_latency_needs_no_more_than_the_least() -> None:
    last = tune([Measurement(1 << 20, 0, 10**9)] * 40, Knobs(1 << 20, 8))[-1]
    assert (last.knobs.chunk_bytes, last.knobs.max_inflight) == (4096, 1)


@pytest.mark.parametrize("given_", [(0, 0, 1), (1, -1, 1), (1, 1, 1), (1, 2, 1)])
def test_a_measurement_that_makes_no_sense_is_refused(given_: tuple[int, int, int]) -> None:
    with pytest.raises(Failure, match="a measurement of"):
        Measurement(*given_)
