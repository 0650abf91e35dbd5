"""What operations ask of an axis and of a shape that are given as attributes."""

from collections.abc import Sequence

from ..ir.operation import require


def require_axis(axis: int, rank: int, clause: str = "LANG-03.2-01") -> None:
    """An axis from -rank to rank - 1. Raises `Refusal`."""
    require(
        -rank <= axis < rank,
        "shapes",
        f"axis {axis} is out of range for rank {rank}",
        f"{-rank} <= axis <= {rank - 1}",
        clause,
        "the last axis is -1",
    )


def require_extents(name: str, extents: Sequence[int], least: int = 0) -> None:
    """None of them below `least`. Raises `Refusal`."""
    require(
        all(extent >= least for extent in extents),
        "shapes",
        f"{name} {list(extents)} has an extent below {least}",
        f"extents of at least {least}",
        "LANG-05.3-01",
    )
