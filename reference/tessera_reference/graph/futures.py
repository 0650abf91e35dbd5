"""The dialect of collectives (collectives spec 2, 3, 8).

Futures, messages between two ranks, and common attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ..ir.attributes import ByteCount
from ..ir.diagnostics import did_you_mean
from ..ir.operation import (
    Arrival,
    Attribute,
    Operand,
    Refusal,
    Shown,
    StepEnvironment,
    Steps,
    Stepwise,
    operation,
)
from ..ir.types import LAYOUTS, Future, Mesh, Numeric, Scalar, Shard, Tensor
from ..numerics.array import Array
from ..numerics.formats import DTYPES, DType
from .collectives import (
    OPERATORS,
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    RootBroadcast,
    resolve_axis,
)

# The attributes that all collectives of the dialect take, and their values (collectives spec 2, 3, 8).
#
# `scope`, `algo`, `path` and `chunk` determine how a collective travels, `dtype` as what; `priority`, `overlap` and
# `qos` are kept as written (AMB-COLL-19). None of them changes the result; `algo` gives the order of a reduction under
# another level than strict (AMB-COLL-96).


SCOPES = ("intra_sm", "intra_gpu", "node", "rack")
ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "hierarchical", "direct")
ALL_TO_ALL_ALGORITHMS = ("ring", "direct")
"""The algorithms that send each block directly to its rank (AMB-COLL-34)."""
PATHS = ("auto", "nvlink", "pcie", "rdma", "network")
WIRES = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}
"""The dtypes on a wire by their names (AMB-COLL-07)."""
SCHEMES = ("blockwise",)
LARGEST_CHUNK = 2**63 - 1


def require_known(name: str, actual: str | None, names: Sequence[str], clause: str) -> None:
    """Refuse a value that an attribute does not have, and suggest the nearest one that it has."""
    if actual is not None and actual not in names:
        message = f"there is no {name} {str(actual)[:40]!r}"
        requirement = f"{name} = one of {', '.join(names)}"
        raise Refusal("distributed", message, requirement, clause, did_you_mean(actual or "", names))


def require_chunk(chunk: ByteCount | None, chunk_bytes: ByteCount | None) -> None:
    """Refuse a chunk of no bytes, and two names of the attribute with different values (AMB-COLL-01)."""
    for name, value in (("chunk", chunk), ("chunk_bytes", chunk_bytes)):
        if value is not None and not 1 <= value <= LARGEST_CHUNK:
            raise Refusal("distributed", f"{name} is {value}", f"1 <= {name} <= {LARGEST_CHUNK} bytes", "COLL-02.3-01")
    if chunk is not None and chunk_bytes is not None and chunk != chunk_bytes:
        message = f"chunk is {chunk} and chunk_bytes is {chunk_bytes}"
        requirement = "one of them, or the same number of bytes"
        raise Refusal("distributed", message, requirement, "AMB-COLL-01", "leave one out")


def require_wire(wire: str | None, scheme: str | None, x: Numeric) -> None:
    """Refuse unknown values, a wire for data that are not floats, and scales without a wire or fp32 data."""
    require_known("dtype", wire, tuple(WIRES), "COLL-02.5-01")
    require_known("qscheme", scheme, SCHEMES, "COLL-02.5-02")
    if scheme is not None and (wire is None or x.dtype.name != "fp32"):
        message = f"qscheme is {scheme!r}, dtype is {wire!r}, the data are {x.dtype}"
        raise Refusal("distributed", message, "no qscheme, or a dtype and data of fp32", "COLL-02.5-02")
    if wire is not None and x.dtype.kind != "float":
        message = f"dtype is {wire!r}, the data are {x.dtype}"
        raise Refusal("distributed", message, "no dtype, or data of a float dtype", "COLL-02.5-01")


def loses(wire: str | None, data: DType) -> bool:
    """True if some value of a dtype has no equal in the wire dtype of that name (AMB-COLL-53)."""
    return wire is not None and not holds(DTYPES[WIRES[wire]], data)


def holds(wire: DType, data: DType) -> bool:
    """True if a dtype has every value of another; dtypes of different kinds have none of each other's."""
    storage = data.storage
    if wire in (data, storage) or wire.kind != storage.kind:
        return wire in (data, storage)
    if storage.kind == "int":
        return wire.bits >= storage.bits
    return (
        wire.fraction_bits >= storage.fraction_bits
        and wire.max_finite >= storage.max_finite
        and wire.min_subnormal <= storage.min_subnormal
        and wire.has_infinity >= storage.has_infinity
    )


