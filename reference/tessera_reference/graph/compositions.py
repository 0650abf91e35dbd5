"""What compound operations share: they compute in the accumulator type, and round each result once to its dtype.

Canon of arithmetic. Every step of a composition is an operation of Graph IR and rounds in the accumulator type; numbers
given as attributes are rounded once to it, from the fp64 that the attribute holds.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from ..ir.module import Value
from ..ir.operation import Builder, require
from ..ir.types import Numeric, Tensor, show_dim
from .term import Term


def widened(value: Value, build: Builder) -> Term:
    """A value in the accumulator type of its dtype."""
    term = Term(value, build)
    return term.cast_to(term.dtype.accumulator)


def number(value: float) -> Fraction:
    """A number given as an attribute, exactly."""
    return Fraction(value)


def along_axis(vector: Term, axis: int, rank: int) -> Term:
    """A vector whose elements stand along one axis of a tensor of that rank."""
    return vector.shaped(tuple(vector.shape[0] if place == axis % rank else 1 for place in range(rank)))


def require_vector_along(name: str, vector: Tensor, x: Tensor, axis: int, *, wide: bool = False) -> None:
    """One element for each position of x along an axis, of x's dtype; `wide`: or of its accumulator's.

    Raises `Refusal`.
    """
    require_held_as(name, vector, x, wide=wide)
    extent = x.shape[axis]
    require(
        vector.shape == (extent,),
        "shapes",
        f"{name} is {vector}, and axis {axis} of {x} has extent {show_dim(extent)}",
        f"{name}.shape == [x.shape[{axis}]]",
        "LANG-03.2-03",
    )


def require_like(name: str, value: Numeric, x: Numeric, *, wide: bool = False) -> None:
    """The shape and dtype of another operand; `wide`: or the dtype of its accumulator. Raises `Refusal`."""
    require_held_as(name, value, x, wide=wide)
    require(
        type(value) is type(x) and value.shape == x.shape,
        "shapes",
        f"{name} is {value}, not of the shape of {x}",
        "operands of one shape",
        "LANG-03.2-03",
    )


def require_held_as(name: str, value: Numeric, x: Numeric, *, wide: bool = False) -> None:
    """The dtype of another operand; `wide`: or its accumulator's. Raises `Refusal`."""
    dtypes = dict.fromkeys((x.dtype, *([x.dtype.accumulator] if wide else [])))
    require(
        value.dtype in dtypes,
        "types",
        f"{name} is {value.dtype}, beside {x.dtype}",
        f"{name}.dtype in {{{', '.join(map(str, dtypes))}}}, since nothing is cast implicitly",
        "LANG-03.1-05",
        "cast one operand with op.cast",
    )


def require_number(name: str, value: float, *, below: float | None = None, most: float | None = None) -> None:
    """A finite number of at least 0, less than `below` and at most `most` where they are given. Raises `Refusal`."""
    allowed = isfinite(value) and value >= 0 and (below is None or value < below) and (most is None or value <= most)
    above = f" < {below:g}" if below is not None else f" <= {most:g}" if most is not None else ""
    require(allowed, "numerics", f"{name} is {value}", f"0 <= {name}{above}", "LANG-02-04")
