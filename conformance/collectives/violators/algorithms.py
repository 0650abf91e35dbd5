"""Algorithms that lose, double, misdirect or reorder the ranks' data (collectives specification, 2.2 to 4.4, 7.2)."""

from dataclasses import replace

import numpy as np

from tessera_reference.abi.status import Failure
from tessera_reference.collectives import operations, schedules
from tessera_reference.collectives.schedules import Message
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import reduced, share_of
from tessera_reference.numerics.trees import FOLD

from ...ir.violators.changes import changed

AFTERWARDS, SENT, GROUPS, COMBINED = operations.group_results, operations._sent, operations._groups, operations.combined

OF_ALGORITHM = {
    "ring": "RT-13-03",
    "tree": "RT-13-04",
    "hierarchical": "RT-13-05",
    "halving_doubling": "COLL-03.1-02",
    "direct": "COLL-03.1-04",
}


def resulting(clause, name, description, change):
    """Return a violation with other results: `change` gets the usual ones, the operation, the inputs and the root."""

    def others(operation, brought, root, **named):
        usual = list(AFTERWARDS(operation, brought, root=root, **named))
        return change(usual, operation, brought, root)

    return changed(clause, name, description, ("collectives.operations.group_results", others))


def sent(clause, name, description, change):
    """Return a violation with other messages in place of those that carry the results."""
    return changed(
        clause, name, description, ("collectives.operations._sent", lambda *arguments: change(SENT(*arguments)))
    )


def only(expected, change):
    """Return a change of the results of one operation alone."""

    def chosen(usual, operation, brought, root):
        return change(usual, brought, root) if operation == expected and len(brought) > 1 else usual

    return chosen


def stale_last(usual, brought, root):
    return [*usual[:-1], brought[-1] if brought[-1].shape == usual[-1].shape else usual[0]]


def reverse(usual, brought, root):
    gathered = np.concatenate([array.values.reshape(-1) for array in brought[::-1]])
    return [Array(usual[0].dtype, gathered)] * len(usual)


def wrong_root(usual, brought, root):
    return [brought[(root + 1) % len(brought)]] * len(brought)


def of(name, change):
    """Return the substitution of one algorithm by a changed one."""
    usual = schedules.ALGORITHMS[name]
    made = {**schedules.ALGORITHMS, name: lambda ranks, per_node: change(usual(ranks, per_node))}
    return "collectives.schedules.ALGORITHMS", made


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


def off_by_one(messages):
    return [
        message._replace(elements=message.elements - 1) if message.elements > 1 else message for message in messages
    ]


def over_shares(op, inputs, trees):
    """Return the combination over a tree for the share of each rank."""
    flat = [array.values.reshape(-1) for array in inputs]
    shares = [share_of(flat[0].size, rank, len(trees)) for rank in range(len(trees))]
    of = inputs[0].dtype
    parts = [[Array(of, row[share]) for row in flat] for share in shares]
    sums = [reduced(op, part, tree).values for part, tree in zip(parts, trees, strict=True)]
    return Array(of, np.concatenate(sums).reshape(inputs[0].shape))


def folded(at_strict):
    """Return a combination from the first rank to the last, at strict or at the other levels."""

    def combined(used, op, level, partials, inputs):
        if (level == "strict") is at_strict:
            return reduced(op, inputs, FOLD)
        return COMBINED(used, op, level, partials, inputs)

    return combined


def lenient(given, ranks):
    try:
        return GROUPS(given, ranks)
    except Failure:
        return [range(ranks)]


def flat(ranks, per_node):
    """Return a hierarchical algorithm that is a ring through all nodes."""
    return replace(schedules.ring(ranks, per_node), name="hierarchical")


def by_one(ranks, per_node):
    usual = schedules.hierarchical(ranks, 1) if per_node == 1 else schedules.tree(ranks, per_node)
    return replace(usual, name="hierarchical")


VIOLATIONS = [
    resulting("COLL-07.2-02", "blocks_stay", "leaves blocks with their senders",
        only("all_to_all", lambda usual, brought, root: list(brought))),
    changed("COLL-07.2-02", "any_all_to_all", "takes any algorithm for all_to_all",
            ("collectives.operations.ALL_TO_ALL_ALGORITHMS", tuple(schedules.ALGORITHMS))),
    resulting("RT-13-03", "wrong_root", "broadcasts from the rank after the root", only("broadcast", wrong_root)),
    resulting("RT-13-04", "stale_broadcast", "leaves the last rank without it", only("broadcast", stale_last)),
    resulting("RT-13-05", "gathered_backwards", "gathers in the order of the last rank", only("all_gather", reverse)),
    *(
        changed(clause, f"{name}_{wrong.__name__}", f"{name}: {wrong.__doc__}", of(name, wrong))
        for name, clause in OF_ALGORITHM.items()
        for wrong in (without_last_step, without_first_message, twice)
    ),
    changed("RT-13-03", "ring_backwards", "sends to the rank before",
        of("ring", lambda used: replace(used, spreading=tuple(map(backwards, used.spreading))))),
    sent("COLL-02.3-01", "chunks_off_by_one", "leaves out the last element of a chunk", off_by_one),
    changed("RT-06-04", "always_folds", "combines in the order of the ranks",
        ("collectives.operations.combined", folded(at_strict=False))),
    changed("LANG-09-06", "strict_by_algorithm", "combines in the order of the ranks under strict",
        ("collectives.operations.combined", folded(at_strict=True))),
    changed("COLL-02.2-03", "sorted_groups", "takes the ranks of a group in ascending order",
        ("collectives.operations._groups", lambda given, ranks: [sorted(group) for group in GROUPS(given, ranks)])),
    changed("COLL-02.2-03", "any_groups", "accepts groups that are no partition",
        ("collectives.operations._groups", lenient)),
    changed("COLL-04.4-02", "flat_hierarchy", "goes around all ranks, across nodes",
        ("collectives.schedules.ALGORITHMS", {**schedules.ALGORITHMS, "hierarchical": flat})),
    changed("COLL-04.4-03", "flat_between_nodes", "goes around between nodes, not by a tree",
        ("collectives.schedules.ALGORITHMS", {**schedules.ALGORITHMS, "hierarchical": flat})),
    changed("COLL-03.1-03", "one_rank_for_a_node", "sends everything between nodes from one rank",
        ("collectives.schedules.ALGORITHMS", {**schedules.ALGORITHMS, "hierarchical": by_one})),
    changed("COLL-04.4-04", "refuses_hierarchical", "does not know hierarchical",
        ("collectives.schedules.ALGORITHMS", {k: v for k, v in schedules.ALGORITHMS.items() if k != "hierarchical"})),
    changed("LANG-09-04", "shapes_may_differ", "lets ranks bring other shapes",
        ("collectives.operations._require_fit", (lambda operation, used, brought, root: None))),
]  # fmt: skip


def canonical_from_32(used, op, level, partials, inputs):
    return COMBINED(used, op, "strict" if used.ranks >= 32 else level, partials, inputs)


MANY = [
    changed("LANG-09-05", "canonical_from_32", "combines canonically among 32 ranks or more", (
        "collectives.operations.combined", canonical_from_32)),
]  # fmt: skip

AUTO = [
    changed("COLL-01-03", "auto_is_ring", "runs by a ring for auto",
        ("adapter.collectives._chosen", lambda operation, inputs, given: "ring")),
    changed("COLL-03.2-04", "auto_unknown", "does not know auto",
        ("adapter.collectives._chosen", lambda *arguments: "auto")),
]  # fmt: skip
