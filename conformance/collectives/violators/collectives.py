"""All-reduces in another order or arithmetic, with a lossy wire format, or over ranks that do not agree.

Language specification, 9, 11 and 15; runtime specification, 4.7, 6, 11 and 13.
"""

from dataclasses import replace
from functools import reduce
from itertools import count

import numpy as np

from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter.messages import array, tensor
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import Tree, fold

from .changes import at, of_method

all_reduce = at("adapter.collectives.all_reduce")

# Order and arithmetic


def combined(clause, name, description, combine, op="sum"):
    """Return a violation with another sum, maximum or minimum over the ranks, if all agree."""

    def reduce(usual, buffers, operator, **under):
        result = usual(buffers, operator, **under)
        with np.errstate(all="ignore"):
            return combine(buffers) if operator == op and result.dtype.kind == "float" else result

    return all_reduce(clause, name, description, reduce)


def over(tree):
    """Return the sum over a tree, in JSON, that depends on the number of ranks."""
    return lambda buffers: reductions.sum(stacked(buffers), 0, tree=Tree.from_json(tree(len(buffers))))


def stacked(buffers):
    """Return all buffers in one array, ranks first."""
    return Array(buffers[0].dtype, np.stack([buffer.values for buffer in buffers]))


def halving(n):
    """Return the tree that joins rank i with rank i + n / 2, as in recursive halving."""
    ranks = list(range(n))
    while len(ranks) > 1:
        half = (len(ranks) + 1) // 2
        ranks = [[a, b] for a, b in zip(ranks, ranks[half:], strict=False)] + ranks[len(ranks) - half : half]
    return ranks[0]


def by_chunks(buffers):
    """Return the sum over a ring whose chunks begin at different ranks, as reduce-scatter usually does."""
    values = stacked(buffers)
    flat = values.values.reshape(len(buffers), -1)
    sums = [
        reductions.sum(Array(values.dtype, flat[:, i : i + 1]), 0, tree=Tree.ring((i + 1) % len(buffers))).values
        for i in range(flat.shape[1])
    ]
    return Array(values.dtype, np.concatenate(sums).reshape(buffers[0].shape) if sums else values.values[0])


def with_nodes_of(rounded, buffers):
    """Return the sum with every partial sum rounded to a type."""
    return reductions.sum(stacked(buffers), 0, arithmetic=NodeArithmetic(rounded))


def padded(buffers):
    """Return the sum over ranks filled up to a power of two with +0."""
    missing = (1 << (len(buffers) - 1).bit_length()) - len(buffers)
    zeros = Array(buffers[0].dtype, np.zeros_like(buffers[0].values))
    return reductions.sum(stacked([*buffers, *[zeros] * missing]), 0)


def extreme(buffers, first):
    """Return the extreme by another rule for two elements."""
    return Array(buffers[0].dtype, fold(stacked(buffers).values, 0, lambda a, b: np.where(first(a, b), a, b)))


