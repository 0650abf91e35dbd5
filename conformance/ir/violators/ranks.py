"""Meshes whose ranks get other results, add in another order, or disagree undetected (sections 5, 8.3, 9, 11, 15)."""

from dataclasses import replace

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import make
from tessera_reference.graph import collectives
from tessera_reference.graph.execution import Group
from tessera_reference.numerics import collectives as meaning
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic

from .changes import around, breaks, wrapped


def given(clause, name, description, owner, change):
    """Return a violation that changes the results on a group; `change` takes collective, contributions and results."""

    def combine(usual, self, contributions):
        return change(self, contributions, usual(self, contributions))

    return wrapped(clause, name, description, f"graph.collectives.{owner}.combine", combine)


def parts_backwards(self, brought, results):
    if self.split == self.concat or len(brought) < 5:
        return results
    cut = [meaning.parts(array, self.split, len(brought)) for array in brought]
    taken = [[array[rank].values for array in reversed(cut)] for rank in range(len(brought))]
    return [Array(brought[0].dtype, np.concatenate(arrays, axis=self.concat)) for arrays in taken]


def reducing(clause, name, description, combine):
    """Return a violation with another sum over the ranks."""

    def reduced(usual, op, contributions):
        with np.errstate(all="ignore"):
            return combine(contributions) if op == "sum" else usual(op, contributions)

    return wrapped(clause, name, description, "graph.collectives.reduced", reduced)


def stacked(contributions):
    return Array(contributions[0].dtype, np.stack([contribution.values for contribution in contributions]))


def rounded_at_nodes(brought):
    kind = brought[0].dtype
    arithmetic = NodeArithmetic(dtype(kind.storage.name)) if kind.kind == "float" else None
    return reductions.sum(stacked(brought), 0, arithmetic=arithmetic)


@breaks("LANG-05.2-05", "saturates sums of integers over ranks", "graph.collectives.reduced")
def saturated_sums(usual, op, contributions, tree=None):
    first = contributions[0]
    if op != "sum" or first.dtype.kind != "int" or first.dtype.bits == 64:
        return usual(op, contributions, tree)
    total = sum(contribution.values.astype(np.int64) for contribution in contributions)
    return Array(first.dtype, np.clip(total, first.dtype.int_min, first.dtype.int_max).astype(first.dtype.carrier))


def overlooking(clause, name, description, what):
    """Return a violation that overlooks a difference between ranks; mismatched contributions are unchanged."""

    def combine(usual, self, contributions):
        forms = {(contribution.dtype, contribution.shape) for contribution in contributions}
        return usual(self, contributions) if len(forms) == 1 else contributions

    brought = around(lambda usual, arrival: {key: value for key, value in usual(arrival).items() if key != what})
    substitutions = (("graph.execution.brought", brought), ("graph.collectives.AllReduce.combine", around(combine)))
    return replaced(clause, description, make, *substitutions, name=name)


def uneven(kind):
    """Return a violation whose collective accepts parts of different sizes; in a reduction each rank keeps its own."""

    def brought(usual, arrival):
        names = {"shape"} if type(arrival.operation) is kind else set()
        return {key: value for key, value in usual(arrival).items() if key not in names}

    def combine(usual, self, contributions):
        differ = len({contribution.shape for contribution in contributions}) > 1
        return contributions if differ and issubclass(kind, collectives.Reducing) else usual(self, contributions)

    name = kind.__name__.lower()
    substitutions = (("graph.execution.brought", around(brought)), (kind, "combine", around(combine)))
    return replaced("LANG-11-12", f"takes uneven parts in {name}", make, *substitutions, name=f"uneven_{name}")


@breaks("LANG-11-11", "meets along the first axis", "graph.execution.Ranks._group")
def any_axis(usual, self, rank, arrival):
    group = usual(self, rank, arrival)
    mesh = self.module.meshes[group.mesh]
    first = Group.of(group.mesh, mesh, mesh.axes[0], rank)
    return first if len(first.ranks) == len(group.ranks) else group


