"""Lane layouts against the documents of the instruction sets, not against the formulas of the reference.

NVIDIA: the pseudo code that the PTX ISA prints below each figure of "Matrix Fragments for mma...". AMD: the equations
of the matrix instruction calculator, which go from an element to its lane and register.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations import vendors

Place = Callable[[int, int], tuple[int, int]]

# PTX ISA: groupID = %laneid >> 2, threadID_in_group = %laneid % 4. Each entry: the place of element i of a lane.
PTX: dict[tuple[str, int, int, int, str], Place] = {
    ("bf16", 16, 8, 16, "a"): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8
    ),
    ("bf16", 16, 8, 16, "b"): lambda g, t, i: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    ("bf16", 16, 8, 16, "c"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("fp16", 16, 8, 8, "a"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("fp16", 16, 8, 8, "b"): lambda g, t, i: (t * 2 + i, g),
    ("tf32", 16, 8, 4, "a"): lambda g, t, i: (g if i == 0 else g + 8, t),
    ("tf32", 16, 8, 4, "b"): lambda g, t, i: (t, g),
    ("tf32", 16, 8, 8, "a"): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    ("tf32", 16, 8, 8, "b"): lambda g, t, i: (t if i == 0 else t + 4, g),
    ("fp64", 8, 8, 4, "a"): lambda g, t, i: (g, t),
    ("fp64", 8, 8, 4, "b"): lambda g, t, i: (t, g),
    ("fp64", 8, 8, 4, "c"): lambda g, t, i: (g, t * 2 + i),
    ("int8", 8, 8, 16, "a"): lambda g, t, i: (g, t * 4 + i),
    ("int8", 8, 8, 16, "b"): lambda g, t, i: (t * 4 + i, g),
    ("int8", 16, 8, 16, "a"): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    ("int8", 16, 8, 16, "b"): lambda g, t, i: (t * 4 + i, g),
    ("int8", 16, 8, 32, "a"): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16
    ),
    ("fp8_e4m3", 16, 8, 32, "b"): lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
}  # fmt: skip

# The calculator: the lane and the element within it, of row and column. Columns of A and rows of B are k.
AMD: dict[tuple[str, int, int, int, str], Place] = {
    ("fp16", 16, 16, 16, "a"): lambda i, k: (i + 16 * (k // 4), k % 4),
    ("fp16", 16, 16, 16, "b"): lambda k, j: (j + 16 * (k // 4), k % 4),
    ("bf16", 16, 16, 16, "c"): lambda i, j: (j + 16 * (i // 4), i % 4),
    ("fp16", 32, 32, 8, "a"): lambda i, k: (i + 32 * (k // 4), k % 4),
    ("fp16", 32, 32, 8, "c"): lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ("fp32", 16, 16, 4, "a"): lambda i, k: (i + 16 * k, 0),
    ("fp32", 16, 16, 4, "b"): lambda k, j: (j + 16 * k, 0),
    ("fp32", 32, 32, 2, "b"): lambda k, j: (j + 32 * k, 0),
    ("fp64", 16, 16, 4, "a"): lambda i, k: (i + 16 * k, 0),
    ("fp64", 16, 16, 4, "c"): lambda i, j: (j + 16 * (i % 4), i // 4),
    ("int8", 16, 16, 16, "a"): lambda i, k: (i + 16 * (k // 4), k % 4),
    ("int8", 16, 16, 32, "b"): lambda k, j: (j + 16 * (k // 8), k % 8),
    ("int8", 32, 32, 16, "a"): lambda i, k: (i + 32 * (k // 8), k % 8),
    ("tf32", 16, 16, 8, "a"): lambda i, k: (i + 16 * (k // 2), k % 2),
}


@pytest.mark.parametrize("shape", PTX, ids=lambda shape: "-".join(map(str, shape)))
def test_nvidia_lanes_hold_what_the_ptx_isa_says(shape: tuple[str, int, int, int, str]) -> None:
    name, m, n, k, role = shape
    spread = vendors.nvidia(role, m, n, k, DTYPES[name])  # type: ignore[arg-type]  # a role
    count = {"a": m * k, "b": k * n, "c": m * n}[role] // 32
    assert spread.held == count
    for lane in range(32):
        expected = [PTX[shape](lane >> 2, lane % 4, i) for i in range(count)]  # type: ignore[call-arg]  # of three numbers
        assert list(zip(spread.rows[lane], spread.columns[lane], strict=True)) == expected


@pytest.mark.parametrize("shape", AMD, ids=lambda shape: "-".join(map(str, shape)))
def test_amd_lanes_hold_what_the_calculator_says(shape: tuple[str, int, int, int, str]) -> None:
    name, m, n, k, role = shape
    spread = vendors.amd(role, m, n, k, DTYPES[name])  # type: ignore[arg-type]  # a role
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[role]
    assert spread.held * 64 == rows * columns
    for row in range(rows):
        for column in range(columns):
            lane, element = AMD[shape](row, column)
            assert (spread.rows[lane, element], spread.columns[lane, element]) == (row, column)


def test_single_entries_of_the_figures() -> None:
    """Lane 5 of m16n8k16: a2 and a3 are row 9, columns 2 and 3; b2 is row 10 of column 1; c3 is row 9, column 3."""
    a, b, c = (vendors.nvidia(role, 16, 8, 16, DTYPES["fp16"]) for role in ("a", "b", "c"))
    assert [(int(a.rows[5, i]), int(a.columns[5, i])) for i in (2, 3)] == [(9, 2), (9, 3)]
    assert (int(b.rows[5, 2]), int(b.columns[5, 2])) == (10, 1)
    assert (int(c.rows[5, 3]), int(c.columns[5, 3])) == (9, 3)


def test_ldmatrix_gives_each_lane_two_neighbours() -> None:
    """Lane 6 receives elements 4 and 5 of row 1 of each matrix; transposed, element 1 of rows 4 and 5."""
    lanes, places = vendors.ldmatrix(2, transpose=False)
    assert (lanes[6].tolist(), places[6].tolist()) == ([1, 1, 9, 9], [4, 5, 4, 5])
    lanes, places = vendors.ldmatrix(2, transpose=True)
    assert (lanes[6].tolist(), places[6].tolist()) == ([4, 5, 12, 13], [1, 1, 1, 1])
