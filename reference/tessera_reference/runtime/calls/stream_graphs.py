"""Stream graphs: capture, instantiation, replay (runtime spec 6, 12; AMB-RT-11, AMB-RT-64, AMB-RT-86)."""

# ruff: noqa: N802, the names are those of the C API

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arguments import invalid
from ..capture import Graph, GraphWork, Node, capture_of
from ..entries import entry
from ..state import State
from ..submission import submit


@entry("graph")
def tessxGraphInstantiate(state: State, stream: Any) -> int:
    """End the capture on a stream, and give the graph of what was captured (RT-12-07)."""
    capturing = state.stream(stream)
    capture = capture_of(state.captures, capturing)
    if capture is None:
        raise invalid(f"stream {stream}, on which nothing is captured", "a stream with a captured launch")
    return state.handles.give("graph", capture.end(capturing))


@entry("nodes")
def tessxGraphNodes(state: State, graph: Any) -> Sequence[Node]:
    """The nodes of a graph (RT-12-05, RT-12-06)."""
    return _graph(state, graph).nodes


@entry()
def tessxGraphLaunch(state: State, graph: Any, stream: Any) -> None:
    """Replay a graph on a stream of its mesh (RT-12-08, RT-12-09)."""
    replayed, on = _graph(state, graph), state.stream(stream)
    if on.mesh is not replayed.stream.mesh:
        given = f"a stream of mesh {on.mesh.handle} for a graph of mesh {replayed.stream.mesh.handle}"
        raise invalid(given, "a stream of the mesh that the graph was captured on")
    if capture_of(state.captures, on) is not None:
        raise invalid(f"stream {stream}, which is captured", "a stream that is not")
    for node in replayed.nodes:
        for region, _, _ in node.work.accesses():
            if region.allocation.freed:
                raise invalid(f"a graph that refers to {region.allocation}, which was freed", "live memory")
    works = [node.work.on(on) for node in replayed.nodes]
    submit(state, GraphWork(name=f"graph {graph}", stream=on, works=works))


@entry()
def tessxGraphDestroy(state: State, graph: Any) -> None:
    """End a graph; replays that are queued still run."""
    _graph(state, graph)
    state.handles.end(graph)


@entry("kernels")
def tessxResident(state: State, mesh: Any) -> Sequence[str]:
    """The persistent kernels that are resident on a mesh now (AMB-RT-65)."""
    return tuple(state.mesh(mesh).resident)


def _graph(state: State, handle: Any) -> Graph:
    return state.handles.find("graph", Graph, handle)
