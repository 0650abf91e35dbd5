"""Launches whose determinism descriptor is missing, incomplete or ignored (runtime specification, 11; AMB-RT-75)."""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.numerics.trees import Tree

from ...ir.violators.changes import changed
from .changes import result


def shown(clause, name, description, change):
    """Return a violation that changes the reported descriptor of a launch."""
    evaluate = result(lambda answer: answer | {"descriptor": change(answer["descriptor"])})
    return changed(clause, name, description, ("adapter.ReferenceAdapter.numerics_evaluate", evaluate))


def without(name):
    """Return a change that removes a member from a descriptor."""
    return lambda descriptor: {key: value for key, value in descriptor.items() if key != name}


def heeded(clause, name, description, change):
    """Return a violation that applies a descriptor only in part, though it reports the whole."""
    under = Around(lambda usual: lambda descriptor, *of: usual(change(descriptor), *of))
    return changed(clause, name, description, ("adapter.numerics._under", under))


def fold_for_ring(descriptor):
    order = descriptor.reduction_order
    return replace(descriptor, reduction_order=Tree("fold")) if order and order.form == "ring" else descriptor


def short_accepted(self, n, right=Tree.require_leaves):
    try:
        right(self, n)
    except LeafCount as mismatch:
        if mismatch.found > n:
            raise


VIOLATORS = [
    shown("RT-11-01", "no_order", "carries no reduction order", without("reduction_order")),
    *(shown(clause, f"no_{toggle}", f"has no toggle {toggle}",
        lambda shown, toggle=toggle: shown | {"stable": without(toggle)(shown["stable"])})
        for clause, toggle in (("RT-11-05", "softmax"), ("RT-11-06", "log_sum_exp"), ("RT-11-07", "clamp"))),
    heeded("RT-11-02", "ring_as_fold", "begins every ring with the first element", fold_for_ring),
    heeded("RT-11-04", "stream_ignored", "draws from stream 0", lambda found: replace(found, stream=0)),
    heeded("RT-11-03", "seed_and_stream_exchanged", "exchanges seed and stream",
        lambda found: replace(found, seed=found.stream, stream=found.seed)),
    changed("RT-11-02", "short_tree", "reduces what a tree names",
        ("numerics.trees.Tree.require_leaves", short_accepted)),
]  # fmt: skip
