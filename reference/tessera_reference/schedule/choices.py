"""Options of scheduling, and default schedules: nests and tile sizes (spec sections 2, 6, 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

from ..graph.elementwise import Elementwise
from ..graph.movement import Update
from ..graph.reductions import Reduction
from ..ir.operation import AttributeValue, Function, Instruction, Operation, Refusal
from ..ir.targets import Target
from ..ir.types import Scalar, Tensor, Type, Value
from ..numerics.formats import DType
from .operations import needed_padding

# Options of scheduling, from the caller and from `@schedule(...)` (sections 2, 2.3, 6.1).
#
# A directive applies to its values, exactly or not at all: it is followed or refused. Options and annotations apply
# to a whole function: sizes are clipped to each shape and padded where they do not divide it (AMB-LANG-216).


Prefetching = Literal["shared", "global", "none"]


@dataclass(frozen=True)
class Options:
    """The options of scheduling; None leaves the choice to the lowering."""

    tile: tuple[int, ...] | None = None
    """The sizes m, n and k of contractions."""
    depth: int | None = None
    prefetch: Prefetching = "shared"
    fuse: bool = True

    def __post_init__(self) -> None:
        sizes = self.tile or ()
        if not all(_is_count(size) for size in sizes) or len(sizes) > 3:
            raise Refusal("schedule", f"tile is {list(sizes)}", "m, n and k, each at least 1", "LANG-06.3-01")
        if self.depth is not None and not _is_count(self.depth):
            raise Refusal("schedule", f"depth is {self.depth}", "depth >= 1", "LANG-06.2-05")
        if self.prefetch not in ("shared", "global", "none"):
            raise Refusal("schedule", f"there is no scope {self.prefetch!r}", "shared, global or none", "LANG-06.2-02")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def annotated(options: Options, function: Function) -> Options:
    """Return the options for a function, overridden by its `@schedule(...)`, whose other settings are metadata.

    Raises `Refusal`.
    """
    pairs: Any = function.attributes.get("schedule", ())
    settings = dict(pairs)
    changes: dict[str, Any] = {name: settings[name] for name in ("depth", "prefetch", "fuse") if name in settings}
    sizes = _sizes(settings)
    if sizes is not None:
        changes["tile"] = sizes
    if settings.get("double_buffer") is True:
        depth = changes.setdefault("depth", max(options.depth or 2, 2))
        if depth == 1:
            message = "double_buffer with depth 1"
            raise Refusal("schedule", message, "depth >= 2 with double_buffer=true", "LANG-06.2-05", "depth=2")
    if not isinstance(changes.get("fuse", True), bool):
        raise Refusal("schedule", f"fuse is {changes.get('fuse')}", "true or false", "LANG-02-06")
    return replace(options, **changes)


def _sizes(settings: Mapping[str, AttributeValue]) -> tuple[Any, ...] | None:
    """Return the sizes of `tile=128`, `tile=[128, 64, 32]`, or `m=..., n=..., k=...`; None for none."""
    tile = settings.get("tile")
    if isinstance(tile, tuple):
        return tile
    if tile is not None:
        return (tile, tile)
    if "m" in settings and "n" in settings:
        return (settings["m"], settings["n"], *((settings["k"],) if "k" in settings else ()))
    return None


# Default tile sizes: as large as the target's memory and registers allow (section 8.2).
#
# They never change a bit (LANG-08.2-01); the sizes of a schedule replace them.


CONTRACTION = 128
"""The sizes m and n of a contraction."""
DEPTH_BYTES = 128
"""The bytes of k of a contraction."""
THREADS = 256
"""The threads of a block that share a tile, if it has as many elements."""
MAP = (32, 128)
DEFAULT_ROWS = 8
RESERVED = 24
"""The registers of a thread that elements of rows leave to addresses and to other values."""

TileSizes = tuple[int, int, int]


def contraction_tile(
    reached: TileSizes, operands: DType, target: Target, depth: int, wished: tuple[int, ...] = ()
) -> TileSizes:
    """Return sizes for the extents m, n and k of a product, clipped to them in whole matrix instructions."""
    chosen = (CONTRACTION, CONTRACTION, max(DEPTH_BYTES // operands.storage_bytes, 8))
    sizes = (*wished, *chosen[len(wished) :])
    granules = granules_of(operands, target)
    whole = [-(-max(extent, 1) // granule) * granule for extent, granule in zip(reached, granules, strict=True)]
    clipped = list(map(min, sizes, whole))
    while not wished:
        crowded = accumulators(clipped, operands) > target.registers // 2
        if not crowded and staged_bytes(clipped, operands, depth) <= target.shared_bytes:
            break
        position = 2 if clipped[2] > 16 and not crowded else max((0, 1), key=lambda i: clipped[i])
        if clipped[position] <= granules[position]:
            break
        clipped[position] = max(clipped[position] // 2 // granules[position], 1) * granules[position]
    return clipped[0], clipped[1], clipped[2]


def accumulators(sizes: list[int], operands: DType) -> int:
    """Return the registers in which a thread holds its part of a tile of a product."""
    return -(-sizes[0] * sizes[1] // THREADS) * -(-operands.accumulator.bits // 32)


def staged_bytes(sizes: list[int], operands: DType, depth: int) -> int:
    """Return the shared memory that the tiles of both operands of a contraction take, `depth` times."""
    m, n, k = sizes
    return (m * k + k * n) * operands.storage_bytes * depth


def granules_of(operands: DType, target: Target) -> TileSizes:
    """Return the largest steps in which a matrix instruction covers m, n and k; 1 where the target has none."""
    shapes = target.shapes_of(operands)
    if not shapes:
        return 1, 1, 1
    first = shapes[0]
    return first.m, first.n, first.k


def map_tile(type_: Type) -> TileSizes:
    """Return sizes over the last two dimensions of a tensor."""
    shape = extents(type_)
    rows, columns = (1, 1, *shape)[-2:]
    m = min(max(rows, 1), MAP[0])
    return m, min(max(columns, 1), MAP[0] * MAP[1] // m), 1


def rows_tile(type_: Type, axis: int, dtype: DType, target: Target) -> TileSizes:
    """Return the rows of a tile and their elements at a time: all, where memory and registers suffice."""
    shape = extents(type_)
    length = max(shape[axis], 1)
    rows = max(prod(shape[:axis] + shape[axis + 1 :]), 1)
    held = THREADS * (target.registers - RESERVED) // -(-dtype.bits // 32)
    room = min(target.shared_bytes // dtype.storage_bytes, held)
    return min(rows, DEFAULT_ROWS, max(room // length, 1)), min(length, room), 1


def extents(type_: Type) -> tuple[int, ...]:
    """Return the known extents of a value."""
    shape = type_.shape if isinstance(type_, Tensor) else ()
    return tuple(extent for extent in shape if isinstance(extent, int))


# The loop nest that each operation of Graph IR becomes, or its stay in the host function (section 6, AMB-LANG-214).
#
# Random draws, collectives, operations with regions, calls, state and assertions stay; so do arithmetic on scalars
# and operations with an unknown extent.


Kind = Literal["contract", "map", "rows"]


def kind_of(instruction: Instruction) -> Kind | None:
    """Return the kind of nest that an instruction becomes; None where it stays in the host function."""
    operation, results = instruction.operation, instruction.results
    types = [value.type for value in (*instruction.operands, *results)]
    if not all(map(is_known, types)) or len(results) != 1:
        return None
    if isinstance(operation, Update) and any(":" in part and "$" in part for part in operation.spec):
        return None  # the written elements are known only at run time
    return None if operation.nest == "map" and not isinstance(results[0].type, Tensor) else operation.nest


def is_known(type_: Type) -> bool:
    """True if a value is a scalar, or a tensor with known extents."""
    return isinstance(type_, Tensor | Scalar) and all(isinstance(extent, int) for extent in type_.shape)


def leads(kind: Kind | None, instruction: Instruction) -> bool:
    """True if elementwise operations over the shape of an instruction's result can share its nest (AMB-LANG-210)."""
    return kind == "contract" or (kind == "map" and isinstance(instruction.operation, Elementwise))


