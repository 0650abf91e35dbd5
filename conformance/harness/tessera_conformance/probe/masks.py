"""Masks: inputs whose sum shows the subtree that joins two terms.

After FPRev (Revealing floating-point accumulation orders): +M is at one leaf, -M at another, and units everywhere else.
A unit that is added to M or -M before these two are joined is lost. So the sum counts the leaves outside the smallest
subtree that holds both. M must absorb all units of one call together, in the widest accumulator that absorbs a single
one. The count must be exact in the narrowest format on its way. With more leaves than that, units are counted in
several calls, with zeros at all other leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tessera_conformance.oracle.exact import finite, float_format, is_zero
from tessera_conformance.probe.calls import Box, CannotProbe, Words, words_of
from tessera_conformance.probe.node_arithmetic import require_same
from tessera_conformance.probe.reveal import NotATree


@dataclass(frozen=True)
class MaskExponents:
    """Powers of two: the large term and the unit, of the left factor and, for products, of the right one."""

    large: int
    unit: int
    right_large: int = 0
    right_unit: int = 0


SUM_MASKS = {
    "fp64": (MaskExponents(900, 0),),
    "fp32": (MaskExponents(100, 0),),
    "tf32": (MaskExponents(100, 0),),
    "bf16": (MaskExponents(100, 0),),
    "fp16": (MaskExponents(15, -24), MaskExponents(15, -14)),
    "fp8_e5m2": (MaskExponents(15, -16), MaskExponents(15, -14)),
    "fp8_e4m3": (MaskExponents(8, -9), MaskExponents(8, -6)),
}
PRODUCT_MASKS = {
    **SUM_MASKS,
    "fp16": (MaskExponents(15, -7, 15, -7), MaskExponents(15, -14), MaskExponents(15, -24)),
    "fp8_e5m2": (MaskExponents(15, -16, 15, -16), MaskExponents(15, -14, 15, -14), MaskExponents(15, -14)),
    "fp8_e4m3": (MaskExponents(8, -9, 8, -9), MaskExponents(8, -6, 8, -6), MaskExponents(8, -6)),
}
PRECISIONS = (53, 24, 11, 8)
"""The precisions of the accumulators that are tried, the widest first."""


class Masks:
    """Measures the subtrees that join pairs of leaves; `queries` counts the pairs asked for, each at most once."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.terms = box.subject.terms
        self.measured: dict[tuple[int, int], int] = {}
        dtype, out = box.subject.dtype, box.subject.result_dtype
        narrow = float_format(out) if dtype.startswith("fp8") else min(map(float_format, (dtype, out)), key=_precision)
        self._countable = min(1 << _precision(narrow), self.terms)
        for exponents in (PRODUCT_MASKS if box.has_products else SUM_MASKS)[dtype]:
            self._use(exponents)
            if self._fits():
                return
        raise CannotProbe(
            f"{box.subject}: a sum of equal units does not give their number, so nothing can be counted: {self._unfit}"
        )

    def _use(self, exponents: MaskExponents) -> None:
        dtype = self.box.subject.dtype
        self.measured.clear()
        self.part = min(_absorbed(exponents), self._countable)
        power = [Fraction(2) ** exponent for exponent in (exponents.large, exponents.unit)]
        right = [Fraction(2) ** exponent for exponent in (exponents.right_large, exponents.right_unit)]
        self._large, self._negative, self._unit = (int(w) for w in words_of([power[0], -power[0], power[1]], dtype))
        self._right_large, self._right_unit = (int(w) for w in words_of(right, dtype))
        self.quantum = power[1] * right[1]
        self.exponents = exponents
        kind = words_of([power[0]], dtype).dtype
        self._zeros = np.zeros(self.terms, kind)
        self._units = np.full(self.terms, self._unit, kind)
        self._rights = np.full(self.terms, self._right_unit, kind) if self.box.has_products else None

    def _fits(self) -> bool:
        """True if units count right, and vanish beside the large number.

        Raises:
            NotATree: the same terms give different bits.
        """
        left = self._zeros.copy()
        left[: self.part] = self._unit
        if self._gives(self.part * self.quantum, left, self._rights):
            try:
                self.lca(0, self.terms - 1)
                return True
            except NotATree as stop:
                self._unfit = f"{stop}; the terms are {_power(self.exponents.large):g}, its negation, and units"
                self._require_same(*self.words(0, self.terms - 1))
        return False

    def _gives(self, expected: Fraction, left: Words, right: Words | None) -> bool:
        """True if units have this sum; says why not in `_unfit`."""
        word = self.box.word(left, right)
        total = float_format(self.box.subject.result_dtype).decode(word)
        if total == expected:
            return True
        description = f"{float(total):g}" if isinstance(total, Fraction) else "0" if is_zero(total) else total.value
        factor = f" times {_power(self.exponents.right_unit):g}" if self.box.has_products else ""
        units = f"terms 0 to {self.part - 1} are {_power(self.exponents.unit):g}{factor}, all others 0"
        self._unfit = f"{units}: expected {float(expected):g}, found {description}"
        self._require_same(left, right, word)
        return False

    def _require_same(self, left: Words, right: Words | None, word: int | None = None) -> None:
        word = self.box.word(left, right) if word is None else word
        for _ in range(4):
            require_same(self.box, left, right, word)

    def absorbs_nothing(self) -> bool:
        """True if no unit is absorbed, at any leaf: as far as masks show, the sum is exact.

        The paths from one leaf to all others pass every node, so one mask for each other leaf is enough. The first of
        them is known already, and shows an absorbed unit in nearly every other sum.
        """
        others = [self.terms - 1, *range(1, self.terms - 1)]
        return self.terms > 2 and all(self.lca(0, leaf) == 2 for leaf in others)

    def lca(self, i: int, j: int) -> int:
        """Return the number of leaves of the smallest subtree with leaves i and j.

        Raises:
            NotATree: the outcome is no number of leaves.
        """
        pair = (i, j) if i < j else (j, i)
        if pair not in self.measured:
            self.measured[pair] = self._measure(*pair)
        return self.measured[pair]

    def _measure(self, i: int, j: int) -> int:
        survivors = 0
        for first in range(0, self.terms, self.part):
            whole = self.part >= self.terms
            left = self._units.copy() if whole else self._zeros.copy()
            left[first : first + self.part] = self._unit
            survivors += self._counted(i, j, left)
        if survivors > self.terms - 2:
            raise NotATree("masks", (i, j), f"the mask leaves {survivors} of {self.terms - 2} units")
        return self.terms - survivors

    def _counted(self, i: int, j: int, left: Words) -> int:
        count = self._units_in_sum(i, j, left)
        if count.denominator != 1 or not 0 <= count <= self.terms - 2:
            raise NotATree("masks", (i, j), f"the mask leaves {_decimal(count)} of {self.terms - 2} units")
        return int(count)

    def _units_in_sum(self, i: int, j: int, left: Words) -> Fraction:
        total = self.box.value(*self.words(i, j, left))
        if not isinstance(total, Fraction) and not is_zero(total):
            raise NotATree("masks", (i, j), f"the sum of a mask is {total.value}, which counts nothing")
        return finite(total) / self.quantum

    def words(self, i: int, j: int, left: Words | None = None) -> tuple[Words, Words | None]:
        """The mask of a pair, over units or other values at the other leaves."""
        left = self._units.copy() if left is None else left
        left[i], left[j] = self._large, self._negative
        if self._rights is None or self._right_large == self._right_unit:
            return left, self._rights
        right = self._rights.copy()
        right[i] = right[j] = self._right_large
        return left, right

    def survivors(self, i: int, j: int) -> frozenset[int]:
        """The leaves whose units a pair's mask does not absorb: units of different weights, a few leaves at a time."""
        dtype = self.box.subject.dtype
        width = min(_precision(float_format(dtype)), _precision(float_format(self.box.subject.result_dtype))) - 1
        width = max(1, min(width, _absorbed(self.exponents).bit_length() - 1))
        others = [leaf for leaf in range(self.terms) if leaf not in (i, j)]
        leaves: set[int] = set()
        for first in range(0, len(others), width):
            some = others[first : first + width]
            left = self._zeros.copy()
            left[some] = words_of([Fraction(2) ** (self.exponents.unit + k) for k in range(len(some))], dtype)
            number = self._units_in_sum(i, j, left)
            if number.denominator != 1 or not 0 <= number < 1 << len(some):
                raise NotATree("masks", (i, j), "a mask leaves units that it does not have")
            leaves |= {leaf for k, leaf in enumerate(some) if int(number) >> k & 1}
        return frozenset(leaves)


def _absorbed(exponents: MaskExponents) -> int:
    """Return the number of units that M absorbs together in the widest accumulator in which it absorbs one."""
    ratio = exponents.large + exponents.right_large - exponents.unit - exponents.right_unit
    return 1 << next((ratio - bits - 1 for bits in PRECISIONS if ratio > bits), 0)


def _power(exponent: int) -> float:
    return 2.0**exponent


def _precision(format_: object) -> int:
    return getattr(format_, "fraction_bits", 0) + 1


def _decimal(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):g}"
