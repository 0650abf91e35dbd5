"""Stream graphs: capture, instantiation, replay (runtime spec 6, 12; AMB-RT-11, AMB-RT-64, AMB-RT-86)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arguments import invalid
from ..capture import Graph, GraphWork, Node
from ..meshes import Mesh
from ..state import entry, entry_giving
from .planning import PlanningCalls

__all__ = ["CaptureCalls"]


class CaptureCalls(PlanningCalls):
    """tessxGraph..., and which kernels are resident."""

    @entry_giving("graph")
    def tessxGraphInstantiate(self, stream: Any) -> int:  # noqa: N802
        """End the capture on a stream; its graph (RT-12-07)."""
        function = "tessxGraphInstantiate"
        capturing = self.stream(stream, function)
        if capturing.capture is None:
            raise invalid(function, f"stream {stream}, on which nothing is captured", "a stream with a captured launch")
        return self.handles.give("graph", capturing.capture.end(capturing))

    @entry_giving("nodes")
    def tessxGraphNodes(self, graph: Any) -> Sequence[Node]:  # noqa: N802
        """The nodes of a graph (RT-12-05, RT-12-06)."""
        return self._graph(graph, "tessxGraphNodes").nodes

    @entry
    def tessxGraphLaunch(self, graph: Any, stream: Any) -> None:  # noqa: N802
        """Replay a graph on a stream of its mesh (RT-12-08, RT-12-09)."""
        function = "tessxGraphLaunch"
        replayed, on = self._graph(graph, function), self.stream(stream, function)
        if on.mesh is not replayed.stream.mesh:
            given = f"a stream of mesh {on.mesh.handle} for a graph of mesh {replayed.stream.mesh.handle}"
            raise invalid(function, given, "a stream of the mesh that the graph was captured on")
        if on.capture is not None:
            raise invalid(function, f"stream {stream}, which is captured", "a stream that is not")
        for node in replayed.nodes:
            for region, _, _ in node.work.accesses():
                if region.allocation.freed:
                    raise invalid(
                        function, f"a graph that refers to {region.allocation}, which was freed", "live memory"
                    )
        works = [node.work.on(on) for node in replayed.nodes]
        self.submit(GraphWork(name=f"graph {graph}", stream=on, works=works))

    @entry
    def tessxGraphDestroy(self, graph: Any) -> None:  # noqa: N802
        """End a graph; replays that are queued still run."""
        self._graph(graph, "tessxGraphDestroy")
        self.handles.end(graph)

    @entry_giving("kernels")
    def tessxResident(self, mesh: Any) -> Sequence[str]:  # noqa: N802
        """The persistent kernels that are resident on a mesh now (AMB-RT-65)."""
        on: Mesh = self.mesh(mesh, "tessxResident")
        return tuple(on.resident)

    def _graph(self, handle: Any, function: str) -> Graph:
        return self.handles.find("graph", Graph, handle, function)
