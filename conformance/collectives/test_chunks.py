"""The slicing of a tensor into chunks (collectives specification 2.3 and 8; AMB-COLL-35, AMB-COLL-36).

A chunk is judged by the elements that it holds, not by how it names them: one run or several. Of a large tensor in one
run a chunk, only where the runs begin and end is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import pytest

from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned
from tessera_conformance.tensors import ELEMENT_FORMATS

BYTES: list[tuple[list[int], str, Any, list[int]]] = [
    ([1000], "fp32", 400, [100] * 10),
    ([1001], "fp32", 400, [100] * 10 + [1]),
    ([999], "fp32", 400, [100] * 9 + [99]),
    ([7, 11, 13], "bf16", 512, [256, 256, 256, 233]),
    ([3, 5], "fp64", 40, [5, 5, 5]),
    ([17], "fp8_e4m3", 4, [4, 4, 4, 4, 1]),
    ([5], "complex128", 32, [2, 2, 1]),
    ([4], "tf32", 8, [2, 2]),
    ([9], "bool", 4, [4, 4, 1]),
    ([5, 1], "fp32", 20, [5]),
    ([5], "fp32", 1 << 40, [5]),
    ([5], "fp32", 11, [2, 2, 1]),
    ([3], "fp64", 1, [1, 1, 1]),
    ([], "fp32", 4, [1]),
    ([0], "fp32", 4, []),
    ([4, 0, 3], "bf16", 64, []),
]
"""A shape, a dtype, bytes a chunk, and how many elements each chunk then has."""

TEXTS: list[tuple[str, str, int, list[int]]] = [
    ("512KiB", "fp32", 300000, [131072, 131072, 37856]),
    ("1MiB", "bf16", 3 << 19, [524288, 524288, 524288]),
    ("2MiB", "fp64", 262145, [262144, 1]),
    ("1GiB", "fp32", (1 << 28) + 3, [1 << 28, 3]),
    ("1.5KiB", "fp32", 1000, [384, 384, 232]),
    ("0.25MiB", "int8", 262145, [262144, 1]),
    ("100B", "int16", 120, [50, 50, 20]),
]

TILED: list[tuple[list[int], str, Any, list[int], list[int]]] = [
    ([100], "fp32", 64, [1, 8], [16, 16, 16, 16, 16, 16, 4]),
    ([100], "fp32", 100, [1, 8], [24, 24, 24, 24, 4]),
    ([100], "fp32", 127, [1, 16], [16, 16, 16, 16, 16, 16, 4]),
    ([50], "fp32", 4, [1, 16], [16, 16, 16, 2]),
    ([6, 10], "bf16", 40, [2, 5], [20, 20, 20]),
    ([6, 10], "bf16", 59, [2, 5], [20, 20, 20]),
    ([7, 9], "bf16", 64, [3, 4], [24, 24, 15]),
    ([4], "fp64", 8, [64, 64], [4]),
]
"""The same with a tile: chunks end on its multiples, rounded down, and hold at least one."""

BANDS: list[tuple[list[int], dict[str, int], list[int] | None, list[tuple[int, int]]]] = [
    ([7, 3], {"rows": 2}, None, [(0, 2), (2, 4), (4, 6), (6, 7)]),
    ([2, 5, 3], {"rows": 4}, None, [(0, 4), (4, 8), (8, 10)]),
    ([7, 3], {"rows": 5}, [2, 2], [(0, 4), (4, 7)]),
    ([7, 3], {"rows": 1}, [3, 2], [(0, 3), (3, 6), (6, 7)]),
    ([7, 3], {"rows": 100}, None, [(0, 7)]),
    ([6], {"rows": 2}, None, [(0, 1)]),
    ([3, 7], {"columns": 2}, None, [(0, 2), (2, 4), (4, 6), (6, 7)]),
    ([2, 2, 7], {"columns": 3}, None, [(0, 3), (3, 6), (6, 7)]),
    ([3, 11], {"columns": 7}, [2, 3], [(0, 6), (6, 11)]),
    ([3, 11], {"columns": 1}, [2, 4], [(0, 4), (4, 8), (8, 11)]),
    ([3, 4], {"columns": 4}, None, [(0, 4)]),
    ([6], {"columns": 4}, None, [(0, 4), (4, 6)]),
]
"""A shape, rows or columns a chunk, a tile, and from where to where each chunk goes."""

REFUSED: list[dict[str, Any]] = [
    {"chunk": 0},
    {"chunk": -4},
    {"chunk": 1 << 63},
    {"chunk": "0KiB"},
    {"chunk": "0.3KiB"},
    {"chunk": "512KB"},
    {"chunk": "512kib"},
    {"chunk": "-1MiB"},
    {"chunk": "KiB"},
    {"chunk": "64"},
    {"chunk": ""},
    {"chunk_bytes": 0},
    {},
    {"chunk": "1KiB", "chunk_bytes": 1000},
]


@feature("operation-access")
@clause("COLL-02.3-01", "COLL-08-01", "COLL-08-09")
@pytest.mark.parametrize(("shape", "dtype", "chunk", "counts"), BYTES)
def test_a_number_of_bytes_slices_the_whole_tensor(impl, check, shape, dtype, chunk, counts):
    """Each element is in exactly one chunk, in order; only the last chunk is short."""
    for given in ({"chunk": chunk}, {"chunk_bytes": chunk}, {"chunk": chunk, "chunk_bytes": chunk}):
        chunks = check.returns(impl.collectives.chunks(shape=shape, dtype=dtype, **given))["chunks"]
        recognize_rounding(check, shape, dtype, chunk, [1, 1], counts, chunks)
        check.equal([elements(piece) for piece in chunks], consecutive(counts), "the elements of the chunks")


@feature("operation-access")
@clause("COLL-02.3-07", "COLL-08-01")
@pytest.mark.parametrize(("chunk", "dtype", "extent", "counts"), TEXTS)
def test_units_are_powers_of_two(impl, check, chunk, dtype, extent, counts):
    """KiB is 1024 bytes, MiB 1048576, GiB 1073741824; a fraction that gives whole bytes is one (AMB-COLL-01)."""
    chunks = check.returns(impl.collectives.chunks(shape=[extent], dtype=dtype, chunk=chunk))["chunks"]
    check.equal([piece["count"] * piece["runs"] for piece in chunks], counts, "elements of the chunks")
    check.equal([piece["first"] for piece in chunks], [sum(counts[:i]) for i in range(len(counts))], "where they begin")


@feature("operation-access")
@clause("COLL-02.3-03", "COLL-08-09")
@pytest.mark.parametrize(("shape", "dtype", "chunk", "tile", "counts"), TILED)
def test_chunks_end_on_tiles(impl, check, shape, dtype, chunk, tile, counts):
    """A boundary is a multiple of the tile's elements, the largest within the chunk, and at least one tile."""
    chunks = check.returns(impl.collectives.chunks(shape=shape, dtype=dtype, chunk=chunk, tile=tile))["chunks"]
    recognize_rounding(check, shape, dtype, chunk, tile, counts, chunks)
    check.equal([elements(piece) for piece in chunks], consecutive(counts), "the elements of the chunks")


