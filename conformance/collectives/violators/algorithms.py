"""Algorithms that lose, double, misdirect or reorder the ranks' data (collectives specification, 2.2 to 4.4, 7.2)."""

from dataclasses import replace

import numpy as np

from tessera_conformance.strength import Around
from tessera_reference.abi.status import Failure
from tessera_reference.collectives import schedules
from tessera_reference.collectives.schedules import Message
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import reduced
from tessera_reference.numerics.trees import FOLD

from ...ir.violators.changes import around, changed
from .changes import at, result_of

OF_ALGORITHM = {
    "ring": "RT-13-03",
    "tree": "RT-13-04",
    "hierarchical": "RT-13-05",
    "halving_doubling": "COLL-03.1-02",
    "direct": "COLL-03.1-04",
}


def resulting(clause, name, description, of, change):
    """Return a violation with other results of one operation: `change` gets the usual ones, the inputs and the root."""

    def others(usual, operation, brought, root, **named):
        results = list(usual(operation, brought, root=root, **named))
        return change(results, brought, root) if operation == of and len(brought) > 1 else results

    return changed(clause, name, description, ("collectives.operations.group_results", around(others)))


def reverse(usual, brought, root):
    gathered = np.concatenate([array.values.reshape(-1) for array in brought[::-1]])
    return [Array(usual[0].dtype, gathered)] * len(usual)


def of(name, change):
    """Return the substitution of one algorithm by a changed one."""
    return "collectives.schedules.ALGORITHMS", Around(
        lambda usual: {**usual, name: lambda ranks, per_node: change(usual[name](ranks, per_node))}
    )


def without_last_step(used):
    """The last step in which shares spread is missing."""
    return replace(used, spreading=used.spreading[:-1])


def without_first_message(used):
    """A contribution is never sent."""
    return replace(used, combining=(used.combining[0][1:], *used.combining[1:]) if used.combining else ())


def twice(used):
    """The first step is done twice."""
    return replace(used, combining=(*used.combining[:1], *used.combining))


def backwards(step):
    return tuple(Message(m.source, (m.source - 1) % len(step), *m[2:]) for m in step)


def lenient(usual, given, ranks):
    try:
        return usual(given, ranks)
    except Failure:
        return [range(ranks)]


def hierarchical(make):
    """Return the substitution of hierarchical by an algorithm made from the usual ones."""
    return "collectives.schedules.ALGORITHMS", Around(
        lambda usual: {**usual, "hierarchical": lambda *ranks: replace(make(usual, *ranks), name="hierarchical")}
    )


FLAT = hierarchical(lambda usual, ranks, per_node: usual["ring"](ranks, per_node))
groups = at("collectives.operations._groups")
combining = at("collectives.operations.combined")
totals = at("collectives.operations.totals")
choosing = at("adapter.collectives._chosen")
sent = result_of("collectives.operations.messages")

VIOLATIONS = [
    resulting("COLL-07.2-02", "blocks_stay", "leaves blocks with their senders", "all_to_all",
        lambda usual, brought, root: list(brought)),
    changed("COLL-07.2-02", "any_all_to_all", "takes any algorithm for all_to_all",
            ("collectives.operations.ALL_TO_ALL_ALGORITHMS", tuple(schedules.ALGORITHMS))),
    resulting("RT-13-03", "wrong_root", "broadcasts from the rank after the root", "broadcast",
        lambda usual, brought, root: [brought[(root + 1) % len(brought)]] * len(brought)),
    resulting("RT-13-04", "stale_broadcast", "leaves the last rank without it", "broadcast",
        lambda usual, brought, root: [*usual[:-1], brought[-1] if brought[-1].shape == usual[-1].shape else usual[0]]),
    resulting("RT-13-05", "gathered_backwards", "gathers in the order of the last rank", "all_gather", reverse),
    *(
        changed(clause, f"{name}_{wrong.__name__}", f"{name}: {wrong.__doc__}", of(name, wrong))
        for name, clause in OF_ALGORITHM.items()
        for wrong in (without_last_step, without_first_message, twice)
    ),
    changed("RT-13-03", "ring_backwards", "sends to the rank before",
        of("ring", lambda used: replace(used, spreading=tuple(map(backwards, used.spreading))))),
    sent("COLL-02.3-01", "chunks_off_by_one", "leaves out the last element of a chunk",
        lambda found: [message._replace(elements=message.elements - (message.elements > 1)) for message in found]),
    combining("RT-06-04", "always_folds", "combines in the order of the ranks",
        lambda usual, used, op, level, *given: (
            usual(used, op, level, *given) if level == "strict" else reduced(op, given[-1], FOLD))),
    combining("LANG-09-06", "strict_by_algorithm", "combines in the order of the ranks under strict",
        lambda usual, used, op, level, *given: (
            reduced(op, given[-1], FOLD) if level == "strict" else usual(used, op, level, *given))),
    resulting("COLL-02.2-03", "root_of_pairs", "broadcasts from the first rank of two", "broadcast",
        lambda usual, brought, root: [brought[0]] * 2 if len(brought) == 2 else usual),
    groups("COLL-02.2-03", "sorted_groups", "takes the ranks of a group in ascending order",
        lambda usual, given, ranks: [sorted(group) for group in usual(given, ranks)]),
    groups("COLL-02.2-03", "any_groups", "accepts groups that are no partition", lenient),
    changed("COLL-04.4-02", "flat_hierarchy", "goes around all ranks, across nodes", FLAT),
    changed("COLL-04.4-03", "flat_between_nodes", "goes around between nodes, not by a tree", FLAT),
    changed("COLL-03.1-03", "one_rank_for_a_node", "sends everything between nodes from one rank",
        hierarchical(lambda usual, ranks, node: usual["tree" if node > 1 else "hierarchical"](ranks, node))),
    changed("COLL-04.4-04", "refuses_hierarchical", "does not know hierarchical", ("collectives.schedules.ALGORITHMS",
        Around(lambda usual: {name: make for name, make in usual.items() if name != "hierarchical"}))),
    at("collectives.operations._require_fit")("LANG-09-04", "four_ranks_fit", "looks at the buffers of four ranks",
        lambda usual, operation, used, inputs, root:
        usual(operation, used, [*inputs[:4], *inputs[:1] * len(inputs[4:])], root)),
    combining("LANG-09-05", "canonical_from_32", "combines canonically among 32 ranks or more",
        lambda usual, used, op, level, *given: usual(used, op, "strict" if used.ranks >= 32 else level, *given)),
    totals("LANG-09-05", "of_48_ranks", "takes the value of rank 47 for those of later ones",
        lambda usual, used, buffers, *given:
        usual(used, buffers[np.minimum(np.arange(used.ranks), 47)], *given)),
    choosing("COLL-01-03", "auto_is_ring", "runs by a ring for auto", lambda *arguments: "ring"),
    choosing("COLL-03.2-04", "auto_unknown", "does not know auto", lambda *arguments: "auto"),
]  # fmt: skip