# Collectives that yield futures, `tessera.collective`, and `tessera.await` (collectives spec 2.1, 8; AMB-COLL-15).
#
# A rank that issues a collective continues; it waits where it awaits the future, and there alone. These operations
# share the data of Graph IR's collectives and compute the same: neither scope nor path or chunk changes a bit, and the
# algorithm only the order of a reduction under another level than strict, which the run of the program chooses
# (AMB-COLL-96). The planner and the message schedules determine what travels and when.


COMMON_CLAUSES = ("COLL-02.1-01", "COLL-08-15", "COLL-08-01", "COLL-08-02", "COLL-08-03", "COLL-08-04", "COLL-08-05")
_TERMS = ("op", "root", "dim", "split", "concat", "algo", "dtype", "qscheme")
"""Fields on which the ranks of a group must agree, beside the chunk (AMB-COLL-52)."""


@dataclass(frozen=True)
class FutureCollective(Collective):
    """The base of collectives with a future: attributes, the ranks that take part, and a handle as the value."""

    axis: Attribute[str | None] = None  # type: ignore[assignment]  # may be left out (AMB-COLL-02)
    subgroup: Attribute[Shard | None] = field(default=None, kw_only=True)
    chunk: Attribute[ByteCount | None] = field(default=None, kw_only=True)
    chunk_bytes: Attribute[ByteCount | None] = field(default=None, kw_only=True)
    algo: Attribute[str | None] = field(default=None, kw_only=True)
    path: Attribute[str | None] = field(default=None, kw_only=True)
    scope: Attribute[str | None] = field(default=None, kw_only=True)
    dtype: Attribute[str | None] = field(default=None, kw_only=True)
    qscheme: Attribute[str | None] = field(default=None, kw_only=True)
    priority: Attribute[Any] = field(default=None, kw_only=True)
    overlap: Attribute[Any] = field(default=None, kw_only=True)
    qos: Attribute[Any] = field(default=None, kw_only=True)

    lone_type = "operand"

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the ranks of the axis, of the subgroup, or of the only axis with several ranks (AMB-COLL-02)."""
        axis, subgroup, mesh = (shown.attributes.get(name) for name in ("axis", "subgroup", "mesh"))
        if axis is not None and subgroup is not None:
            message = f"axis is {axis} and subgroup is {subgroup}"
            raise Refusal("distributed", message, "one of them", "AMB-COLL-02", "leave one out")
        name = None if mesh is None else str(mesh)
        if axis is None and subgroup is None:
            axis = _only_axis(shown.meshes, name)
        met = subgroup if isinstance(subgroup, Shard) else Shard((str(axis),))
        grid, group = _size_of(met, shown.meshes, name)
        return {"group": group, "grid": grid, "met": met}

    def infer(self) -> Future:  # type: ignore[override]  # a future of the collective's result
        """Return a future of the result of Graph IR's collective."""
        require_known("algo", self.algo, ALGORITHMS, "COLL-03.2-04")
        require_known("path", self.path, PATHS, "COLL-03.2-05")
        require_known("scope", self.scope, SCOPES, "COLL-02.2-01")
        require_chunk(self.chunk, self.chunk_bytes)
        require_wire(self.dtype, self.qscheme, self.x)
        return Future(self.result_type())

    @property
    def chunk_size(self) -> ByteCount | None:
        """The bytes of a chunk, under either name (AMB-COLL-01)."""
        return self.chunk if self.chunk is not None else self.chunk_bytes

    def terms(self) -> dict[str, object]:
        own: dict[str, object] = {name: value for name, value in self.attributes.items() if name in _TERMS}
        return own | ({} if self.chunk_size is None else {"chunk": self.chunk_size})


@dataclass(frozen=True)
class GroupCollective(FutureCollective):
    """A collective of a whole group, which a collective of Graph IR computes."""

    computed_by: ClassVar[type[Collective]]
    """The class of that collective, all of whose fields this one has."""

    def result_type(self) -> Numeric:
        (result,) = self.plain().results()
        assert isinstance(result, Tensor | Scalar)
        return result

    def plain(self) -> Collective:
        """Return the collective of Graph IR that computes the same."""
        own = {field.name: getattr(self, field.name) for field in fields(self.computed_by)}
        return self.computed_by(**own | self.along())

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        return self.plain().combine(contributions)

    def along(self) -> dict[str, Any]:
        return super().along() | {"axis": self.axis or str(self.met)}


