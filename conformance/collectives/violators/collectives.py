"""All-reduces in another order or arithmetic, with a lossy wire format, or over ranks that do not agree.

Language specification, 9, 11 and 15; runtime specification, 4.7, 6, 11 and 13.
"""

from dataclasses import replace

import numpy as np

from tessera_conformance.strength import violates
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter.messages import array, tensor
from tessera_reference.collectives import all_reduce
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.rounding import cast
from tessera_reference.numerics.trees import Tree, fold

from ...ir.violators.changes import CompilesOnce, changed

# Order and arithmetic


def combined(clause, name, description, combine, op="sum"):
    """Return a violation with another sum, maximum or minimum over the ranks, if all agree."""

    def reduce(buffers, operator, **under):
        usual = all_reduce(buffers, operator, **under)
        with np.errstate(all="ignore"):
            return combine(buffers) if operator == op and usual.dtype.kind == "float" else usual

    return changed(clause, name, description, ("adapter.collectives.all_reduce", reduce))


def over(tree):
    """Return the sum over a tree, in JSON, that depends on the number of ranks."""
    return lambda buffers: reductions.sum(stacked(buffers), 0, tree=Tree.from_json(tree(len(buffers))))


def stacked(buffers):
    """Return all buffers in one array, ranks first."""
    return Array(buffers[0].dtype, np.stack([buffer.values for buffer in buffers]))


def backwards(n):
    """Return the tree from the last rank to the first."""
    tree = n - 1
    for rank in range(n - 2, -1, -1):
        tree = [tree, rank]
    return tree


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


def rounding_at(kind):
    """Return a sum that rounds every partial sum to a type."""

    def combine(buffers):
        values = stacked(buffers)
        return reductions.sum(values, 0, arithmetic=NodeArithmetic(dtype(kind(values))))

    return combine


def padded(buffers):
    """Return the sum over ranks filled up to a power of two with +0."""
    missing = (1 << (len(buffers) - 1).bit_length()) - len(buffers)
    zeros = Array(buffers[0].dtype, np.zeros_like(buffers[0].values))
    return reductions.sum(stacked([*buffers, *[zeros] * missing]), 0)


def extreme_by(combine):
    """Return an extreme by another rule for two elements."""
    return lambda buffers: Array(buffers[0].dtype, fold(stacked(buffers).values, 0, combine))


