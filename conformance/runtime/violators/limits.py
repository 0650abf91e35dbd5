"""Limits of a stream's memory that are counted wrong, and faults injected wrongly (runtime spec, 15; AMB-RT-81)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.contexts import Fault, FaultPlan
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import Stream

from .changes import BuildsOnce, Call, Given, answering

RIGHT = Stream._require_within_limit


def counting(name: str, description: str, require: Callable[[Stream, Any], None]) -> Violation:
    """Return a violation whose streams compare their work with the limit differently."""
    return replaced(
        "RT-15-03", description, BuildsOnce, ("runtime.streams.Stream._require_within_limit", require), name=name
    )


def unless(kind: type) -> Callable[[Stream, Any], None]:
    """Return a check that does not count work of a kind."""

    def require(stream: Stream, work: Any) -> None:
        if not isinstance(work, kind):
            RIGHT(stream, work)

    return require


def of_all_streams(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for handle in mesh.streams:
            call(**(given | {"stream": handle}))
    return call(**given)


def never_finished(stream: Stream, work: Any) -> None:
    seen = stream.__dict__.setdefault("seen", {})
    for region, _, _ in work.accesses():
        if region.allocation.space == "device":
            seen[region.allocation.number] = region.allocation.bytes
    if sum(seen.values()) > stream.limit:
        raise Refusal("TESS_ERR_OUT_OF_MEMORY", "call", "tessMemcpyAsync: the limit")


def each_time(stream: Stream, work: Any) -> None:
    uses = [access for work_of in (*stream.queued, work) for access in work_of.accesses()]
    if sum(region.allocation.bytes for region, _, _ in uses if region.allocation.space == "device") > stream.limit:
        raise Refusal("TESS_ERR_OUT_OF_MEMORY", "call", "tessMemcpyAsync: the limit")


LIMITS = [
    counting("launches_free", "does not count launches", unless(LaunchWork)),
    counting("collectives_free", "does not count collectives", unless(CollectiveWork)),
    counting("never_finished", "counts the memory of finished work", never_finished),
    answering("RT-15-03", "all_streams", "limits all streams", "tessxSetStreamLimit", of_all_streams),
]

OF_LAUNCH = FaultPlan.of_launch


def any_kernel(plan: FaultPlan, kernel: str) -> tuple[Fault, ...]:
    return tuple(Fault(fault.kind, nth=fault.nth) for fault in OF_LAUNCH(plan, "fill")) if plan.faults else ()


FAULTS = [
    replaced("RT-07-07", "lets every kernel trap", BuildsOnce, ("runtime.contexts.FaultPlan.of_launch", any_kernel),
        name="any_kernel"),
    replaced("RT-19.A-04", "lets no kernel trap", BuildsOnce,
        ("runtime.contexts.FaultPlan.of_launch", lambda plan, kernel: ()), name="no_trap"),
    replaced("RT-19.A-02", "finds memory where there is to be none", BuildsOnce,
        ("runtime.contexts.FaultPlan.of_allocation", lambda plan: False), name="memory_anyway"),
    replaced("RT-07-07", "passes over a cut link", BuildsOnce,
        ("runtime.contexts.FaultPlan.cut", lambda plan, mesh: ()), name="link_ignored"),
    replaced("RT-19.A-04", "passes over a cut link where ranks meet in a kernel", BuildsOnce,
        ("runtime.launches.require_connected", lambda work, groups: None), name="link_ignored_by_kernels"),
    replaced("RT-07-07", "lets a cut link fail every kernel whose ranks meet", BuildsOnce,
        ("compilation.executables.ProgramExecutable.groups_met", lambda self: [tuple(range(8))]),
        name="link_needed_by_all"),
]  # fmt: skip
