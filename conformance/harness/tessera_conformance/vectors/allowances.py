"""What an implementation may depart from the frozen bits by, below the level strict, where no order is concerned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tessera_conformance.check import Check
from tessera_conformance.differences import are_nan
from tessera_conformance.oracle import FUNCTIONS, bounds
from tessera_conformance.oracle.bounds import movement
from tessera_conformance.oracle.bounds.intervals import Enclosure
from tessera_conformance.oracle.bounds.special import settled
from tessera_conformance.oracle.exact import NAN, finite, is_infinite
from tessera_conformance.oracle.formats import component_format, values_of
from tessera_conformance.tensors import Tensor

NARROWEST_FLUSHED = 15
"""Exponent and fraction bits of the narrowest formats whose subnormals may be flushed; fp8 has too few numbers."""


def judge_flushing(
    check: Check,
    found: Any,
    function: str,
    inputs: Sequence[Tensor],
    given: Mapping[str, Any],
    frozen: Tensor,
    why: str,
) -> None:
    """Each element has the frozen bits, or those with its subnormal operands, its result or both made zeros."""
    expected = frozen
    if isinstance(found, Tensor) and (found.dtype, found.shape) == (frozen.dtype, frozen.shape):
        answer = FUNCTIONS[function](*map(flushed, inputs), **given)
        computed = answer[0] if isinstance(answer, tuple) else answer
        words, actual = frozen.words().copy(), found.words()
        for other in (flushed(frozen), computed, flushed(computed)):
            words = np.where(actual == other.words(), actual, words)
        expected = Tensor(frozen.dtype, frozen.shape, words.tobytes())
    check.bits(found, expected, f"{why}, subnormals kept or flushed")


def flushed(x: Tensor) -> Tensor:
    """Subnormal numbers made zeros of their sign; what is no float, and fp8, as it is."""
    layout = x.format
    if layout.exponent_bits + layout.fraction_bits < NARROWEST_FLUSHED:
        return x
    words = x.words()
    exponents = (words >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1)
    signs = words & (1 << (layout.exponent_bits + layout.fraction_bits))
    return Tensor(x.dtype, x.shape, np.where(exponents == 0, signs, words).astype(words.dtype).tobytes())


def judge_function(
    check: Check,
    found: Any,
    name: str,
    inputs: Sequence[Tensor],
    given: Mapping[str, Any],
    frozen: Tensor,
    *,
    level: str,
    ulps: float,
    flushes: bool,
) -> None:
    """Within the declared accuracy; at the level deterministic special values have the frozen bits."""
    what = f"{level}: within {ulps:g} ulp of {name}{', subnormals kept or flushed' if flushes else ''}"
    enclosures = bounds.function(name, *inputs, **given, ulps=ulps, flushes=flushes)
    check.enclosed(found, enclosures, what)
    if level == "deterministic":
        is_settled = np.array(settled(name, *inputs, ulps=ulps, flushes=flushes), bool)
        words = np.where(is_settled, frozen.words(), found.words())
        check.bits(found, Tensor(frozen.dtype, frozen.shape, words.tobytes()), f"{level}: special values of {name}")


def judge_special(
    check: Check,
    found: Tensor,
    function: str,
    inputs: Sequence[Tensor],
    given: Mapping[str, Any],
    frozen: Tensor,
    enclosures: Sequence[Enclosure | None],
    level: str,
) -> None:
    """NaN and infinities that come from those among the operands, and finite results beside them that are settled.

    A number may still overflow or underflow in one order and not in another. So an infinity, or a NaN that no operand
    is, is settled only where an enclosure holds once the operands are finite; that of a product has to leave zero out,
    since zero times infinity is NaN. Parts of complex products and transforms mix as the algorithm has it: of those
    at least one is not finite.
    """
    open_ = np.array([each is None for each in enclosures], bool)
    if not open_.any() or not any(_are_special(x).any() for x in inputs):
        return
    name = function.removeprefix("oracle.")
    tame = bounds.enclose(function, [_replaced(x, _are_special(x), Fraction(1)) for x in inputs], given)
    settles = np.array([each is not None and not (name == "prod" and _may_be_zero(each)) for each in tame], bool)
    from_nan = are_nan(_computed(function, [_replaced(x, ~are_nan(x), Fraction(1)) for x in inputs], given))
    settles = open_ & (settles | (from_nan & are_nan(frozen)))
    what = f"{level}: special values of {name}"
    special = settles & _are_special(frozen)
    if frozen.format.words > 1 and name not in COMPONENTWISE:
        lost = special.reshape(-1, 2).any(axis=1) & ~_are_special(found).reshape(-1, 2).any(axis=1)
        check.true(not lost.any(), f"{what}: what is made of NaN or infinities is not finite")
        return
    words = np.where(special, frozen.words(), found.words())
    check.bits(found, Tensor(frozen.dtype, frozen.shape, words.tobytes()), what)
    check.enclosed(found, _beside_special(name, inputs, given, frozen, settles & ~special), what)


MOVED = frozenset(movement.RULES) - {"scatter_add"}
"""Functions that move, choose or join elements."""

COMPONENTWISE = frozenset({"sum", "negate", "cast"}) | MOVED
"""Functions that do not mix the parts of complex numbers."""

ONE_VALUE = frozenset({"sigmoid", "negate", "relu", "max", "min", "cast"}) | MOVED
"""Functions whose finite results beside infinities are exact."""


def _beside_special(
    name: str, inputs: Sequence[Tensor], given: Mapping[str, Any], frozen: Tensor, where: Any
) -> list[Enclosure | None]:
    """Enclosures of finite results of operands that are not."""
    values = values_of(frozen)
    found: list[Enclosure | None] = [None] * len(values)
    if name in ONE_VALUE:
        least = component_format(frozen.dtype).smallest_normal
        for place in np.flatnonzero(where).tolist():
            value = finite(values[place])
            if value == 0 or abs(value) >= least:
                found[place] = Enclosure(value, Fraction(0), "one right answer")
    elif name in ("softmax", "logsumexp"):
        (x,) = inputs
        numbers = [finite(value) for value in values_of(x) if value is not NAN and not is_infinite(value)]
        far = -component_format(x.dtype).largest / 4
        if numbers and min(numbers) >= far / 2:
            limits = bounds.enclose(name, [_replaced(x, _are_special(x), far)], given)
            found = [each if here else None for each, here in zip(limits, where.tolist(), strict=True)]
    return found


def _computed(function: str, inputs: Sequence[Tensor], given: Mapping[str, Any]) -> Tensor:
    answer = FUNCTIONS[function](*inputs, **given)
    computed: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return computed


def _may_be_zero(enclosure: Enclosure) -> bool:
    return abs(enclosure.exact) <= enclosure.error


def _replaced(x: Tensor, where: Any, value: Fraction) -> Tensor:
    """A tensor with a number at some places; one that is no float as it is."""
    if not x.format.is_float:
        return x
    words = x.words()
    code = words.dtype.type(component_format(x.dtype).encode(value))
    return Tensor(x.dtype, x.shape, np.where(where, code, words).astype(words.dtype).tobytes())


def _are_special(x: Tensor) -> Any:
    """Which words are NaN or infinite."""
    if not x.format.is_float:
        return np.zeros(x.words().shape, bool)
    magnitudes = x.words() & x.words().dtype.type(component_format(x.dtype).sign_bit - 1)
    return magnitudes > x.words().dtype.type(component_format(x.dtype).largest_code)
