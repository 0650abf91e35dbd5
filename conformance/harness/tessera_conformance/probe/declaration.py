"""The declaration of an implementation about a sum, and its departures from it.

A declared tree is confirmed with one mask for each pair of children of each node, which proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias

from tessera_conformance.arithmetic.tree import LeafCountError, ModelError, NodeArithmetic, Tree, TreeError, canonical
from tessera_conformance.probe.calls import Box, CannotProbe
from tessera_conformance.probe.masks import Masks
from tessera_conformance.probe.node_arithmetic import Observed, hexadecimal, inputs_json, mismatches, replays
from tessera_conformance.probe.reveal import NotATree, first_wrong_pair
from tessera_conformance.protocol import Fault, Returned, Unsupported, describe

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

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"tree": self.tree.to_text(), "arithmetic": self.arithmetic.to_json(), "source": self.source}


@dataclass(frozen=True)
class Departure:
    """One way in which the implementation departs from what it declares, and the inputs that show it."""

    aspect: Aspect
    sentence: str
    witness: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"aspect": self.aspect, "sentence": self.sentence, "witness": dict(self.witness)}


def declaration(box: Box) -> Declaration | None:
    """Return the declaration for the subject: of `numerics.declared`, else of its Hello; None where there is none.

    Raises:
        CannotProbe: the answer is malformed, or not one for this number of terms.
    """
    subject = box.subject
    params: dict[str, Any] = {"operation": subject.operation, "dtype": subject.dtype, "shapes": subject.shapes}
    params |= {"attributes": subject.attributes} if subject.attributes else {}
    observation = box.call("numerics.declared", params | {"element": subject.flat_element})
    if isinstance(observation, Unsupported):
        return _from_hello(box)
    if not isinstance(observation, Returned) or not isinstance(observation.value, Mapping):
        raise CannotProbe(f"numerics.declared for {subject}: {describe(observation)}")
    value = observation.value
    try:
        model = NodeArithmetic.from_json(value["arithmetic"]) if "arithmetic" in value else canonical(subject.dtype)
        return Declaration(_spelled(Tree.from_json(value.get("tree")), box), model, "numerics.declared")
    except (TreeError, ModelError) as error:
        raise CannotProbe(f"numerics.declared for {subject}: {error}") from None


def _from_hello(box: Box) -> Declaration | None:
    hello = box.session.open()
    if isinstance(hello, Fault):
        raise CannotProbe(describe(hello))
    trees = hello.message.get("arithmetic", {}).get("trees", {})
    if box.subject.operation not in trees:
        return None
    try:
        tree = _spelled(Tree.from_text(trees[box.subject.operation]), box)
    except LeafCountError:
        return None  # said of another shape
    except TreeError as error:
        raise CannotProbe(f"arithmetic.trees.{box.subject.operation} of the Hello: {error}") from None
    return Declaration(tree, canonical(box.subject.dtype), "Hello, with the arithmetic of the reference arithmetic")


def _spelled(tree: Tree, box: Box) -> Tree:
    terms = box.subject.terms
    return tree.with_start(terms) if box.has_products else tree.over(terms)


def order_departure(masks: Masks, declared: Tree) -> Departure | None:
    """A pair of leaves that is not joined as declared; None where the declared order is proved."""
    try:
        wrong = first_wrong_pair(masks, declared.without_start(), range(masks.terms))
    except NotATree as stop:
        if stop.pair is None:
            raise
        return _wrong_order(masks, stop.pair, declared_size(declared, *stop.pair), stop.reason)
    return wrong and _wrong_order(masks, wrong[:2], wrong[2], masks.lca(*wrong[:2]))


def declared_size(tree: Tree, i: int, j: int) -> int:
    """Return the number of leaves of the smallest subtree with leaves i and j."""
    sizes = (sum(map(len, node)) for node in tree.nodes() if {i, j} <= {leaf for child in node for leaf in child})
    return next(sizes)


def _wrong_order(masks: Masks, pair: tuple[int, int], size: int, size_found: int | str) -> Departure:
    meets = f"they are joined in one of {size_found}" if isinstance(size_found, int) else size_found
    witness = {
        "pair": list(pair),
        "declared": size,
        "found": size_found,
        "inputs": inputs_json(masks.box, *masks.words(*pair)),
    }
    sentence = f"leaves {pair[0]} and {pair[1]}: declared to be joined in a subtree of {size} leaves, but {meets}"
    return Departure("order", sentence, witness)


def arithmetic_departures(box: Box, declared: Declaration, observed: Observed) -> list[Departure]:
    """Return the parts of the declared arithmetic that do not replay the terms seen, the order being right.

    Every change of a single field is tried, then of two; the first that replays everything names what differs.
    """
    wrong, row, word = mismatches(box, declared.tree, declared.arithmetic, observed)
    if not wrong:
        return []
    sample = observed.rows[row]
    witness = {
        "inputs": inputs_json(box, sample.left, sample.right),
        "declared": hexadecimal(word, box),
        "found": hexadecimal(observed.words[row], box),
    }
    for changes in _changes(box, declared.arithmetic, observed):
        model = declared.arithmetic.but(**changes)
        if replays(box, declared.tree, model, observed):
            return [
                Departure(FIELDS[field], _sentence(field, getattr(declared.arithmetic, field), value), witness)
                for field, value in changes.items()
            ]
    statement = (
        f"{wrong} of {len(observed.rows)} rows of random terms give other bits than the declared order and arithmetic"
    )
    return [Departure("arithmetic", f"{statement}, and no arithmetic tried explains them", witness)]


def _changes(box: Box, model: NodeArithmetic, observed: Observed) -> list[dict[str, Any]]:
    single: list[dict[str, Any]] = []
    if box.has_products:
        single.append({"product": "fused" if model.product == "rounded" else "rounded"})
    single += [{"accumulator": name} for name in ("fp32", "fp64", "fp16", "bf16") if name != model.accumulator]
    directions = ("nearest_even", "toward_zero", "nearest_away", "up", "down")
    single += [{"rounding": direction} for direction in directions if direction != model.rounding]
    if observed.alignment_bits != model.alignment_bits:
        single.append({"alignment_bits": observed.alignment_bits})
    single.append({"subnormals": "flushed" if model.subnormals == "kept" else "kept"})
    return single + [one | other for one, other in combinations(single, 2) if not one.keys() & other.keys()]


def probe_departures(box: Box, declared: Declaration, observed: Observed) -> list[Departure]:
    """Return the departures that direct probes show and random terms do not."""
    departures = []
    if observed.subnormals != declared.arithmetic.subnormals:
        sentence = _sentence("subnormals", declared.arithmetic.subnormals, observed.subnormals)
        departures.append(Departure("subnormals", sentence, {"probe": "half of the smallest normal number"}))
    begins = {"none": "none", "+0": "zero"}.get(observed.start or "", declared.arithmetic.start)
    if box.has_products and begins != declared.arithmetic.start:
        sentence = (
            "declared to start from +0, but a sum of negative zeros is negative"
            if begins == "none"
            else "declared to start from the first term, but a sum of negative zeros is positive"
        )
        departures.append(Departure("start", sentence, {"probe": "every term -0"}))
    wide = declared.tree.without_start().arity > 2
    if wide and observed.alignment_bits != declared.arithmetic.alignment_bits:
        sentence = _sentence("alignment_bits", declared.arithmetic.alignment_bits, observed.alignment_bits)
        departures.append(Departure("alignment", sentence, {"probe": "1, -1 and powers of two in one fused node"}))
    return departures


def _sentence(field: str, declared: object, actual: object) -> str:
    names = {"product": "products", "alignment_bits": "alignment bits"}
    words = ["all" if value is None else value for value in (declared, actual)]
    return f"{names.get(field, field)}: declared {words[0]}, but {words[1]} replays what was found"
