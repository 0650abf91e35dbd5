"""How far two answers are apart, counted in bits, and how an answer is compared with a hypothesis.

An element counts as many bits as its distance from the right answer has, in steps between neighbouring numbers: one for
a neighbour, two for a distance of two or three steps. -0 is the step below +0, NaN the one above infinity, and an
element counts at most `MOST_BITS`: a single element proves little, however far off it is. Integers count by their
difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessera_conformance.oracle.formats import COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import Tensor

MOST_BITS = 4
FEWEST_BITS = 16
"""A hypothesis that the failing cases tell from the right answer by fewer bits is not told."""
FEWEST_BITS_OF_SOME = 48
"""The same of a hypothesis for some dtypes where nothing explains the others."""
FEWEST_BITS_OF_TWO = 32
"""The same of two departures together, of which there are thousands."""


def steps_between(one: int, other: int, dtype: str) -> int:
    """The distance of two codes, in steps between neighbouring numbers."""
    form = FORMATS[COMPONENTS.get(dtype, dtype)]
    if not isinstance(form, FloatFormat):
        return abs(one - other)
    return abs(_position(one, form) - _position(other, form))


def bits_between(one: int, other: int, dtype: str) -> int:
    """The evidence of one element."""
    return min(steps_between(one, other, dtype).bit_length(), MOST_BITS)


def codes_of(x: Tensor) -> Sequence[int]:
    """The codes of a tensor, every NaN the canonical one."""
    form = FORMATS[COMPONENTS.get(x.dtype, x.dtype)]
    codes: list[int] = x.words().tolist()
    if not isinstance(form, FloatFormat):
        return codes
    infinity, sign = form.largest_code + form.has_infinity, form.sign_bit - 1
    return [form.nan_code if code & sign > infinity else code for code in codes]


def _position(code: int, form: FloatFormat) -> int:
    """The place of a code on the line of numbers."""
    magnitude = code & (form.sign_bit - 1)
    infinity = form.largest_code + form.has_infinity
    if magnitude > infinity:
        return infinity + 1
    return -magnitude - 1 if code & form.sign_bit else magnitude
