"""The same sums on whole numpy arrays that hold the same numbers as the tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import gmpy2
import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic
from tessera_conformance.oracle import exact
from tessera_conformance.oracle.trees import START, Tree
from tessera_conformance.tensors import Tensor

# The same sums on whole numpy arrays, for arithmetics that numpy can compute exactly.
#
# Only IEEE-exact operations are used: + - * on float64 and float32, casts between them, comparisons and bit operations.
# A fused sum for fp32 is computed in float64 and rounded to odd there, so that the second rounding is exact (Boldo and
# Melquiond, Emulation of a FMA and correctly rounded sums, 2008); for fp64 MPFR computes it. Tests compare all of it
# with the exact path.


Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MOST_ALIGNMENT_BITS = 40
"""Aligned terms of at most 41 bits, 1024 of them, fit a float64's 53 bits."""
WIDEST_ALIGNED_NODE = 1024


@dataclass(frozen=True)
class PendingArray:
    """Products that the node above their leaf adds unrounded."""

    left: Array
    right: Array


Leaf: TypeAlias = Array | PendingArray


def can(tree: Tree, model: NodeArithmetic, dtype: str) -> bool:
    """True if this path computes an explicit tree over operands of `dtype` exactly as the model says."""
    if model.accumulator not in ("fp32", "fp64") or not environment_is_sound():
        return False
    if model.accumulator == "fp64":
        return model.rounding == "nearest_even" and tree.arity <= 2
    if dtype == "fp64":
        return False
    if tree.arity <= 2:
        return True
    bits = model.alignment_bits
    return bits is not None and bits <= MOST_ALIGNMENT_BITS and tree.arity <= WIDEST_ALIGNED_NODE


def environment_is_sound() -> bool:
    """True if this process rounds to nearest even and keeps subnormals; some libraries disable that for all."""
    tiny, one, half_step = np.float64(5e-324), np.float64(1.0), np.float64(2.0) ** -53
    keeps_subnormals = bool(tiny * one == tiny and tiny != 0) and bool(np.float32(1e-45) * np.float32(1.0) != 0)
    above = np.nextafter(one, np.float64(2.0))
    return keeps_subnormals and bool(one + half_step == one and above + half_step > above and -one - half_step == -one)


def type_of(accumulator: str) -> type[np.floating[Any]]:
    """Return the numpy type of an accumulator."""
    return np.float32 if accumulator == "fp32" else np.float64


def evaluated(leaf: Callable[[int], Leaf], start: Array, tree: Tree, model: NodeArithmetic) -> Array:
    """Return the result of an explicit tree over leaves that are arrays of one shape, elementwise."""
    nodes = _Fp32Nodes(model) if model.accumulator == "fp32" else _Fp64Nodes(model)
    with np.errstate(all="ignore"):
        return nodes.settled(tree.folded(lambda step: start if step == START else leaf(step), nodes.joined))


class _Fp64Nodes:
    """The nodes of an fp64 accumulator; nodes of three or more terms only if `can` accepts them."""

    def __init__(self, model: NodeArithmetic) -> None:
        self.model = model

    def settled(self, leaf: Leaf) -> Array:
        """Return a leaf as a value of the accumulator."""
        return self.product(leaf.left, leaf.right) if isinstance(leaf, PendingArray) else leaf

    def joined(self, terms: Sequence[Leaf]) -> Array:
        """Return the result of a node."""
        left, right = terms
        if self.model.product == "fused":
            if isinstance(right, PendingArray):
                return self.fused(right, self.settled(left))
            if isinstance(left, PendingArray):
                return self.fused(left, right)
        return self.added(self.settled(left), self.settled(right))

    def product(self, left: Array, right: Array) -> Array:
        """Return a product, rounded."""
        return self.flushed(np.asarray(left, np.float64) * np.asarray(right, np.float64))

    def added(self, left: Array, right: Array) -> Array:
        """Return a sum, rounded."""
        return self.flushed(np.asarray(left, np.float64) + np.asarray(right, np.float64))

    def fused(self, product: PendingArray, addend: Array) -> Array:
        """Return a product and a sum, rounded once."""
        left, right = np.asarray(product.left, np.float64), np.asarray(product.right, np.float64)
        if product.left.dtype == product.right.dtype == np.float32:
            return self.flushed(left * right + addend)
        return self.flushed(np.asarray(_fused64(left, right, addend), np.float64))

    def flushed(self, result: Array) -> Array:
        """Return the result with subnormals as zeros of their sign, if the model flushes."""
        return _flushed(result, float(np.finfo(result.dtype).smallest_normal), self.model)


