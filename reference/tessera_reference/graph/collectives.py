"""Collectives between the ranks of a mesh, and the axes of the mesh (spec sections 5.2, 5.4, 9, 15)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..ir.diagnostics import Location, did_you_mean
from ..ir.operation import (
    Applied,
    Arrival,
    Attribute,
    Builder,
    Hidden,
    Operand,
    Refusal,
    Shown,
    StepEnvironment,
    Steps,
    Stepwise,
    operation,
)
from ..ir.types import LAYOUTS, Mesh, Numeric, Scalar, Shard, Tensor, Value
from ..numerics.array import Array
from ..numerics.collectives import REDUCTIONS, all_gather, all_to_all, alternative, broadcast, parts, reduced
from ..numerics.formats import dtype
from .term import Term, require_axis, require_numeric

# The mesh in force and its axes (spec section 5.4; AMB-LANG-60, AMB-LANG-108).


def resolve_axis(meshes: Mapping[str, Mesh], axis: str, mesh: str | None) -> tuple[str, int]:
    """Return the mesh in force, the named or only one, and its extent along `axis` (AMB-LANG-60, AMB-LANG-108).

    Raises `Refusal` of category distributed.
    """
    if not meshes:
        remedy = f"declare one: mesh g = mesh<axes=[{axis}], shape=[2]>;"
        raise _refusal(f"axis {axis} is of no mesh: the module declares none", f"a mesh with an axis {axis}", remedy)
    if mesh is None and len(meshes) != 1:
        message = f"which mesh has the axis {axis}? There are {', '.join(meshes)}"
        remedy = f"name it: mesh={next(iter(meshes), '')}"
        raise _refusal(message, "a mesh by name, where the module declares several", remedy, "AMB-LANG-108")
    name = next(iter(meshes)) if mesh is None else mesh
    if name not in meshes:
        remedy = did_you_mean(name, meshes)
        raise _refusal(f"unknown mesh {name!r}", f"one of {', '.join(meshes)}", remedy, "AMB-LANG-108")
    axes = dict(zip(meshes[name].axes, meshes[name].shape, strict=True))
    if axis not in axes:
        remedy = did_you_mean(axis, axes)
        raise _refusal(f"mesh {name} has no axis {axis!r}", f"one of its axes: {', '.join(axes)}", remedy)
    return name, axes[axis]


def ranks_along(meshes: Mapping[str, Mesh], axis: str, mesh: str | None) -> dict[str, Any]:
    """Return the hidden fields of a collective along an axis: its mesh, its ranks. Raises as `resolve_axis` does."""
    grid, group = resolve_axis(meshes, axis, mesh)
    return {"group": group, "grid": grid, "met": Shard((axis,))}


NOTHING = Shard()
"""No ranks: the group of an operation whose place is not known."""


def _refusal(message: str, requirement: str, remedy: str = "", clause: str = "LANG-05.4-04") -> Refusal:
    return Refusal("distributed", message, requirement, clause, remedy)


# Collectives between the ranks of a mesh (spec sections 5.2, 9, 15; AMB-LANG-57, AMB-LANG-108, AMB-LANG-109).
#
# A collective works along one axis of a mesh: the ranks that differ in no other coordinate are its group. Each brings
# one operand and is given one result, in order of the axis coordinate. `ranks` brings them together.
#
# On a mesh, the gradient is that of the sum of y's elements over all ranks: what leaves a rank through a collective
# comes back to it through another.


OPERATORS = ("sum", "max", "min")
"""The operators of reducing collectives (AMB-LANG-76)."""


def missing_declaration(collective: type[Collective], attribute: str) -> Refusal:
    """Return the refusal of a collective that declares no axis or no operator (LANG-09-02, LANG-09-03)."""
    message = f"{(*collective.spellings, collective.name)[0]} declares no {attribute}"
    if attribute == "axis":
        requirement = "the axis of the mesh along which ranks communicate"
        return _refusal(message, requirement, "say along which axis: axis=dp", "LANG-09-02")
    requirement = f"op, one of {', '.join(OPERATORS)}"
    return _refusal(message, requirement, 'say what is computed: op="sum"', "LANG-09-03")


@dataclass(frozen=True)
class Collective(Stepwise):
    """The base of all collectives: an axis, and a rendezvous of the ranks along it."""

    x: Operand[Tensor | Scalar]
    axis: Attribute[str]
    mesh: Attribute[str | None] = field(default=None, kw_only=True)
    group: Hidden[int] = field(default=0, kw_only=True)
    """The number of ranks of a group."""
    grid: Hidden[str] = field(default="", kw_only=True)
    """The mesh of its ranks."""
    met: Hidden[Shard] = field(default=NOTHING, kw_only=True)
    """The ranks that take part."""

    effects = frozenset({"communication"})
    layouts = frozenset(LAYOUTS)
    transparent = False

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the ranks along the axis of the mesh in force."""
        mesh = shown.attributes.get("mesh")
        return ranks_along(shown.meshes, str(shown.attributes["axis"]), None if mesh is None else str(mesh))

    def infer(self) -> Numeric:
        """Return the type of each rank's result; the axis has already been found in a mesh."""
        if self.group <= 0:
            raise _refusal(f"axis {self.axis} is of no mesh", "an axis of the mesh in force")
        return self.result_type()

    def steps(self, x: Array, env: StepEnvironment) -> Steps:
        """Wait for the group, and return the result of this rank."""
        return (yield Arrival(self, (x,), env.location))

    def result_type(self) -> Numeric:
        """Return the type of a rank's result: that of its operand, unless a collective overrides this."""
        return self.x

    @abstractmethod
    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        """Return the results of the group's ranks from their contributions, both in order of the axis coordinate."""

    def terms(self) -> dict[str, object]:
        """Return the attributes on which the ranks of a group must agree, by name."""
        return {name: value for name, value in self.attributes.items() if name not in ("axis", "mesh")}

    def where(self) -> str:
        """Return the place of its ranks in the words of a diagnostic."""
        return f"along axis {self.met.axes[0]}" if len(self.met.axes) == 1 else f"in {self.met}"

    def along(self) -> dict[str, Any]:
        """Return the attributes that place another collective on the same ranks."""
        return {name: getattr(self, name) for name in ("axis", "mesh", "group", "grid", "met")}

    def anywhere(self, here: bool, location: Location) -> Generator[Arrival, tuple[Array, ...], bool]:
        """Return True if `here` is true on any rank of the group."""
        any_rank = AllReduce(Scalar(dtype("bool")), op="max", **self.along())
        (answer,) = yield Arrival(any_rank, (Array(dtype("bool"), np.asarray(here)),), location)
        return bool(answer.values)


