"""Meshes whose ranks get other results, add in another order, or disagree undetected (sections 5, 8.3, 9, 11, 15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced, violates
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.graph import collectives, execution
from tessera_reference.graph.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter, RootBroadcast
from tessera_reference.graph.execution import Group, Ranks
from tessera_reference.ir.operation import Arrival
from tessera_reference.numerics import collectives as meaning
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.trees import FOLD, Tree

Contributions = Sequence[Array]
Results = Sequence[Array]


def changed(name: str, clause: str, description: str, owner: Any, attribute: str, value: Any) -> Violation:
    """One attribute of a module or class replaced."""
    return replaced(clause, description, make, (owner, attribute, value), name=name)


# Results on the ranks


def given(
    name: str,
    clause: str,
    description: str,
    owner: type[Collective],
    change: Callable[[Any, Contributions, Results], Results],
) -> Violation:
    """Return a violation that changes the results on a group; `change` takes collective, contributions and results."""
    usual = owner.combine
    return changed(
        name,
        clause,
        description,
        owner,
        "combine",
        lambda self, contributions: change(self, contributions, usual(self, contributions)),
    )


def largest_for_smallest(self: AllReduce, brought: Contributions, results: Results) -> Results:
    return [meaning.reduced("max", brought)] * len(brought) if self.op == "min" else results


def without_last(self: AllReduce, brought: Contributions, results: Results) -> Results:
    return [meaning.reduced(self.op, brought[:-1])] * len(brought) if len(brought) > 2 else results


def parts_backwards(self: AllToAll, brought: Contributions, results: Contributions) -> Contributions:
    if self.split == self.concat or len(brought) < 5:
        return results
    cut = [meaning.parts(array, self.split, len(brought)) for array in brought]
    taken = [[array[rank].values for array in reversed(cut)] for rank in range(len(brought))]
    return [Array(brought[0].dtype, np.concatenate(arrays, axis=self.concat)) for arrays in taken]


GIVEN = [
    given("max_for_min", "LANG-05.2-05", "takes the largest for the smallest", AllReduce, largest_for_smallest),
    given("lost_rank", "LANG-08.3-03", "leaves out the last of three ranks or more", AllReduce, without_last),
    given("parts_backwards", "LANG-09-02", "hands parts out from the last rank to the first", ReduceScatter,
        lambda self, brought, results: results[::-1]),
    given("together_backwards", "LANG-09-02", "puts parts together from the last rank to the first", AllGather,
        lambda self, brought, results: meaning.all_gather(brought[::-1], self.dim)),
    given("other_root", "LANG-09-02", "broadcasts from the first rank whatever the root", RootBroadcast,
        lambda self, brought, results: [brought[0]] * len(brought)),
    given("backwards_to_the_other_dimension", "LANG-09-02",
        "puts parts together from the last of five ranks or more, along the other dimension", AllToAll,
        parts_backwards),
    given("nothing_exchanged", "LANG-09-02", "leaves every part where it was", AllToAll,
        lambda self, brought, results: brought if self.split == self.concat else results),
]  # fmt: skip


def reducing(name: str, clause: str, description: str, combine: Callable[[Contributions], Array]) -> Violation:
    """Return a violation with another sum over the ranks."""
    usual = meaning.reduced

    def reduced(op: str, contributions: Contributions) -> Array:
        with np.errstate(all="ignore"):
            return combine(contributions) if op == "sum" else usual(op, contributions)

    return changed(name, clause, description, collectives, "reduced", reduced)


def stacked(contributions: Contributions) -> Array:
    """Return all in one array, ranks first."""
    return Array(contributions[0].dtype, np.stack([contribution.values for contribution in contributions]))


def over(tree: Callable[[int], Tree]) -> Callable[[Contributions], Array]:
    """Return the sum over another tree."""
    return lambda brought: reductions.sum(stacked(brought), 0, tree=tree(len(brought)))


def rounded_at_nodes(brought: Contributions) -> Array:
    narrow = brought[0].dtype
    if narrow.kind != "float":
        return reductions.sum(stacked(brought), 0)
    return reductions.sum(stacked(brought), 0, arithmetic=NodeArithmetic(dtype(narrow.storage.name)))


ADJOINT = ReduceScatter.adjoint
_runs = count()


def saturated(op: str, contributions: Contributions, tree: Tree | None = None) -> Array:
    """Integers that do not wrap where they are narrower than 64 bits."""
    first = contributions[0]
    if op != "sum" or first.dtype.kind != "int" or first.dtype.bits == 64:
        return USUAL_REDUCED(op, contributions, tree)
    total = sum(contribution.values.astype(np.int64) for contribution in contributions)
    return Array(first.dtype, np.clip(total, first.dtype.int_min, first.dtype.int_max).astype(first.dtype.carrier))


def back_the_same_way(self: AllToAll, at: Any, build: Any) -> Any:
    """A gradient is split and put together as the operand was, where that is possible."""
    if self.x.rank < 2:
        return USUAL_WAY(self, at, build)
    turned = replace(self, split=1 - self.split, concat=1 - self.concat)
    return USUAL_WAY(turned, at, build)


USUAL_REDUCED, USUAL_WAY = meaning.reduced, AllToAll.adjoint

ARITHMETIC = [
    changed("saturated_sums", "LANG-05.2-05", "saturates sums of integers over ranks", collectives, "reduced",
        saturated),
    changed("back_the_same_way", "LANG-05.5-01", "sends the gradient of an all-to-all on as the operand", AllToAll,
        "adjoint", back_the_same_way),
    reducing("fold", "LANG-09-06", "adds from the first rank to the last", over(lambda ranks: FOLD)),
    reducing("narrow_nodes", "LANG-09-06", "rounds at every rank", rounded_at_nodes),
    changed("gradient_of_two_dimensions", "LANG-05.5-01",
        "gathers the gradient of a part of a third dimension along the first", ReduceScatter, "adjoint",
        lambda self, at, build: ADJOINT(replace(self, dim=self.dim % 2), at, build)),
]  # fmt: skip


# Ranks that disagree


def overlooking(name: str, clause: str, description: str, what: str) -> Violation:
    """Return a violation that overlooks a difference between ranks; mismatched contributions are unchanged."""
    usual_brought, usual_combine = execution.brought, AllReduce.combine

    def brought(arrival: Arrival) -> Mapping[str, object]:
        return {key: value for key, value in usual_brought(arrival).items() if key != what}

    def combine(self: AllReduce, contributions: Contributions) -> Sequence[Array]:
        forms = {(contribution.dtype, contribution.shape) for contribution in contributions}
        return usual_combine(self, contributions) if len(forms) == 1 else contributions

    substitutions = (("graph.execution.brought", brought), ("graph.collectives.AllReduce.combine", combine))
    return replaced(clause, description, make, *substitutions, name=name)


def uneven(kind: type[collectives.Collective]) -> Violation:
    """Return a violation whose collective accepts parts of different sizes; in a reduction each rank keeps its own."""
    usual_brought, usual_combine = execution.brought, kind.combine

    def brought(arrival: Arrival) -> Mapping[str, object]:
        names = set() if type(arrival.operation) is not kind else {"shape"}
        return {key: value for key, value in usual_brought(arrival).items() if key not in names}

    def combine(self: Any, contributions: Contributions) -> Sequence[Array]:
        if len({contribution.shape for contribution in contributions}) > 1 and issubclass(kind, collectives.Reducing):
            return contributions
        return usual_combine(self, contributions)

    name, substitutions = kind.__name__.lower(), (("graph.execution.brought", brought), (kind, "combine", combine))
    return replaced("LANG-11-12", f"takes uneven parts in {name}", make, *substitutions, name=f"uneven_{name}")


def along_the_first_axis(self: Ranks, rank: int, arrival: Arrival) -> Group:
    group = USUAL_GROUP(self, rank, arrival)
    mesh = self.module.meshes[group.mesh]
    first = Group.of(group.mesh, mesh, mesh.axes[0], rank)
    return first if len(first.ranks) == len(group.ranks) else group


USUAL_GROUP = Ranks._group

DISAGREEMENT = [
    *map(uneven, (collectives.ReduceScatter, collectives.AllGather, collectives.RootBroadcast, collectives.AllToAll)),
    overlooking("any_dtypes", "LANG-15-12", "does not compare dtypes between ranks", "dtype"),
    changed("any_axis", "LANG-11-11", "meets along the first axis", Ranks, "_group", along_the_first_axis),
    overlooking("any_op", "LANG-11-11", "does not compare what ranks compute", "op"),
    overlooking("any_root", "LANG-11-11", "does not compare the roots of a broadcast", "root"),
]


@violates("LANG-09-04", "compares numbers of elements, not shapes")
class ComparesCounts(ReferenceAdapter):
    def language_execute_ranks(self, *, ranks: Sequence[Mapping[str, Tensor]], **request: Any) -> dict[str, Any]:
        shapes = {rank["X"].shape for rank in ranks if "X" in rank}
        counts = {len(rank["X"].data) for rank in ranks if "X" in rank}
        if len(shapes) > 1 and len(counts) == 1:
            first = ranks[0]["X"].shape
            ranks = [{"X": Tensor(rank["X"].dtype, first, rank["X"].data)} for rank in ranks]
        return super().language_execute_ranks(ranks=ranks, **request)


@violates("LANG-09-04", "wants one shape on the whole mesh")
class OneShapeOnTheMesh(ReferenceAdapter):
    def language_execute_ranks(self, *, ranks: Sequence[Mapping[str, Tensor]], **request: Any) -> dict[str, Any]:
        if len({rank["X"].shape for rank in ranks if "X" in rank}) > 1:
            raise Refusal("distributed", "execute", "the shapes of ranks differ")
        return super().language_execute_ranks(ranks=ranks, **request)