class _Fp32Nodes(_Fp64Nodes):
    """Sums for an fp32 accumulator, in float64, whose products of fp32 values are exact."""

    def joined(self, terms: Sequence[Leaf]) -> Array:
        return super().joined(terms) if len(terms) == 2 else self.aligned(terms)

    def product(self, left: Array, right: Array) -> Array:
        return self._narrowed(left.astype(np.float64) * right.astype(np.float64))

    def added(self, left: Array, right: Array) -> Array:
        if self.model.rounding == "nearest_even":
            return self.flushed(np.asarray(left, np.float32) + np.asarray(right, np.float32))
        return self._summed(left.astype(np.float64), right.astype(np.float64))

    def fused(self, product: PendingArray, addend: Array) -> Array:
        wide = product.left.astype(np.float64) * product.right.astype(np.float64)
        return self._summed(wide, addend.astype(np.float64))

    def _summed(self, left: Array, right: Array) -> Array:
        total = _odd_sum(left, right)
        if self.model.rounding == "down":
            total = np.where((total == 0) & (np.signbit(left) | np.signbit(right)), -0.0, total)
        return self._narrowed(total)

    def aligned(self, terms: Sequence[Leaf]) -> Array:
        wide = [
            term.left.astype(np.float64) * term.right.astype(np.float64)
            if isinstance(term, PendingArray) and self.model.product == "fused"
            else self.settled(term).astype(np.float64)
            for term in terms
        ]
        stacked = np.stack(np.broadcast_arrays(*wide))
        ordinary = np.isfinite(stacked).all(axis=0)
        exponents = np.where(stacked == 0, np.iinfo(np.int32).min // 2, np.frexp(stacked)[1] - 1)
        spacing = np.where((stacked == 0).all(axis=0), 0, exponents.max(axis=0)) - (self.model.alignment_bits or 0)
        finite_terms = np.where(ordinary, stacked, 0.0)
        cut = np.trunc(np.ldexp(finite_terms, -spacing)).astype(np.int64)
        total = np.ldexp(cut.sum(axis=0).astype(np.float64), spacing)
        negative_zero = ((stacked == 0) & np.signbit(stacked)).all(axis=0)
        if self.model.rounding == "down":
            negative_zero |= (total == 0) & np.signbit(stacked).any(axis=0)
        plain = reduce(np.add, stacked)  # infinities and NaN, where the order does not matter
        return self._narrowed(np.where(ordinary, np.where(negative_zero, -0.0, total), plain))

    def _narrowed(self, wide: Array) -> Array:
        """Return a float64 number, exact or rounded to odd, in float32 in the direction of the model."""
        nearest = wide.astype(np.float32)
        if self.model.rounding == "nearest_even":
            return self.flushed(nearest)
        back = nearest.astype(np.float64)
        if self.model.rounding == "nearest_away":
            beyond = np.nextafter(nearest, np.copysign(np.float32(np.inf), nearest))
            tied = (back != wide) & (np.abs(wide) > np.abs(back)) & (wide - back == beyond.astype(np.float64) - wide)
            return self.flushed(np.where(tied, beyond, nearest))
        target, overshot = {
            "toward_zero": (0, np.abs(back) > np.abs(wide)),
            "up": (np.inf, back < wide),
            "down": (-np.inf, back > wide),
        }[self.model.rounding]
        moved = np.nextafter(nearest, np.float32(target))
        moved = np.where((moved == 0) & (wide < 0), np.float32(-0.0), moved)
        return self.flushed(np.where(np.isfinite(wide) & overshot, moved, nearest))


def _odd_sum(x: Array, y: Array) -> Array:
    """Return x + y in float64, rounded to odd: if inexact, the neighbour whose last bit is set."""
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part)
    word = np.ascontiguousarray(total).view(np.int64)
    moves = np.isfinite(total) & (rest != 0) & ((word & 1) == 0)
    step = np.where((rest > 0) == (total > 0), 1, -1)
    return np.where(moves, word + step, word).view(np.float64).reshape(np.shape(total))