ORDERS = [
    ("ring", "adds around a ring", over(lambda n: {"ring": 1})),
    ("fold", "adds from the first rank to the last", over(lambda n: "fold")),
    ("backwards", "adds from the last rank to the first", over(backwards)),
    ("recursive_halving", "adds ranks half a group apart", over(halving)),
    ("ring_by_chunks", "adds each chunk around a ring of its own", by_chunks),
    ("bf16_nodes", "rounds bf16 at every node", rounding_at(lambda x: x.dtype.storage.name)),
    ("fp64_nodes", "adds in fp64", rounding_at(lambda x: "fp64")),
    ("padded_ranks", "fills up to a power of two with +0", padded),
    ("lost_rank", "leaves the last rank out of odd groups", lambda buffers: reductions.sum(
        stacked(buffers[: len(buffers) // 2 * 2 or 1]), 0
    )),
    ("mean", "gives the mean", lambda buffers: reductions.mean(stacked(buffers), 0)),
]  # fmt: skip

COMBINED = [
    *(combined("RT-13-01", name, description, combine) for name, description, combine in ORDERS),
    *(combined("LANG-15-16", f"{name}_strict", text, combine) for name, text, combine in (ORDERS[0], ORDERS[5])),
    *(combined("LANG-15-10", f"{name}_deterministic", text, combine) for name, text, combine in (ORDERS[1], ORDERS[4])),
    combined("RT-06-04", "another_tree", "takes another tree though policies are deterministic", over(halving)),
    combined("RT-13-01", "max_of_first_zeros", "takes the first zero for the largest",
        extreme_by(lambda a, b: np.where((a >= b) | np.isnan(a), a, b)), "max"),
    combined("RT-13-01", "min_of_last_zeros", "takes the last zero for the smallest",
        extreme_by(lambda a, b: np.where((a < b) | np.isnan(a), a, b)), "min"),
]  # fmt: skip


class Arrivals:
    """Sums in the order of arrival, which differs from call to call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, buffers):
        """Return the sum over a ring that begins at the rank that arrived first."""
        self.calls += 1
        return reductions.sum(stacked(buffers), 0, tree=Tree.ring(self.calls % len(buffers)))


ARRIVALS = [
    combined("RT-04.7-03", "arrival_order", "adds ranks as they arrive under any policy", Arrivals()),
    combined("RT-06-03", "arrival_order_on_every_run", "adds ranks as they arrive", Arrivals()),
    combined("RT-06-04", "another_tree_on_every_run", "takes another tree each time", Arrivals()),
]


# On the wire


@violates("RT-13-09", "accepts a lossy wire under a deterministic policy")
class LossyWireAccepted(CompilesOnce):
    def collectives_all_reduce(self, *, wire=None, **call):
        if wire is not None:
            call["inputs"] = [_over(wire, operand) for operand in call["inputs"]]
        return super().collectives_all_reduce(**call)


@violates("RT-13-09", "quantizes fp32 to bf16 on the wire unasked")
class LossyWireUnasked(CompilesOnce):
    def collectives_all_reduce(self, *, inputs, **call):
        return super().collectives_all_reduce(inputs=[_over("bf16", operand) for operand in inputs], **call)


@violates("RT-13-09", "rounds the sum of the first two ranks to the wire")
class PartialSumsOnTheWire(CompilesOnce):
    def collectives_all_reduce(self, *, wire=None, **call):
        inputs = call["inputs"]
        if wire is not None and len(inputs) > 2 and call["op"] == "sum":
            (first, _) = super().collectives_all_reduce(**call | {"inputs": inputs[:2]}, wire=wire)["outputs"]
            answer = super().collectives_all_reduce(**call | {"inputs": [first, *inputs[2:]]}, wire=wire)
            return answer | {"outputs": [answer["outputs"][0], *answer["outputs"]]}
        return super().collectives_all_reduce(**call, wire=wire)


def _over(wire, given):
    if given.dtype != "fp32":
        return given
    x = array(given)
    return tensor(cast(cast(x, dtype(wire)), x.dtype))


# Contributions of the ranks


def agreeing(clause, name, description, change):
    """Return a violation that makes differing buffers or descriptors of ranks agree."""

    def reduce(buffers, op, *, policy=None, wire=None, descriptors=None):
        buffers, descriptors = change(buffers, descriptors)
        return all_reduce(buffers, op, policy=policy, wire=wire, descriptors=descriptors)

    return changed(clause, name, description, ("adapter.collectives.all_reduce", reduce))


def like_the_first(*names):
    """Copy some members of the first rank's descriptor to the others."""

    def change(buffers, descriptors):
        if descriptors:
            first = {name: getattr(descriptors[0], name) for name in names}
            descriptors = [replace(descriptor, **first) for descriptor in descriptors]
        return buffers, descriptors

    return change


def shortest(buffers, descriptors):
    """Shorten the buffers to the fewest elements of any rank."""
    if len({buffer.dtype for buffer in buffers}) == 1 and all(buffer.rank == 1 for buffer in buffers):
        count = min(buffer.shape[0] for buffer in buffers)
        buffers = [Array(buffer.dtype, buffer.values[:count]) for buffer in buffers]
    return buffers, descriptors


def of_one_dtype(buffers, descriptors):
    return [
        buffer if buffer.dtype == buffers[0].dtype else cast(buffer, buffers[0].dtype) for buffer in buffers
    ], descriptors


def reported_as(status):
    """Return an all-reduce that reports differing descriptors with another status."""

    def reduce(buffers, op, **under):
        descriptors = under.get("descriptors")
        if descriptors and any(descriptor != descriptors[0] for descriptor in descriptors):
            raise Failure(status, "tessAllReduce", "descriptors differ", "one descriptor")
        return all_reduce(buffers, op, **under)

    return reduce


def mismatch_as(status):
    """Return an all-reduce that reports differing buffers with another status."""

    def reduce(buffers, op, **under):
        if any((buffer.dtype, buffer.shape) != (buffers[0].dtype, buffers[0].shape) for buffer in buffers):
            raise Failure(status, "tessAllReduce", "buffers differ", "one count and dtype")
        return all_reduce(buffers, op, **under)

    return reduce


MISMATCHES = [
    agreeing("RT-11-08", "seeds_not_compared", "completes though seeds differ", like_the_first("seed")),
    agreeing("RT-11-08", "streams_not_compared", "completes though streams differ", like_the_first("stream")),
    agreeing("RT-11-08", "orders_not_compared", "completes though orders differ", like_the_first("reduction_order")),
    agreeing("LANG-11-12", "shortest_buffer", "combines what shapes have in common", shortest),
    agreeing("LANG-15-12", "cast_to_first", "casts buffers to the first one's dtype", of_one_dtype),
    *(
        changed(clause, name, description, ("adapter.collectives.all_reduce", reduce))
        for clause, name, description, reduce in (
            ("RT-11-09", "mismatch_for_descriptors", "tells differing descriptors as a mismatch",
             reported_as(Status.TESS_ERR_COLLECTIVE_MISMATCH)),
            ("RT-11-09", "invalid_descriptors", "tells differing descriptors as an invalid value",
             reported_as(Status.TESS_ERR_INVALID_VALUE)),
            ("LANG-15-11", "invalid_count", "tells differing counts as an invalid value",
             mismatch_as(Status.TESS_ERR_INVALID_VALUE)),
            ("LANG-15-12", "invalid_dtype", "tells differing dtypes as an invalid value",
             mismatch_as(Status.TESS_ERR_INVALID_VALUE)),
        )
    ),
]  # fmt: skip