def row_axis(operation: Operation) -> int:
    """Return the axis of the operand that runs along the rows of an operation on rows."""
    axis = operation.attributes.get("axis", -1)
    (_, type_), *_ = operation.operand_types
    assert isinstance(axis, int) and isinstance(type_, Tensor)
    return axis % type_.rank


# Tiles of operations on rows: from sizes m and n over the result to counts of rows and elements, and back.
#
# For a reduction every element of the result is a row, so that a tile is m * n rows. For an operation that keeps the
# axis, one of m and n runs along it where it is one of the last two dimensions (AMB-LANG-217).


def rows_taken(instruction: Instruction, stated: tuple[int, int] | None, target: Target) -> TileSizes:
    """Return the rows of a tile and the elements of each at a time, for a stated m and n or by default."""
    default = _default(instruction, target)
    if stated is None:
        return default
    m, n = stated
    along = _along(instruction)
    rows, chunk = (m * n, default[1]) if along is None else (m, n) if along == "n" else (n, m)
    return rows, chunk, 1


def rows_on_result(instruction: Instruction, target: Target) -> tuple[int, int]:
    """Return the m and n over the result that give the default rows."""
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
    """Return the one of m and n that runs along the axis of the rows; None if neither does."""
    operation, type_ = instruction.operation, instruction.operands[0].type
    assert isinstance(type_, Tensor)
    if isinstance(operation, Reduction):
        return None
    return {type_.rank - 1: "n", type_.rank - 2: "m"}.get(row_axis(operation))