def of_one_count(usual, self, *, ranks, **request):
    shapes = {rank["X"].shape for rank in ranks if "X" in rank}
    if len(shapes) > 1 and len({len(rank["X"].data) for rank in ranks if "X" in rank}) == 1:
        ranks = [{"X": Tensor(rank["X"].dtype, ranks[0]["X"].shape, rank["X"].data)} for rank in ranks]
    return usual(self, ranks=ranks, **request)


def of_one_shape(usual, self, *, ranks, **request):
    if len({rank["X"].shape for rank in ranks if "X" in rank}) > 1:
        raise Refusal("distributed", "execute", "the shapes of ranks differ")
    return usual(self, ranks=ranks, **request)


VIOLATIONS = [
    given("LANG-05.2-05", "max_for_min", "takes the largest for the smallest", "AllReduce",
        lambda self, brought, results:
        [meaning.reduced("max", brought)] * len(brought) if self.op == "min" else results),
    given("LANG-08.3-03", "lost_rank", "leaves out the last of three ranks or more", "AllReduce",
        lambda self, brought, results:
        [meaning.reduced(self.op, brought[:-1])] * len(brought) if len(brought) > 2 else results),
    given("LANG-09-02", "parts_backwards", "hands parts out from the last rank to the first", "ReduceScatter",
        lambda self, brought, results: results[::-1]),
    given("LANG-09-02", "together_backwards", "puts parts together from the last rank to the first", "AllGather",
        lambda self, brought, results: meaning.all_gather(brought[::-1], self.dim)),
    given("LANG-09-02", "bools_backwards", "puts bools together from the last rank to the first", "AllGather",
        lambda self, brought, results:
        meaning.all_gather(brought[::-1], self.dim) if brought[0].dtype.kind == "bool" else results),
    given("LANG-09-02", "other_root", "broadcasts from the first rank whatever the root", "RootBroadcast",
        lambda self, brought, results: [brought[0]] * len(brought)),
    given("LANG-09-02", "backwards_to_the_other_dimension",
        "puts parts together from the last of five ranks or more, along the other dimension", "AllToAll",
        parts_backwards),
    given("LANG-09-02", "nothing_exchanged", "leaves every part where it was", "AllToAll",
        lambda self, brought, results: brought if self.split == self.concat else results),
    wrapped("LANG-05.5-01", "weight_of_rank_0", "takes the weight of rank 0 back from a sum at the root",
        "graph.collectives.RootSum.adjoint", lambda usual, self, at, build: usual(replace(self, root=0), at, build)),
    wrapped("LANG-05.5-01", "back_the_same_way", "sends the gradient of an all-to-all on as the operand",
        "graph.collectives.AllToAll.adjoint", lambda usual, self, at, build:
        usual(self if self.x.rank < 2 else replace(self, split=1 - self.split, concat=1 - self.concat), at, build)),
    reducing("LANG-09-06", "narrow_nodes", "rounds at every rank", rounded_at_nodes),
    wrapped("LANG-05.5-01", "gradient_of_two_dimensions",
        "gathers the gradient of a part of a third dimension along the first",
        "graph.collectives.ReduceScatter.adjoint",
        lambda usual, self, at, build: usual(replace(self, dim=self.dim % 2), at, build)),
    *map(uneven, (collectives.ReduceScatter, collectives.AllGather, collectives.RootBroadcast, collectives.AllToAll)),
    overlooking("LANG-15-12", "any_dtypes", "does not compare dtypes between ranks", "dtype"),
    overlooking("LANG-11-11", "any_op", "does not compare what ranks compute", "op"),
    overlooking("LANG-11-11", "any_root", "does not compare the roots of a broadcast", "root"),
    wrapped("LANG-09-04", "ComparesCounts", "compares numbers of elements, not shapes",
        "adapter.ReferenceAdapter.language_execute_ranks", of_one_count),
    wrapped("LANG-09-04", "OneShapeOnTheMesh", "wants one shape on the whole mesh",
        "adapter.ReferenceAdapter.language_execute_ranks", of_one_shape),
]  # fmt: skip
