"""Distance of two answers in bits, and the places in the results where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tessera_conformance.diagnosis.kernels import Call
from tessera_conformance.differences import values_of
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.formats import COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import Tensor

# How far two answers are apart, counted in bits, and how an answer is compared with a hypothesis.
#
# An element counts as many bits as its distance from the right answer has, in steps between neighbouring numbers: one
# for a neighbour, two for a distance of two or three steps. -0 is the step below +0, NaN the one above infinity, and
# an element counts at most `MOST_BITS`: a single element proves little, however far off it is. Integers count by
# their difference.


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


# How far off answers are that no hypothesis explains, and where in the results they lie.


Differing: TypeAlias = tuple[Call, Tensor, Tensor]
"""A call, the observed answer and the right one."""

RANGES = ((1, "1"), (2, "2"), (4, "3 to 4"), (16, "5 to 16"), (256, "17 to 256"))
"""The upper ends of the ranges of a histogram, in units in the last place."""
BY_CHANCE = 0.9
"""The share of wrong elements in a tile that is not written: in the others stands what is right by chance."""
MOST_ENCLOSED = 2048
"""Elements that are held against their bounds."""
TILES = (64, 32, 16, 8, 4)


def description(questions: Sequence[Differing]) -> str:
    """The end of a sentence: a histogram of distances, where the elements lie, the smallest shape; empty for none."""
    if not questions:
        return ""
    smallest = min(questions, key=lambda each: sum(x.size for x in each[0].inputs))
    shapes = " and ".join(str(list(x.shape)) for x in smallest[0].inputs)
    return f"; {_histogram(questions)}; {_places(questions)}; smallest operands {shapes} {smallest[0].dtype}"


def within_bounds(questions: Sequence[Differing]) -> bool:
    """True if every answer lies within its bound at the level fast.

    False for many or large ones, which take long, and where NaN, an infinity or the sign of a zero is wrong.
    """
    if sum(right.size for _, _, right in questions) > MOST_ENCLOSED:
        return False
    pairs = [
        (one, other, right.dtype)
        for _, found, right in questions
        for one, other in zip(codes_of(found), codes_of(right), strict=True)
        if one != other
    ]
    return not any(is_special(*each) for each in pairs) and all(
        _is_enclosed(call, found) for call, found, _ in questions
    )


def _is_enclosed(call: Call, found: Tensor) -> bool:
    function = f"oracle.{call.operation}"
    if call.operation not in bounds.ENCLOSED or not found.format.is_float:
        return False
    try:
        enclosures = bounds.enclose(function, call.inputs, call.arguments)
    except (ArithmeticError, ValueError, LookupError, TypeError):
        return False
    values = values_of(found)
    return len(values) == len(enclosures) and all(
        each is None or (value is not None and abs(value - each.exact) <= each.error)
        for value, each in zip(values, enclosures, strict=True)
    )


def _histogram(questions: Sequence[Differing]) -> str:
    counted: Counter[str] = Counter()
    for _, found, right in questions:
        for one, other in zip(codes_of(found), codes_of(right), strict=True):
            if one != other:
                counted[_kind(one, other, right.dtype)] += 1
    order = [*(name for _, name in RANGES), "more"]
    numbers = [f"{counted[name]} by {name}" for name in order if counted[name]]
    special = [f"{number} {name}" for name, number in counted.items() if name not in order]
    ulps = f"elements off by ULP: {', '.join(numbers)}" if numbers else ""
    return ", ".join([*([ulps] if ulps else []), *special])


def is_special(found: int, right: int, dtype: str) -> str:
    """The special value that two codes differ in, in words; empty where both are numbers."""
    form = FORMATS[COMPONENTS.get(dtype, dtype)]
    if not isinstance(form, FloatFormat):
        return ""
    sizes = [code & (form.sign_bit - 1) for code in (found, right)]
    if max(sizes) > form.largest_code:
        return "with NaN or infinity for another value"
    return "with a zero of the wrong sign" if sizes == [0, 0] else ""


def lies_beyond(size: int, answers: Sequence[tuple[Tensor, Tensor]]) -> bool:
    """True if the elements that differ are nearly all those beyond a multiple of `size` in the last axis, and no other.

    An element may be right by chance. Results whose last axis is shorter are wrong as a whole, and prove nothing alone.
    """
    differing = beyond = longer = 0
    for mask in (_mask(found, right) for found, right in answers):
        whole = mask.shape[-1] // size * size if mask.ndim else 0
        if mask.ndim == 0 or mask[..., :whole].any():
            return False
        longer += whole > 0
        differing += int(mask.sum())
        beyond += mask[..., whole:].size
    return longer > 1 and differing >= BY_CHANCE * beyond


def _kind(found: int, right: int, dtype: str) -> str:
    """The range that a distance falls into, or which special value is concerned."""
    if special := is_special(found, right, dtype):
        return special
    distance = steps_between(found, right, dtype)
    return next((name for end, name in RANGES if distance <= end), "more")


def _places(questions: Sequence[Differing]) -> str:
    """Return where the differing elements lie, in all questions alike."""
    masks = [_mask(found, right) for _, found, right in questions]
    kinds: list[tuple[str, Callable[[np.ndarray], bool]]] = [
        ("all elements", lambda mask: bool(mask.all())),
        *((f"only beyond a multiple of {size} in the last axis", _beyond(size)) for size in TILES),
        ("only the last row", lambda mask: mask.ndim > 1 and not mask[..., :-1, :].any()),
        ("only the first row", lambda mask: mask.ndim > 1 and not mask[..., 1:, :].any()),
        ("one row of each result", lambda mask: mask.ndim > 1 and mask.shape[-2] > 1 and _lines(mask, -1) == 1),
        ("one column of each result", lambda mask: mask.ndim > 1 and mask.shape[-1] > 1 and _lines(mask, -2) == 1),
        ("one element of each result", lambda mask: int(mask.sum()) == 1),
    ]
    differing, size = sum(int(mask.sum()) for mask in masks), sum(mask.size for mask in masks)
    place = next((name for name, holds in kinds if all(map(holds, masks))), "")
    return place or f"{differing} of {size} elements differ"


def _mask(found: Tensor, right: Tensor) -> np.ndarray:
    differs = np.array(codes_of(found), dtype=object) != np.array(codes_of(right), dtype=object)
    mask: np.ndarray = differs.astype(bool).reshape(-1, right.format.words).any(axis=1).reshape(right.shape)
    return mask


def _beyond(size: int) -> Callable[[np.ndarray], bool]:
    def holds(mask: np.ndarray) -> bool:
        whole = mask.shape[-1] // size * size if mask.ndim else 0
        return whole > 0 and not mask[..., :whole].any()

    return holds


def _lines(mask: np.ndarray, axis: int) -> int:
    """Return the number of lines along an axis, the leading axes taken together, that have a differing element."""
    lines = mask.any(axis=axis)
    return int(lines.reshape(-1, lines.shape[-1]).any(axis=0).sum())