# The schedule chosen for one operation: tile sizes, prefetched operands, depth of the pipeline (section 8.2).


DEPTH = 2
"""The default depth of pipelines: one tile is loaded while another is used."""

TileChoice = tuple[int, int, int | None, tuple[int, ...] | None]
"""The sizes m, n, k and, where any is needed, the padding of each."""


@dataclass(frozen=True)
class Choices:
    """The schedule of one operation; None means no choice. `prefetched` are positions of operands."""

    tile: TileChoice | None = None
    depth: int | None = None
    prefetched: tuple[int, ...] = ()
    scope: str = "shared"

    @classmethod
    def of(
        cls, instruction: Instruction, target: Target, options: Options, directed: set[tuple[str, Value]]
    ) -> Choices:
        """Return the choices for an instruction, without those that a directive in `directed` already makes."""
        kind = kind_of(instruction)
        result = instruction.results[0] if instruction.results else None
        if kind is None or result is None or not isinstance(result.type, Tensor):
            return cls()
        depth = (options.depth or DEPTH) if kind == "contract" else None
        tile = _tile(instruction, target, options, depth or 1)
        prefetched = options.prefetch != "none" and kind != "map"
        positions = [
            position
            for position, value in enumerate(instruction.operands)
            if prefetched and isinstance(value.type, Tensor) and ("schedule.prefetch", value) not in directed
        ]
        follows = isinstance(instruction.operation, Elementwise) and ("schedule.fuse", result) in directed
        return cls(
            None if ("schedule.tile", result) in directed or follows else tile,
            None if ("schedule.pipeline", result) in directed else depth,
            tuple(positions),
            options.prefetch,
        )


def _tile(instruction: Instruction, target: Target, options: Options, depth: int) -> TileChoice:
    """Return sizes over the last two dimensions of the result, and the padding with which they cover it."""
    result = instruction.results[0].type
    kind = kind_of(instruction)
    height, width = (1, 1, *extents(result))[-2:]
    if kind == "contract":
        first = instruction.operands[0].type
        assert isinstance(first, Tensor)
        reached = (height, width, extents(first)[-1])
        sizes = contraction_tile(reached, first.dtype, target, depth, options.tile or ())
        pads = needed_padding(sizes, reached)
        return (*sizes, pads if any(pads) else None)
    m, n = rows_on_result(instruction, target) if kind == "rows" else map_tile(result)[:2]
    pads = needed_padding((m, n), (height, width))
    return m, n, None, pads if any(pads) else None
