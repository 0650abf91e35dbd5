"""The logical axes of a mesh: how ranks are counted, and which form a group (spec 4.2, 4.6; AMB-RT-01, -02, -03).

Which device a rank is, and what the ranks of a group do, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from ..abi.status import Failure, Status
from ..ir.diagnostics import did_you_mean
from ..numerics.formats import shown

AXES = ("tp", "pp", "dp", "ep")
"""In the order in which ranks count, the last one fastest (AMB-RT-02)."""

_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True)
class MeshAxes:
    """tessMeshAxes: the size along each axis, where 0 is an axis that is absent (RT-04.2-04, AMB-RT-01).

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a size that is negative or no C int.
    """

    tp: int = 0
    pp: int = 0
    dp: int = 0
    ep: int = 0

    def __post_init__(self) -> None:
        for axis in AXES:
            size = getattr(self, axis)
            if type(size) is not int or not 0 <= size <= _LARGEST_INT:
                allowed = f"0 for an absent axis, or 1 to {_LARGEST_INT}"
                raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessMeshCreate", f"axes.{axis} is {shown(size)}", allowed)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The size along each axis of `AXES`; an absent one counts 1."""
        return self.tp or 1, self.pp or 1, self.dp or 1, self.ep or 1

    @property
    def ranks(self) -> int:
        """The number of ranks of the mesh."""
        return prod(self.sizes)

    def require(self, devices: int) -> None:
        """Raise `Failure` with TESS_ERR_INVALID_VALUE unless the mesh has as many ranks as devices (AMB-RT-01)."""
        if self.ranks != devices:
            subject = f"axes {self.tp} x {self.pp} x {self.dp} x {self.ep} for {devices} devices"
            allowed = f"axes whose product, 0 counting as 1, is {devices}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessMeshCreate", subject, allowed)

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at coordinates along (tp, pp, dp, ep). Raises `Failure` for coordinates outside the mesh."""
        number = 0
        for axis, size, coordinate in zip(AXES, self.sizes, coordinates, strict=True):
            if not 0 <= coordinate < size:
                subject = f"coordinate {shown(coordinate)} along {axis}"
                raise Failure(Status.TESS_ERR_INVALID_VALUE, "mesh", subject, f"0 to {size - 1}")
            number = number * size + coordinate
        return number

    def size_along(self, axis: str | None) -> int:
        """The number of ranks of a group along an axis. Raises as `groups`."""
        return self.sizes[_position(axis)]

    def groups(self, axis: str | None) -> tuple[tuple[int, ...], ...]:
        """The groups of ranks that differ along an axis only, in the order of their coordinate along it.

        Groups are in the order of their first ranks. Raises `Failure` with TESS_ERR_INVALID_VALUE for None or an
        unknown name (AMB-RT-03).
        """
        return _groups(self, _position(axis))

    def group_of(self, axis: str | None, rank: int) -> tuple[int, ...]:
        """Return the group of a rank along an axis; all of its ranks share one object. Raises as `groups`."""
        return _by_rank(self, _position(axis))[rank]


def _position(axis: str | None) -> int:
    if not isinstance(axis, str) or axis not in AXES:
        hint = did_you_mean(axis, AXES) if isinstance(axis, str) else ""
        subject = "a NULL axis" if axis is None else f"axis {shown(axis)}"
        allowed = ", ".join(AXES) + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "mesh", subject, allowed)
    return AXES.index(axis)


@lru_cache(maxsize=256)
def _groups(axes: MeshAxes, position: int) -> tuple[tuple[int, ...], ...]:
    along = [range(size) for size in axes.sizes]
    others = [range(1) if place == position else coordinates for place, coordinates in enumerate(along)]
    step = prod(axes.sizes[position + 1 :])
    starts = [axes.rank(corner) for corner in product(*others)]
    return tuple(tuple(start + step * coordinate for coordinate in along[position]) for start in starts)


@lru_cache(maxsize=256)
def _by_rank(axes: MeshAxes, position: int) -> dict[int, tuple[int, ...]]:
    return {rank: group for group in _groups(axes, position) for rank in group}
