"""Limits of a stream's memory that are counted wrong, and faults injected wrongly (runtime spec, 15; AMB-RT-81)."""

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.contexts import Fault
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import GraphWork

from .changes import answering, broken, only_if


def counting(name, description, require):
    """Return a violation whose streams compare their work with the limit differently."""
    return broken("RT-15-03", name, description, "runtime.streams.Stream._require_within_limit", require)


def of_all_streams(adapter, call, given):
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for handle in mesh.streams:
            call(**(given | {"stream": handle}))
    return call(**given)


def never_finished(stream, work):
    seen = stream.__dict__.setdefault("seen", {})
    for region, _, _ in work.accesses():
        if region.allocation.space == "device":
            seen[region.allocation.number] = region.allocation.bytes
    if sum(seen.values()) > stream.limit:
        raise Refusal("TESS_ERR_OUT_OF_MEMORY", "call", "tessMemcpyAsync: the limit")


VIOLATORS = [
    counting("launches_free", "does not count launches",
        only_if(lambda stream, work: not isinstance(work, LaunchWork))),
    counting("collectives_free", "does not count collectives",
        only_if(lambda stream, work: not isinstance(work, CollectiveWork))),
    counting("replays_free", "does not count replays", only_if(lambda stream, work: not isinstance(work, GraphWork))),
    counting("never_finished", "counts the memory of finished work", never_finished),
    answering("RT-15-03", "all_streams", "limits all streams", "tessxSetStreamLimit", of_all_streams),
    broken("RT-07-07", "any_kernel", "lets every kernel trap", "runtime.contexts.FaultPlan.of_launch",
        Around(lambda usual: lambda plan, kernel: tuple(
            Fault(fault.kind, nth=fault.nth) for fault in usual(plan, "fill")))),
    broken("RT-19.A-04", "no_trap", "lets no kernel trap", "runtime.contexts.FaultPlan.of_launch",
        lambda plan, kernel: ()),
    broken("RT-19.A-02", "memory_anyway", "finds memory where there is to be none",
        "runtime.contexts.FaultPlan.of_allocation", lambda plan: False),
    broken("RT-07-07", "link_ignored", "passes over a cut link", "runtime.contexts.FaultPlan.cut",
        lambda plan, mesh: ()),
    broken("RT-19.A-04", "link_ignored_by_kernels", "passes over a cut link where ranks meet in a kernel",
        "runtime.launches.require_connected", lambda work, groups: None),
    broken("RT-07-07", "link_needed_by_all", "lets a cut link fail every kernel whose ranks meet",
        "compilation.executables.ProgramExecutable.groups_met", lambda self: [tuple(range(8))]),
]  # fmt: skip
