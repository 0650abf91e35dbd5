"""Whether the other elements of a result add in the order of the watched one: a few calls, and a replay of all of them.

Two orders often give the same bits, so an element counts only if it replays in every round. In every second round the
terms cancel and only rounding errors remain, which show in narrow results too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tessera_conformance.arithmetic import replay
from tessera_conformance.differences import are_nan
from tessera_conformance.oracle.formats import float_format
from tessera_conformance.probe.calls import Box, EvaluatedBox
from tessera_conformance.probe.node_arithmetic import Arithmetic
from tessera_conformance.probe.samples import samples
from tessera_conformance.tensors import Tensor

MOST_TERMS = 1 << 23
"""The most terms, of all elements together, that are replayed; on the exact path a hundredth of it."""
ROUNDS = 6


@dataclass(frozen=True)
class OtherElements:
    """How many elements replay in the order of the watched one, of how many, and the first that does not."""

    alike: int
    elements: int
    first_other: tuple[int, ...] | None

    def sentence(self) -> str:
        """In words."""
        if self.first_other is None:
            return f"all {self.elements} elements replay in this order"
        place = list(self.first_other)
        return f"{self.alike} of {self.elements} elements replay in this order, {place} and others do not"

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {**vars(self), "first_other": self.first_other and list(self.first_other)}


def compare_other_elements(box: Box, arithmetic: Arithmetic, seed: int = 0) -> OtherElements | None:
    """Ask for random operands of the whole shape; None where there is one element only, or too many to replay."""
    same = alike_elements(box, arithmetic, seed)
    if same is None:
        return None
    others = np.flatnonzero(~same)
    first = tuple(int(place) for place in np.unravel_index(others[0], box.subject.result)) if len(others) else None
    return OtherElements(int(np.count_nonzero(same)), len(same), first)


def alike_elements(box: Box, arithmetic: Arithmetic, seed: int = 0) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """The elements that replay in every round; None if there is only one element, or too many to replay."""
    subject = box.subject
    elements = prod(subject.result)
    fast = replay.is_fast(arithmetic.tree, arithmetic.model, subject.dtype, box.has_products, subject.terms)
    most = MOST_TERMS if fast else MOST_TERMS // 100
    if not isinstance(box, EvaluatedBox) or elements < 2 or elements * subject.terms > most:
        return None
    same = np.ones(elements, bool)
    for round_ in range(ROUNDS):
        same &= _replayed(box, arithmetic, 1000 * seed + 10 * round_, cancels=round_ % 2 == 1)
    return same


def _replayed(
    box: EvaluatedBox, arithmetic: Arithmetic, seed: int, cancels: bool
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which elements a replay gives for random operands."""
    subject = box.subject
    if box.has_products:
        left, right = (tuple(shape) for shape in subject.shapes)
        inputs = [_random(subject.dtype, left, seed), _random(subject.dtype, right, seed + 1)]
        if cancels:
            inputs = [_repeated(inputs[0], 1), _repeated(inputs[1], 0, negated=True)]
    else:
        x = _random(subject.dtype, subject.shape, seed)
        inputs = [_repeated(x, subject.axis, negated=True) if cancels else x]
    found, out = box.evaluated(inputs), subject.result_dtype
    if box.has_products:
        wanted = replay.matmul(inputs[0], inputs[1], arithmetic.tree, arithmetic.model, out)
    else:
        wanted = replay.sum(inputs[0], subject.axis, arithmetic.tree, arithmetic.model, out)
    return np.asarray((found.words() == wanted.words()) | (are_nan(found) & are_nan(wanted)))


def _random(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Plain random numbers."""
    words = samples(dtype, prod(shape), 1, False, seed)[0].left
    return Tensor(dtype, shape, words.tobytes())


def _repeated(tensor: Tensor, axis: int, negated: bool = False) -> Tensor:
    """The first half along an axis once more, or its negation, in place of the second: sums leave rounding errors."""
    words = tensor.words().reshape(tensor.shape).copy()
    lines = np.moveaxis(words, axis, 0)
    half = len(lines) // 2
    sign = words.dtype.type(float_format(tensor.dtype).sign_bit if negated else 0)
    lines[half : 2 * half] = lines[:half] ^ sign
    return Tensor(tensor.dtype, tensor.shape, words.tobytes())