@dataclass(frozen=True)
class Reducing(Collective):
    """The base of collectives that combine contributions: by `op`, in the accumulator type, rounded once.

    The order is that of the canonical tree (LANG-09-05, LANG-09-06).
    """

    op: Attribute[str]

    operators: ClassVar[tuple[str, ...]] = OPERATORS
    orders = ("pairwise",)

    def infer(self) -> Numeric:
        """Return the operand's type; `op` is a known operator that its dtype has."""
        if self.op not in self.operators:
            instead = f"tessera.collective.{self.short_name} has it" if self.op in REDUCTIONS else ""  # AMB-COLL-95
            remedy = instead or did_you_mean(self.op, self.operators)
            raise _refusal(f"op is {self.op!r}", f"one of {', '.join(self.operators)}", remedy, "AMB-LANG-76")
        if (others := alternative(self.op, self.x.dtype)) is not None:
            raise Refusal("types", f"{self.op} is not defined on {self.x.dtype}", others, "LANG-11-01")
        return super().infer()

    def shared(self, dy: Value, x: Value, y: Value, build: Builder) -> Value:
        """Return the gradient of a maximum or minimum y: dy where x equals y, in equal shares for ranks that tie."""
        chosen = Term(x, build).equal(Term(y, build))
        count = chosen.cast_to(self.x.dtype).all_reduce(op="sum", **self.along())
        return (Term(dy, build) / count).where(chosen).value


@operation(
    "tessera.graph.all_reduce",
    spellings=("dist.all_reduce",),
    clauses=("LANG-05.2-05", "LANG-05.4-04", "LANG-09-03", "LANG-09-05", "LANG-09-06", "LANG-15-13"),
)
class AllReduce(Reducing):
    """Every rank of the group gets the combination of all operands, with the same bits."""

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        return (reduced(self.op, contributions),) * len(contributions)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the sum of all gradients; for a maximum or minimum, equal shares for the contributions equal to it."""
        total = build(AllReduce, at.dy, op="sum", **self.along())
        return (total if self.op == "sum" else self.shared(total, at.operands[0], at.results[0], build),)


@operation(
    "tessera.graph.reduce_scatter",
    spellings=("dist.reduce_scatter",),
    clauses=("LANG-09-02", "LANG-09-03", "LANG-09-05", "LANG-09-06"),
)
class ReduceScatter(Reducing):
    """Rank i of the group gets the i-th of equal parts, along `dim`, of the combination of all operands."""

    x: Operand[Tensor]
    dim: Attribute[int] = 0

    def result_type(self) -> Tensor:
        return _resized(self.x, self.dim, parts=self.group)

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        return parts(reduced(self.op, contributions), self.dim, len(contributions))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the gradients of all parts; for a maximum or minimum, equal shares for contributions equal to it."""
        whole = build(AllGather, at.dy, dim=self.dim, **self.along())
        if self.op == "sum":
            return (whole,)
        y = build(AllGather, at.results[0], dim=self.dim, **self.along())
        return (self.shared(whole, at.operands[0], y, build),)


