"""One probe of an implementation: the arithmetic of a sum, its departures from the declaration, and the finding."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.arithmetic import ModelError, NodeArithmetic, canonical, replay
from tessera_conformance.check import are_nan
from tessera_conformance.oracle.exact import (
    ACCUMULATORS,
    NEGATIVE_ZERO,
    ZERO,
    Rounding,
    Value,
    float_format,
    is_negative,
    is_zero,
)
from tessera_conformance.oracle.trees import START, LeafCountError, Tree, TreeError
from tessera_conformance.probe.calls import Box, CannotProbe, Subject, Terms, Words, hello_of, samples, words_of
from tessera_conformance.probe.reveal import (
    REPEATS,
    Group,
    Masks,
    NotATree,
    are_same,
    first_wrong_pair,
    groups_of,
    hexadecimal,
    inputs_json,
    masks_for,
    pattern,
    require_same,
    reveal,
    reveal_exact_nodes,
)
from tessera_conformance.protocol import Arithmetic as DeclaredArithmetic
from tessera_conformance.protocol import Returned, Unsupported, describe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor

# The arithmetic of a known tree's nodes: direct probes first, then replay of random terms bit for bit.


Start: TypeAlias = Literal["+0", "none"]
Kept: TypeAlias = Literal["kept", "flushed", "mixed"]

ROUNDINGS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down")
ACCUMULATORS_TRIED = ("fp32", "fp64", "fp16", "bf16")
ROWS = 16
PAIRS = 4
"""Rows in which all terms but two are zeros."""
WIDEST_ALIGNMENT = 64
NEAREST = 8
"""The number of models that are compared for the nearest if none fits."""


@dataclass(frozen=True)
class Observed:
    """The results of the implementation for random terms, and the findings of the direct probes."""

    rows: Sequence[Terms]
    words: Sequence[int]
    start: Start | None
    subnormals: Kept
    alignment_bits: int | None = None
    roundings: tuple[Rounding, ...] = ROUNDINGS


@dataclass(frozen=True)
class Arithmetic:
    """The model that replays every result, and others that no tried input distinguishes from it."""

    model: NodeArithmetic
    tree: Tree
    alike: tuple[NodeArithmetic, ...] = field(default=())


def observe(box: Box, tree: Tree, seed: int = 0) -> Observed:
    """Send random terms and run the direct probes. Raises `NotATree`: the same terms give different bits."""
    subject = box.subject
    rows = samples(subject.dtype, subject.terms, ROWS, box.has_products, seed)
    rows += _pairs_alone(box, tree, seed) if tree.arity == 2 and box.has_products else []
    words = [box.word(*row) for row in rows]
    for row, word in list(zip(rows, words, strict=True))[:2]:
        require_same(box, row, times=REPEATS // 2, word=word)
    bits = _alignment(box, tree) if tree.arity > 2 else None
    roundings = _roundings(box) if tree.arity == 2 else ROUNDINGS
    return Observed(rows, words, _start(box), _subnormals(box), bits, roundings)


def _pairs_alone(box: Box, tree: Tree, seed: int) -> list[Terms]:
    """Return rows with products at the two leaves of one node and zeros elsewhere: they show the one rounded first."""
    pair = next([left[0], right[0]] for left, right in tree.nodes() if len(left) == len(right) == 1)
    rows: list[Terms] = []
    for first, second in samples(box.subject.dtype, 2, PAIRS, True, seed):
        assert second is not None
        left, right = _placed(box, {}), _placed(box, {})
        left[pair], right[pair] = first, second
        rows.append((left, right))
    return rows


def identify(box: Box, tree: Tree, observed: Observed) -> Arithmetic:
    """Return the arithmetic whose replay gives all observed bits.

    Raises `NotATree`: none does; the witness is a row that the nearest one misses.
    """
    candidates = list(_candidates(box, tree, observed))
    models = [(model, placed) for placed, model in candidates if replays(box, placed, model, observed)]
    if models:
        first, placed = models[0]
        alike = tuple(dict.fromkeys(model for model, _ in models if model != first))
        return Arithmetic(first, placed, alike)
    missed = [(mismatches(box, placed, model, observed), model) for placed, model in candidates[:NEAREST]]
    wrong, model = min(missed, key=lambda entry: len(entry[0]))
    row = min(wrong)
    nearest = f"the nearest misses {len(wrong)} of {len(observed.rows)} rows"
    raise NotATree(
        "replay",
        None,
        f"no arithmetic replays the tree that the masks show; {nearest}",
        {
            "inputs": inputs_json(*observed.rows[row]),
            "nearest": model.to_json(),
            "replayed": hexadecimal(wrong[row], box),
            "found": hexadecimal(observed.words[row], box),
        },
    )


def replays(box: Box, tree: Tree, model: NodeArithmetic, observed: Observed) -> bool:
    """True if a replay gives all observed bits; an exact replay, which is slow, tries a single row first."""
    is_quick = replay.is_fast(tree, model, box.subject.dtype, box.has_products, box.subject.terms)
    return (is_quick or not mismatches(box, tree, model, observed, slice(1, 2))) and not mismatches(
        box, tree, model, observed
    )


def mismatches(
    box: Box, tree: Tree, model: NodeArithmetic, observed: Observed, rows: slice = slice(None)
) -> dict[int, int]:
    """Return the numbers of the rows that a replay of these rows misses, with the replayed words."""
    dtype, out, words = box.subject.dtype, box.subject.result_dtype, observed.words[rows]
    shape = (len(words), box.subject.terms)
    left, right = zip(*observed.rows[rows], strict=True)
    terms = Tensor(dtype, shape, b"".join(map(bytes, left)))
    if box.has_products:
        replayed = replay.inner(terms, Tensor(dtype, shape, b"".join(map(bytes, right))), tree, model, out)
    else:
        replayed = replay.sum(terms, 1, tree, model, out)
    pairs = enumerate(zip(words, replayed.words().tolist(), strict=True))
    return {row: wanted for row, (found, wanted) in pairs if not are_same(found, wanted, out)}


def _candidates(box: Box, tree: Tree, observed: Observed) -> Iterator[tuple[Tree, NodeArithmetic]]:
    """Yield models to try, the likeliest first."""
    usual = ACCUMULATORS[box.subject.dtype]
    others = [name for name in ACCUMULATORS_TRIED if name != usual]
    subnormals = ["kept", "flushed"] if observed.subnormals == "mixed" else [observed.subnormals]
    products = ("rounded", "fused") if box.has_products else ("rounded",)
    placements = [(name, placed) for name in products for placed in _placements(tree, name)]
    start = "none" if box.has_products and observed.start == "none" else "zero"
    for accumulator, rounding, kept in product([usual, *others], observed.roundings, subnormals):
        wider = float_format(accumulator).fraction_bits > float_format(usual).fraction_bits
        usual_here = ("nearest_even",) if wider else ("nearest_even", "toward_zero")
        if (accumulator == usual or rounding in usual_here) and _holds(accumulator, box, observed):
            for name, placed in placements:
                yield placed, NodeArithmetic(accumulator, name, rounding, observed.alignment_bits, kept, start)  # type: ignore[arg-type]


def _holds(accumulator: str, box: Box, observed: Observed) -> bool:
    """True if every observed result is a number of the accumulator: no other can replay, and to try it is slow."""
    narrow, wide = float_format(accumulator), float_format(box.subject.result_dtype)
    if narrow.fraction_bits >= wide.fraction_bits:
        return True
    return all(narrow.round(value) == value for value in map(wide.decode, observed.words))


def _placements(tree: Tree, products: str) -> list[Tree]:
    """Return trees that masks cannot distinguish: orders of two fused leaves, and positions of the start value.

    It may stand in the first node, if that has one term less than the widest.
    """
    if tree.arity <= 2:
        return [tree, _with_pairs_swapped(tree)] if products == "fused" else [tree]
    steps = tree.steps
    first = next(k for k, step in enumerate(steps) if step < START)
    if -steps[first] != tree.arity - 1:
        return [tree]
    return [Tree.explicit([START, *steps[:first], steps[first] - 1, *steps[first + 1 :]]), tree]


def _with_pairs_swapped(tree: Tree) -> Tree:
    """Return the tree with the two leaves of every node of two leaves exchanged."""
    steps = list(tree.steps)
    for k in range(2, len(steps)):
        if steps[k] == -2 and steps[k - 1] > START and steps[k - 2] > START:
            steps[k - 2], steps[k - 1] = steps[k - 1], steps[k - 2]
    return Tree.explicit(steps)


def _start(box: Box) -> Start | None:
    """Return the start of a sum: "none" if a sum of negative zeros keeps the sign."""
    dtype, terms = box.subject.dtype, box.subject.terms
    right = words_of([Fraction(1)] * terms, dtype) if box.has_products else None
    total = box.value(words_of([NEGATIVE_ZERO] * terms, dtype), right)
    if not is_zero(total):
        return None
    return "none" if is_negative(total) else "+0"


def _subnormals(box: Box) -> Kept:
    """Return "kept" if subnormal inputs and subnormal results survive, else "mixed" or "flushed"."""
    dtype = box.subject.dtype
    smallest = float_format(dtype).smallest_normal
    answers = [_alone(box, smallest / 2) == smallest / 2]
    if ACCUMULATORS[dtype] == dtype:  # otherwise such a result is no normal number of the accumulator
        answers.append(_alone(box, 3 * smallest / 2, -smallest) == smallest / 2)
    if float_format(box.subject.result_dtype).smallest_normal > smallest:
        return "kept"
    return "kept" if all(answers) else "mixed" if any(answers) else "flushed"


def _roundings(box: Box) -> tuple[Rounding, ...]:
    """Return the directions consistent with 1 plus and minus a tiny number, if the result shows the accumulator."""
    dtype = box.subject.dtype
    accumulator, result = (float_format(name) for name in (ACCUMULATORS[dtype], box.subject.result_dtype))
    tiny = Fraction(2) ** (-accumulator.fraction_bits - 8)
    if result.fraction_bits < accumulator.fraction_bits or tiny < float_format(dtype).smallest_normal:
        return ROUNDINGS
    above, below = (_alone(box, Fraction(1), sign * tiny) for sign in (1, -1))
    if above == 1 and below == 1:
        return ROUNDINGS[:2]
    return ROUNDINGS[2:]


def _alignment(box: Box, tree: Tree) -> int | None:
    """Return the bits below the largest term that a fused node keeps; None if it keeps all that terms can have.

    A power of two and its negation cancel in the node, beside a smaller one, 2^-g times theirs: it survives as long as
    g is at most the number of bits.
    """
    (one, _), (other, _), (small, _), *_ = next(children for children in tree.joints() if len(children) > 2)
    large = Fraction(2) ** (8 if box.subject.dtype == "fp8_e4m3" else 0)
    lowest = float_format(box.subject.dtype).smallest
    scale, rights = (large * large, (large, lowest)) if box.has_products else (large, (Fraction(1),))
    for bits in range(1, WIDEST_ALIGNMENT + 1):
        number = scale / 2**bits
        right = next((factor for factor in rights if number / factor >= lowest), None)
        if right is None:
            return None
        left = _placed(box, {one: large, other: -large, small: number / right})
        factors = _placed(box, {one: large, other: large, small: right}) if box.has_products else None
        if is_zero(box.value(left, factors)):
            return bits - 1
    return None


def _alone(box: Box, *terms: Fraction) -> Value:
    """Return the sum of a few terms, with zeros at all other leaves."""
    factors = _placed(box, dict.fromkeys(range(len(terms)), Fraction(1))) if box.has_products else None
    return box.value(_placed(box, dict(enumerate(terms))), factors)


def _placed(box: Box, values: dict[int, Fraction]) -> Words:
    return words_of([values.get(leaf, ZERO) for leaf in range(box.subject.terms)], box.subject.dtype)


# An implementation's declaration about a sum, and its departures from it.
#
# A declared tree is confirmed with one mask for each pair of children of each node, which proves it.


Aspect: TypeAlias = Literal[
    "order", "fusion", "accumulator", "rounding", "alignment", "subnormals", "start", "arithmetic"
]

FIELDS: Mapping[str, Aspect] = {
    "product": "fusion",
    "accumulator": "accumulator",
    "rounding": "rounding",
    "alignment_bits": "alignment",
    "subnormals": "subnormals",
}


@dataclass(frozen=True)
class Declaration:
    """A declared tree, spelled out for the probed number of terms, and the arithmetic of its nodes."""

    tree: Tree
    arithmetic: NodeArithmetic
    source: str


@dataclass(frozen=True)
class Departure:
    """One departure of an implementation from its declaration, and the inputs that show it."""

    aspect: Aspect
    sentence: str
    witness: Mapping[str, Any]


def declaration(box: Box) -> Declaration | None:
    """Return the declaration for the subject: of `numerics.declared`, else of its Hello; None without one.

    Raises `CannotProbe`: the answer is malformed, or not one for this number of terms.
    """
    return declared_by_call(box, box.subject.attributes) or _from_hello(box)


def declared_by_call(box: Box, attributes: Mapping[str, Any]) -> Declaration | None:
    """Return the declaration of `numerics.declared` for the subject; None where it is unsupported."""
    subject = box.subject
    params: dict[str, Any] = {"operation": subject.operation, "dtype": subject.dtype, "shapes": subject.shapes}
    params |= {"attributes": attributes} if attributes else {}
    observation = box.call("numerics.declared", params | {"element": subject.flat_element})
    if isinstance(observation, Unsupported):
        return None
    if not isinstance(observation, Returned) or not isinstance(observation.value, Mapping):
        raise CannotProbe(f"numerics.declared for {subject}: {describe(observation)}")
    value = observation.value
    try:
        model = NodeArithmetic.from_json(value["arithmetic"]) if "arithmetic" in value else canonical(subject.dtype)
        return Declaration(_spelled(Tree.from_json(value.get("tree")), box), model, "numerics.declared")
    except (TreeError, ModelError) as error:
        raise CannotProbe(f"numerics.declared for {subject}: {error}") from None


def _from_hello(box: Box) -> Declaration | None:
    stated = DeclaredArithmetic.of(hello_of(box.session).message.get("arithmetic", {}))
    if box.subject.operation not in stated.trees:
        return None
    try:
        tree = _spelled(Tree.from_text(stated.trees[box.subject.operation]), box)
    except LeafCountError:
        return None  # declared for another shape
    except TreeError as error:
        raise CannotProbe(f"arithmetic.trees.{box.subject.operation} of the Hello: {error}") from None
    model = canonical(box.subject.dtype).but(subnormals="flushed" if stated.flushes else "kept")
    return Declaration(tree, model, "Hello, with the arithmetic of the reference arithmetic")


def _spelled(tree: Tree, box: Box) -> Tree:
    terms = box.subject.terms
    return tree.with_start(terms) if box.has_products else tree.over(terms)


def order_departure(masks: Masks, declared: Tree) -> Departure | None:
    """Return a pair of leaves that is not joined as declared; None if the declared order is proved."""
    found: int | str
    try:
        wrong = first_wrong_pair(masks.lca, declared.without_start(), range(masks.terms))
        if wrong is None:
            return None
        i, j, size = wrong
        found = masks.lca(i, j)
        meets = f"they are joined in one of {found}"
    except NotATree as stop:
        if stop.pair is None:
            raise
        i, j = stop.pair
        subtrees = ({leaf for child in node for leaf in child} for node in declared.nodes())
        size = len(next(leaves for leaves in subtrees if {i, j} <= leaves))
        found = meets = stop.reason
    sentence = f"leaves {i} and {j}: declared to be joined in a subtree of {size} leaves, but {meets}"
    inputs = inputs_json(*masks.words(i, j))
    return Departure("order", sentence, {"pair": [i, j], "declared": size, "found": found, "inputs": inputs})


def arithmetic_departures(box: Box, declared: Declaration, observed: Observed) -> list[Departure]:
    """Return the fields in which the nearest arithmetic that replays the results differs from the declared one."""
    missed = mismatches(box, declared.tree, declared.arithmetic, observed)
    if not missed:
        return []
    row = min(missed)
    witness = {
        "inputs": inputs_json(*observed.rows[row]),
        "declared": hexadecimal(missed[row], box),
        "found": hexadecimal(observed.words[row], box),
    }
    stated = vars(declared.arithmetic)
    try:
        found = identify(box, declared.tree.without_start().canonical(), observed)
        models = [vars(model) for model in (found.model, *found.alike)]
    except NotATree:
        models = [stated]
    changes = [{name: model[name] for name in FIELDS if model[name] != stated[name]} for model in models]
    nearest = min(changes, key=len)
    if nearest:
        sentences = {name: _sentence(name, stated[name], value) for name, value in nearest.items()}
        return [Departure(FIELDS[name], sentence, witness) for name, sentence in sentences.items()]
    rows = f"{len(missed)} of {len(observed.rows)} rows of random terms give other bits"
    statement = f"{rows} than the declared order and arithmetic, and no arithmetic tried explains them"
    return [Departure("arithmetic", statement, witness)]


def probe_departures(box: Box, declared: Declaration, observed: Observed) -> list[Departure]:
    """Return the departures that direct probes show and random terms do not."""
    model, departures = declared.arithmetic, []
    if observed.subnormals != model.subnormals:
        sentence = _sentence("subnormals", model.subnormals, observed.subnormals)
        departures.append(Departure("subnormals", sentence, {"probe": "half of the smallest normal number"}))
    begins = {"none": "none", "+0": "zero"}.get(observed.start or "", model.start)
    if box.has_products and begins != model.start:
        start, sign = ("+0", "negative") if begins == "none" else ("the first term", "positive")
        sentence = f"declared to start from {start}, but a sum of negative zeros is {sign}"
        departures.append(Departure("start", sentence, {"probe": "every term -0"}))
    wide = declared.tree.without_start().arity > 2
    if wide and observed.alignment_bits != model.alignment_bits:
        sentence = _sentence("alignment_bits", model.alignment_bits, observed.alignment_bits)
        departures.append(Departure("alignment", sentence, {"probe": "1, -1 and powers of two in one fused node"}))
    return departures


def _sentence(field: str, declared: object, actual: object) -> str:
    names = {"product": "products", "alignment_bits": "alignment bits"}
    words = ["all" if value is None else value for value in (declared, actual)]
    return f"{names.get(field, field)}: declared {words[0]}, but {words[1]} replays what was found"


# The order of the other elements of a result, compared with the watched one's by a few calls and a replay of each.
#
# Two orders often give the same bits, so an element counts only if it replays in every round. In every second round the
# terms cancel and only rounding errors remain, which show in narrow results too.


MOST_TERMS = 1 << 23
"""The most terms, of all elements together, that are replayed; on the exact path a hundredth of it."""
ROUNDS = 6

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class OtherElements:
    """The elements of a result of some shape that replay in the watched one's order: `same` is their mask, flat."""

    same: Mask
    shape: tuple[int, ...]

    @property
    def first_other(self) -> list[int] | None:
        """The first element that does not replay."""
        others = np.flatnonzero(~self.same)
        return [int(place) for place in np.unravel_index(others[0], self.shape)] if len(others) else None

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for the machine-readable finding."""
        alike = int(np.count_nonzero(self.same))
        return {"alike": alike, "elements": len(self.same), "first_other": self.first_other}

    def sentence(self) -> str:
        """Return the comparison in words."""
        alike, elements, first = self.to_json().values()
        if first is None:
            return f"all {elements} elements replay in this order"
        return f"{alike} of {elements} elements replay in this order, {first} and others do not"


def compare_other_elements(box: Box, arithmetic: Arithmetic, seed: int = 0) -> OtherElements | None:
    """Send random operands of the whole shape; return None for one element only, or too many to replay."""
    subject = box.subject
    elements = prod(subject.result)
    fast = replay.is_fast(arithmetic.tree, arithmetic.model, subject.dtype, box.has_products, subject.terms)
    most = MOST_TERMS if fast else MOST_TERMS // 100
    if subject.operation == "all_reduce" or elements < 2 or elements * subject.terms > most:
        return None
    same: Mask = np.ones(elements, bool)
    for round_ in range(ROUNDS):
        same &= _replayed(box, arithmetic, 1000 * seed + 10 * round_, cancels=round_ % 2 == 1)
    return OtherElements(same, subject.result)


def _replayed(box: Box, arithmetic: Arithmetic, seed: int, cancels: bool) -> Mask:
    """Return a mask of the elements that a replay with random operands reproduces."""
    dtype, axis = box.subject.dtype, box.subject.axis
    order = arithmetic.tree, arithmetic.model, box.subject.result_dtype
    first, *others = (_random(dtype, tuple(shape), seed + at) for at, shape in enumerate(box.subject.shapes))
    if cancels:
        first = _repeated(first, 1) if others else _repeated(first, axis, negated=True)
        others = [_repeated(other, 0, negated=True) for other in others]
    outputs = box.evaluated([first, *others])
    expected = replay.matmul(first, others[0], *order) if others else replay.sum(first, axis, *order)
    return np.asarray((outputs.words() == expected.words()) | (are_nan(outputs) & are_nan(expected)))


def _random(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """Plain random numbers."""
    (words, _), *_ = samples(dtype, prod(shape), 1, False, seed)
    return Tensor(dtype, shape, words.tobytes())


def _repeated(tensor: Tensor, axis: int, negated: bool = False) -> Tensor:
    """Return the tensor with its first half, or the negation, in place of the second: sums leave rounding errors."""
    words = tensor.words().reshape(tensor.shape).copy()
    lines = np.moveaxis(words, axis, 0)
    half = len(lines) // 2
    sign = words.dtype.type(float_format(tensor.dtype).sign_bit if negated else 0)
    lines[half : 2 * half] = lines[:half] ^ sign
    return Tensor(tensor.dtype, tensor.shape, words.tobytes())


# One probe: its calls in order, and the finding.


Verdict: TypeAlias = Literal["agrees", "differs", "nothing declared"]
Kind: TypeAlias = Literal["tree", "exact sum", "no fixed tree"]

MOST_TERMS_APART = 256
"""The most leaves for which `reveal_exact_nodes`, which takes many calls, is tried."""


@dataclass(frozen=True)
class Finding:
    """The finding of a probe.

    `tree` has no start value; `arithmetic` is None if no model replays the tree, and then `evidence` has the reason.
    `groups` are the orders of all elements of an all-reduce; `others` compares other elements of a result.
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
        """Return the machine-readable finding; times are left out."""
        subject, arithmetic, seen = self.subject, self.arithmetic, self.seen
        finding: dict[str, Any] = plain(
            {
                "implementation": self.implementation,
                "operation": subject.operation,
                "shape": subject.shape,
                "dtype": subject.dtype,
                "result_dtype": subject.result_dtype,
                "element": subject.watched,
                "kind": self.kind,
                "pattern": self.pattern,
                "tree": self.tree,
                "arithmetic": arithmetic and arithmetic.model,
                "replayed_tree": arithmetic and arithmetic.tree,
                "indistinguishable": arithmetic.alike if arithmetic else (),
                "start": seen and seen.start,
                "subnormals": seen and seen.subnormals,
                "evidence": self.evidence,
                "elsewhere": self.others,
                "groups": self.groups,
                "ranks_agree": self.ranks_agree,
                "declared": self.declared,
                "verdict": self.verdict,
                "departures": self.departures,
                "calls": self.calls,
            }
        )
        return finding


