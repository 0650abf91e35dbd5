"""The streams of a program for aie (section 6.4): processes, and an edge for each channel between two of them.

The graph has to be free of cycles: a process comes after all that send to it. A channel without a producer or
consumer has an edge with an open end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from .cycles import first_cycle
from .errors import UnsupportedDirective
from .package import Package
from .producers import consumed_channels, produced_channels

__all__ = ["check_acyclic", "stream_graph"]


def stream_graph(package: Package) -> dict[str, Any]:
    """As `schemas/wsp_stream_graph.schema.json` has it: nodes in an order in which no edge leads back."""
    edges = list(_edges(package))
    order = _levels(package, edges)
    return {
        "nodes": [
            {"process": each.name, "level": level}
            for level, each in sorted(zip(order, package.processes, strict=True), key=lambda pair: pair[0])
        ],
        "edges": edges,
    }


def check_acyclic(package: Package) -> None:
    """Raises `UnsupportedDirective` for streams that lead back to where they come from (WSP-06.4-07)."""
    cycle = first_cycle(_successors(list(_edges(package))))
    if cycle:
        around = " -> ".join([*cycle, cycle[0]])
        raise UnsupportedDirective(package.target, f"a cyclic stream graph: {around}; it has to be acyclic")


def _edges(package: Package) -> Iterator[dict[str, Any]]:
    for place, channel in enumerate(package.channels):
        producers = [each.name for each in package.processes if place in produced_channels(each.body)]
        consumers = [each.name for each in package.processes if place in consumed_channels(each.body)]
        for producer, consumer in product(producers or (None,), consumers or (None,)):
            yield {
                "channel": channel.name,
                "from": producer,
                "to": consumer,
                "capacity": channel.capacity,
                "latency": channel.latency,
            }


def _successors(edges: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in edges:
        if each["from"] is not None and each["to"] is not None:
            found.setdefault(each["from"], []).append(each["to"])
    return found


def _levels(package: Package, edges: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each process, the edges of the longest path to it."""
    level = {each.name: 0 for each in package.processes}
    for _ in package.processes:
        for each in edges:
            if each["from"] is not None and each["to"] is not None:
                level[each["to"]] = max(level[each["to"]], level[each["from"]] + 1)
    return list(level.values())
