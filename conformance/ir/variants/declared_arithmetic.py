"""The arithmetics of nodes that other implementations declare: other roundings, fused products, aligned terms.

A model covers the fused multiply-adds of processors and the adders of published tensor cores, which align their terms
to the largest one, drop the bits below, and round once (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of
NVIDIA tensor cores", PeerJ Computer Science, 2021). Variants and violators compute by it in place of the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.errors import broadcast_shape
from tessera_reference.numerics.formats import DType, UnsupportedDType
from tessera_reference.numerics.node_arithmetic import NodeArithmetic

# Rounding to a float dtype in each of IEEE 754's modes.
#
# For float64 arrays to every dtype but fp64, and for single numbers, as multiples of a power of two, to every dtype.
# A result too large becomes infinity, or the largest finite value where the mode rounds toward it, or saturates in
# fp8.


Rounding: TypeAlias = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down"]
Float64s: TypeAlias = npt.NDArray[np.float64]

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)


def round_in_mode(values: Float64s, dtype: DType, rounding: Rounding) -> npt.NDArray[np.float32]:
    """Round float64 `values`, taken as exact, to a `dtype` of at most 32 bits; same shape, as float32."""
    dtype = dtype.storage
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(values)
        quantum = np.maximum(exponent - 1, dtype.min_exponent) - dtype.fraction_bits  # integers
        rounded = np.ldexp(_whole(np.ldexp(values, -quantum), rounding), quantum)
        rounded = np.copysign(rounded, values)  # a zero keeps the sign of its value
        above, below = _beyond(dtype, rounding, False), _beyond(dtype, rounding, True)
        beyond = np.where(np.isinf(values), infinity(dtype), np.where(values < 0, -below, above))
        too_large = np.abs(rounded) > dtype.max_finite
        return np.where(too_large, np.copysign(beyond, values), rounded).astype(np.float32)


def round_multiple(multiple: int, exponent: int, dtype: DType, rounding: Rounding) -> float:
    """Round `multiple` * 2**`exponent`, which is not 0, to any float dtype."""
    dtype = dtype.storage
    size, negative = abs(multiple), multiple < 0
    quantum = max(size.bit_length() - 1 + exponent, dtype.min_exponent) - dtype.fraction_bits
    dropped = quantum - exponent
    quotient, rest, half = size << max(-dropped, 0), 0, 1
    if dropped > 0:
        quotient, rest, half = size >> dropped, size & ((1 << dropped) - 1), 1 << (dropped - 1)
    if _goes_up(quotient, rest, half, negative, rounding):
        quotient += 1
    too_large = (
        quotient.bit_length() - 1 + quantum > dtype.max_exponent or math.ldexp(quotient, quantum) > dtype.max_finite
    )
    result = _beyond(dtype, rounding, negative) if too_large else math.ldexp(quotient, quantum)
    return -result if negative else result


def sum_to_odd(a: Float64s, b: Float64s) -> Float64s:
    """Return a + b, with an inexact sum going to the neighbour with an odd significand; sums must not overflow.

    Rounding that, in any mode, to a type of at most 51 bits yields the rounding of the exact sum: the odd last bit
    keeps the value on its own side of every number and midpoint of that type (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        total = a + b
        of_b = total - a
        error = (a - (total - of_b)) + (b - of_b)  # exact (Knuth's two-sum)
        even = (total.view(np.int64) & 1) == 0
        inexact = np.isfinite(total) & (error != 0)
        toward = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact & even, np.nextafter(total, toward), total)


def _whole(values: Float64s, rounding: Rounding) -> Float64s:
    if rounding == "nearest_even":
        return np.rint(values)
    if rounding == "up":
        return np.ceil(values)
    if rounding == "down":
        return np.floor(values)
    whole = np.trunc(values)
    if rounding == "nearest_away":
        return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)
    return whole


def _goes_up(quotient: int, rest: int, half: int, negative: bool, rounding: Rounding) -> bool:
    """True if the magnitude is rounded away from zero: `rest` of `2 * half` is beyond `quotient`."""
    if rounding == "nearest_even":
        return rest > half or (rest == half and quotient % 2 == 1)
    if rounding == "nearest_away":
        return rest >= half
    return rest > 0 and rounding == ("down" if negative else "up")


def _beyond(dtype: DType, rounding: Rounding, negative: bool) -> float:
    """Return the result for the magnitude of a finite number too large for `dtype`."""
    toward_largest = rounding == "toward_zero" or rounding == ("up" if negative else "down")
    return dtype.max_finite if toward_largest else infinity(dtype)


def infinity(dtype: DType) -> float:
    """Return the result for a positive infinity: in fp8 the largest finite value."""
    return dtype.max_finite if dtype.bits == 8 else math.inf


# Sums and products of any number of terms, exact until their one rounding; element by element, on whole numbers.
#
# This is the plain definition of a fused node. Every finite float is a whole multiple of 2**-1074, and every product
# of two is one of 2**-2148, so that a sum of such terms is a sum of Python integers.


