"""Stage one of a hierarchical collective left out, rounded, or in another order (collectives specification, 4.4)."""

from math import prod

import numpy as np

from tessera_reference.adapter import collectives
from tessera_reference.collectives import operations
from tessera_reference.collectives.operations import Result
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

from ...ir.violators.changes import changed
from .algorithms import over_shares

PARTIAL, ORDERS = operations.partial_values, operations.orders
RUN, COMBINED, REQUIRE = collectives.run, operations.combined, operations.require_stage_one


def parts(chosen):
    """Return a function with other partial values of each device."""

    def values(operation, buffers, partials):
        PARTIAL(operation, buffers, partials)
        changed_to = [Array(buffer.dtype, np.ascontiguousarray(chosen(buffer, partials))) for buffer in buffers]
        return PARTIAL(operation, changed_to, partials)

    return values


def first_warps(array, partials):
    values = array.values.copy()
    values[:, 1:] = 0
    return values


def by_warp(array, partials):
    blocks, warps = partials
    return np.swapaxes(array.values, 0, 1).reshape(blocks, warps, *array.values.shape[2:])


def declaring(through):
    """Return a substitution with other orders over all partial values, made from those over devices."""

    def orders(name, ranks, per_node=None, partials=None):
        usual = ORDERS(name, ranks, per_node)
        return usual if partials is None else tuple(through(tree, ranks, partials) for tree in usual)

    return "collectives.operations.orders", orders


def staged(tree, ranks, partials, of_warps=PAIRWISE):
    """Return the order of warps, of blocks by pairs, then of devices."""
    blocks, warps = partials

    def block(number):
        return nested(of_warps, warps, lambda warp: str(number * warps + warp))

    def device(rank):
        return nested(PAIRWISE, blocks, lambda number: block(rank * blocks + number))

    return Tree.parse(nested(tree, ranks, device))


def nested(tree, count, leaf):
    return tree.over(count).evaluate(leaf, lambda children: f"({' '.join(children)})", "c")


def leaves(order):
    def through(tree, ranks, partials):
        blocks, warps = partials
        places = [(r, b, w) for r in range(ranks) for b in range(blocks) for w in range(warps)]
        moved = [order(*place, ranks, blocks, warps) for place in places]
        return Tree.parse(nested(staged(tree, ranks, partials), len(moved), lambda leaf: str(moved[leaf])))

    return through


def across(rank, block, warp, ranks, blocks, warps):
    place = (rank * blocks + block) * warps + warp
    number, owner = divmod(place // warps, ranks)
    return (owner * blocks + number) * warps + place % warps if ranks > 1 else place


def over_all(tree, ranks, partials):
    return PAIRWISE.over(ranks * prod(partials))


def one_stage(tree, ranks, partials):
    """Return the tree that combines the partial values of a device in one stage, without blocks, backwards."""
    leaves = prod(partials)

    def device(rank):
        return nested(FOLD, leaves, lambda leaf: str((rank + 1) * leaves - 1 - leaf))

    return Tree.parse(nested(tree, ranks, device))


def folded_warps(used, op, level, partials, inputs):
    if level == "strict" or op in ("max", "min") or len(inputs) == used.ranks:
        return COMBINED(used, op, level, partials, inputs)
    trees = ORDERS(used.name, used.ranks, used.ranks // used.owners.count(0))
    return over_shares(op, inputs, [staged(tree, used.ranks, partials, FOLD) for tree in trees])


def by_declared(used, op, level, partials, inputs):
    """Return the combination over the declared trees."""
    if level == "strict" or op in ("max", "min") or len(inputs) == used.ranks:
        return COMBINED(used, op, level, partials, inputs)
    nodes = used.owners.count(0)
    return over_shares(op, inputs, operations.orders(used.name, used.ranks, used.ranks // nodes, partials))


DECLARED = ("collectives.operations.combined", by_declared)


def rounded(operation, buffers, *, partials=None, **arguments):
    usual = RUN(operation, buffers, partials=partials, **arguments)
    if partials is None or arguments["op"] != "sum":
        return usual
    once = [
        RUN("all_reduce", [buffer], op="sum", name="hierarchical", partials=partials, level=arguments["level"]).outputs[
            0
        ]
        for buffer in buffers
    ]
    return RUN(operation, once, **arguments)


def of_each_value(operation, buffers, *, partials=None, **arguments):
    usual = RUN(operation, buffers, partials=partials, **arguments)
    return usual if partials is None else Result(usual.outputs, lambda: usual.sent * prod(partials))


def by_devices(used, op, level, partials, inputs):
    usual = COMBINED(used, op, level, partials, inputs)
    return Array(usual.dtype, np.asarray(usual.values * prod(partials))) if op == "mean" else usual


def by_any(operation, name, partials, travels):
    REQUIRE(operation, "hierarchical", partials, travels)


def of_stage_one(name, description, *substitutions):
    """Return a violation of stage one."""
    return changed("COLL-04.4-01", f"stage_one_{name}", description, *substitutions)


VIOLATIONS = [
    of_stage_one("one_warp", "takes the first warp of a block",
        ("collectives.operations.partial_values", parts(first_warps))),
    of_stage_one("by_warp", "reads warps before blocks", ("collectives.operations.partial_values", parts(by_warp))),
    of_stage_one("across", "combines blocks across devices first", declaring(leaves(across)), DECLARED),
    of_stage_one("over_all", "has no stages", declaring(over_all), DECLARED),
    of_stage_one("one_stage", "has no level of blocks", declaring(one_stage), DECLARED),
    of_stage_one("another_order", "folds warps where pairs are declared",
        ("collectives.operations.combined", folded_warps)),
    of_stage_one("rounded", "rounds between stages", ("adapter.collectives.run", rounded)),
    of_stage_one("sent", "sends partial values", ("adapter.collectives.run", of_each_value)),
    of_stage_one("mean", "divides a mean by the number of devices", ("collectives.operations.combined", by_devices)),
    of_stage_one("lenient", "has a stage one for every algorithm",
        ("collectives.operations.require_stage_one", by_any)),
]  # fmt: skip
