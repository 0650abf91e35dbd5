"""Other corner values, below the level strict: NaN beside numbers, equal zeros, casts of what lies beyond a type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around, altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph import elementwise as casts
from tessera_reference.graph import reductions
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics import reductions as arrays
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, DType, NumericsFailure
from tessera_reference.numerics.rounding import Overflow, cast
from tessera_reference.numerics.trees import fold

from .levels import OtherBits
from .substitutes import Substitution

EXTREMES = ("ir/reductions/*", "ir/long-reductions/*", "ir/nan-inputs/*")
CASTS = ("ir/casts/*", "ir/nan-inputs/*")


def _extreme(combine: Callable[[Any, Any], Any]) -> Any:
    def compute(x: Array, axis: int, keepdims: bool = False) -> Array:
        with np.errstate(all="ignore"):
            values = fold(x.values, axis % x.rank, combine)
        return Array(x.dtype, np.expand_dims(values, axis % x.rank) if keepdims else values)

    return staticmethod(compute)


def _place(find: Callable[[Any], Any]) -> Any:
    def compute(x: Array, axis: int, keepdims: bool = False) -> Array:
        with np.errstate(all="ignore"):
            places = np.asarray(find(np.moveaxis(x.values, axis, -1)), np.int32)
        return Array(DTYPES["int32"], np.expand_dims(places, axis % x.rank) if keepdims else places)

    return staticmethod(compute)


def _beside_nan(x: Any) -> Any:
    """The place of the first largest number."""
    least = np.where(np.isnan(x).all(-1, keepdims=True), x, -np.inf)
    return np.argmax(np.where(np.isnan(x), least, x) if x.dtype.kind == "f" else x, -1)


@varies("AMB-LANG-134", "has the largest and the smallest number beside a NaN", *EXTREMES)
class NaNIgnored(OtherBits):
    """The extremes of numbers alone."""

    def others(self) -> Sequence[Substitution]:
        """Three reductions."""
        return [
            (reductions.ArgMax, "compute", _place(_beside_nan)),
            (reductions.Max, "compute", _extreme(lambda a, b: np.where(np.isnan(a) | (b > a), b, a))),
            (reductions.Min, "compute", _extreme(lambda a, b: np.where(np.isnan(a) | (b < a), b, a))),
        ]


@varies("AMB-LANG-134", "finds -0 as large as +0", *EXTREMES)
class EqualZeros(OtherBits):
    """The place of the first zero."""

    def others(self) -> Sequence[Substitution]:
        """One reduction."""
        return [(reductions.ArgMax, "compute", _place(lambda x: np.argmax(x, -1)))]


def _wide(x: Array, axis: int, keepdims: bool = False) -> Array:
    places = arrays.argmax(x, axis=axis, keepdims=keepdims)
    return Array(DTYPES["int64"], places.values.astype(np.int64))


WIDE = altered(
    "AMB-LANG-134",
    "has places of int64",
    EXTREMES,
    ReferenceAdapter,
    (reductions.ArgMax, "compute", staticmethod(_wide)),
    (reductions.ArgMax, "result_dtype", DTYPES["int64"]),
    name="wide_places",
)


class IntegerOverflow(NumericsFailure):
    """An integer that its type lacks."""


def _checked(exact: Callable[..., Any]) -> Around:
    """An operator that refuses integers of which the exact result is another."""

    def change(operator: Callable[..., Array]) -> Any:
        def compute(*operands: Array) -> Array:
            result = operator(*operands)
            if result.dtype.kind == "int":
                wide = exact(*(np.asarray(operand.values, object) for operand in operands))
                if (wide != np.asarray(result.values, object)).any():
                    raise IntegerOverflow("an integer overflows")
            return result

        return staticmethod(compute)

    return Around(change)


def _quotient(a: Any, b: Any) -> Any:
    """The quotient of integers without an end, truncated; a divisor of 0 is refused elsewhere."""
    return np.vectorize(lambda x, y: int(Fraction(int(x), int(y))), otypes=[object])(a, b)


class Strict(ReferenceAdapter):
    """Finds an integer that its type lacks a mistake of types, as it does a literal."""

    def language_execute(self, **request: Any) -> dict[str, Any]:
        """The results, or a refusal of category types."""
        try:
            return super().language_execute(**request)
        except Refusal as refusal:
            if "an integer overflows" not in str(refusal):
                raise
            raise Refusal("types", "execute", "an integer overflows") from refusal


OVERFLOW_REFUSED = altered(
    "AMB-LANG-90",
    "refuses integers that overflow, as a mistake of types",
    ("ir/elementwise/*", "ir/levels/*", "ir/control-flow/*", "ir/drawn/*", "ir/precedence/*", "ir/expressions/*"),
    Strict,
    (casts.Add, "compute", _checked(lambda a, b: a + b)),
    (casts.Subtract, "compute", _checked(lambda a, b: a - b)),
    (casts.Multiply, "compute", _checked(lambda a, b: a * b)),
    (casts.Divide, "compute", _checked(_quotient)),
    (arithmetic, "negate", _checked(lambda a: -a)),
    name="overflow_refused",
)


@varies("AMB-LANG-105", "overflows to infinity or NaN where no mode is named", *CASTS)
class Overflowing(OtherBits):
    """The default of `overflow` is the other mode."""

    def others(self) -> Sequence[Substitution]:
        """The default."""
        return [(casts.Cast.__init__, "__defaults__", ("nonfinite",))]


def _nearest(x: Array, target: DType, overflow: Overflow = "saturate") -> Array:
    if x.dtype.kind == "float" and target.kind == "int":
        x = Array(x.dtype, np.rint(x.values))
    return cast(x, target, overflow)


@varies("AMB-LANG-105", "rounds to the nearest integer", *CASTS)
class Nearest(OtherBits):
    """Halves go to the even integer."""

    def others(self) -> Sequence[Substitution]:
        """The cast."""
        return [(casts, "cast", _nearest)]
