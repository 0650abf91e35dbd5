"""Captured graphs: launches that are captured, replays, and the nodes as a DAG (runtime specification, 6 and 12).

A capture begins with the first launch that has the flag TESS_LAUNCH_CAPTURE and ends when it is instantiated
(AMB-RT-11). The kernel `digit` shows the order in which launches ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .encoding import elements, packed
from .mesh_session import CAPTURE, COUNT, MeshSession, opened

Session = TypeVar("Session", bound=MeshSession)


@dataclass(frozen=True)
class DigitStream(MeshSession):
    """A stream with the kernel `digit`, which appends a decimal digit to each element of a tensor of int32."""

    digit: int = 0

    def zeros(self) -> int:
        """Return a new tensor of zeros."""
        pointer = self.upload(elements("int32", *[0] * COUNT))
        self.synchronize()
        return pointer

    def append(self, value: int, pointer: int, flags: int = 0) -> None:
        """Queue a launch that appends a digit; the flag CAPTURE adds it to a graph."""
        self.launch(self.digit, packed(("int32", value), ("ptr", pointer)), flags=flags)

    def require(self, pointer: int, number: int, what: str) -> None:
        """Check that every element has these digits once the stream is done."""
        self.check.equal(self.integers(pointer), [number] * COUNT, what)

    def captured(self, pointer: int, *values: int) -> int:
        """Return the graph of launches that append these digits one after the other."""
        for value in values:
            self.append(value, pointer, CAPTURE)
        return instantiated(self)


def digit_stream(impl: Implementation, check: Check, ranks: int = 1) -> DigitStream:
    """Return a stream of a new mesh, with the kernel `digit` loaded."""
    session = opened(impl, check, ranks)
    return DigitStream(**vars(session), digit=session.kernel("digit"))


def instantiated(session: MeshSession) -> int:
    """Return the graph that the stream has captured; check that it is not NULL."""
    graph = int(session.ask("tessxGraphInstantiate", stream=session.stream)["graph"])
    session.check.true(graph != 0, "the graph is not NULL", graph)
    return graph


def replay(session: MeshSession, graph: int) -> None:
    """Queue one replay on the stream."""
    session.ask("tessxGraphLaunch", graph=graph, stream=session.stream)


def nodes_of(session: MeshSession, graph: int) -> Sequence[Mapping[str, Any]]:
    """Return the nodes of a graph; check that they form a DAG: no node follows itself, directly or not."""
    nodes: Sequence[Mapping[str, Any]] = session.ask("tessxGraphNodes", graph=graph)["nodes"]
    indices_known = all(0 <= index < len(nodes) for node in nodes for index in node["after"])
    session.check.true(indices_known, "nodes follow nodes of the graph", [node["after"] for node in nodes])
    cycles = [index for index in range(len(nodes)) if index in before(nodes, index)]
    session.check.equal(cycles, [], "the nodes that follow themselves")
    return nodes


def before(nodes: Sequence[Mapping[str, Any]], index: int) -> set[int]:
    """Return the nodes that a node follows, directly or not."""
    found: set[int] = set()
    waiting = list(nodes[index]["after"])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(nodes[node]["after"])
    return found


SEEDS = 200
"""The seeds of cases about every schedule."""


def streams_under(session: Session, count: int, seed: int) -> list[Session]:
    """Return new streams on a machine whose choices a seed makes; the seed is set before any stream exists."""
    session.ask("tessxSetSchedule", policy="seeded", seed=seed, untimed=True)
    return [session.another_stream() for _ in range(count)]


def end_streams(sessions: Sequence[MeshSession]) -> None:
    """Destroy the streams of these sessions."""
    for session in sessions:
        session.ask("tessStreamDestroy", stream=session.stream)
