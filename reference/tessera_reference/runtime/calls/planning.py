"""Extensions: algorithms, collectives of one rank, the contents of the cache, explanations (spec 8.2, 13, 17)."""

# ruff: noqa: N802, the names are those of the C API

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...abi.cache_entry import CacheEntry
from ...abi.descriptor import Descriptor
from ...abi.enumerations import CollOp
from ...abi.fatbin.entries import COLLECTIVES
from ...abi.policy import NumericsPolicy
from ...collectives.thresholds import ALGORITHMS
from ...numerics.formats import DTYPES
from ..algorithms import Plan
from ..arguments import integer, named, of_type, reported_by
from ..collective_arguments import collective_work, read_call
from ..collectives import FUNCTIONS, Issued
from ..entries import entry
from ..state import State
from ..submission import submit

__all__ = ["Explained"]

BOOL = DTYPES["bool"].abi_id


@dataclass(frozen=True)
class Explained:
    """The explanation of a module, as text and as a value (RT-17-03, RT-17-08, RT-17-09)."""

    text: str
    value: Mapping[str, Any]


@entry()
def tessxIssue(
    state: State,
    mesh: Any,
    rank: int,
    collective: str,
    buffer: Any,
    count: int,
    dtype: int,
    stream: Any,
    *,
    op: Any = None,
    axis: Any = None,
    root: Any = None,
    algorithm: str | None = None,
    descriptor: Descriptor | None = None,
    policy: Any = None,
) -> None:
    """Issue a collective on one rank; the n-th of each rank of a stream are one collective (AMB-RT-41)."""
    on, queue = state.mesh(mesh), state.stream(stream)
    integer("rank", rank, (0, len(on.devices) - 1))
    queue.require_of(on)
    named("collective", collective, COLLECTIVES)
    if algorithm is not None:
        named("algorithm", algorithm, ALGORITHMS)
    if descriptor is not None:
        of_type("descriptor", descriptor, Descriptor)
    if policy is not None:
        of_type("policy", policy, NumericsPolicy)
    with reported_by(FUNCTIONS[collective]):
        call = read_call(on, state.code, collective, count, dtype, op=op, axis=axis, root=root, algorithm=algorithm)
        work = collective_work(call, buffer, queue, policy or on.context.governing(), descriptor, rank)
    issued = state.issued.setdefault(queue, Issued())
    number = issued.counts.get(rank, 0) + 1
    work.rendezvous = issued.rendezvous.setdefault(number, {})
    submit(state, work, captured=False)
    issued.counts[rank] = number


@entry("plan")
def tessxCollectivePlan(state: State, mesh: Any, collective: str, count: int, dtype: int, axis: Any) -> Plan:
    """The algorithm by which a collective would run, and why (RT-13-03 to -08)."""
    on = state.mesh(mesh)
    named("collective", collective, COLLECTIVES)
    root, along = (0, None) if collective == "broadcast" else (None, axis)
    op = CollOp.TESS_COLL_MAX if dtype == BOOL else CollOp.TESS_COLL_SUM  # one that the dtype has
    return read_call(on, state.code, collective, count, dtype, op=int(op), axis=along, root=root).plan


@entry()
def tessxSetAlgorithm(state: State, ctx: Any, collective: str, algorithm: str | None, source: str) -> None:
    """A schedule's hint, or an autotuner's result, for a collective; None takes it back (RT-13-06, RT-13-07)."""
    context = state.context(ctx)
    named("collective", collective, COLLECTIVES)
    named("source", source, ("hint", "autotuner"))
    chosen = context.hints if source == "hint" else context.tuned
    if algorithm is None:
        chosen.pop(collective, None)
    else:
        named("algorithm", algorithm, ALGORITHMS)
        chosen[collective] = algorithm


@entry("explanation")
def tessxExplain(state: State, module: Any) -> Explained:
    """Fusion groups, tile shapes and collective plans of a module (runtime spec 17, AMB-RT-36)."""
    from ...compilation.explanation import explanation_text, explanation_value

    metadata = state.module(module).fatbin.metadata
    return Explained(explanation_text(metadata), explanation_value(metadata))


@entry("entries")
def tessxCacheEntries(state: State) -> Sequence[tuple[Path, CacheEntry]]:
    """What the cache directories of the live contexts hold (AMB-RT-69). Raises TESS_ERR_CACHE_CORRUPT."""
    found: dict[Path, CacheEntry] = {}
    for _, context in state.handles.live("context"):
        store = state.code.store(context)
        if store is not None:
            found.update((store.path(each.kind, each.key), each) for each in store.entries())
    return tuple(found.items())