Values: TypeAlias = npt.NDArray[Any]


class Product(NamedTuple):
    """The exact products a * b of two arrays, which broadcast; not yet rounded."""

    a: Values
    b: Values


Term: TypeAlias = Values | Product
Factors: TypeAlias = tuple[float, float]

_UNIT = -2148
"""Sums are counted in 2**_UNIT."""


def exact_sum(terms: Sequence[Term], dtype: DType, rounding: Rounding, alignment_bits: int | None = None) -> Values:
    """Add the terms element by element and round once; in `dtype.carrier`.

    With `alignment_bits`, each term is first truncated toward zero to a multiple of 2**(e - alignment_bits), e being
    the exponent of the largest, as a tensor core's adder does.
    """
    pairs = [term if isinstance(term, Product) else Product(term, np.ones((), term.dtype)) for term in terms]
    return _each(pairs, dtype, lambda numbers: _sum(numbers, dtype, rounding, alignment_bits))


def exact_product(factors: Sequence[Values], dtype: DType, rounding: Rounding) -> Values:
    """Multiply the factors element by element and round once; in `dtype.carrier`."""
    pairs = [Product(factor, np.ones((), factor.dtype)) for factor in factors]
    return _each(pairs, dtype, lambda numbers: _product([x for x, _ in numbers], dtype, rounding))


def _each(terms: Sequence[Product], dtype: DType, node: Callable[[tuple[Factors, ...]], float]) -> Values:
    """Apply `node` to the numbers at each place of the terms, which broadcast."""
    shape = broadcast_shape("exact node", *(factor.shape for term in terms for factor in term))
    columns = [zip(_listed(term.a, shape), _listed(term.b, shape), strict=True) for term in terms]
    return np.array([node(numbers) for numbers in zip(*columns, strict=True)], dtype.carrier).reshape(shape)


def _listed(values: Values, shape: tuple[int, ...]) -> list[float]:
    numbers: list[float] = np.broadcast_to(values, shape).reshape(-1).tolist()
    return numbers


def _sum(terms: Iterable[Factors], dtype: DType, rounding: Rounding, alignment_bits: int | None) -> float:
    finite: list[int] = []
    special: list[float] = []  # zeros, infinities, NaN
    for a, b in terms:
        if a != 0 and b != 0 and math.isfinite(a) and math.isfinite(b):
            finite.append(_in_units(a) * _in_units(b))
        else:
            special.append(a * b)
    if not all(math.isfinite(x) for x in special):
        return _held(sum(special), dtype)
    if alignment_bits is not None and finite:
        grid = max(abs(term).bit_length() for term in finite) - 1 - alignment_bits
        finite = [_truncated(term, grid) for term in finite]
    total = sum(finite)
    if total != 0:
        return round_multiple(total, _UNIT, dtype, rounding)
    if rounding == "down":  # IEEE 754-2019, 6.3: a zero sum is -0, unless every term is +0
        return -0.0 if finite or any(math.copysign(1, x) < 0 for x in special) else 0.0
    return 0.0 if finite or any(math.copysign(1, x) > 0 for x in special) else -0.0


