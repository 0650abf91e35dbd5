"""Stage one of a hierarchical collective left out, rounded, or in another order (collectives specification, 4.4)."""

from math import prod

import numpy as np

from tessera_reference.collectives import operations
from tessera_reference.collectives.operations import Result
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.collectives import reduced, share_of
from tessera_reference.numerics.trees import FOLD, PAIRWISE, Tree

from ...ir.violators.changes import around, changed


def parts(chosen):
    """Return a substitution that takes other partial values of each device."""

    def values(usual, operation, buffers, partials):
        usual(operation, buffers, partials)
        return usual(operation, [Array(x.dtype, np.ascontiguousarray(chosen(x.values))) for x in buffers], partials)

    return "collectives.operations.partial_values", around(values)


def declaring(through):
    """Return a substitution with other orders over all partial values, made from those over devices."""

    def orders(usual, name, ranks, per_node=None, partials=None):
        trees = usual(name, ranks, per_node)
        return trees if partials is None else tuple(through(tree, ranks, partials) for tree in trees)

    return "collectives.operations.orders", around(orders)


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


def across(tree, ranks, partials):
    blocks, warps = partials

    def moved(place):
        number, rank = divmod(place // warps, ranks)
        return str((rank * blocks + number) * warps + place % warps)

    return Tree.parse(nested(staged(tree, ranks, partials), ranks * prod(partials), moved))


def one_stage(tree, ranks, partials):
    """Return the tree that combines the partial values of a device in one stage, without blocks, backwards."""
    leaves = prod(partials)

    def device(rank):
        return nested(FOLD, leaves, lambda leaf: str((rank + 1) * leaves - 1 - leaf))

    return Tree.parse(nested(tree, ranks, device))


def combined_over(trees):
    """Return a substitution that combines partial values over a tree for the share of each rank."""

    def combined(usual, used, op, level, partials, inputs):
        if level == "strict" or op in ("max", "min") or len(inputs) == used.ranks:
            return usual(used, op, level, partials, inputs)
        flat, of = [x.values.reshape(-1) for x in inputs], inputs[0].dtype
        sums = []
        for rank, tree in enumerate(trees(used, used.ranks // used.owners.count(0), partials)):
            share = share_of(flat[0].size, rank, used.ranks)
            sums.append(reduced(op, [Array(of, values[share]) for values in flat], tree).values)
        return Array(of, np.concatenate(sums).reshape(inputs[0].shape))

    return "collectives.operations.combined", around(combined)


DECLARED = combined_over(lambda used, per_node, partials: operations.orders(used.name, used.ranks, per_node, partials))


def rounded(usual, operation, buffers, *, partials=None, **given):
    result = usual(operation, buffers, partials=partials, **given)
    if partials is None or given["op"] != "sum":
        return result
    alone = {"op": "sum", "name": "hierarchical", "partials": partials, "level": given["level"]}
    return usual(operation, [usual("all_reduce", [buffer], **alone).outputs[0] for buffer in buffers], **given)


def of_each_value(usual, operation, buffers, *, partials=None, **given):
    result = usual(operation, buffers, partials=partials, **given)
    return result if partials is None else Result(result.outputs, lambda: result.sent * prod(partials))


def by_devices(usual, used, op, level, partials, inputs):
    result = usual(used, op, level, partials, inputs)
    return Array(result.dtype, np.asarray(result.values * prod(partials))) if op == "mean" else result


def of_stage_one(name, description, *substitutions):
    """Return a violation of stage one."""
    return changed("COLL-04.4-01", f"stage_one_{name}", description, *substitutions)


VIOLATIONS = [
    of_stage_one("one_warp", "takes the first warp of a block",
        parts(lambda values: np.concatenate([values[:, :1], np.zeros_like(values[:, 1:])], 1))),
    of_stage_one("by_warp", "reads warps before blocks",
        parts(lambda values: np.swapaxes(values, 0, 1).reshape(values.shape))),
    of_stage_one("across", "combines blocks across devices first", declaring(across), DECLARED),
    of_stage_one("over_all", "has no stages",
        declaring(lambda tree, ranks, partials: PAIRWISE.over(ranks * prod(partials))), DECLARED),
    of_stage_one("one_stage", "has no level of blocks", declaring(one_stage), DECLARED),
    of_stage_one("another_order", "folds warps where pairs are declared", combined_over(
        lambda used, per_node, partials:
            [staged(tree, used.ranks, partials, FOLD) for tree in operations.orders(used.name, used.ranks, per_node)])),
    of_stage_one("rounded", "rounds between stages", ("adapter.collectives.run", around(rounded))),
    of_stage_one("sent", "sends partial values", ("adapter.collectives.run", around(of_each_value))),
    of_stage_one("mean", "divides a mean by the number of devices",
        ("collectives.operations.combined", around(by_devices))),
    of_stage_one("lenient", "has a stage one for every algorithm", ("collectives.operations.require_stage_one",
        around(lambda usual, operation, name, *given, **named: usual(operation, "hierarchical", *given, **named)))),
]  # fmt: skip
