"""The algorithms of a collective: requested, chosen, and read from a trace (runtime spec 13; AMB-RT-180, -183)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.protocol import Observation
from tessera_conformance.session import Implementation

from .mesh_session import DTYPE_IDS, MeshSession, opened
from .traces import slices, started, stopped

NAMES = ("ring", "tree", "hierarchical", "halving_doubling", "direct")
"""The names of algorithms (AMB-COLL-44)."""


def under(impl: Implementation, check: Check, ranks: int = 8, **variables: str) -> MeshSession:
    """Return a context with these environment variables, and no others."""
    check.returns(impl.runtime.tessxSetEnvironment(variables=variables), "the environment is set")
    return opened(impl, check, ranks)


def planned(
    session: MeshSession, collective: str = "all_reduce", count: int = 64, dtype: str = "fp32"
) -> tuple[str, str]:
    """Return the algorithm of a collective, and the source of the choice."""
    plan = session.ask("tessxCollectivePlan", **plan_request(session, collective, count, dtype))
    return plan["algorithm"], plan["source"]


def plan_request(
    session: MeshSession, collective: str = "all_reduce", count: int = 64, dtype: str = "fp32"
) -> dict[str, Any]:
    """Return the arguments of tessxCollectivePlan for a collective along dp."""
    return {"mesh": session.mesh, "collective": collective, "count": count, "dtype": DTYPE_IDS[dtype], "axis": "dp"}


def choose(session: MeshSession, algorithm: str | None, source: str, collective: str = "all_reduce") -> None:
    """Set a hint, or a result of the autotuner; None removes it."""
    whole = {"collective": collective, "algorithm": algorithm, "source": source}
    session.ask("tessxSetAlgorithm", context=session.context, **whole)


class Traced:
    """The slices of the collectives in a `with` block, by rank and time, each rank's once.

    `answer` is that of the synchronization at its end.
    """

    answer: Observation

    def __init__(self, session: MeshSession, path: Path) -> None:
        self.session, self.path = session, path
        self.slices: list[Any] = []

    def __enter__(self) -> Traced:
        self.profiler = started(self.session)
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.answer = self.session.attempt("tessStreamSynchronize", stream=self.session.stream)
            events = stopped(self.session, self.profiler, self.path)
            found = [part for part in slices(events) if part.get("cat") == "collective"]
            once = {(event["args"].get("rank"), event["ts"]): event for event in found}
            self.slices = sorted(once.values(), key=lambda event: (event["args"].get("rank"), event["ts"]))