ORDERS = [
    ("ring", "adds around a ring", over(lambda n: {"ring": 1})),
    ("fold", "adds from the first rank to the last", over(lambda n: "fold")),
    ("backwards", "adds from the last rank to the first",
        over(lambda n: reduce(lambda tree, rank: [tree, rank], reversed(range(n))))),
    ("recursive_halving", "adds ranks half a group apart", over(halving)),
    ("ring_by_chunks", "adds each chunk around a ring of its own", by_chunks),
    ("bf16_nodes", "rounds bf16 at every node", lambda buffers: with_nodes_of(buffers[0].dtype.storage, buffers)),
    ("fp64_nodes", "adds in fp64", lambda buffers: with_nodes_of(dtype("fp64"), buffers)),
    ("padded_ranks", "fills up to a power of two with +0", padded),
    ("lost_rank", "leaves the last rank out of odd groups",
        lambda buffers: reductions.sum(stacked(buffers[: len(buffers) // 2 * 2 or 1]), 0)),
    ("mean", "gives the mean", lambda buffers: reductions.mean(stacked(buffers), 0)),
]  # fmt: skip


def arrivals():
    """Return a sum over a ring that begins at another rank in each call."""
    calls = count(1)
    return lambda buffers: reductions.sum(stacked(buffers), 0, tree=Tree.ring(next(calls) % len(buffers)))


# On the wire


def over_wire(wire, given):
    """Return the question with inputs of fp32 rounded to a wire."""
    if wire is None:
        return given
    return given | {"inputs": [rounded(wire, x) if x.dtype == "fp32" else x for x in given["inputs"]]}


def rounded(wire, given):
    return tensor(cast(cast(array(given), dtype(wire)), dtype("fp32")))


def partial_sums(usual, given):
    inputs = given["inputs"]
    if given.get("wire") is None or len(inputs) < 3 or given["op"] != "sum":
        return usual(**given)
    (first, _) = usual(**given | {"inputs": inputs[:2]})["outputs"]
    outputs = usual(**given | {"inputs": [first, *inputs[2:]]})["outputs"]
    return {"outputs": [outputs[0], *outputs]}


# Contributions of the ranks


def agreeing(clause, name, description, change):
    """Return a violation that makes differing buffers or descriptors of ranks agree."""

    def reduce(usual, buffers, op, *, descriptors=None, **under):
        buffers, descriptors = change(buffers, descriptors)
        return usual(buffers, op, descriptors=descriptors, **under)

    return all_reduce(clause, name, description, reduce)


def like_the_first(name):
    """Copy a member of the first rank's descriptor to the others."""
    return lambda buffers, descriptors: (
        buffers,
        descriptors and [replace(one, **{name: getattr(descriptors[0], name)}) for one in descriptors],
    )


def shortest(buffers, descriptors):
    """Shorten the buffers to the fewest elements of any rank."""
    if len({buffer.dtype for buffer in buffers}) == 1 and all(buffer.rank == 1 for buffer in buffers):
        count = min(buffer.shape[0] for buffer in buffers)
        buffers = [Array(buffer.dtype, buffer.values[:count]) for buffer in buffers]
    return buffers, descriptors


def of_one_dtype(buffers, descriptors):
    first = buffers[0].dtype
    return [buffer if buffer.dtype == first else cast(buffer, first) for buffer in buffers], descriptors


def reporting(clause, name, description, status, values):
    """Return a violation that reports another status where ranks have differing values."""

    def reduce(usual, buffers, op, **under):
        found = values(buffers, under.get("descriptors") or ())
        if any(value != found[0] for value in found):
            raise Failure(status, "tessAllReduce", "ranks differ", "one value")
        return usual(buffers, op, **under)

    return all_reduce(clause, name, description, reduce)


def types(buffers, descriptors):
    return [(buffer.dtype, buffer.shape) for buffer in buffers]


VIOLATIONS = [
    *(combined("RT-13-01", name, description, combine) for name, description, combine in ORDERS),
    *(combined("LANG-15-16", f"{name}_strict", text, combine) for name, text, combine in (ORDERS[0], ORDERS[5])),
    *(combined("LANG-15-10", f"{name}_deterministic", text, combine) for name, text, combine in (ORDERS[1], ORDERS[4])),
    combined("RT-06-04", "another_tree", "takes another tree though policies are deterministic", over(halving)),
    combined("RT-13-01", "max_of_first_zeros", "takes the first zero for the largest",
        lambda buffers: extreme(buffers, lambda a, b: (a >= b) | np.isnan(a)), "max"),
    combined("RT-13-01", "min_of_last_zeros", "takes the last zero for the smallest",
        lambda buffers: extreme(buffers, lambda a, b: (a < b) | np.isnan(a)), "min"),
    combined("RT-04.7-03", "arrival_order", "adds ranks as they arrive under any policy", arrivals()),
    combined("RT-06-03", "arrival_order_on_every_run", "adds ranks as they arrive", arrivals()),
    combined("RT-06-04", "another_tree_on_every_run", "takes another tree each time", arrivals()),
    of_method("RT-13-09", "LossyWireAccepted", "accepts a lossy wire under a deterministic policy", "all_reduce",
        lambda usual, given: usual(**over_wire(given.pop("wire", None), given))),
    of_method("RT-13-09", "LossyWireUnasked", "quantizes fp32 to bf16 on the wire unasked", "all_reduce",
        lambda usual, given: usual(**over_wire("bf16", given))),
    of_method("RT-13-09", "PartialSumsOnTheWire", "rounds the sum of the first two ranks to the wire", "all_reduce",
        partial_sums),
    agreeing("RT-11-08", "seeds_not_compared", "completes though seeds differ", like_the_first("seed")),
    agreeing("RT-11-08", "streams_not_compared", "completes though streams differ", like_the_first("stream")),
    agreeing("RT-11-08", "orders_not_compared", "completes though orders differ", like_the_first("reduction_order")),
    agreeing("LANG-11-12", "shortest_buffer", "combines what shapes have in common", shortest),
    agreeing("LANG-15-12", "cast_to_first", "casts buffers to the first one's dtype", of_one_dtype),
    reporting("RT-11-09", "invalid_descriptors", "tells differing descriptors as an invalid value",
        Status.TESS_ERR_INVALID_VALUE, lambda buffers, descriptors: descriptors),
    reporting("LANG-15-11", "invalid_count", "tells differing counts as an invalid value",
        Status.TESS_ERR_INVALID_VALUE, types),
]  # fmt: skip
