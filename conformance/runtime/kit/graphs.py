"""Captured graphs: launches that are captured, replays, and the nodes as a DAG (runtime specification, 6 and 12).

A capture begins with the first launch that has the flag TESS_LAUNCH_CAPTURE and ends when it is instantiated
(AMB-RT-11). The kernel `digit` shows the order in which launches ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .encoding import elements, packed
from .mesh_session import CAPTURE, COUNT, MeshSession


@dataclass(frozen=True)
class Digits:
    """Tensors of int32, and the kernel that appends a decimal digit to each element."""

    session: MeshSession
    kernel: int

    def zeros(self) -> int:
        """A new tensor of zeros."""
        pointer = self.session.upload(elements("int32", *[0] * COUNT))
        self.session.synchronize()
        return pointer

    def append(self, session: MeshSession, digit: int, pointer: int, flags: int = 0) -> None:
        """Queue a launch that appends a digit; with the flag CAPTURE it belongs to a graph."""
        session.launch(self.kernel, packed(("int32", digit), ("ptr", pointer)), flags=flags)

    def require(self, session: MeshSession, pointer: int, number: int, what: str) -> None:
        """Every element has these digits once the stream is done."""
        session.check.equal(session.integers(pointer), [number] * COUNT, what)


def digits(session: MeshSession) -> Digits:
    """The kernel `digit`, loaded."""
    return Digits(session, session.kernel("digit"))


def instantiated(session: MeshSession) -> int:
    """The graph of what the stream has captured; it is not NULL."""
    graph = int(session.ask("tessxGraphInstantiate", stream=session.stream)["graph"])
    session.check.true(graph != 0, "the graph is not NULL", graph)
    return graph


def replay(session: MeshSession, graph: int) -> None:
    """Queue one replay on the stream."""
    session.ask("tessxGraphLaunch", graph=graph, stream=session.stream)


def captured_digits(known: Digits, pointer: int, *appended: int) -> int:
    """The graph of launches that append these digits one after the other."""
    for digit in appended:
        known.append(known.session, digit, pointer, CAPTURE)
    return instantiated(known.session)


def nodes_of(session: MeshSession, graph: int) -> Sequence[Mapping[str, Any]]:
    """The nodes of a graph, as a DAG: no node follows itself, directly or not."""
    nodes: Sequence[Mapping[str, Any]] = session.ask("tessxGraphNodes", graph=graph)["nodes"]
    indices_known = all(0 <= each < len(nodes) for node in nodes for each in node["after"])
    session.check.true(indices_known, "nodes follow nodes of the graph", [node["after"] for node in nodes])
    cycles = [index for index in range(len(nodes)) if index in before(nodes, index)]
    session.check.equal(cycles, [], "the nodes that follow themselves")
    return nodes


def before(nodes: Sequence[Mapping[str, Any]], index: int) -> set[int]:
    """The nodes that a node follows, directly or not."""
    found: set[int] = set()
    waiting = list(nodes[index]["after"])
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(nodes[each]["after"])
    return found


SEEDS = 200
"""Of the cases that ask for every schedule."""


def streams_under(session: MeshSession, count: int, seed: int) -> list[MeshSession]:
    """So many new streams on a machine whose choices a seed makes, which is set where there is no stream."""
    session.ask("tessxSetSchedule", policy="seeded", seed=seed, untimed=True)
    return [session.another_stream() for _ in range(count)]


def end_streams(sessions: Sequence[MeshSession]) -> None:
    """Destroy the streams of these sessions."""
    for session in sessions:
        session.ask("tessStreamDestroy", stream=session.stream)
