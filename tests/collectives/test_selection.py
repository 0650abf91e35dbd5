"""Tables from size to algorithm, costs against exact fractions, and the autotuner within its limits."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.selection import (
    ALGORITHMS,
    Knobs,
    Limits,
    Measurement,
    Row,
    estimate,
    overlap_score,
    parse_table,
    percentile,
    row_of,
    tables,
    tune,
)
from tessera_reference.collectives.travel import COLLECTIVES

NAMES = st.sampled_from(ALGORITHMS)
ROWS = st.tuples(st.lists(st.tuples(st.integers(0, 1 << 50), NAMES), unique_by=lambda row: row[0]).map(sorted), NAMES)


@given(ROWS, st.integers(0, 1 << 51))
def test_a_table_reads_as_it_is_written(rows: tuple[list[tuple[int, str]], str], bytes: int) -> None:
    sized, last = rows
    table = parse_table(",".join([*(f"{size}:{name}" for size, name in sized), f":{last}"]), "table")
    assert table == (*(Row(size, name) for size, name in sized), Row(None, last))
    assert row_of(table, bytes).algorithm == next((name for size, name in sized if bytes <= size), last)


@pytest.mark.parametrize(
    "text", ["", ":", "ring", "8:ring", ":ring,:ring", "8 KiB:ring,:ring", "1e3:ring,:ring", "٣:ring,:ring"]
)
def test_a_malformed_table_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(Failure, match=r"^here: ") as caught:
        parse_table(text, "here")
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_the_package_has_a_table_for_every_collective() -> None:
    assert set(tables()) == {*COLLECTIVES, "all_to_all"}
    assert all(table[-1].up_to is None for table in tables().values())


INTERVAL = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)
QUEUE = st.lists(INTERVAL, max_size=5)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(0, 1 << 60), st.integers(1, 1 << 60))
def test_a_cost_is_the_exact_one_rounded_up(alpha: int, hops: int, bytes: int, bandwidth: int) -> None:
    assert estimate(alpha, hops, bytes, bandwidth) == ceil(alpha * hops + Fraction(bytes * 10**12, bandwidth))


@given(QUEUE, QUEUE)
def test_a_score_counts_the_picoseconds(compute: list[list[int]], communication: list[list[int]]) -> None:
    one, other = ({at for start, end in queue for at in range(start, end)} for queue in (compute, communication))
    assert overlap_score(compute, communication) == (Fraction(len(one & other), len(one | other)) if one | other else 1)


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