def _product(factors: Sequence[float], dtype: DType, rounding: Rounding) -> float:
    if all(x != 0 and math.isfinite(x) for x in factors):
        return round_multiple(prod(map(_in_units, factors)), len(factors) * _UNIT // 2, dtype, rounding)
    return _held(prod(x if x == 0 or not math.isfinite(x) else math.copysign(1, x) for x in factors), dtype)


def _held(special: float, dtype: DType) -> float:
    return math.copysign(infinity(dtype), special) if math.isinf(special) else special


def _in_units(x: float) -> int:
    """Return a finite float as a multiple of 2**-1074."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (-_UNIT // 2 - denominator.bit_length() + 1)


def _truncated(term: int, grid: int) -> int:
    """Drop, toward zero, the bits of less weight than 2**`grid`, if any are."""
    size = abs(term) >> max(grid, 0) << max(grid, 0)
    return -size if term < 0 else size


# The model.


_NO_EXPONENT = -2000
"""The exponent of a zero: below those of all products."""


@dataclass(frozen=True)
class DeclaredArithmetic(NodeArithmetic):
    """The arithmetic of a node.

    accumulator: every node's result is rounded to it, in the mode `rounding`. Integers wrap instead.
    product: of a product that is a leaf, "rounded" means to the accumulator first; "fused", that it enters the node
        around it exactly. Of two fused products in one node of two children, the first is rounded after all.
    alignment_bits: None, or how many bits below the leading one of its largest term a node of three or more children
        keeps; each term is truncated to them, toward zero, before they are added exactly.
    subnormals: "flushed" turns subnormal operands, rounded products and results of nodes into zeros of their sign.

    Arrays that it works on are held in the accumulator's carrier or, as leaves, a wider one.
    """

    product: Literal["rounded", "fused"] = "rounded"
    rounding: Rounding = "nearest_even"
    alignment_bits: int | None = None
    subnormals: Literal["kept", "flushed"] = "kept"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = ("product", "rounding", "alignment_bits", "subnormals")
        return super().to_json() | {name: getattr(self, name) for name in own}

    def is_plain(self, operands: DType) -> bool:
        """True if numpy's operators, in the accumulator's carrier, compute products and nodes of two children."""
        rounded = self.product == "rounded" and self.rounding == "nearest_even" and self.subnormals == "kept"
        return super().is_plain(operands) and (rounded or self.accumulator.kind == "int")

    def require(self, operation: str, operands: DType) -> None:
        """Refuse operands of another kind than the accumulator's, and fused products of complex numbers."""
        super().require(operation, operands)
        if operands.kind == "complex" and self.product == "fused":
            raise UnsupportedDType(f"{operation} with fused products", operands)

    def enter(self, values: Values, dtype: DType) -> Values:
        """Return `values` of `dtype` as operands of nodes: exactly, but for what is flushed, and integers wrapped."""
        with np.errstate(all="ignore"):
            flushes = self.subnormals == "flushed" and dtype.kind != "int"
            return super().enter(_flushed(values, dtype) if flushes else values, dtype)

    def leaf_product(self, a: Values, b: Values) -> Any:
        """Return the products of entered operands: rounded, or, if "fused", as unrounded terms."""
        fused = self.product == "fused" and self.accumulator.kind == "float"
        return Product(a, b) if fused else self.multiply([a, b])

    def _sum(self, terms: Sequence[Term]) -> Values:
        if len(terms) == 2 and all(isinstance(term, Product) for term in terms):
            terms = [self.multiply([*terms[0]]), terms[1]]
        return self._without_subnormals(self._rounded_sum(terms))

    def _product(self, factors: Sequence[Values]) -> Values:
        return self._without_subnormals(self._rounded_product(factors))

    def _rounded_sum(self, terms: Sequence[Term]) -> Values:
        """Add exactly and round once: by numpy where possible, else in float64, else on whole numbers."""
        carrier = self.accumulator.carrier
        plain = self.rounding == "nearest_even" and not self.accumulator.is_narrow and len(terms) <= 2
        if plain and all(isinstance(term, np.ndarray) and term.dtype == carrier for term in terms):
            return np.asarray(reduce(np.add, terms))
        alignment = self.alignment_bits if len(terms) > 2 else None
        if carrier == np.float32 and all(_is_single(term) for term in terms):
            wide = [_float64(term) for term in terms]
            total = _total(wide, alignment)
            if total is not None:
                return round_in_mode(_zero_signed(total, wide, self.rounding), self.accumulator, self.rounding)
        return exact_sum(terms, self.accumulator, self.rounding, alignment)

    def _rounded_product(self, factors: Sequence[Values]) -> Values:
        carrier = self.accumulator.carrier
        if len(factors) == 2 and all(factor.dtype == carrier for factor in factors):
            if self.rounding == "nearest_even" and not self.accumulator.is_narrow:
                return np.multiply(*factors)
            if carrier == np.float32:  # a product of two has 48 bits: exact in float64
                return round_in_mode(_float64(Product(*factors)), self.accumulator, self.rounding)
        return exact_product(factors, self.accumulator, self.rounding)

    def _without_subnormals(self, values: Values) -> Values:
        return _flushed(values, self.accumulator) if self.subnormals == "flushed" else values


def _is_single(term: Term) -> bool:
    return all(values.dtype == np.float32 for values in (term if isinstance(term, Product) else (term,)))


def _float64(term: Term) -> npt.NDArray[np.float64]:
    """Return the exact values of terms held in float32."""
    if isinstance(term, Product):
        return np.asarray(np.multiply(term.a.astype(np.float64), term.b.astype(np.float64)))
    return term.astype(np.float64)


def _total(terms: Sequence[npt.NDArray[np.float64]], alignment: int | None) -> npt.NDArray[np.float64] | None:
    """Return the sum of terms held in float64, exact or rounded to odd; None where this simple way fails."""
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
    total = reduce(np.add, [np.trunc(np.ldexp(term, -grid)) for term in terms])
    return np.asarray(np.ldexp(total, grid), np.float64)


def _zero_signed(total: Values, terms: Sequence[Values], rounding: Rounding) -> Values:
    """Return the total with a zero sum made -0, in rounding down, unless all terms are +0 (IEEE 754-2019, 6.3)."""
    if rounding != "down":
        return total
    all_plus = np.ones((), np.bool_)
    for term in terms:
        all_plus = all_plus & (term == 0) & ~np.signbit(term)
    return np.where((total == 0) & ~all_plus, -0.0, total)


def _flushed(values: Values, dtype: DType) -> Values:
    """Turn the subnormals of `dtype` into zeros of their sign."""
    if dtype.kind == "complex":
        return arithmetic.join(*(_flushed(part, dtype.component) for part in arithmetic.parts(values)))
    return np.where(np.abs(values) < dtype.min_normal, np.copysign(values.dtype.type(0), values), values)