def plain(value: Any) -> Any:
    """Return a part of a finding as JSON values: a tree as its text, and other objects by their fields."""
    if isinstance(value, Tree):
        return value.to_text()
    if isinstance(value, NodeArithmetic | NotATree | OtherElements):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    fields = vars(value) if is_dataclass(value) else value
    return {name: plain(item) for name, item in fields.items()} if isinstance(fields, Mapping) else value


def probe(session: Session, subject: Subject, seed: int = 0, in_full: bool = False) -> Finding:
    """Probe one operation; a true declaration is confirmed without revealing the tree again, unless `in_full`.

    Raises `CannotProbe`: the answer of the implementation is missing or unusable.
    """
    began = time.perf_counter()
    hello = hello_of(session)
    box = Box(session, subject, hello.level)
    finding = _looked_at(box, f"{hello.name} {hello.version}", declaration(box), seed, in_full)
    if finding.arithmetic is not None:
        finding = replace(finding, others=compare_other_elements(box, finding.arithmetic, seed))
    if subject.operation == "all_reduce":
        finding = replace(finding, groups=groups_of(box), ranks_agree=box.ranks_agree)
    return replace(finding, calls=box.calls, seconds=time.perf_counter() - began)


def _looked_at(box: Box, name: str, stated: Declaration | None, seed: int, in_full: bool) -> Finding:
    """Return the finding of masks and replays; a sum that is no fixed tree is a finding too."""
    finding = Finding(box.subject, name, None, None, None, stated)
    try:
        masks = masks_for(box)
        is_exact = masks.absorbs_nothing()  # then only replays can distinguish a declared order from another
        wrong_order = None if is_exact or stated is None else order_departure(masks, stated.tree)
        if is_exact:
            tree = Tree.explicit([*range(masks.terms), -masks.terms])
        elif stated is None or wrong_order is not None or in_full:
            tree = _revealed(masks, seed)
            if stated is not None and tree == stated.tree.without_start().canonical():
                wrong_order = None  # of nodes that add exactly, in which units survive
        else:
            tree = stated.tree.without_start().canonical()
        finding = replace(finding, tree=tree)
        observed = observe(box, tree, seed)
        finding = replace(finding, seen=observed)
        if stated is not None:
            departures = [wrong_order] if wrong_order is not None else _departures(box, stated, observed)
            if is_exact and departures and departures[0].aspect == "arithmetic":
                departures = [order_departure(masks, stated.tree) or departures[0]]
            if not departures:
                return replace(finding, arithmetic=Arithmetic(stated.arithmetic, stated.tree))
            finding = replace(finding, departures=tuple(departures))
        return replace(finding, arithmetic=identify(box, tree, observed))
    except NotATree as stop:
        if stated is not None and not finding.departures:  # the evidence also contradicts any declared tree
            departure = Departure("order", f"the sum is no fixed tree: {stop}", stop.to_json())
            finding = replace(finding, departures=(departure,))
        return replace(finding, evidence=stop)


def _departures(box: Box, stated: Declaration, observed: Observed) -> list[Departure]:
    """Return the first departure of each aspect."""
    first: dict[str, Departure] = {}
    for departure in (*arithmetic_departures(box, stated, observed), *probe_departures(box, stated, observed)):
        first.setdefault(departure.aspect, departure)
    return list(first.values())


def _revealed(masks: Masks, seed: int) -> Tree:
    try:
        return reveal(masks.terms, masks.lca, seed)
    except NotATree as stop:
        _require_steady(masks, stop)
        if masks.terms > MOST_TERMS_APART:
            raise
        try:
            return reveal_exact_nodes(masks.terms, masks.survivors, seed)
        except NotATree:
            raise stop from None
    except RecursionError:
        raise CannotProbe(f"{masks.box.subject}: the tree is too deep to be revealed with this seed") from None


def _require_steady(masks: Masks, stop: NotATree) -> None:
    """Measure some pairs again, those of the evidence first. Raises `NotATree`: an answer has changed."""
    for pair in [*([stop.pair] if stop.pair else []), *list(masks.measured)[:32]]:
        try:
            require_same(masks.box, masks.words(*pair), times=2)
        except NotATree as varying:
            raise NotATree("runs", pair, varying.reason, varying.witness) from None