_IEEE_DOUBLE = gmpy2.ieee(64)
_fused64 = np.frompyfunc(lambda x, y, z: float(_IEEE_DOUBLE.fma(x, y, z)), 3, 1)
"""x * y + z of float64 numbers, rounded once by MPFR."""


# Tensors as numpy arrays that hold the same numbers, and back with one rounding.


_SPECIAL = {exact.NAN: np.nan, exact.INFINITY: np.inf, exact.NEGATIVE_INFINITY: -np.inf, exact.NEGATIVE_ZERO: -0.0}


_NATIVE = {"fp16": np.float16, "fp32": np.float32, "tf32": np.float32, "fp64": np.float64}
"""The dtypes that numpy has, as it stores them."""


def as_array(tensor: Tensor) -> Array:
    """Return the numbers of a float tensor: float64 for fp64, float32 for narrower dtypes."""
    words, dtype = tensor.words(), tensor.dtype
    if dtype in _NATIVE:
        numbers: Array = words.view(_NATIVE[dtype])
    elif dtype == "bf16":
        numbers = (words.astype(np.uint32) << 16).view(np.float32)
    else:
        numbers = _table(dtype)[words]
    return numbers.reshape(tensor.shape).astype(np.float64 if dtype == "fp64" else np.float32, copy=False)


def as_tensor(numbers: Array, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Return numbers rounded once to a float dtype, to nearest even; NaN becomes the canonical one."""
    flat = np.ascontiguousarray(numbers).reshape(-1)
    words = _words(flat, dtype)
    words[np.isnan(flat)] = exact.float_format(dtype).nan_code
    return Tensor(dtype, shape, words.astype(words.dtype.newbyteorder("<")).tobytes())


def flushed_operands(numbers: Array, dtype: str, model: NodeArithmetic) -> Array:
    """Return operands with subnormals of their dtype as zeros of their sign, if the model flushes."""
    return _flushed(numbers, float(exact.float_format(dtype).smallest_normal), model)


def _flushed(numbers: Array, smallest: float, model: NodeArithmetic) -> Array:
    if model.subnormals == "kept":
        return numbers
    return np.where(np.abs(numbers) < smallest, np.copysign(np.zeros_like(numbers), numbers), numbers)


def tf32_operands(numbers: Array) -> Array:
    """fp32 numbers rounded to 10 fraction bits, to nearest even, as the operands of a tf32 product are."""
    words = np.ascontiguousarray(numbers).view(np.uint32)
    rounded_words = (words + np.uint32(0xFFF) + ((words >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(numbers), rounded_words.view(np.float32), numbers)


def _words(flat: Array, dtype: str) -> Array:
    if dtype in _NATIVE:
        with np.errstate(all="ignore"):
            numbers = flat.astype(_NATIVE[dtype])
        return numbers.view(f"u{numbers.itemsize}")
    if dtype == "bf16" and flat.dtype == np.float32:
        words = flat.view(np.uint32)
        nearest = (words + np.uint32(0x7FFF) + ((words >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return nearest.astype(np.uint16)
    return _words_of_few(flat, dtype)


def _words_of_few(flat: Array, dtype: str) -> Array:
    """Return the codes of numbers, each distinct one rounded once by the oracle."""
    format_ = exact.float_format(dtype)
    bits = flat.view(np.uint32 if flat.dtype == np.float32 else np.uint64)
    distinct, places = np.unique(bits, return_inverse=True)
    codes = [format_.encode(exact.value_of(float(number))) for number in distinct.view(flat.dtype)]
    width = {8: np.uint8, 16: np.uint16}[1 + format_.exponent_bits + format_.fraction_bits]
    words: Array = np.array(codes, width)
    return np.asarray(words[places.reshape(-1)])


def _table(dtype: str) -> Array:
    values = map(exact.float_format(dtype).decode, range(256))
    return np.array([float(v) if isinstance(v, Fraction) else _SPECIAL[v] for v in values], np.float32)
