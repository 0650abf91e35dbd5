"""What an implementation may depart from the frozen bits by, below the level strict, where no order is concerned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tessera_conformance.check import Check
from tessera_conformance.oracle import FUNCTIONS, bounds
from tessera_conformance.oracle.bounds.special import settled
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
