"""Sums that are stable or ordered for short rows only, and orders that are replaced by others (spec 4.7, 11)."""

from functools import reduce

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.trees import FOLD, PAIRWISE

from ...ir.violators.changes import changed
from .busy_reductions import reordered

SUM = NodeArithmetic._sum


def evaluating(clause, name, description, change):
    """Return a violation that evaluates an operation with other attributes."""
    return changed(clause, name, description, ("adapter.numerics.evaluate", Around(lambda usual:
        lambda operation, inputs, given: usual(operation, inputs, change(operation, inputs, given)))))  # fmt: skip


def is_stable_sum(work, executable):
    read = [parameter for parameter in executable.entry.parameters if parameter.shape and not parameter.written]
    return work.policy.stableReductions and len(read) == 1


def long_pairwise_as_fold(operation, inputs, given):
    pairwise = operation == "sum" and given.get("tree") == PAIRWISE.to_json()
    return given | {"tree": FOLD.to_json()} if pairwise and inputs[0].shape[given["axis"]] > 8 else given


def uneven_as_fold(usual):
    def reduced(op, inputs, tree):
        pairwise = tree is not None and tree.form == PAIRWISE.form
        return usual(op, inputs, FOLD if pairwise and len(inputs).bit_count() > 1 else tree)

    return reduced


VIOLATORS = [
    evaluating("RT-04.7-02", "uncompensated", "adds pairwise where Kahan's sum is selected",
        lambda operation, inputs, given: {name: value for name, value in given.items() if name != "order"}),
    reordered("RT-04.7-02", "launched_sums", "adds launched sums from the last term on where they are to be stable",
        is_stable_sum),
    changed("RT-04.7-02", "uncompensated_beside_infinity", "compensates no component of which the other is infinite",
        ("numerics.reductions._where_finite",
         lambda total, error: np.where(np.isfinite(total), error, np.zeros((), error.dtype)))),
    evaluating("RT-11-02", "pairwise_as_fold", "folds more than eight terms in place of the pairwise order",
        long_pairwise_as_fold),
    changed("RT-11-02", "uneven_as_fold", "folds over a number of ranks that is no power of two",
        ("runtime.collectives.reduced", Around(uneven_as_fold))),
    changed("RT-11-02", "in_steps", "rounds within a node of three or more terms",
        ("numerics.node_arithmetic.NodeArithmetic._sum",
        lambda self, terms: reduce(lambda total, term: SUM(self, [total, term]), terms[1:], SUM(self, terms[:1])))),
    changed("RT-11-02", "order_dropped", "launches in its own order, whatever the descriptor fixes",
        ("runtime.calls.require_order", lambda *of: None)),
]  # fmt: skip
