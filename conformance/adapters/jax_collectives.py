"""Collectives of JAX over virtual devices of the CPU, one rank on each; `jax_adapter.py` has the devices made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from conformance.adapters.collective_requests import COMBINING, Request, share_sizes
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tessera_conformance.adapter import NotSupported

AXIS = "rank"
REDUCTIONS = {"sum": lax.psum, "mean": lax.pmean, "max": lax.pmax, "min": lax.pmin}

Rows = list[np.ndarray[Any, np.dtype[Any]]]


def carried_out(request: Request, arrays: Rows) -> Rows:
    """Return the flat results of the ranks from flat inputs; data that is only moved travels as bytes.

    Raises:
        NotSupported: JAX has no such collective.
    """
    width = arrays[0].dtype.itemsize
    combining = request.operation in COMBINING
    brought = arrays if combining else [array.view(np.uint8) for array in arrays]
    outputs: dict[int, Any] = {}
    if request.operation == "send_recv":
        return [row.view(array.dtype) for row, array in zip(_exchanged(request, brought), arrays, strict=True)]
    for group in request.groups:
        rows = [brought[rank] for rank in group]
        results = _of_group(request, group, rows, request.chunk * (1 if combining else width))
        outputs |= dict(zip(group, results, strict=True))
    return [np.ascontiguousarray(outputs[rank]).view(arrays[rank].dtype) for rank in range(len(arrays))]


def _of_group(request: Request, group: tuple[int, ...], rows: Rows, chunk: int) -> Rows:
    sizes = share_sizes(rows[0].size, len(rows))
    if request.operation == "reduce_scatter":
        if request.op not in ("sum", "mean"):
            raise NotSupported(f"reduce_scatter {request.op} in JAX")
        cuts = np.cumsum(sizes)[:-1]
        padded = [np.concatenate(_filled(np.split(row, cuts), max(sizes))) for row in rows]
        scattered = _run("reduce_scatter", "", group, padded)
        divisor = rows[0].dtype.type(len(rows) if request.op == "mean" else 1)
        return [(row[:size] / divisor).astype(row.dtype) for row, size in zip(scattered, sizes, strict=True)]
    if request.operation == "all_gather":
        counts = [row.size for row in rows]
        gathered = _run("all_gather", "", group, _filled(rows, max(counts)))
        blocks = [row.reshape(len(rows), -1) for row in gathered]
        return [np.concatenate([part[:n] for part, n in zip(block, counts, strict=True)]) for block in blocks]
    if request.operation == "all_to_all":
        return _run("all_to_all", "", group, rows)
    if request.op == "prod" or request.operation == "broadcast":  # lax.pbroadcast is not there for the CPU
        raise NotSupported(f"{request.operation} {request.op}".strip() + " in JAX on the CPU")
    step = chunk or max(rows[0].size, 1)
    parts = [
        _run("all_reduce", request.op, group, [row[first : first + step] for row in rows])
        for first in range(0, max(rows[0].size, 1), step)
    ]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _exchanged(request: Request, rows: Rows) -> Rows:
    """Return the ranks' results of sends that are a permutation; a rank that receives nothing keeps its own.

    A rank that takes no part may have a buffer of another size: rows are filled up to the longest.
    """
    targets = {target for _, target in request.pairs}
    filled = _filled(rows, max(row.size for row in rows))
    received = _run("send_recv", "", request.groups[0], filled, request.pairs)
    return [received[rank][: row.size] if rank in targets else row for rank, row in enumerate(rows)]


def _filled(rows: Sequence[Any], size: int) -> Rows:
    """Rows of one size, as JAX needs them."""
    return [np.concatenate([row, np.zeros(size - row.size, row.dtype)]) for row in rows]


def _run(operation: str, op: str, group: tuple[int, ...], rows: Rows, pairs: tuple[tuple[int, int], ...] = ()) -> Rows:
    compiled, sharding = _compiled(operation, op, group, pairs)
    return list(np.asarray(compiled(jax.device_put(np.stack(rows), sharding))))


@cache
def _compiled(operation: str, op: str, group: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> tuple[Any, Any]:
    """The collective over the devices of these ranks, in this order, of an array whose rows are what each has."""
    local: dict[str, Callable[[Any], Any]] = {
        "all_reduce": lambda row: REDUCTIONS[op](row, AXIS),
        "reduce_scatter": lambda row: lax.psum_scatter(row[0], AXIS, tiled=True)[None],
        "all_gather": lambda row: lax.all_gather(row[0], AXIS, tiled=True)[None],
        "send_recv": lambda row: lax.ppermute(row, AXIS, pairs),
        "all_to_all": lambda row: lax.all_to_all(row[0], AXIS, 0, 0, tiled=True)[None],
    }
    mesh = Mesh(np.array([jax.devices()[rank] for rank in group]), (AXIS,))
    across = PartitionSpec(AXIS)
    part = jax.shard_map(local[operation], mesh=mesh, in_specs=across, out_specs=across, check_vma=False)
    return jax.jit(part), NamedSharding(mesh, across)
