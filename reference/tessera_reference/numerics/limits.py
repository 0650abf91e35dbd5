"""Limits on the size of tensors and results, checked before anything is computed.

A shape is a few bytes of a request and can name more elements than any machine holds, or, where one extent is 0, none
at all and yet more positions along its axes than a loop can visit. Such a size is no error of the request: `TooLarge`
is a `MemoryError`, which the adapter reports as unsupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from .errors import ShapeMismatch, TooLarge

__all__ = ["MOST_AXES", "MOST_ELEMENTS", "broadcast_shape", "require_room", "require_shape"]

MOST_ELEMENTS = 1 << 26
"""Elements of a result that is larger than its operands; a gibibyte of the widest dtype."""

MOST_PLACES = 1 << 48
"""The product of all extents but those that are 0; numpy counts bytes of such arrays in 63 bits."""


def _most_axes() -> int:
    try:
        return np.empty((1,) * 64).ndim
    except ValueError:
        return 32  # before numpy 2


MOST_AXES = _most_axes()
"""Axes of an array of numpy."""


def require_shape(operation: str, shape: Sequence[int]) -> None:
    """Raise `ShapeMismatch` for more axes than numpy takes, `TooLarge` for extents that it cannot multiply out."""
    if len(shape) > MOST_AXES:
        raise ShapeMismatch(operation, f"a shape of {len(shape)} axes, at most {MOST_AXES} are taken")
    places = prod(filter(None, shape))
    if places > MOST_PLACES:
        raise TooLarge(operation, "places along the axes", places, MOST_PLACES)


def require_room(operation: str, shape: Sequence[int], held: int = 0) -> None:
    """Raise as `require_shape` does, and `TooLarge` for a result of more elements than are made here.

    A result of as many elements as an operand has, `held`, is always allowed.
    """
    require_shape(operation, shape)
    if prod(shape) > max(MOST_ELEMENTS, held):
        raise TooLarge(operation, "elements", prod(shape), max(MOST_ELEMENTS, held))


def broadcast_shape(operation: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which `shapes` broadcast by NumPy's rules. Raises `ShapeMismatch` and `TooLarge`.

    `numpy.broadcast_shapes` takes no more than 32 axes.
    """
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    result = []
    for extents in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        others = {extent for extent in extents if extent != 1}
        if len(others) > 1:
            raise ShapeMismatch(operation, f"{' and '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(others.pop() if others else 1)
    require_room(operation, result, max(map(prod, shapes)))
    return tuple(result)
