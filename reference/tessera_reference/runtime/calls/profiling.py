"""Profiling (runtime spec 4.8, 17; AMB-RT-34, AMB-RT-66)."""

# ruff: noqa: N802, N803, the names are those of the C API

from __future__ import annotations

from typing import Any

from ...mesh.profiler import Profiler
from ...mesh.trace import write_trace
from ...mesh.trace_tracks import Names
from ..arguments import required
from ..contexts import Context
from ..entries import entry
from ..state import State


@entry("profiler")
def tessProfilerStart(state: State, ctx: Any) -> int:
    """Record what the work of a context does from now on (RT-04.8-05)."""
    context = state.context(ctx)
    handle = state.handles.give("profiler", context)
    context.profilers[handle] = Profiler()
    return handle


@entry()
def tessProfilerStop(state: State, profiler: Any, outJsonPath: str | None) -> None:
    """Let queued work finish, write the trace, end the profiler (RT-04.8-04, RT-17-02, AMB-RT-34)."""
    context = state.handles.find("profiler", Context, profiler)
    path = required("outJsonPath", outJsonPath)
    state.drain(context)
    devices = {each.id: f"device {each.id} ({each.target})" for each in state.machine.topology.devices}
    write_trace(context.profilers[profiler].records, path, Names(devices))
    del context.profilers[profiler]
    state.handles.end(profiler)
