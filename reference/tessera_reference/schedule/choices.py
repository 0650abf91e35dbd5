"""The schedule chosen for one operation: tile sizes, prefetched operands, depth of the pipeline (section 8.2)."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.module import Instruction, Value
from ..ir.targets import Target
from ..ir.types import Tensor
from .defaults import contraction_tile, extents, map_tile
from .kinds import is_elementwise, kind_of
from .options import Options
from .row_tiles import rows_on_result
from .tiling import needed_padding

DEPTH = 2
"""The default depth of pipelines: one tile is loaded while another is computed with."""

TileChoice = tuple[int, int, int | None, tuple[int, ...] | None]
"""m, n, k and the padding of each, where any is needed."""


@dataclass(frozen=True)
class Choices:
    """The schedule of one operation; None for no choice. `prefetched` are positions of operands."""

    tile: TileChoice | None = None
    depth: int | None = None
    prefetched: tuple[int, ...] = ()
    scope: str = "shared"

    @classmethod
    def of(
        cls, instruction: Instruction, target: Target, options: Options, directed: set[tuple[str, Value]]
    ) -> Choices:
        """The choices for an instruction, without those that a directive in `directed` already makes."""
        kind = kind_of(instruction)
        result = instruction.results[0] if instruction.results else None
        if kind is None or result is None or not isinstance(result.type, Tensor):
            return cls()
        depth = (options.depth or DEPTH) if kind == "contract" else None
        tile = _tile(instruction, target, options, depth or 1)
        wanted = options.prefetch != "none" and kind != "map"
        positions = [
            position
            for position, value in enumerate(instruction.operands)
            if wanted and isinstance(value.type, Tensor) and ("schedule.prefetch", value) not in directed
        ]
        follows = is_elementwise(instruction.operation) and ("schedule.fuse", result) in directed
        return cls(
            None if ("schedule.tile", result) in directed or follows else tile,
            None if ("schedule.pipeline", result) in directed else depth,
            tuple(positions),
            options.prefetch,
        )


def _tile(instruction: Instruction, target: Target, options: Options, depth: int) -> TileChoice:
    """Sizes over the last two dimensions of the result, and the padding with which they cover it."""
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
