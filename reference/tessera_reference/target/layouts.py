"""Which lane holds which element of a matrix instruction's operands, for both vendors (LANG-08.2-05, LANG-08.2-10).

NVIDIA: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", the sections "Matrix Fragments for
mma.m8n8k4 with .f64", "... mma.m8n8k16", "... mma.m16n8k4", "... k8", "... k16 with floating point type", "... k16 with
integer type" and "... k32"; and "Warp-level matrix load instruction: ldmatrix". AMD: "AMD matrix instruction
calculator", the layouts of v_mfma_*, which the instruction set documents of MI200 and MI300 draw as tables.
A `Spread` says for each lane and each element that it holds, in the order of its registers, which row and column it is.
Lanes count in runs: `quotient` is the number of the run that a lane is in, `remainder` its place there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.formats import DType

Role: TypeAlias = Literal["a", "b", "c"]
Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Along:
    """A coordinate: so many times the quotient or remainder of the lane, and for each element a number besides."""

    factor: int
    of: Literal["quotient", "remainder"]
    offsets: tuple[int, ...]

    def of_lanes(self, lanes: int, width: int) -> Indices:
        """The coordinate for each lane and element."""
        lane = np.arange(lanes)[:, None]
        part = lane // width if self.of == "quotient" else lane % width
        return np.asarray(self.factor * part + np.asarray(self.offsets)[None, :])


@dataclass(frozen=True)
class Spread:
    """Where the elements are that each lane holds of a matrix of this shape; lanes count in runs of `width`."""

    shape: tuple[int, int]
    lanes: int
    width: int
    row: Along
    column: Along

    @property
    def held(self) -> int:
        """Elements in each lane."""
        return len(self.row.offsets)

    @cached_property
    def rows(self) -> Indices:
        """The row of each element, [lanes, elements]."""
        return self.row.of_lanes(self.lanes, self.width)

    @cached_property
    def columns(self) -> Indices:
        """The column of each element, [lanes, elements]."""
        return self.column.of_lanes(self.lanes, self.width)

    def transposed(self) -> Spread:
        """The same lanes and elements for the transposed matrix."""
        return Spread(self.shape[::-1], self.lanes, self.width, self.column, self.row)

    def gathered(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The matrices [warps, rows, columns] of which the lanes hold `values`, [lanes of the block, elements]."""
        by_warp = values.reshape(-1, self.lanes, self.held)
        matrices = np.empty((by_warp.shape[0], *self.shape), values.dtype)
        matrices[:, self.rows, self.columns] = by_warp
        return matrices

    def scattered(self, matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What each lane of the block holds of matrices [warps, rows, columns]."""
        return np.asarray(matrices[:, self.rows, self.columns].reshape(-1, self.held))


@cache
def nvidia(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """How mma.sync spreads an operand over 32 lanes, which count in groups of four.

    A register holds as many elements of a row of A, or of a column of B, as fit into 32 bits; an fp64 takes two. An
    accumulator holds pairs. Registers cover blocks of 8 rows first, then go on along k.
    """
    if role == "c":
        every = range(2 * m // 8)
        row = Along(1, "quotient", tuple(8 * (each // 2) for each in every))
        return Spread((m, n), 32, 4, row, Along(2, "remainder", tuple(each % 2 for each in every)))
    packed = max(1, 4 // dtype.storage_bytes)
    blocks = m // 8 if role == "a" else 1
    every = range(blocks * k // 4)
    across = Along(1, "quotient", tuple(8 * (each // packed % blocks) for each in every))
    steps = tuple(each % packed + 4 * packed * (each // packed // blocks) for each in every)
    along = Along(packed, "remainder", steps)
    return Spread((m, k), 32, 4, across, along) if role == "a" else Spread((k, n), 32, 4, along, across)


@cache
def nvidia_swapped(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """How mma.sync spreads the transposed problem, B as A and A as B: for shapes whose m is less than its n."""
    swapped: dict[Role, Role] = {"a": "b", "b": "a", "c": "c"}
    return nvidia(swapped[role], n, m, k, dtype).transposed()


@cache
def amd(role: Role, m: int, n: int, k: int, dtype: DType) -> Spread:
    """How v_mfma spreads an operand over 64 lanes: a lane holds a row of A, or a column of B, and a stretch of k.

    An accumulator's lane holds one column; its rows come in fours, of fp64 singly, which the lanes take in turn.
    """
    if role == "c":
        turns, run = 64 // n, 1 if dtype.name == "fp64" else 4
        steps = tuple(run * turns * (each // run) + each % run for each in range(m * n // 64))
        line = Along(1, "remainder", (0,) * len(steps))
        return Spread((m, n), 64, n, Along(run, "quotient", steps), line)
    extent = m if role == "a" else n
    held = k * extent // 64
    line, along = Along(1, "remainder", (0,) * held), Along(held, "quotient", tuple(range(held)))
    return Spread((m, k), 64, m, line, along) if role == "a" else Spread((k, n), 64, n, along, line)


@cache
def ldmatrix(count: int, transpose: bool) -> tuple[Indices, Indices]:
    """What `count` 8x8 matrices of 16-bit elements become: the lane whose row each element is of, and its place there.

    Both are [32 lanes, 2 * count]. Lanes 8i to 8i+7 give the addresses of the rows of matrix i. A lane receives two
    neighbours of a row of each matrix; transposed, two neighbours of a column.
    """
    lane, element = np.arange(32)[:, None], np.arange(2 * count)[None, :]
    group, pair = lane // 4, 2 * (lane % 4) + element % 2
    row, place = (pair, group) if transpose else (group, pair)
    rows, places = np.broadcast_arrays(8 * (element // 2) + row, place)
    return np.ascontiguousarray(rows), np.ascontiguousarray(places)
