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


def require_extents(name: str, extents: Sequence[object], least: int | None = 0, remedy: str = "") -> None:
    """Integers, none of them below `least` where there is one. Raises `Refusal`."""
    for extent in extents:
        require(
            isinstance(extent, int) and not isinstance(extent, bool),
            "types",
            f"{extent!r} in {name} is no integer",
            f"a list of integers as {name}",
            "LANG-05.3-01",
            remedy,
        )
        require(
            least is None or (isinstance(extent, int) and extent >= least),
            "shapes",
            f"{name} {list(extents)} has an extent below {least}",
            f"extents of at least {least}",
            "LANG-05.3-01",
        )
