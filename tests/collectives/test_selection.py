"""Tables from size to algorithm, and the choice by them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.links import ALGORITHM_VARIABLE
from tessera_reference.collectives.selection import ALGORITHMS, Row, parse_table, row_of, select, tables
from tessera_reference.collectives.travel import COLLECTIVES
from tessera_reference.mesh.topology import named

NAMES = st.sampled_from(ALGORITHMS)
ROWS = st.tuples(st.lists(st.tuples(st.integers(0, 1 << 50), NAMES), unique_by=lambda row: row[0]).map(sorted), NAMES)


@given(ROWS, st.integers(0, 1 << 51))
def test_a_table_reads_as_it_is_written(rows: tuple[list[tuple[int, str]], str], bytes: int) -> None:
    sized, last = rows
    table = parse_table(",".join([*(f"{size}:{name}" for size, name in sized), f":{last}"]), "table")
    assert table == (*(Row(size, name) for size, name in sized), Row(None, last))
    assert row_of(table, bytes).algorithm == next((name for size, name in sized if bytes <= size), last)


@pytest.mark.parametrize(
    ("text", "size"), [("3", 3), ("3KiB", 3072), ("3MiB", 3 << 20), ("3GiB", 3 << 30), ("0KiB", 0)]
)
def test_units_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_table(f" {text}:tree , :ring", "table")[0].up_to == size


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


def test_every_size_and_number_of_ranks_has_a_choice() -> None:
    topology = named("two-nodes")
    for collective, ranks, bytes in product(tables(), range(1, 9), (0, 1 << 14, 1 << 15, 1 << 20, 1 << 30)):
        found = select(collective, bytes, ranks, topology)
        hierarchical = ranks == 8 and bytes == 1 << 30 and collective != "all_to_all"
        assert (found.algorithm == "hierarchical") == hierarchical


def test_hierarchical_needs_a_topology() -> None:
    with pytest.raises(Failure, match="algorithm hierarchical for all_reduce of 8 ranks;") as caught:
        select("all_reduce", 8, 8, algorithm="hierarchical")
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    assert select("all_reduce", 8, 8, environment={ALGORITHM_VARIABLE: "hierarchical"}).source == "default"
