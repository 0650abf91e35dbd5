"""Tables from size to algorithm, read as they are written or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.fatbin.metadata import COLLECTIVES
from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives.selection import ALGORITHMS, Row, parse_table, row_of, tables

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
