"""The errors of the arithmetic, as types with fields, and the limits on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .formats import DType, NumericsFailure, shown


@dataclass(eq=False, repr=False)
class DTypeMismatch(NumericsFailure):
    """The operands of `operation` have two dtypes, `a` and `b`; nothing is promoted implicitly (LANG-03.1-05)."""

    operation: str
    a: DType
    b: DType

    def __str__(self) -> str:
        return f"{self.operation}: operands are {self.a} and {self.b}"


@dataclass(eq=False, repr=False)
class ShapeMismatch(NumericsFailure):
    """`operation` does not take these shapes, axes or permutations; `problem` says why."""

    operation: str
    problem: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.problem}"


@dataclass(eq=False, repr=False)
class DivisionByZero(NumericsFailure):
    """An integer was divided by zero."""

    def __str__(self) -> str:
        return "integer division by zero"


@dataclass(eq=False, repr=False)
class WrongCarrier(NumericsFailure):
    """Values of `dtype` are held in `dtype.carrier`, not in `found`."""

    dtype: DType
    found: np.dtype[np.generic]

    def __str__(self) -> str:
        return f"{self.dtype} is held in {self.dtype.carrier}, not in {self.found}"


@dataclass(eq=False, repr=False)
class NotRepresentable(NumericsFailure):
    """`value` at `index` is not a value of `dtype`."""

    dtype: DType
    index: tuple[int, ...]
    value: object

    def __str__(self) -> str:
        return f"{self.value!r} at {list(self.index)} is not a value of {self.dtype}"


@dataclass(eq=False, repr=False)
class MalformedStorage(NumericsFailure):
    """A buffer of `found` bytes cannot hold data that take `expected` bytes."""

    expected: int
    found: int

    def __str__(self) -> str:
        return f"expected {self.expected} bytes, found {self.found}"


@dataclass(eq=False, repr=False)
class UnsuitableEnvironment(NumericsFailure):
    """This process does not compute by IEEE 754's default rules; `findings` names each departure."""

    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "arithmetic of this process is not IEEE 754's default: " + "; ".join(self.findings)


@dataclass(eq=False, repr=False)
class InvalidArgument(NumericsFailure):
    """`operation` does not accept `found` for `argument`; `allowed` describes what it accepts."""

    operation: str
    argument: str
    found: object
    allowed: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.argument} is {shown(self.found)}, allowed is {self.allowed}"


@dataclass(eq=False, repr=False)
class TooLarge(MemoryError):
    """`operation` needs `needed` of `what`, more than this implementation's `limit`; the caller is not at fault."""

    operation: str
    what: str
    needed: int
    limit: int

    def __str__(self) -> str:
        return f"{self.operation}: {shown(self.needed)} {self.what} are too many, at most {self.limit} are taken"


@dataclass(eq=False, repr=False)
class NonFinite(NumericsFailure):
    """`operation` found `value` at `index`, where it accepts only numbers of the kind `allowed`."""

    operation: str
    index: tuple[int, ...]
    value: float
    allowed: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.value!r} at {list(self.index)} is not {self.allowed}"


class AxisOutOfRange(ShapeMismatch):
    """`operation` has no axis `axis` to work along: axes are -rank to rank - 1."""

    def __init__(self, operation: str, axis: int, rank: int) -> None:
        allowed = f"{-rank} <= axis <= {rank - 1}" if rank else "none, an operand of rank 0 has no axes"
        super().__init__(operation, f"axis {axis} is out of range for rank {rank}, allowed is {allowed}")


class EmptyAxis(ShapeMismatch):
    """`operation` needs at least one element along `axis`, and there are none."""

    def __init__(self, operation: str, axis: int) -> None:
        super().__init__(operation, f"axis {axis} has extent 0, at least 1 element is needed")


@dataclass(eq=False, repr=False)
class MalformedTree(NumericsFailure):
    """`problem` is at `column`, from 1, of `text`; or, in JSON, at `path`."""

    problem: str
    text: str = ""
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        return f"reduction tree, {f'at {self.path}' if self.path else f'column {self.column}'}: {self.problem}"


@dataclass(eq=False, repr=False)
class LeafCount(NumericsFailure):
    """A tree of `found` leaves does not fit a reduction of `expected` elements."""

    expected: int
    found: int

    def __str__(self) -> str:
        return f"reduction tree: {self.expected} elements are reduced, the tree has {self.found} leaves"


# Limits on the size of tensors and results, checked before anything is computed.
#
# A shape is a few bytes of a request and can name more elements than any machine holds, or, where one extent is 0, none
# at all and yet more positions along its axes than a loop can visit. Such a request is not faulty: `TooLarge` is a
# `MemoryError`, which the adapter reports as unsupported.


MOST_ELEMENTS = 1 << 26
"""The most elements of a result that is larger than its operands; a gibibyte of the widest dtype."""

MOST_PLACES = 1 << 48
"""The most positions, as the product of all extents but 0; numpy counts bytes of such arrays in 63 bits."""


def _most_axes() -> int:
    try:
        return np.empty((1,) * 64).ndim
    except ValueError:
        return 32  # before numpy 2


MOST_AXES = _most_axes()
"""The most axes of an array of numpy."""


def require_shape(operation: str, shape: Sequence[int]) -> None:
    """Raise `ShapeMismatch` for more axes than numpy takes, `TooLarge` for extents that it cannot multiply out."""
    if len(shape) > MOST_AXES:
        raise ShapeMismatch(operation, f"a shape of {len(shape)} axes, at most {MOST_AXES} are taken")
    places = prod(filter(None, shape))
    if places > MOST_PLACES:
        raise TooLarge(operation, "places along the axes", places, MOST_PLACES)


def require_room(operation: str, shape: Sequence[int], allowance: int = 0) -> None:
    """Raise as `require_shape` does, and `TooLarge` for a result of more elements than are made here.

    A result of as many elements as an operand has, `allowance`, is always allowed.
    """
    require_shape(operation, shape)
    if prod(shape) > max(MOST_ELEMENTS, allowance):
        raise TooLarge(operation, "elements", prod(shape), max(MOST_ELEMENTS, allowance))


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
