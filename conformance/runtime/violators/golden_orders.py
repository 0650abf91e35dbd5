"""Sums that are stable or ordered for short rows only, and orders that are replaced by others (spec 4.7, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.adapter import numerics
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree
from tessera_reference.runtime import calls, collectives

from ...ir.violators.changes import changed
from .busy_reductions import reordered

EVALUATE, REDUCED, SUM = numerics.evaluate, collectives.reduced, NodeArithmetic._sum


def is_stable_sum(work: Any, executable: Any) -> bool:
    read = [parameter for parameter in executable.entry.parameters if parameter.shape and not parameter.written]
    return bool(work.policy.stableReductions) and len(read) == 1


def is_pairwise(order: Tree | None) -> bool:
    """True if an order is the canonical one, by name."""
    return order is not None and order.form == PAIRWISE.form


def long_pairwise_as_fold(operation: str, inputs: Any, given: Any) -> Any:
    if operation == "sum" and given.get("tree") == PAIRWISE.to_json() and inputs[0].shape[given["axis"]] > 8:
        given = given | {"tree": FOLD.to_json()}
    return EVALUATE(operation, inputs, given)


def uneven_as_fold(op: str, inputs: Sequence[Any], tree: Tree | None) -> Any:
    ranks = len(inputs)
    return REDUCED(op, inputs, FOLD if is_pairwise(tree) and ranks & (ranks - 1) else tree)


def changing(name: str, description: str, owner: Any, attribute: str, value: Any) -> Violation:
    """Return a violation that takes an order of a descriptor as another one."""
    return changed("RT-11-02", name, description, (owner, attribute, value))


def in_steps(self: NodeArithmetic, terms: Sequence[Any]) -> Any:
    return reduce(lambda total, term: SUM(self, [total, term]), terms[1:], SUM(self, terms[:1]))


def uncompensated(operation: str, inputs: Any, given: Any) -> Any:
    return EVALUATE(operation, inputs, {name: value for name, value in given.items() if name != "order"})


def latest(self: collectives.CollectiveWork, *arguments: Any) -> Any:
    work = copy(self)
    work.descriptor = self.stream.mesh.context.descriptor
    return COMBINED(work, *arguments)


COMBINED = collectives.CollectiveWork._combined
STABLE = [
    changed("RT-04.7-02", "uncompensated", "adds pairwise where Kahan's sum is selected",
            ("adapter.numerics.evaluate", uncompensated)),
    reordered("RT-04.7-02", "launched_sums", "adds launched sums from the last term on where they are to be stable",
              is_stable_sum),
]  # fmt: skip


ORDERS = [
    changing("pairwise_as_fold", "folds more than eight terms in place of the pairwise order", numerics, "evaluate",
             long_pairwise_as_fold),
    changing("uneven_as_fold", "folds over a number of ranks that is no power of two", collectives, "reduced",
             uneven_as_fold),
    changing("in_steps", "rounds within a node of three or more terms", NodeArithmetic, "_sum", in_steps),
    changing("order_dropped", "launches in its own order, whatever the descriptor fixes", calls, "require_order",
             lambda *of: None),
]  # fmt: skip