@dataclass(frozen=True)
class AllReduceOfAny(AllReduce):
    """An all_reduce with the operators of the collectives (AMB-COLL-31)."""

    operators = (*OPERATORS, "prod", "mean")


@dataclass(frozen=True)
class ReduceScatterOfAny(ReduceScatter):
    """A reduce_scatter with the operators of the collectives."""

    operators = AllReduceOfAny.operators


@operation("tessera.collective.all_reduce", clauses=(*COMMON_CLAUSES, "COLL-02.3-07", "COLL-09.1-01"))
class IssueAllReduce(GroupCollective):
    """Every rank of the group will receive the combination of all operands."""

    op: Attribute[str] = field(default="sum", kw_only=True)

    computed_by = AllReduceOfAny


@operation("tessera.collective.reduce_scatter", clauses=(*COMMON_CLAUSES, "COLL-02.1-04"))
class IssueReduceScatter(GroupCollective):
    """Rank i of the group will receive the i-th of equal parts, along `dim`, of the combination (AMB-RT-04)."""

    x: Operand[Tensor]
    op: Attribute[str] = field(default="sum", kw_only=True)
    dim: Attribute[int] = field(default=0, kw_only=True)

    computed_by = ReduceScatterOfAny


@operation("tessera.collective.all_gather", clauses=(*COMMON_CLAUSES, "COLL-09.2-02"))
class IssueAllGather(GroupCollective):
    """Every rank of the group will receive all operands, concatenated along `dim`."""

    x: Operand[Tensor]
    dim: Attribute[int] = field(default=0, kw_only=True)

    computed_by = AllGather


@operation("tessera.collective.broadcast", clauses=COMMON_CLAUSES)
class IssueBroadcast(GroupCollective):
    """Every rank of the group will receive the operand of the root; `root` is its place in the group."""

    root: Attribute[int] = field(default=0, kw_only=True)

    computed_by = RootBroadcast


@operation("tessera.collective.all_to_all", clauses=COMMON_CLAUSES)
class IssueAllToAll(GroupCollective):
    """Part s, along `split`, of the operand of rank r will be part r, along `concat`, of the result of rank s."""

    x: Operand[Tensor]
    split: Attribute[int] = field(default=0, kw_only=True)
    concat: Attribute[int] = field(default=0, kw_only=True)

    computed_by = AllToAll

    def infer(self) -> Future:  # type: ignore[override]  # as of all futures
        """Return a future of the blocks; not every algorithm carries them."""
        future = super().infer()
        able = ("auto", *ALL_TO_ALL_ALGORITHMS)
        if self.algo is not None and self.algo not in able:
            raise Refusal("distributed", f"algo is {self.algo!r}", f"algo = one of {', '.join(able)}", "AMB-COLL-34")
        return future


@operation("tessera.await", clauses=("COLL-02.1-05",))
class Await(Stepwise):
    """The value of a future, for which the rank waits; a second await has the same value (AMB-COLL-03)."""

    future: Operand[Future]

    effects = frozenset({"communication"})
    layouts = frozenset(LAYOUTS)
    transparent = False
    takes_futures = True

    def infer(self) -> Numeric:
        """Return the type of the future's value."""
        return self.future.value

    def steps(self, handle: Array, env: StepEnvironment) -> Steps:
        return (yield Arrival(self, (handle,), env.location))


def _only_axis(meshes: Mapping[str, Mesh], mesh: str | None) -> str:
    """Return the only axis of the mesh in force that has several ranks. Raises `Refusal` (AMB-COLL-02)."""
    names = [mesh] if mesh is not None and mesh in meshes else list(meshes)
    several = [
        axis for name in names for axis, extent in zip(meshes[name].axes, meshes[name].shape, strict=True) if extent > 1
    ]
    if len(names) != 1 or len(several) != 1:
        raise Refusal(
            "distributed",
            "along which axis? "
            + (f"{', '.join(several)} have several ranks" if several else "none has several ranks"),
            "axis or subgroup, unless the mesh has a single axis larger than 1",
            "AMB-COLL-02",
            f'say along which: axis = "{several[0] if several else "dp"}"',
        )
    return several[0]


