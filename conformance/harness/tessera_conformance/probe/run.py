"""One probe: its calls in order, whether all elements add alike, and the finding."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.arithmetic import replay
from tessera_conformance.arithmetic.tree import Tree
from tessera_conformance.differences import are_nan
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.probe.algorithms import Group, groups_of
from tessera_conformance.probe.calls import Box, CannotProbe, EvaluatedBox, Subject, box_for, samples
from tessera_conformance.probe.declaration import (
    Declaration,
    Departure,
    arithmetic_departures,
    declaration,
    order_departure,
    probe_departures,
)
from tessera_conformance.probe.masks import Masks
from tessera_conformance.probe.node_arithmetic import Arithmetic, Observed, identify, observe, require_same
from tessera_conformance.probe.pattern import pattern
from tessera_conformance.probe.reveal import NotATree, reveal, reveal_exact_nodes
from tessera_conformance.protocol import Hello
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor

# Whether the other elements of a result add in the order of the watched one: a few calls, and a replay of all of
# them.
#
# Two orders often give the same bits, so an element counts only if it replays in every round. In every second round
# the terms cancel and only rounding errors remain, which show in narrow results too.


MOST_TERMS = 1 << 23
"""The most terms, of all elements together, that are replayed; on the exact path a hundredth of it."""
ROUNDS = 6


@dataclass(frozen=True)
class OtherElements:
    """The number of elements that replay in the order of the watched one, of all, and the first that does not."""

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
    """Return a mask of the elements that a replay gives for random operands."""
    subject = box.subject
    if box.has_products:
        left, right = (tuple(shape) for shape in subject.shapes)
        inputs = [_random(subject.dtype, left, seed), _random(subject.dtype, right, seed + 1)]
        if cancels:
            inputs = [_repeated(inputs[0], 1), _repeated(inputs[1], 0, negated=True)]
    else:
        x = _random(subject.dtype, subject.shape, seed)
        inputs = [_repeated(x, subject.axis, negated=True) if cancels else x]
    outputs, out = box.evaluated(inputs), subject.result_dtype
    if box.has_products:
        expected = replay.matmul(inputs[0], inputs[1], arithmetic.tree, arithmetic.model, out)
    else:
        expected = replay.sum(inputs[0], subject.axis, arithmetic.tree, arithmetic.model, out)
    return np.asarray((outputs.words() == expected.words()) | (are_nan(outputs) & are_nan(expected)))


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


# One probe: which calls it makes in which order, and the finding.


Verdict: TypeAlias = Literal["agrees", "differs", "nothing declared"]
Kind: TypeAlias = Literal["tree", "exact sum", "no fixed tree"]

MOST_TERMS_APART = 256
"""The most leaves for which `reveal_exact_nodes`, which takes many calls, is tried."""


@dataclass(frozen=True)
class Finding:
    """The finding of a probe.

    `tree` has no start value; `arithmetic` is None where no model replays the tree, and then `evidence` says why.
    `groups` are the orders of all elements of an all-reduce, `others` says whether other elements of a result share it.
    """

    subject: Subject
    implementation: str
    tree: Tree | None
    arithmetic: Arithmetic | None
    seen: Observed | None
    declared: Declaration | None
    departures: tuple[Departure, ...] = ()
    evidence: NotATree | None = None
    groups: tuple[Group, ...] = ()
    others: OtherElements | None = None
    ranks_agree: bool = True
    calls: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def kind(self) -> Kind:
        """The kind of the sum: a fixed tree or none."""
        if self.evidence is not None or self.tree is None:
            return "no fixed tree"
        flat = self.tree.leaves > 2 and self.tree.depth == 1
        exact = self.arithmetic is not None and self.arithmetic.model.alignment_bits is None
        return "exact sum" if flat and exact else "tree"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the declaration."""
        if self.declared is None:
            return "nothing declared"
        return "differs" if self.departures else "agrees"

    @property
    def pattern(self) -> str:
        """The order in words."""
        if self.kind == "exact sum":
            return "exact sum of all terms, rounded once, in no order"
        return pattern(self.tree) if self.tree is not None else "no fixed tree"

    def to_json(self) -> dict[str, Any]:
        """The machine-readable finding; times are left out."""
        subject, model = self.subject, self.arithmetic and self.arithmetic.model
        return {
            "implementation": self.implementation,
            "operation": subject.operation,
            "shape": list(subject.shape),
            "dtype": subject.dtype,
            "result_dtype": subject.result_dtype,
            "element": list(subject.watched),
            "kind": self.kind,
            "pattern": self.pattern,
            "tree": self.tree.to_text() if self.tree is not None else None,
            "arithmetic": model.to_json() if model else None,
            "replayed_tree": self.arithmetic.tree.to_text() if self.arithmetic else None,
            "indistinguishable": [other.to_json() for other in self.arithmetic.alike] if self.arithmetic else [],
            "start": self.seen.start if self.seen else None,
            "subnormals": self.seen.subnormals if self.seen else None,
            "evidence": self.evidence.to_json() if self.evidence else None,
            "elsewhere": self.others.to_json() if self.others else None,
            "groups": [group.to_json() for group in self.groups],
            "ranks_agree": self.ranks_agree,
            "declared": self.declared.to_json() if self.declared else None,
            "verdict": self.verdict,
            "departures": [departure.to_json() for departure in self.departures],
            "calls": self.calls,
        }


