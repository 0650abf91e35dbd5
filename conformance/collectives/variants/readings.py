"""Implementations that follow the alternatives of interpretations of collectives, one each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_conformance.tensors import Tensor
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter, collectives
from tessera_reference.adapter import collectives as payloads
from tessera_reference.collectives import all_reduce, compression, operations, travel
from tessera_reference.collectives.compression import ChunkSize, Sparse, read_chunk_size, sparsify
from tessera_reference.graph import futures
from tessera_reference.graph.futures import FutureCollective, require_chunk
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.quantization import TopK, top_k

RUNS = (
    "collectives/operations/*",
    "collectives/algorithms/*",
    "collectives/products-and-means/*",
    "collectives/wire/*",
)


def refuse(problem: str, code: str = "TESS_ERR_INVALID_VALUE") -> Refusal:
    """A refusal of a call."""
    return Refusal(code, "call", problem)


@varies("AMB-COLL-29", "combines each chunk as a collective of its own", "collectives/algorithms/*")
class ChunksApart(ReferenceAdapter):
    """An element's order follows from its place in its chunk."""

    def collectives_run(
        self, *, inputs: Sequence[Tensor], chunk: int | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Sums that have an order, chunk by chunk."""
        apart = chunk and arguments["operation"] == "all_reduce" and arguments.get("level") == "deterministic"
        if not apart or arguments.get("messages"):
            return super().collectives_run(inputs=inputs, chunk=chunk, **arguments)
        rows = [x.words() for x in inputs]
        answers = []
        for first in range(0, inputs[0].size, chunk or 1):
            parts = [row[first : first + (chunk or 1)] for row in rows]
            tensors = [Tensor.from_words(inputs[0].dtype, part.shape, part.tolist()) for part in parts]
            answers.append(super().collectives_run(inputs=tensors, **arguments))
        joined = [b"".join(answer["outputs"][rank].data for answer in answers) for rank in range(len(inputs))]
        outputs = [Tensor(x.dtype, x.shape, data) for x, data in zip(inputs, joined, strict=True)]
        return {**answers[0], "outputs": outputs}


@varies("AMB-COLL-31", "sums and finds extremes, and nothing else", *RUNS)
class ThreeOperators(ReferenceAdapter):
    """The operators of tessCollOp."""

    def collectives_run(self, *, op: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Products and means are refused."""
        if op in ("prod", "mean"):
            raise refuse(f"operator {op}", "TESS_ERR_UNSUPPORTED")
        return super().collectives_run(op=op, **arguments)


@varies("AMB-COLL-32", "lets ranks stand in no group", "collectives/operations/*")
class RanksLeftOut(ReferenceAdapter):
    """Such a rank keeps its buffer."""

    def collectives_run(
        self, *, inputs: Sequence[Tensor], groups: Sequence[Sequence[int]] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Ranks of no group are a group each, of one."""
        named = [rank for group in groups or () for rank in group]
        lonely = [[rank] for rank in range(len(inputs)) if rank not in named] if groups else []
        return super().collectives_run(inputs=inputs, groups=[*groups, *lonely] if groups else None, **arguments)


@varies("AMB-COLL-34", "exchanges blocks of different sizes", "collectives/operations/*")
class BlocksOfShares(ReferenceAdapter):
    """Block s is the share that rank s owns."""

    def collectives_run(self, *, inputs: Sequence[Tensor], **arguments: Any) -> dict[str, Any]:
        """Return the blocks that other ranks have for a rank, in order."""
        ranks, count = len(inputs), inputs[0].size
        sizes = {x.size for x in inputs}
        if arguments["operation"] != "all_to_all" or len(sizes) > 1 or count % ranks == 0:
            return super().collectives_run(inputs=inputs, **arguments)
        cuts = [rank * count // ranks for rank in range(1, ranks)]
        blocks = [np.split(x.words(), cuts) for x in inputs]
        rows = [np.concatenate([block[rank] for block in blocks]) for rank in range(ranks)]
        return {"outputs": [Tensor.from_words(inputs[0].dtype, row.shape, row.tolist()) for row in rows]}


@varies("AMB-COLL-05", "sends data whole where bits are promised", "collectives/wire/*")
class SentWhole(ReferenceAdapter):
    """A lossy wire is passed over under deterministic and strict."""

    def collectives_run(self, *, wire: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Without the wire, where it is refused with TESS_ERR_DETERMINISM_VIOLATION."""
        try:
            return super().collectives_run(wire=wire, **arguments)
        except Refusal as refusal:
            if (
                refusal.outcome.code != "TESS_ERR_DETERMINISM_VIOLATION"
                or arguments.get("qscheme")
                or arguments.get("block")
            ):
                raise
            return super().collectives_run(**arguments)


@varies("AMB-COLL-06", "has wires for data of at most 32 bits", "collectives/wire/*")
class NoWideData(ReferenceAdapter):
    """fp64 data have no wire."""

    def collectives_run(self, *, inputs: Sequence[Tensor], wire: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Refused with a wire."""
        if wire is not None and inputs[0].dtype == "fp64":
            raise refuse("fp64 over a wire", "TESS_ERR_UNSUPPORTED")
        return super().collectives_run(inputs=inputs, wire=wire, **arguments)


def nan_first(function: str, x: Array, k: int) -> Sparse:
    """The elements of largest magnitude, NaN before all numbers."""
    if x.dtype.kind != "float" or not np.isnan(x.values).any():
        return sparsify(function, x, k)
    numbers = np.where(np.isnan(x.values), x.values.dtype.type(x.dtype.max_finite), x.values)
    places = sparsify(function, Array(x.dtype, numbers), k).indices
    rest = x.values.reshape(-1).copy()
    sent = Array(x.dtype, rest[places.values])
    rest[places.values] = 0
    return Sparse(places, sent, Array(x.dtype, rest.reshape(x.shape)))


def at_most_all(function: str, x: Array, k: int) -> Sparse:
    """The elements of largest magnitude, all of them where k is larger."""
    return sparsify(function, x, min(k, x.values.size))


def last_of_ties(values: Array, k: int) -> TopK:
    """The elements of largest magnitude; of equal magnitudes the later ones."""
    backwards = top_k(Array(values.dtype, values.values[::-1].copy()), k)
    places = values.values.size - 1 - backwards.indices.values[::-1]
    return TopK(Array(values.dtype, values.values[places]), Array(backwards.indices.dtype, places.copy()))


TOP = ("collectives/top-k/*",)
TIES = altered(
    "AMB-COLL-27",
    "sends the later of elements of one magnitude",
    TOP,
    ReferenceAdapter,
    (compression, "top_k", last_of_ties),
    name="last_of_ties",
)
TOP_K = [
    altered("AMB-COLL-40", description, TOP, ReferenceAdapter, (payloads, "sparsify", send), name=name)
    for name, description, send in (
        ("nan_sent", "takes NaN for the largest magnitude", nan_first),
        ("any_k", "sends all elements where k is larger", at_most_all),
    )
]


@varies(
    "AMB-COLL-07", "knows fp8 formats by their full names alone", "collectives/compression/*", "collectives/packing/*"
)
class FullNames(ReferenceAdapter):
    """fp8 says too little."""

    def collectives_compress(self, *, dtype: Any, **arguments: Any) -> dict[str, Any]:
        """Refused for fp8."""
        if dtype == "fp8":
            raise refuse("wire fp8")
        return super().collectives_compress(dtype=dtype, **arguments)

    def collectives_pack(self, *, dtype: Any = None, **arguments: Any) -> dict[str, Any]:
        """Refused for fp8."""
        if dtype == "fp8":
            raise refuse("wire fp8")
        return super().collectives_pack(dtype=dtype, **arguments)


@varies("AMB-COLL-03", "refuses a second await", "collectives/waiting/a-second-await-*")
class AwaitedOnce(ReferenceAdapter):
    """A future is used up."""

    def collectives_execute(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """Refused where a text awaits a future twice."""
        awaited = [
            line.split("tessera.await", 1)[1].split(":")[0].strip()
            for line in text.splitlines()
            if "tessera.await" in line
        ]
        if len(set(awaited)) < len(awaited):
            raise refuse("a future is awaited twice")
        return super().collectives_execute(text=text, **arguments)


COLONS = altered(
    "AMB-COLL-15",
    "takes the type after the colon for that of the future",
    ("collectives/futures/a-collective-yields-*",),
    ReferenceAdapter,
    (FutureCollective, "lone_type", "result"),
    name="colon_of_the_future",
)


@varies(
    "AMB-COLL-101",
    "asks every reduction for its op",
    "collectives/futures/a-reduction-says-*",
    "collectives/program-examples/an-all-reduce-without-*",
)
class OpRequired(ReferenceAdapter):
    """No operator is presumed."""

    def language_verify_ir(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """Refused where a reduction has no op."""
        for line in text.splitlines():
            if re.search(r"collective\.(all_reduce|reduce_scatter)", line) and "op" not in line.partition("{")[2]:
                raise refuse("a reduction without op")
        return super().language_verify_ir(text=text, **arguments)


@varies("AMB-COLL-35", "takes KB for 1000 bytes", "collectives/futures/*", "collectives/chunks/*")
class Thousands(ReferenceAdapter):
    """Decimal units of chunks."""

    def language_verify_ir(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """Read sizes in KB and MB."""
        return super().language_verify_ir(text=in_bytes(text), **arguments)

    def collectives_read(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """Read sizes in KB and MB."""
        return super().collectives_read(text=in_bytes(text), **arguments)

    def collectives_chunks(self, *, chunk: Any = None, **arguments: Any) -> dict[str, Any]:
        """Read sizes in KB and MB."""
        plain = in_bytes(chunk) if isinstance(chunk, str) else chunk
        return super().collectives_chunks(chunk=int(plain) if plain != chunk else chunk, **arguments)


def in_bytes(text: str) -> str:
    """Sizes in decimal units as numbers of bytes."""
    sizes = re.compile(r"(\bchunk=|\bchunk_bytes=|^)(\d+)([KM])B\b")
    return sizes.sub(lambda size: f"{size[1]}{int(size[2]) * (10**3 if size[3] == 'K' else 10**6)}", text)


@varies("AMB-COLL-11", "takes a set of scopes", "collectives/futures/a-value-that-an-attribute-*")
class SetsOfScopes(ReferenceAdapter):
    """A scope may stand in a list."""

    def language_verify_ir(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """Take the scope out of its list."""
        return super().language_verify_ir(text=re.sub(r'scope=\[("\w+")\]', r"scope=\1", text), **arguments)


@varies(
    "AMB-COLL-50", "notices no future that nobody awaits", "collectives/disagreeing-ranks/a-rank-that-never-comes-*"
)
class Unnoticed(ReferenceAdapter):
    """A collective that never completes and is never used is dropped."""

    def collectives_execute(self, *, text: str, **arguments: Any) -> dict[str, Any]:
        """The inputs, where the run would be refused and nothing is awaited."""
        try:
            return super().collectives_execute(text=text, **arguments)
        except Refusal:
            if "tessera.await" in text:
                raise
            return {"ranks": [{"outputs": [rank["x"]]} for rank in arguments["ranks"]]}


CHUNKED = ("collectives/futures*", "collectives/chunks/*", "collectives/disagreeing-ranks/*", "collectives/waiting/*")
TERMS = FutureCollective.terms


def each_alone(chunk: Any, chunk_bytes: Any) -> None:
    """Require of each that it is a chunk."""
    require_chunk(chunk, None)
    require_chunk(None, chunk_bytes)


def read_alone(function: str, chunk: Any = None, chunk_bytes: Any = None) -> ChunkSize:
    """Let `chunk_bytes` decide if both sizes are given."""
    if chunk is not None and chunk_bytes is not None:
        read_chunk_size(function, chunk)
    return read_chunk_size(function, None if chunk_bytes is not None else chunk, chunk_bytes)


def by_their_names(collective: FutureCollective) -> dict[str, object]:
    """Each of the two has to be alike."""
    chunks = {name: value for name, value in collective.attributes.items() if name in ("chunk", "chunk_bytes")}
    return {name: value for name, value in TERMS(collective).items() if name != "chunk"} | chunks


def with_hints(collective: FutureCollective) -> dict[str, object]:
    """Hints have to be alike."""
    names = ("scope", "path", "priority", "overlap", "qos")
    return TERMS(collective) | {name: value for name, value in collective.attributes.items() if name in names}


TWO_ATTRIBUTES = altered(
    "AMB-COLL-01",
    "takes chunk and chunk_bytes for two attributes",
    CHUNKED,
    ReferenceAdapter,
    (futures, "require_chunk", each_alone),
    (payloads, "read_chunk_size", read_alone),
    (FutureCollective, "terms", by_their_names),
    name="two_attributes",
)
HINTS = altered(
    "AMB-COLL-52",
    "wants the same hints on all ranks",
    CHUNKED,
    ReferenceAdapter,
    (FutureCollective, "terms", with_hints),
    name="hints_must_agree",
)

REDUCED = ("collectives/all-reduce/*", "runtime/collective*", "runtime/policy/*")
LARGEST = 57344.0
"""The largest finite number of fp8_e5m2."""


def saturating(buffers: Sequence[Array], op: Any, **more: Any) -> Array:
    """Extremes of fp8_e5m2 are finite."""
    found = all_reduce(buffers, op, **more)
    if found.dtype.name != "fp8_e5m2" or op not in ("max", "min"):
        return found
    return Array(found.dtype, np.where(np.isinf(found.values), np.copysign(LARGEST, found.values), found.values))


EXTREMES = altered(
    "AMB-COLL-30",
    "saturates extremes of fp8_e5m2",
    REDUCED,
    ReferenceAdapter,
    (operations, "all_reduce", saturating),
    (collectives, "all_reduce", saturating),
    name="saturating_extremes",
)

CUT = travel.Progress._cut


def failed_by_a_cut(progress: Any, now: int, leaving: Sequence[Any]) -> list[Any]:
    """Raise `Failure` where a link fails that a message is on, or has yet to take."""
    failed = {cut.link for cut in progress._cuts if cut.at == now}
    messages = [unit for due in progress._due.values() for unit in due.arrived]
    messages += [unit for lane in progress._lanes.values() for unit in lane.waiting]
    messages += [unit for part in progress._needs.values() for needs in part.values() for unit in needs.to_send]
    if any(not failed.isdisjoint(unit.way.names) for unit in (*messages, *leaving)):
        actual = f"a collective during which {', '.join(sorted(failed))} failed"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "collective", actual, "links that stay up")
    return CUT(progress, now, leaving)


CUTS = altered(
    "AMB-COLL-79",
    "fails a collective during which one of its links fails",
    ("collectives/link-cuts/*", "runtime/link-cuts/*"),
    ReferenceAdapter,
    (travel.Progress, "_cut", failed_by_a_cut),
    name="failed_by_a_cut",
)
