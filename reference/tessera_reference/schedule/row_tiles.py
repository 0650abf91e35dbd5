"""Tiles of operations on rows: from sizes m and n over the result to numbers of rows and elements, and back.

For a reduction every element of the result is a row, so that a tile is m * n rows. For an operation that keeps the
axis, one of m and n lies along it where it is one of the last two dimensions (AMB-LANG-217).
"""

from __future__ import annotations

from ..graph.reductions import Reduction
from ..ir.module import Instruction
from ..ir.targets import Target
from ..ir.types import Tensor
from .defaults import TileSizes, extents, rows_tile
from .kinds import row_axis


def rows_taken(instruction: Instruction, stated: tuple[int, int] | None, target: Target) -> TileSizes:
    """How many rows together, and how many elements of each at a time, for a stated m and n or by default."""
    default = _default(instruction, target)
    if stated is None:
        return default
    m, n = stated
    along = _along(instruction)
    rows, chunk = (m * n, default[1]) if along is None else (m, n) if along == "n" else (n, m)
    return rows, chunk, 1


def rows_on_result(instruction: Instruction, target: Target) -> tuple[int, int]:
    """The m and n over the result that give the default rows."""
    rows, chunk, _ = _default(instruction, target)
    along = _along(instruction)
    if along is not None:
        return (rows, chunk) if along == "n" else (chunk, rows)
    height, width = (1, 1, *extents(instruction.results[0].type))[-2:]
    n = max(min(rows, width), 1)
    return max(min(rows // n, height), 1), n


def _default(instruction: Instruction, target: Target) -> TileSizes:
    type_ = instruction.operands[0].type
    assert isinstance(type_, Tensor)
    return rows_tile(type_, row_axis(instruction.operation), type_.dtype, target)


def _along(instruction: Instruction) -> str | None:
    """Which of m and n lies along the axis of the rows."""
    operation, type_ = instruction.operation, instruction.operands[0].type
    assert isinstance(type_, Tensor)
    if isinstance(operation, Reduction):
        return None
    return {type_.rank - 1: "n", type_.rank - 2: "m"}.get(row_axis(operation))
