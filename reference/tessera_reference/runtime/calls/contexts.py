"""Initialization and contexts (runtime spec 4.1; AMB-RT-32, AMB-RT-39, AMB-RT-50, AMB-RT-71)."""

from __future__ import annotations

from typing import Any

from ...abi.version import ABI_VERSION
from ..contexts import Context
from ..environment import read_environment
from ..state import State, entry, entry_giving

__all__ = ["ContextCalls"]

PATCH = 0


class ContextCalls(State):
    """tessInit, tessShutdown, tessGetVersion."""

    @entry_giving("context")
    def tessInit(self) -> int:  # noqa: N802, the name of the C function, as all below
        """A new context, with what the environment says now (RT-04.1-19, RT-19.C-02)."""
        settings = read_environment(self.environment)
        context = Context(0, settings)
        context.handle = self.handles.give("context", context)
        self.log.level = settings.log_level
        self.code.hits = self.code.misses = 0
        self.log.note("info", f"context {context.handle} under {settings}")
        return context.handle

    @entry
    def tessShutdown(self, ctx: Any) -> None:  # noqa: N802
        """End a context once its work is done; what is left of it is released (RT-04.1-20, AMB-RT-50)."""
        context = self.context(ctx, "tessShutdown")
        for handle, mesh in self.handles.live("mesh"):
            if mesh.context is context:
                self.release_mesh(handle)
        for kind in ("module", "kernel", "graph"):
            for handle, held in self.handles.live(kind):
                if held.context is context:
                    self.handles.end(handle)
        for profiler in context.profilers:
            self.handles.end(profiler)
        self.handles.end(ctx)

    def drain(self, context: Context | None = None) -> None:
        """Let all queued work finish, or that of one context (AMB-RT-50)."""
        for _, mesh in self.handles.live("mesh"):
            if context in (None, mesh.context):
                mesh.drain()

    def release_mesh(self, handle: int) -> None:
        """Let the work of a mesh finish, and release its streams and memory."""
        mesh = self.mesh(handle, "tessMeshDestroy")
        self.drain()  # of every mesh: streams of others may refer to its memory
        for number, stream in mesh.streams.items():
            stream.close()
            self.handles.end(number)
        for allocation in self.machine.memory.release(handle):
            self.machine.order.forget(allocation.number)
        self.handles.end(handle)

    @entry_giving("major", "minor", "patch")
    def tessGetVersion(self) -> tuple[int, int, int]:  # noqa: N802
        """The ABI pair and a patch number; works before tessInit (RT-04.1-21, AMB-RT-32, AMB-RT-39)."""
        return (*ABI_VERSION, PATCH)
