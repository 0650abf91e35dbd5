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
from tessera_reference.numerics.trees import FOLD

from .changes import answers, around, breaks, wrapped


def given(name, clause, description, owner, change):
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


GIVEN = [
    given("max_for_min", "LANG-05.2-05", "takes the largest for the smallest", "AllReduce",
        lambda self, brought, results:
        [meaning.reduced("max", brought)] * len(brought) if self.op == "min" else results),
    given("lost_rank", "LANG-08.3-03", "leaves out the last of three ranks or more", "AllReduce",
        lambda self, brought, results:
        [meaning.reduced(self.op, brought[:-1])] * len(brought) if len(brought) > 2 else results),
    given("parts_backwards", "LANG-09-02", "hands parts out from the last rank to the first", "ReduceScatter",
        lambda self, brought, results: results[::-1]),
    given("together_backwards", "LANG-09-02", "puts parts together from the last rank to the first", "AllGather",
        lambda self, brought, results: meaning.all_gather(brought[::-1], self.dim)),
    given("other_root", "LANG-09-02", "broadcasts from the first rank whatever the root", "RootBroadcast",
        lambda self, brought, results: [brought[0]] * len(brought)),
    given("backwards_to_the_other_dimension", "LANG-09-02",
        "puts parts together from the last of five ranks or more, along the other dimension", "AllToAll",
        parts_backwards),
    given("nothing_exchanged", "LANG-09-02", "leaves every part where it was", "AllToAll",
        lambda self, brought, results: brought if self.split == self.concat else results),
]  # fmt: skip


def reducing(name, clause, description, combine):
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


ARITHMETIC = [
    wrapped("LANG-05.5-01", "back_the_same_way", "sends the gradient of an all-to-all on as the operand",
        "graph.collectives.AllToAll.adjoint", lambda usual, self, at, build:
        usual(self if self.x.rank < 2 else replace(self, split=1 - self.split, concat=1 - self.concat), at, build)),
    reducing("fold", "LANG-09-06", "adds from the first rank to the last",
        lambda brought: reductions.sum(stacked(brought), 0, tree=FOLD)),
    reducing("narrow_nodes", "LANG-09-06", "rounds at every rank", rounded_at_nodes),
    wrapped("LANG-05.5-01", "gradient_of_two_dimensions",
        "gathers the gradient of a part of a third dimension along the first",
        "graph.collectives.ReduceScatter.adjoint",
        lambda usual, self, at, build: usual(replace(self, dim=self.dim % 2), at, build)),
]  # fmt: skip


def overlooking(name, clause, description, what):
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


DISAGREEMENT = [
    *map(uneven, (collectives.ReduceScatter, collectives.AllGather, collectives.RootBroadcast, collectives.AllToAll)),
    overlooking("any_dtypes", "LANG-15-12", "does not compare dtypes between ranks", "dtype"),
    overlooking("any_op", "LANG-11-11", "does not compare what ranks compute", "op"),
    overlooking("any_root", "LANG-11-11", "does not compare the roots of a broadcast", "root"),
    answers("ComparesCounts", "LANG-09-04", "compares numbers of elements, not shapes", "language_execute_ranks",
        of_one_count),
    answers("OneShapeOnTheMesh", "LANG-09-04", "wants one shape on the whole mesh", "language_execute_ranks",
        of_one_shape),
]  # fmt: skip
