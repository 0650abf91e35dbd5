"""Launches whose determinism descriptor is missing, incomplete or ignored (runtime specification, 11; AMB-RT-75)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.abi.policy import Descriptor
from tessera_reference.adapter import ReferenceAdapter, numerics
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.trees import Tree

from ...ir.violators.changes import changed

Shown = dict[str, Any]
EVALUATE, REQUIRE_LEAVES = ReferenceAdapter.numerics_evaluate, Tree.require_leaves


# The reported descriptor


def shown(clause: str, name: str, description: str, change: Callable[[Shown], Shown]) -> Violation:
    """Return a violation that changes the reported descriptor of a launch."""

    def evaluate(self: ReferenceAdapter, **launch: Any) -> dict[str, Any]:
        answer = EVALUATE(self, **launch)
        return answer | {"descriptor": change(answer["descriptor"])}

    return changed(clause, name, description, ("adapter.ReferenceAdapter.numerics_evaluate", evaluate))


def without(name: str) -> Callable[[Shown], Shown]:
    """Return a change that removes a member from a descriptor."""
    return lambda descriptor: {key: value for key, value in descriptor.items() if key != name}


TOLD = [
    shown("RT-11-01", "no_order", "carries no reduction order", without("reduction_order")),
    *(
        shown(clause, f"no_{toggle}", f"has no toggle {toggle}", lambda shown, toggle=toggle: shown | {  # type: ignore[misc]
            "stable": without(toggle)(shown["stable"])
        })
        for clause, toggle in (("RT-11-05", "softmax"), ("RT-11-06", "log_sum_exp"), ("RT-11-07", "clamp"))
    ),
]  # fmt: skip


# The effect of the descriptor


def heeded(clause: str, name: str, description: str, change: Callable[[Descriptor], Descriptor]) -> Violation:
    """Return a violation that applies a descriptor only in part, though it reports the whole."""
    under = numerics._under

    def attributes(descriptor: Descriptor, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        return under(change(descriptor), operation, given)

    return changed(clause, name, description, ("adapter.numerics._under", attributes))


def fold_for_ring(descriptor: Descriptor) -> Descriptor:
    order = descriptor.reduction_order
    return (
        replace(descriptor, reduction_order=Tree("fold")) if order is not None and order.form == "ring" else descriptor
    )


HEEDED = [
    heeded("RT-11-02", "ring_as_fold", "begins every ring with the first element", fold_for_ring),
    heeded("RT-11-04", "stream_ignored", "draws from stream 0", lambda found: replace(found, stream=0)),
    heeded("RT-11-03", "seed_and_stream_exchanged", "exchanges seed and stream",
        lambda found: replace(found, seed=found.stream, stream=found.seed)),
]  # fmt: skip


# Refusals


def short_accepted(self: Tree, n: int) -> None:
    try:
        REQUIRE_LEAVES(self, n)
    except LeafCount as mismatch:
        if mismatch.found > n:
            raise


REFUSED = [
    changed("RT-11-02", "short_tree", "reduces what a tree names",
        ("numerics.trees.Tree.require_leaves", short_accepted)),
]  # fmt: skip
