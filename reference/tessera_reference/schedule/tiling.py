"""Tile sizes against extents: divisibility and explicit padding (section 6.3; LANG-06.3-01).

A size that does not divide its extent, one larger than the extent too, needs padding: extent and padding together are
then a multiple of it (AMB-LANG-211).
"""

from __future__ import annotations

from ..ir.operation import require
from ..ir.types import Dim, Numeric, show_dim

Padding = int | tuple[int, ...] | None
"""One number pads every dimension that its size does not divide; a list pads m, n and, where it is tiled, k."""

SIZES = ("m", "n", "k")


def matrix_of(type_: Numeric) -> tuple[Dim, Dim]:
    """The last two extents, which m and n tile; those that a value does not have are 1."""
    rows, columns = (1, 1, *type_.shape)[-2:]
    return rows, columns


def padding_of(pad: Padding, position: int, size: int, extent: int) -> int:
    """The padding of the dimension that the m, n or k at `position` tiles."""
    if pad is None:
        return 0
    if isinstance(pad, int):
        return pad if extent % size else 0
    return pad[position] if position < len(pad) else 0


def require_cover(position: int, size: int, extent: Dim, pad: Padding) -> None:
    """Require that a tile size divides its extent plus padding; accept any size for an unknown extent.

    Raises `Refusal`.
    """
    if not isinstance(extent, int):
        return
    name, padding = SIZES[position], padding_of(pad, position, size, extent)
    missing = -extent % size
    beside = f" with padding {padding}" if padding else ""
    require(
        (extent + padding) % size == 0,
        "schedule",
        f"tiles of {name}={size} do not cover the extent {show_dim(extent)}{beside}",
        f"{name} divides the extent, or the extent and its padding",
        "LANG-06.3-01",
        f"pad by {missing}",
    )


def needed_padding(sizes: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
    """The least padding with which tiles cover their extents."""
    return tuple(-extent % size for size, extent in zip(sizes, extents, strict=True))
