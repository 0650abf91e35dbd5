"""The computation of one node of a reduction tree: exact until its one rounding to the accumulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import copysign, isfinite, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import arithmetic
from .errors import broadcast_shape
from .formats import DType, UnsupportedDType
from .rounding import round_ratio, round_to

Values: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NodeArithmetic:
    """The arithmetic of a node: its result is rounded once, to nearest even, to `accumulator`. Integers wrap instead.

    A node of three or more children is one fused addition or multiplication. Terms are numbers of the accumulator, in
    its carrier; factors may be of a wider type. Reference arithmetic ("levels"): an implementation at the deterministic
    level declares its tree and this model, which together determine its bits.
    """

    accumulator: DType

    @classmethod
    def canonical(cls, dtype: DType) -> NodeArithmetic:
        """Return the arithmetic for operands of `dtype`."""
        return cls(dtype.accumulator)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, whose other fields are those of arithmetics that round otherwise, or flush."""
        return {
            "product": "rounded",
            "accumulator": self.accumulator.name,
            "rounding": "nearest_even",
            "alignment_bits": None,
            "subnormals": "kept",
        }

    def is_plain(self, operands: DType) -> bool:
        """True if numpy's operators, in the accumulator's carrier, compute products and nodes of two children."""
        fits = np.result_type(operands.carrier, self.accumulator.carrier) == self.accumulator.carrier
        return self.accumulator.kind == "int" or (fits and not self.accumulator.is_narrow)

    def require(self, operation: str, operands: DType) -> None:
        """Refuse operands of another kind than the accumulator's. Raises `UnsupportedDType`."""
        if operands.kind != self.accumulator.kind:
            raise UnsupportedDType(f"{operation} in accumulator {self.accumulator}", operands)

    def enter(self, values: Values, dtype: DType) -> Values:
        """Return `values` of `dtype` as operands of nodes: exactly, but for integers, which wrap."""
        carrier = self.accumulator.carrier
        with np.errstate(all="ignore"):
            return values.astype(carrier if dtype.kind == "int" else np.result_type(values, carrier), copy=False)

    def leaf_product(self, a: Values, b: Values) -> Values:
        """Return the products of entered operands, which broadcast."""
        return self.multiply([a, b])

    def add(self, terms: Sequence[Values]) -> Values:
        """Combine the children of a node into their sum, in the accumulator's carrier."""
        if self.accumulator.kind == "int":
            return _left_fold(np.add, terms)
        if self.accumulator.kind == "float":
            return self._sum(terms)
        component = self._of_component()
        return arithmetic.join(*(component.add(part) for part in zip(*map(arithmetic.parts, terms), strict=True)))

    def multiply(self, factors: Sequence[Values]) -> Values:
        """Combine the children of a node into their product, in the accumulator's carrier.

        Raises `UnsupportedDType` for a complex node of three or more.
        """
        if self.accumulator.kind == "int":
            return _left_fold(np.multiply, factors)
        if self.accumulator.kind == "float":
            return self._product(factors)
        if len(factors) > 2:
            raise UnsupportedDType("a fused product of three or more", self.accumulator)
        (a, b), (c, d) = map(arithmetic.parts, factors)
        component = self._of_component()
        ac, bd, ad, bc = (component.multiply(pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return arithmetic.join(component.add([ac, np.negative(bd)]), component.add([ad, bc]))

    def _of_component(self) -> NodeArithmetic:
        return replace(self, accumulator=self.accumulator.component)

    def _sum(self, terms: Sequence[Values]) -> Values:
        """Add by numpy where it rounds as the node does: in float32, with an innocuous second rounding, also for narrow
        accumulators (see `arithmetic`)."""
        if len(terms) <= 2 and all(term.dtype == self.accumulator.carrier for term in terms):
            return self._rounded(_left_fold(np.add, terms))
        return self._exactly(_exact_sum, terms)

    def _product(self, factors: Sequence[Values]) -> Values:
        """Multiply by numpy where it rounds as the node does; the product of two float32 is exact in float64."""
        if len(factors) == 2 and all(factor.dtype == self.accumulator.carrier for factor in factors):
            a, b = factors
            return self._rounded(np.multiply(a, b, dtype=np.float64 if self.accumulator.is_narrow else None))
        return self._exactly(_exact_product, factors)

    def _rounded(self, values: Values) -> Values:
        return round_to(values, self.accumulator) if self.accumulator.is_narrow else values

    def _exactly(self, node: Callable[[Numbers, DType], float], children: Sequence[Values]) -> Values:
        """Apply `node` to the numbers at each place of the children, which broadcast: the plain definition."""
        shape = broadcast_shape("exact node", *(child.shape for child in children))
        columns = [np.broadcast_to(child, shape).reshape(-1).tolist() for child in children]
        results = [node(numbers, self.accumulator) for numbers in zip(*columns, strict=True)]
        return round_to(np.array(results, np.float64).reshape(shape), self.accumulator)


def _exact_sum(terms: Numbers, dtype: DType) -> float:
    """Return the sum, rounded once; infinite ones and NaN are not those of `dtype` yet."""
    special = [term for term in terms if not isfinite(term)]
    if special:  # alone: the sum of the others may overflow
        return sum(special)
    ratios = [term.as_integer_ratio() for term in terms]
    unit = max(denominator for _, denominator in ratios)  # of all: they are powers of two
    total = sum(numerator * (unit // denominator) for numerator, denominator in ratios)
    if total:
        return round_ratio(total, unit, dtype)
    return -0.0 if all(copysign(1, term) < 0 for term in terms) else 0.0


def _exact_product(factors: Numbers, dtype: DType) -> float:
    """Return the product, rounded once; infinite ones and NaN are not those of `dtype` yet."""
    if all(x != 0 and isfinite(x) for x in factors):
        numerators, denominators = zip(*(x.as_integer_ratio() for x in factors), strict=True)
        return round_ratio(prod(numerators), prod(denominators), dtype)
    return prod(x if x == 0 or not isfinite(x) else copysign(1, x) for x in factors)


def _left_fold(operator: Callable[[Values, Values], Values], terms: Sequence[Values]) -> Values:
    total, *others = terms
    for term in others:
        total = np.asarray(operator(total, term))
    return total
