"""The methods on topology, transports, selection, costs and the autotuner of the collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..collectives.autotuner import Knobs, Limits, Measurement, tune
from ..collectives.chunk_limits import check_chunks
from ..collectives.cost_model import estimate, overlap_score
from ..collectives.graph import edges, graph_nodes, topology_of
from ..collectives.selection import select
from ..collectives.transports import route
from .requests import checked
from .session_state import SessionState
from .statuses import statuses

__all__ = ["CollectiveChoiceMethods"]


class CollectiveChoiceMethods(SessionState):
    """How collectives travel over a machine, and why (collectives spec 3 and 5)."""

    @checked
    def collectives_topology(self, *, topology: str) -> dict[str, Any]:
        """The graph."""
        with statuses():
            found = topology_of(topology)
        return {
            "nodes": [asdict(each) for each in graph_nodes(found)],
            "edges": [asdict(each) for each in edges(found)],
        }

    @checked
    def collectives_route(
        self,
        *,
        topology: str,
        source: int,
        target: int,
        path: str = "auto",
        down: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The transport between two devices."""
        with statuses():
            found = route(topology_of(topology), source, target, path, down, environment)
        return {"path": found.path, "links": list(found.links), "fallback": found.fallback}

    @checked
    def collectives_select(
        self,
        *,
        collective: str,
        bytes: int,
        ranks: int,
        topology: str | None = None,
        algorithm: str = "auto",
        tuned: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The algorithm, and why."""
        with statuses():
            machine = None if topology is None else topology_of(topology)
            found = select(collective, bytes, ranks, machine, algorithm, tuned, environment)
        return asdict(found) | {"table": [asdict(row) for row in found.table]}

    @checked
    def collectives_check_chunks(self, *, topology: str, chunk_bytes: int, max_inflight: int) -> dict[str, Any]:
        """What the topology allows."""
        with statuses():
            most = check_chunks(topology_of(topology), chunk_bytes, max_inflight)
        return {name: {"least": 1, "most": value} for name, value in asdict(most).items()}

    @checked
    def collectives_estimate(self, *, alpha: int, hops: int, bytes: int, bandwidth: int) -> dict[str, Any]:
        """The duration of a chunk."""
        with statuses():
            return {"picoseconds": estimate(alpha, hops, bytes, bandwidth)}

    @checked
    def collectives_overlap_score(
        self, *, compute: Sequence[Sequence[int]], communication: Sequence[Sequence[int]]
    ) -> dict[str, Any]:
        """How well the queues overlap."""
        with statuses():
            score = overlap_score(compute, communication)
        return {"score": {"numerator": score.numerator, "denominator": score.denominator}}

    @checked
    def collectives_tune(
        self,
        *,
        measurements: Sequence[Mapping[str, Any]],
        knobs: Mapping[str, Any],
        limits: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The knobs after each measurement."""
        with statuses():
            measured = [Measurement(**each) for each in measurements]
            steps = tune(measured, Knobs(**knobs), Limits(**limits or {}))
        return {"steps": [asdict(step.knobs) | {"pinned": step.pinned} for step in steps]}
