"""Profiling (runtime spec 4.8, 17; AMB-RT-34, AMB-RT-66)."""

from __future__ import annotations

from typing import Any

from ..arguments import required
from ..contexts import Context
from ..profiler import Profiler
from ..state import entry, entry_giving
from ..trace import write_trace
from ..trace_tracks import Names
from .numerics import NumericsCalls

__all__ = ["ProfilingCalls"]


class ProfilingCalls(NumericsCalls):
    """tessProfilerStart, tessProfilerStop."""

    @entry_giving("profiler")
    def tessProfilerStart(self, ctx: Any) -> int:  # noqa: N802
        """Note what the work of a context does from now on (RT-04.8-05)."""
        context = self.context(ctx, "tessProfilerStart")
        handle = self.handles.give("profiler", context)
        context.profilers[handle] = Profiler()
        return handle

    @entry
    def tessProfilerStop(self, profiler: Any, outJsonPath: str | None) -> None:  # noqa: N802, N803
        """Let queued work finish, write the trace, end the profiler (RT-04.8-04, RT-17-02, AMB-RT-34)."""
        function = "tessProfilerStop"
        context = self.handles.find("profiler", Context, profiler, function)
        path = required(function, "outJsonPath", outJsonPath)
        self.drain(context)
        devices = {each.id: f"device {each.id} ({each.target})" for each in self.machine.topology.devices}
        write_trace(context.profilers[profiler].records, path, Names(devices))
        del context.profilers[profiler]
        self.handles.end(profiler)