@feature("operation-access")
@clause("COLL-02.3-01", "COLL-02.3-03", "COLL-08-09")
@pytest.mark.parametrize("seed", range(20))
def test_any_tensor_is_sliced(impl, check, seed):
    """Drawn shapes, dtypes, bytes and tiles: as many whole tiles as fit, at least one, until the tensor ends."""
    draw = random.Random(seed)
    shape = [draw.randint(1, 9) for _ in range(draw.randint(1, 4))]
    dtype = draw.choice(list(ELEMENT_FORMATS))
    chunk, tile = draw.randint(1, 400), [draw.randint(1, 4), draw.randint(1, 6)]
    chunks = check.returns(impl.collectives.chunks(shape=shape, dtype=dtype, chunk=chunk, tile=tile))["chunks"]
    tile_bytes = prod(tile) * ELEMENT_FORMATS[dtype].word_bytes * ELEMENT_FORMATS[dtype].words
    step = prod(tile)
    while step * tile_bytes // prod(tile) + tile_bytes <= chunk:
        step += prod(tile)
    counts = [min(step, prod(shape) - first) for first in range(0, prod(shape), step)]
    recognize_rounding(check, shape, dtype, chunk, tile, counts, chunks)
    check.equal([elements(piece) for piece in chunks], consecutive(counts), "the elements of the chunks")


