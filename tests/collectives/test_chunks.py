"""Slicing into chunks: every element once, within what was asked for, on tile boundaries."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives.chunks import MOST, MOST_CHUNKS, Chunk, ChunkSize, chunks_of, read_chunk_size
from tessera_reference.numerics.errors import ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import DTYPES, DType

SHAPES = st.lists(st.integers(0, 9), max_size=4).map(tuple)
SIZES = st.builds(ChunkSize, st.sampled_from(["bytes", "rows", "columns"]), st.integers(1, 200))
TILES = st.tuples(st.integers(1, 5), st.integers(1, 5))


def elements(chunk: Chunk) -> list[int]:
    """The places that a chunk holds."""
    return [chunk.first + run * chunk.stride + i for run in range(chunk.runs) for i in range(chunk.count)]


@given(SHAPES, st.sampled_from(list(DTYPES.values())), SIZES, TILES)
def test_every_element_is_in_exactly_one_chunk(
    shape: tuple[int, ...], dtype: DType, size: ChunkSize, tile: tuple[int, int]
) -> None:
    found = chunks_of("f", shape, dtype, size, tile)
    places = [place for each in found for place in elements(each)]
    assert sorted(places) == list(range(prod(shape)))
    assert [each.first for each in found] == sorted(each.first for each in found)
    if size.measure != "columns":
        assert places == sorted(places)


@given(SHAPES, st.sampled_from(list(DTYPES.values())), SIZES, TILES)
def test_all_chunks_but_the_last_are_the_largest_that_fit(
    shape: tuple[int, ...], dtype: DType, size: ChunkSize, tile: tuple[int, int]
) -> None:
    found = chunks_of("f", shape, dtype, size, tile)
    width = prod(shape[-1:])
    unit = {"bytes": prod(tile), "rows": tile[0] * width, "columns": tile[1]}[size.measure]
    limit = {"bytes": size.amount // dtype.storage_bytes, "rows": size.amount * width, "columns": size.amount}
    for each, following in pairwise(found):
        assert each.count % unit == 0
        assert following.first == each.first + each.count
        assert each.count == unit or each.count <= limit[size.measure] < each.count + unit
        assert following.count <= each.count


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (1, 1),
        (MOST, MOST),
        ("1B", 1),
        ("512KiB", 524288),
        ("2MiB", 2097152),
        ("3GiB", 3 << 30),
        ("1.5KiB", 1536),
        ("0.0009765625KiB", 1),
        ("007KiB", 7168),
    ],
)
def test_sizes_that_are_read(chunk: Any, expected: int) -> None:
    assert read_chunk_size("f", chunk) == read_chunk_size("f", None, chunk) == ChunkSize("bytes", expected)
    assert read_chunk_size("f", chunk, expected) == ChunkSize("bytes", expected)


@pytest.mark.parametrize(
    ("chunk", "chunk_bytes", "message"),
    [
        (None, None, "neither chunk nor chunk_bytes is given"),
        (0, None, "chunk is 0; expected bytes, as a whole number from 1 to 9223372036854775807"),
        (None, -1, "chunk_bytes is -1; expected bytes"),
        (True, None, "chunk is True"),
        (1.0, None, "chunk is 1.0"),
        (MOST + 1, None, "chunk is 9223372036854775808"),
        ("8589934592GiB", None, "chunk is 9223372036854775808; expected a whole number from 1 to 9223372036854775807"),
        ("0MiB", None, "chunk is 0"),
        ("0.3B", None, "chunk is '0.3B', 0.3 bytes; expected a whole number"),
        ("512KB", None, "in B, KiB, MiB, GiB"),
        ("9" * 21 + "B", None, "text like 512KiB"),
        ("1 KiB", None, "text like 512KiB"),
        ("٣KiB", None, "text like 512KiB"),
        ("1KiB\n", None, "text like 512KiB"),
        ([], None, "chunk is []"),
        ({"rows": 0}, None, "chunk.rows is 0; expected a whole number from 1"),
        ({"columns": "2"}, None, "chunk.columns is '2'"),
        ({"rows": 1, "columns": 1}, None, "members ['rows', 'columns']; expected rows or columns, one of the two"),
        ({}, None, "members []"),
        ({"rows": 2}, 64, "one of them, or the same number of bytes in both"),
        (64, 65, "chunk is 64 and chunk_bytes is 65"),
    ],
)
def test_sizes_that_are_refused(chunk: Any, chunk_bytes: Any, message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        read_chunk_size("f", chunk, chunk_bytes)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_tensors_that_are_too_large_to_slice() -> None:
    small, fp32 = ChunkSize("bytes", 4), DTYPES["fp32"]
    assert len(chunks_of("f", (MOST_CHUNKS,), fp32, small)) == MOST_CHUNKS
    with pytest.raises(TooLarge, match="65537 chunks are too many"):
        chunks_of("f", (MOST_CHUNKS + 1,), fp32, small)
    with pytest.raises(TooLarge):
        chunks_of("f", (1 << 32, 1 << 32), fp32, small)
    with pytest.raises(ShapeMismatch):
        chunks_of("f", (1,) * 100, fp32, small)
    assert chunks_of("f", (0, 1 << 40), fp32, small) == []