def probe(session: Session, subject: Subject, seed: int = 0, in_full: bool = False) -> Finding:
    """Probe one operation; a declaration that holds is confirmed without revealing the tree anew, unless `in_full`.

    Raises:
        CannotProbe: the implementation does not answer, or not to the point.
    """
    began = time.perf_counter()
    box = box_for(session, subject)
    hello = session.open()
    name = f"{hello.name} {hello.version}" if isinstance(hello, Hello) else session.label
    stated = declaration(box)
    finding = replace(_looked_at(box, stated, seed, in_full), implementation=name)
    if finding.arithmetic is not None:
        finding = replace(finding, others=compare_other_elements(box, finding.arithmetic, seed))
    if subject.operation == "all_reduce":
        finding = replace(finding, groups=groups_of(box), ranks_agree=getattr(box, "ranks_agree", True))
    return replace(finding, calls=box.calls, seconds=time.perf_counter() - began)


def _looked_at(box: Box, stated: Declaration | None, seed: int, in_full: bool) -> Finding:
    """Return the finding of masks and replays; a sum that is no fixed tree is a finding too."""
    finding = Finding(box.subject, "", None, None, None, stated)
    try:
        masks = Masks(box)
        if masks.absorbs_nothing():
            return _exact(box, masks, finding, seed)
        wrong_order = order_departure(masks, stated.tree) if stated is not None else None
        confirmed = stated is not None and wrong_order is None and not in_full
        tree = stated.tree.without_start().canonical() if confirmed and stated else _revealed(masks, seed)
        finding = replace(finding, tree=tree)
        observed = observe(box, tree, seed)
        finding = replace(finding, seen=observed)
        if wrong_order is not None:
            finding = replace(finding, departures=(wrong_order,))
        elif stated is not None:
            finding = replace(finding, departures=_one_of_each(_departures(box, stated, observed)))
            if not finding.departures:
                return replace(finding, arithmetic=Arithmetic(stated.arithmetic, stated.tree))
        return replace(finding, arithmetic=identify(box, tree, observed))
    except NotATree as stop:
        return _no_tree(finding, stop)


def _exact(box: Box, masks: Masks, finding: Finding, seed: int) -> Finding:
    """The finding where masks absorb nothing: only replays can distinguish a declared order from another."""
    stated, tree = finding.declared, Tree.explicit([*range(masks.terms), -masks.terms])
    finding = replace(finding, tree=tree)
    try:
        observed = observe(box, tree, seed)
        finding = replace(finding, seen=observed)
        if stated is not None:
            departures = _departures(box, stated, observed)
            if not departures:
                return replace(finding, arithmetic=Arithmetic(stated.arithmetic, stated.tree))
            if departures[0].aspect == "arithmetic":
                departures = [order_departure(masks, stated.tree) or departures[0]]
            finding = replace(finding, departures=_one_of_each(departures))
        return replace(finding, arithmetic=identify(box, tree, observed))
    except NotATree as stop:
        return _no_tree(finding, stop)


def _departures(box: Box, stated: Declaration, observed: Observed) -> list[Departure]:
    return [*arithmetic_departures(box, stated, observed), *probe_departures(box, stated, observed)]


def _no_tree(finding: Finding, stop: NotATree) -> Finding:
    """The finding with the evidence against a tree, which is also a departure from a declared one."""
    if finding.declared is not None and not finding.departures:
        departure = Departure("order", f"the sum is no fixed tree: {stop}", stop.to_json())
        finding = replace(finding, departures=(departure,))
    return replace(finding, evidence=stop)


def _revealed(masks: Masks, seed: int) -> Tree:
    try:
        return reveal(masks, seed)
    except NotATree as stop:
        _require_steady(masks, stop)
        if masks.terms > MOST_TERMS_APART:
            raise
        try:
            return reveal_exact_nodes(masks, seed)
        except NotATree:
            raise stop from None
    except RecursionError:
        raise CannotProbe(f"{masks.box.subject}: the tree is too deep to be revealed with this seed") from None


def _require_steady(masks: Masks, stop: NotATree) -> None:
    """Ask some pairs again, those of the evidence first.

    Raises:
        NotATree: an answer has changed.
    """
    for pair in [*([stop.pair] if stop.pair else []), *list(masks.measured)[:32]]:
        left, right = masks.words(*pair)
        word = masks.box.word(left, right)
        try:
            for _ in range(2):
                require_same(masks.box, left, right, word)
        except NotATree as varying:
            raise NotATree("runs", pair, varying.reason, varying.witness) from None


def _one_of_each(departures: list[Departure]) -> tuple[Departure, ...]:
    first: dict[str, Departure] = {}
    for departure in departures:
        first.setdefault(departure.aspect, departure)
    return tuple(first.values())