@feature("operation-access")
@clause("COLL-02.3-02", "COLL-02.3-03")
@pytest.mark.parametrize(("shape", "chunk", "tile", "bands"), BANDS)
def test_a_number_of_rows_or_columns_slices_the_tensor(impl, check, shape, chunk, tile, bands):
    """The last axis holds the columns, all other axes are the rows; a band ends on the tile's rows or columns.

    As AMB-COLL-36 has it.
    """
    given = {} if tile is None else {"tile": tile}
    chunks = check.returns(impl.collectives.chunks(shape=shape, dtype="fp32", chunk=chunk, **given))["chunks"]
    width = shape[-1]
    places = range(prod(shape))
    expected = [
        [place for place in places if low <= (place // width if "rows" in chunk else place % width) < high]
        for low, high in bands
    ]
    check.equal([elements(piece) for piece in chunks], expected, "the elements of the chunks")


@feature("operation-access")
@clause("COLL-02.3-01", "COLL-02.3-07", "COLL-08-01")
@pytest.mark.parametrize("given", REFUSED, ids=repr)
def test_an_impossible_chunk_is_refused(impl, check, given):
    """No bytes, fewer than none, a unit that is none, no whole number of bytes; two sizes; or none at all.

    As AMB-COLL-01 has it.
    """
    answer = impl.collectives.chunks(shape=[8, 8], dtype="fp32", **given)
    if isinstance(answer, Returned):
        thousands = given == {"chunk": "512KB"} and first_chunk(impl, [200_000], chunk="512KB") == 128_000
        check.reading("AMB-COLL-35", "KB is 1000", thousands)
        whole = not given and [elements(piece) for piece in answer.value["chunks"]] == [list(range(64))]
        check.reading("AMB-COLL-35", "without a size the tensor is one chunk", whole)
        down = given == {"chunk": "0.3KiB"} and first_chunk(impl, [400], chunk="0.3KiB") == 76
        check.reading("AMB-COLL-35", "a fraction is rounded down", down)
        recognize_smallest(impl, check, len(given) == 2)
    check.status(answer, "TESS_ERR_INVALID_VALUE")


@feature("operation-access")
@clause("COLL-02.3-02")
@pytest.mark.parametrize(
    "given",
    [
        {"chunk": {"rows": 0}},
        {"chunk": {"columns": 0}},
        {"chunk": {"rows": -1}},
        {"chunk": {"rows": 2, "columns": 2}},
        {"chunk": {"lines": 2}},
        {"chunk": {"rows": 2}, "chunk_bytes": 64},
        {"chunk": {"columns": 2}, "chunk_bytes": 64},
    ],
    ids=repr,
)
def test_bytes_rows_and_columns_exclude_each_other(impl, check, given):
    """One measure governs; a number of rows or columns is at least 1 (AMB-COLL-01)."""
    check.returns(impl.collectives.chunks(shape=[8, 8], dtype="fp32", chunk={"rows": 2}))
    answer = impl.collectives.chunks(shape=[8, 8], dtype="fp32", **given)
    if isinstance(answer, Returned):
        recognize_smallest(impl, check, len(given) == 2 or {*given["chunk"]} == {"rows", "columns"})
    check.status(answer, "TESS_ERR_INVALID_VALUE")


@feature("operation-access")
@clause("COLL-02.3-03")
@pytest.mark.parametrize("tile", [[0, 4], [4, -1], [4], [2, 2, 2]], ids=repr)
def test_an_impossible_tile_is_refused(impl, check, tile):
    """A tile has two extents of at least 1."""
    check.status(impl.collectives.chunks(shape=[8, 8], dtype="fp32", chunk=64, tile=tile), "TESS_ERR_INVALID_VALUE")


def first_chunk(impl, shape, **given):
    """The elements of the first chunk; 0 where it is refused."""
    answer = impl.collectives.chunks(shape=shape, dtype="fp32", **given)
    pieces = answer.value["chunks"] if isinstance(answer, Returned) else []
    return pieces[0]["count"] * pieces[0]["runs"] if pieces else 0


def recognize_smallest(impl, check, several):
    """End the case where the smallest of several sizes governs: a column rather than four rows, 32 bytes too."""
    sizes = [{"chunk": {"rows": 4, "columns": 1}}, {"chunk": {"rows": 4}, "chunk_bytes": 32}]
    smallest = several and all(first_chunk(impl, [8, 8], **given) == 8 for given in sizes)
    check.reading("AMB-COLL-35", "the smallest of several sizes governs", smallest)


def recognize_rounding(check, shape, dtype, chunk, tile, counts, chunks):
    """End the case where chunks of bytes end on other multiples of the tile, as a listed alternative has it."""
    size, step = prod(shape), prod(tile)
    unit = step * ELEMENT_FORMATS[dtype].word_bytes * ELEMENT_FORMATS[dtype].words
    rows = max(1, chunk * step // unit // (tile[0] * (shape or [1])[-1] or 1)) * tile[0] * (shape or [1])[-1]
    found = [elements(piece) for piece in chunks]
    amount = chunk * step // unit
    steps = [
        ("rounded up", -(-chunk // unit) * step),
        ("rounded up", -(-max(amount, 1) // step) * step),
        ("to the nearest multiple", max(1, (2 * chunk + unit) // (2 * unit)) * step),
        ("to the nearest multiple", max(1, (amount + step // 2) // step) * step),
        ("bytes are rounded to whole rows of tiles", rows or 1),
    ]
    for alternative, length in steps:
        others = [min(length, size - first) for first in range(0, size, length)]
        follows = others != counts and found == consecutive(others)
        check.reading("AMB-COLL-36", alternative, follows)
    lengths = list(map(len, found))
    even = len(found) == len(counts) and lengths != counts and max(lengths) - min(lengths) <= step
    whole = found == consecutive(lengths) and sum(lengths) == size
    check.reading("AMB-COLL-36", "chunks of equal size", even and whole)


def elements(chunk: dict[str, int]) -> list[int]:
    """The places of a chunk's elements in the flat tensor."""
    begins = range(chunk["first"], chunk["first"] + chunk["runs"] * chunk["stride"], chunk["stride"])
    return [begin + place for begin in begins for place in range(chunk["count"])]


def consecutive(counts: Sequence[int]) -> list[list[int]]:
    """The places of chunks of so many elements, one after the other."""
    return [list(range(sum(counts[:i]), sum(counts[: i + 1]))) for i in range(len(counts))]
