"""How one node of a reduction tree computes: a declared model.

Canon of arithmetic ("levels"): an implementation at the deterministic level declares its tree and this model, and its
bits must be those that the two give. Covered are the fused multiply-adds of processors and the adders of published
tensor cores, which align their terms to the largest one, drop what falls off, and round once (Fasi, Higham, Mikaitis
and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science, 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from . import complex_numbers
from .errors import InvalidArgument, UnknownDType, UnsupportedDType
from .exact_nodes import Product, Term, exact_product, exact_sum
from .formats import DTYPES, DType, dtype
from .rounding_modes import ROUNDINGS, Rounding, round_in_mode, sum_to_odd

__all__ = ["NodeArithmetic", "Product", "Term"]

Values: TypeAlias = npt.NDArray[Any]

_ALLOWED: dict[str, tuple[str, ...]] = {
    "product": ("rounded", "fused"),
    "rounding": ROUNDINGS,
    "subnormals": ("kept", "flushed"),
}

_NO_EXPONENT = -2000
"""Stands for the exponent of a zero: below those of all products."""


@dataclass(frozen=True, slots=True)
class NodeArithmetic:
    """The arithmetic of a node.

    accumulator: every node's result is rounded to it, in the mode `rounding`. Integers wrap instead.
    product: of a product that is a leaf, "rounded" means to the accumulator first; "fused", that it enters the node
        around it exactly. Of two fused products in one node of two children, the first is rounded after all.
    alignment_bits: None, or how many bits below the leading one of its largest term a node of three or more children
        keeps; each term is truncated to them, toward zero, before they are added exactly.
    subnormals: "flushed" turns subnormal operands, rounded products and results of nodes into zeros of their sign.

    Arrays that it works on are held in the accumulator's carrier or, as leaves, a wider one. Raises `InvalidArgument`.
    """

    accumulator: DType
    product: Literal["rounded", "fused"] = "rounded"
    rounding: Rounding = "nearest_even"
    alignment_bits: int | None = None
    subnormals: Literal["kept", "flushed"] = "kept"

    def __post_init__(self) -> None:
        for field, allowed in _ALLOWED.items():
            if getattr(self, field) not in allowed:
                raise InvalidArgument(
                    "arithmetic of a node", field, getattr(self, field), "one of " + ", ".join(allowed)
                )
        bits = self.alignment_bits
        if bits is not None and (not isinstance(bits, int) or isinstance(bits, bool) or bits < 0):
            raise InvalidArgument("arithmetic of a node", "alignment_bits", bits, "null or an integer of at least 0")

    @classmethod
    def canonical(cls, dtype: DType) -> NodeArithmetic:
        """Return the canon's arithmetic for operands of `dtype`."""
        return cls(dtype.accumulator)

    @classmethod
    def from_json(cls, value: object) -> NodeArithmetic:
        """Read the JSON form, an object with every field. Raises `InvalidArgument`."""
        names = ("product", "accumulator", "rounding", "alignment_bits", "subnormals")
        if not isinstance(value, Mapping) or sorted(map(str, value)) != sorted(names):
            raise InvalidArgument("arithmetic of a node", "the object", value, "one with just " + ", ".join(names))
        try:
            accumulator = dtype(value["accumulator"])
        except (UnknownDType, TypeError):
            raise InvalidArgument(
                "arithmetic of a node", "accumulator", value["accumulator"], "one of " + ", ".join(DTYPES)
            ) from None
        return cls(**{**value, "accumulator": accumulator})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "product": self.product,
            "accumulator": self.accumulator.name,
            "rounding": self.rounding,
            "alignment_bits": self.alignment_bits,
            "subnormals": self.subnormals,
        }

    def is_plain(self, operands: DType) -> bool:
        """Whether numpy's operators, in the accumulator's carrier, compute products and nodes of two children."""
        if self.accumulator.kind == "int":
            return True
        fits = np.result_type(operands.carrier, self.accumulator.carrier) == self.accumulator.carrier
        rounded = self.product == "rounded" and self.rounding == "nearest_even" and self.subnormals == "kept"
        return fits and rounded and not self.accumulator.is_narrow

    def require(self, operation: str, operands: DType) -> None:
        """Refuse operands of another kind than the accumulator's, and fused products of complex numbers."""
        if operands.kind != self.accumulator.kind:
            raise UnsupportedDType(f"{operation} in accumulator {self.accumulator}", operands)
        if operands.kind == "complex" and self.product == "fused":
            raise UnsupportedDType(f"{operation} with fused products", operands)

    def enter(self, values: Values, dtype: DType) -> Values:
        """Return `values` of `dtype` as operands of nodes: exactly, but for what is flushed, and integers wrapped."""
        with np.errstate(all="ignore"):
            if dtype.kind == "int":
                return values.astype(self.accumulator.carrier, copy=False)
            if self.subnormals == "flushed":
                values = _flushed(values, dtype)
            return values.astype(np.result_type(values, self.accumulator.carrier), copy=False)

    def leaf_product(self, a: Values, b: Values) -> Term:
        """Return the products of entered operands, which broadcast: rounded, or "fused" ones as terms yet to be."""
        fused = self.product == "fused" and self.accumulator.kind == "float"
        return Product(a, b) if fused else self.multiply([a, b])

    def add(self, terms: Sequence[Term]) -> Values:
        """Combine the children of a node into their sum, in the accumulator's carrier."""
        if self.accumulator.kind == "int":
            return _left_fold(np.add, terms)
        if self.accumulator.kind == "complex":
            parts, component = [complex_numbers.parts(_values(term)) for term in terms], self._of_component()
            return complex_numbers.join(*(component.add(part) for part in zip(*parts, strict=True)))
        if len(terms) == 2 and all(isinstance(term, Product) for term in terms):
            terms = [self.settle(terms[0]), terms[1]]
        return self._flushed(self._sum(terms))

    def multiply(self, factors: Sequence[Values]) -> Values:
        """Combine the children of a node into their product, in the accumulator's carrier.

        `UnsupportedDType` is raised for a complex node of three or more.
        """
        if self.accumulator.kind == "int":
            return _left_fold(np.multiply, factors)
        if self.accumulator.kind == "float":
            return self._flushed(self._product(factors))
        if len(factors) > 2:
            raise UnsupportedDType("a fused product of three or more", self.accumulator)
        (a, b), (c, d) = map(complex_numbers.parts, factors)
        component = self._of_component()
        ac, bd, ad, bc = (component.multiply(pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return complex_numbers.join(component.add([ac, np.negative(bd)]), component.add([ad, bc]))

    def settle(self, term: Term) -> Values:
        """Round to the accumulator what no node has rounded: a product, or a leaf that is a whole tree."""
        if isinstance(term, Product):
            return self.multiply(term)
        return term if self.accumulator.kind == "int" else self.add([term])

    def _of_component(self) -> NodeArithmetic:
        return replace(self, accumulator=self.accumulator.component)

    def _sum(self, terms: Sequence[Term]) -> Values:
        """Add exactly and round once: by numpy where it can, else in float64, else on whole numbers."""
        carrier = self.accumulator.carrier
        plain = self.rounding == "nearest_even" and not self.accumulator.is_narrow and len(terms) <= 2
        if plain and all(isinstance(term, np.ndarray) and term.dtype == carrier for term in terms):
            return _left_fold(np.add, terms)
        alignment = self.alignment_bits if len(terms) > 2 else None
        if carrier == np.float32 and all(_is_single(term) for term in terms):
            wide = [_float64(term) for term in terms]
            total = _total(wide, alignment)
            if total is not None:
                return round_in_mode(_zero_signed(total, wide, self.rounding), self.accumulator, self.rounding)
        return exact_sum(terms, self.accumulator, self.rounding, alignment)

    def _product(self, factors: Sequence[Values]) -> Values:
        carrier = self.accumulator.carrier
        if len(factors) == 2 and all(factor.dtype == carrier for factor in factors):
            if self.rounding == "nearest_even" and not self.accumulator.is_narrow:
                return np.multiply(*factors)
            if carrier == np.float32:  # a product of two has 48 bits: exact in float64
                return round_in_mode(_float64(Product(*factors)), self.accumulator, self.rounding)
        return exact_product(factors, self.accumulator, self.rounding)

    def _flushed(self, values: Values) -> Values:
        return _flushed(values, self.accumulator) if self.subnormals == "flushed" else values


def _left_fold(operator: Callable[[Values, Values], Values], terms: Sequence[Term]) -> Values:
    total, *others = map(_values, terms)
    for term in others:
        total = np.asarray(operator(total, term))
    return total


def _values(term: Term) -> Values:
    assert not isinstance(term, Product), "only floats have products that are not rounded"
    return term


def _is_single(term: Term) -> bool:
    return all(values.dtype == np.float32 for values in (term if isinstance(term, Product) else (term,)))


def _float64(term: Term) -> npt.NDArray[np.float64]:
    """Return the exact values of terms held in float32."""
    if isinstance(term, Product):
        return np.asarray(np.multiply(term.a.astype(np.float64), term.b.astype(np.float64)))
    return term.astype(np.float64)


def _total(terms: Sequence[npt.NDArray[np.float64]], alignment: int | None) -> npt.NDArray[np.float64] | None:
    """Return the sum of terms held in float64, exact or rounded to odd; None where neither is had so simply."""
    if len(terms) == 1:
        return terms[0]
    if len(terms) == 2:
        return sum_to_odd(*terms)
    if alignment is not None and alignment + len(terms).bit_length() < 52:
        return _aligned_sum(terms, alignment)
    return None


def _aligned_sum(terms: Sequence[npt.NDArray[np.float64]], bits: int) -> npt.NDArray[np.float64]:
    """Truncate terms to multiples of 2**(e - bits), e the exponent of the largest, and add them, exactly."""
    grid = np.full((), _NO_EXPONENT)
    for term in terms:
        exponent = np.where((term == 0) | ~np.isfinite(term), _NO_EXPONENT, np.frexp(term)[1] - 1)
        grid = np.maximum(grid, exponent)  # integers
    grid = grid - bits
    total = _left_fold(np.add, [np.trunc(np.ldexp(term, -grid)) for term in terms])
    return np.asarray(np.ldexp(total, grid), np.float64)


def _zero_signed(total: Values, terms: Sequence[Values], rounding: Rounding) -> Values:
    """Rounding down, a sum that is zero is -0 unless all its terms are +0 (IEEE 754-2019, 6.3)."""
    if rounding != "down":
        return total
    all_plus = np.ones((), np.bool_)
    for term in terms:
        all_plus = all_plus & (term == 0) & ~np.signbit(term)
    return np.where((total == 0) & ~all_plus, -0.0, total)


def _flushed(values: Values, dtype: DType) -> Values:
    """Turn the subnormals of `dtype` into zeros of their sign."""
    if dtype.kind == "complex":
        return complex_numbers.join(*(_flushed(part, dtype.component) for part in complex_numbers.parts(values)))
    return np.where(np.abs(values) < dtype.min_normal, np.copysign(values.dtype.type(0), values), values)