def _size_of(met: Shard, meshes: Mapping[str, Mesh], mesh: str | None) -> tuple[str, int]:
    """Return the mesh in force and the number of ranks of a group. Raises `Refusal`."""
    if met.groups:
        some = meshes.get(mesh or "") or next(iter(meshes.values()), Mesh(("any",), (1,)))
        grid, _ = resolve_axis(meshes, some.axes[0], mesh)
        most = max(max(group) for group in met.groups)
        if most >= meshes[grid].size:
            message = f"there is no rank {most}"
            raise Refusal("distributed", message, f"ranks 0 to {meshes[grid].size - 1} of mesh {grid}", "COLL-02.2-03")
        return grid, len(met.groups[0])
    grid, group = "", 1
    for axis in met.axes:
        grid, extent = resolve_axis(meshes, axis, mesh)
        group *= extent
    return grid, group


# Messages between two ranks, `tessera.collective.send` and `recv`, with futures (collectives spec 2.1; AMB-COLL-59).
#
# A send of rank s to rank t matches a recv of rank t from rank s with the same tag: the n-th send the n-th recv.
# Neither
# waits where it is issued; the future of each has its value once both are issued. So ranks that await their sends
# before they issue their recvs wait for each other. Messages from any rank or of any tag are left out.


LARGEST_TAG = 2**31 - 1


@dataclass(frozen=True)
class PointToPoint(FutureCollective):
    """The base of send and recv: the other end, as a place in the group or a distance in it, and a tag."""

    peer: Attribute[int | None] = field(default=None, kw_only=True)
    """The place of the other rank in the group."""
    shift: Attribute[int | None] = field(default=None, kw_only=True)
    """The place of the other rank minus the own place, around the group."""
    tag: Attribute[int] = field(default=0, kw_only=True)

    sends: ClassVar[bool]

    def infer(self) -> Future:  # type: ignore[override]  # a future, as of every collective of the dialect
        """Return a future of the operand's type; the other rank is in the group, and is not the own one."""
        if (self.peer is None) == (self.shift is None):
            message = f"peer is {self.peer} and shift is {self.shift}"
            requirement = "one of peer and shift"
            remedy = "say which rank is the other end: peer = 0, or shift = 1 for the next one"
            raise Refusal("distributed", message, requirement, "AMB-COLL-59", remedy)
        group = self.group
        if group <= 1:
            raise Refusal(
                "distributed", f"a group of {group} rank has no other end", "a group of at least 2 ranks", "AMB-COLL-59"
            )
        if self.peer is not None and not 0 <= self.peer < group:
            raise Refusal(
                "distributed", f"peer {self.peer} is not {super().where()}", f"0 <= peer <= {group - 1}", "AMB-COLL-59"
            )
        if self.shift is not None and not 0 < abs(self.shift) < group:
            raise Refusal(
                "distributed",
                "a rank cannot be its own peer" if self.shift == 0 else f"shift is {self.shift} among {group} ranks",
                f"1 <= shift <= {group - 1}, or the same backwards: -{group - 1} <= shift <= -1",
                "AMB-COLL-59",
            )
        if not 0 <= self.tag <= LARGEST_TAG:
            raise Refusal("distributed", f"tag is {self.tag}", f"0 <= tag <= {LARGEST_TAG}", "AMB-COLL-59")
        return super().infer()

    def combine(self, contributions: Sequence[Array]) -> Sequence[Array]:
        """Return the sender's data at both ends; the receiver's operand is a buffer, whose values are not read."""
        data, _ = contributions
        return (data, data)

    def where(self) -> str:
        return f"with a {self.short_name} of tag {self.tag}"

    def ends(self, rank: int, ranks: Sequence[int]) -> tuple[int, int]:
        """Return the sender and the receiver, for the rank that issues this in a group. Raises `Refusal`."""
        place = ranks.index(rank)
        other = self.peer if self.peer is not None else (place + (self.shift or 0)) % len(ranks)
        if other == place:
            message = f"rank {rank} is its own peer"
            requirement = f"another rank {super().where()}"
            raise Refusal("distributed", message, requirement, "AMB-COLL-59", "keep the value: it is there already")
        return (rank, ranks[other]) if self.sends else (ranks[other], rank)


@operation("tessera.collective.send", clauses=COMMON_CLAUSES)
class Send(PointToPoint):
    """The peer will receive this rank's operand; the future has it too, once the peer has issued its recv."""

    x: Operand[Tensor | Scalar]

    sends = True


@operation("tessera.collective.recv", clauses=COMMON_CLAUSES)
class Recv(PointToPoint):
    """This rank will receive the peer's data, of the type of the operand, a buffer that is not read."""

    x: Operand[Tensor | Scalar]

    sends = False
