"""How far off answers are that no hypothesis explains, and where in the results they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tessera_conformance.diagnosis.evidence import codes_of, steps_between
from tessera_conformance.diagnosis.kernels import Call
from tessera_conformance.differences import values_of
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.formats import COMPONENTS, FORMATS, FloatFormat
from tessera_conformance.tensors import Tensor

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
    """Where the differing elements lie, in all questions alike."""
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
    """How many lines along an axis, the leading axes taken together, have a differing element."""
    lines = mask.any(axis=axis)
    return int(lines.reshape(-1, lines.shape[-1]).any(axis=0).sum())
