"""Initialization and contexts (runtime spec 4.1; AMB-RT-32, AMB-RT-39, AMB-RT-50, AMB-RT-71)."""

# ruff: noqa: N802, the names are those of the C API

from __future__ import annotations

from typing import Any

from ...abi.version import RUNTIME_VERSION
from ..contexts import Context
from ..entries import entry
from ..environment import read_environment
from ..state import State


@entry("context")
def tessInit(state: State) -> int:
    """A new context, with what the environment says now (RT-04.1-19, RT-19.C-02)."""
    settings = read_environment(state.environment)
    context = Context(0, settings)
    context.handle = state.handles.give("context", context)
    state.log.level = settings.log_level
    state.code.hits = state.code.misses = 0
    state.log.note("info", f"context {context.handle} under {settings}")
    return context.handle


@entry()
def tessShutdown(state: State, ctx: Any) -> None:
    """End a context once its work is done; what is left of it is released (RT-04.1-20, AMB-RT-50)."""
    context = state.context(ctx)
    for _, mesh in state.handles.live("mesh"):
        if mesh.context is context:
            state.release_mesh(mesh)
    for kind in ("module", "kernel", "graph"):
        for handle, held in state.handles.live(kind):
            if held.context is context:
                state.handles.end(handle)
    for profiler in context.profilers:
        state.handles.end(profiler)
    state.handles.end(ctx)


@entry("major", "minor", "patch")
def tessGetVersion(state: State) -> tuple[int, int, int]:
    """The ABI pair and a patch number; works before tessInit (RT-04.1-21, AMB-RT-32, AMB-RT-39)."""
    return RUNTIME_VERSION
