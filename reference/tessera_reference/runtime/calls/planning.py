"""Algorithms, single ranks' collectives, the cache, and what is told of a module (spec 8.2, 13, 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...abi.cache_entry import CacheEntry
from ...abi.descriptor import Descriptor
from ...abi.enumerations import CollOp
from ...abi.fatbin.entries import ALGORITHMS, COLLECTIVES
from ...abi.policy import NumericsPolicy
from ...compilation.explanation import explanation_text, explanation_value
from ...numerics.errors import shown
from ...numerics.formats import DTYPES
from ..algorithms import DEFAULT, Plan, plan
from ..arguments import integer, invalid, of_type
from ..collectives import FUNCTIONS, new_meeting
from ..state import entry, entry_giving
from .profiling import ProfilingCalls

__all__ = ["Explained", "PlanningCalls"]

BOOL = DTYPES["bool"].abi_id


@dataclass(frozen=True)
class Explained:
    """What tessExplain tells of a module (RT-17-03, RT-17-08, RT-17-09)."""

    text: str
    value: Mapping[str, Any]


class PlanningCalls(ProfilingCalls):
    """tessxIssue, tessxCollectivePlan, tessxSetAlgorithm, tessxExplain, tessxCacheEntries."""

    @entry
    def tessxIssue(  # noqa: N802
        self,
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
        """A collective as one rank issues it; the n-th of each rank of a stream meet (AMB-RT-41)."""
        function = "tessxIssue"
        on, queue = self.mesh(mesh, function), self.stream(stream, function)
        integer(function, "rank", rank, (0, len(on.devices) - 1))
        if queue.mesh is not on:
            raise invalid(function, f"stream {stream}, which is not of mesh {mesh}", "a stream of the mesh")
        _one(function, "collective", collective, COLLECTIVES)
        if algorithm is not None:
            _one(function, "algorithm", algorithm, ALGORITHMS)
        call = self.read_call(
            FUNCTIONS[collective], collective, on, count, dtype, op=op, axis=axis, root=root, algorithm=algorithm
        )
        if descriptor is not None:
            of_type(function, "descriptor", descriptor, Descriptor)
        if policy is not None:
            of_type(function, "policy", policy, NumericsPolicy)
        governing = policy or on.context.governing()
        work = self.collective_work(
            FUNCTIONS[collective], call, buffer, queue, governing, descriptor=descriptor, only=rank
        )
        number = queue.issued.get(rank, 0) + 1
        work.joined = queue.meetings.setdefault(number, new_meeting(work))
        self.submit(work, captured=False)
        queue.issued[rank] = number

    @entry_giving("plan")
    def tessxCollectivePlan(self, mesh: Any, collective: str, count: int, dtype: int, axis: Any) -> Plan:  # noqa: N802
        """By which algorithm a collective would run, and why (RT-13-03 to -08)."""
        function = "tessxCollectivePlan"
        on = self.mesh(mesh, function)
        _one(function, "collective", collective, COLLECTIVES)
        root, along = (0, None) if collective == "broadcast" else (None, axis)
        op = CollOp.TESS_COLL_MAX if dtype == BOOL else CollOp.TESS_COLL_SUM  # one that the dtype has
        call = self.read_call(
            function, collective, on, count, dtype, op=int(op), axis=along, root=root, algorithm=DEFAULT
        )
        return plan(on, collective, call.count, call.dtype, along, self.code)

    @entry
    def tessxSetAlgorithm(self, ctx: Any, collective: str, algorithm: str | None, source: str) -> None:  # noqa: N802
        """A schedule's hint, or an autotuner's result, for a collective; None takes it back (RT-13-06, RT-13-07)."""
        function = "tessxSetAlgorithm"
        context = self.context(ctx, function)
        _one(function, "collective", collective, COLLECTIVES)
        _one(function, "source", source, ("hint", "autotuner"))
        chosen = context.hints if source == "hint" else context.tuned
        if algorithm is None:
            chosen.pop(collective, None)
        else:
            _one(function, "algorithm", algorithm, ALGORITHMS)
            chosen[collective] = algorithm

    @entry_giving("explanation")
    def tessxExplain(self, module: Any) -> Explained:  # noqa: N802
        """Fusion groups, tile shapes and collective plans of a module (runtime spec 17, AMB-RT-36)."""
        metadata = self.loaded(module, "tessxExplain").fatbin.metadata
        return Explained(explanation_text(metadata), explanation_value(metadata))

    @entry_giving("entries")
    def tessxCacheEntries(self) -> Sequence[tuple[Path, CacheEntry]]:  # noqa: N802
        """What the cache directories of the live contexts hold (AMB-RT-69). Raises TESS_ERR_CACHE_CORRUPT."""
        found: dict[Path, CacheEntry] = {}
        for _, context in self.handles.live("context"):
            store = self.code.store(context)
            if store is not None:
                found.update((store.path(each.kind, each.key), each) for each in store.entries())
        return tuple(found.items())


def _one(function: str, name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise invalid(function, f"{name} is {shown(value)}", " or ".join(allowed))