@operation("tessera.graph.all_gather", spellings=("dist.all_gather",), clauses=("LANG-09-02",))
class AllGather(Collective):
    """Every rank of the group gets all operands, concatenated along `dim`."""

    x: Operand[Tensor]
    dim: Attribute[int] = 0

    def result_type(self) -> Tensor:
        return _resized(self.x, self.dim, copies=self.group)

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        return all_gather(contributions, self.dim)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return each rank's part of the sum of all gradients."""
        return (build(ReduceScatter, at.dy, op="sum", dim=self.dim, **self.along()),)


@operation("tessera.graph.all_to_all", spellings=("dist.all_to_all",), clauses=("LANG-09-02",))
class AllToAll(Collective):
    """Part s, along `split`, of the operand of rank r becomes part r, along `concat`, of the result of rank s."""

    x: Operand[Tensor]
    split: Attribute[int] = 0
    concat: Attribute[int] = 0

    def result_type(self) -> Tensor:
        """Return the result's type: a part of one dimension, a multiple of the other."""
        require_axis(self.concat, self.x.rank)
        part = _resized(self.x, self.split, parts=self.group)
        if self.split % self.x.rank == self.concat % self.x.rank:
            return self.x
        return _resized(part, self.concat, copies=self.group)

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        """Return every rank's parts, one from each rank (AMB-COLL-10)."""
        return all_to_all(contributions, self.split, self.concat)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the gradient of every part to the rank that sent it."""
        return (build(AllToAll, at.dy, split=self.concat, concat=self.split, **self.along()),)


@operation("tessera.graph.root_broadcast", spellings=("dist.broadcast",), clauses=("LANG-09-02",))
class RootBroadcast(Collective):
    """Every rank of the group gets the operand of the root; `root` is its axis coordinate."""

    root: Attribute[int] = 0

    def result_type(self) -> Numeric:
        _require_root(self.root, self)
        return self.x

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        return broadcast(contributions, self.root)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the sum of all gradients to the root, and zeros to the others."""
        return (build(RootSum, at.dy, root=self.root, **self.along()),)


@operation("tessera.graph.root_sum", clauses=("LANG-09-02",))
class RootSum(Collective):
    """The root gets the sum of all operands, the others zeros: the adjoint of a broadcast."""

    root: Attribute[int] = 0

    orders = ("pairwise",)

    def result_type(self) -> Numeric:
        require_numeric(self.x.dtype)
        _require_root(self.root, self)
        return self.x

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        total = reduced("sum", contributions)
        zeros = Array(total.dtype, np.zeros(total.shape, total.dtype.carrier))
        return tuple(total if place == self.root else zeros for place in range(len(contributions)))

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """Return the root's gradient to all ranks."""
        return (build(RootBroadcast, at.dy, root=self.root, **self.along()),)


def _require_root(root: int, collective: Collective) -> None:
    if not 0 <= root < collective.group:
        message = f"root {root} is not along axis {collective.axis}"
        raise _refusal(message, f"0 <= root <= {collective.group - 1}", clause="AMB-RT-02")


def _resized(x: Tensor, dim: int, *, copies: int = 1, parts: int = 1) -> Tensor:
    """Return the type of `copies` tensors concatenated along a dimension, or of one of `parts` equal parts.

    Raises `Refusal` where the extent has no such parts.
    """
    require_axis(dim, x.rank)
    extent = x.shape[dim]
    if isinstance(extent, int) and extent % parts:
        message = f"dimension {dim % x.rank} of {x} has no {parts} equal parts"
        raise _refusal(message, f"an extent that the {parts} ranks of the group divide", clause="AMB-RT-04")
    unknown = extent if copies == parts else "?"
    shape = list(x.shape)
    shape[dim] = extent * copies // parts if isinstance(extent, int) else unknown
    return replace(x, shape=tuple(shape))
