"""By which algorithm a collective runs: a hint, the environment, the autotuner's result, or a table by size.

Collectives spec 1, 3.1, 3.2, 8: COLL-01-03, COLL-03.1-01 to -04, COLL-03.2-04, -06, COLL-08-12, -17; AMB-COLL-09, -13,
-44, -45. The runtime's own choice among three algorithms, by duration, is `runtime.algorithms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..abi.status import Failure, Status
from ..mesh.topology import Topology
from .argument_checks import require_known, require_within
from .durations import algorithms
from .thresholds import ALGORITHMS, Row, parse_table, row_of, tables

__all__ = ["ALGORITHM_VARIABLE", "TABLE_VARIABLE", "Selection", "select"]

ALGORITHM_VARIABLE = "TESSERA_COLL_ALGO"
TABLE_VARIABLE = "TESSERA_COLL_TABLE"

ANY = tuple(each for each in ALGORITHMS if each != "hierarchical")
"""What ranks can run however they are joined."""


@dataclass(frozen=True)
class Selection:
    """The algorithm, why (hint, environment, autotuner or default), and the table by size that is in force."""

    algorithm: str
    source: str
    table: tuple[Row, ...]


def select(
    collective: str,
    bytes: int,
    ranks: int,
    topology: Topology | None = None,
    algorithm: str = "auto",
    tuned: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Selection:
    """The algorithm for a full buffer of a size, over the first `ranks` devices of the topology.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names, a malformed table and more ranks than devices;
    TESS_ERR_UNSUPPORTED for a hint that these ranks cannot follow. Others that they cannot follow are passed over.
    """
    require_known("select", "collective", collective, tuple(tables()))
    require_known("select", "algorithm", algorithm, ("auto", *ALGORITHMS))
    if tuned is not None:
        require_known("select", "tuned", tuned, ALGORITHMS)
    override, brought = _of_environment(environment or {})
    possible = _possible(ranks, topology)
    usual = _for(tables()[collective], ranks, topology)
    table = brought or usual
    if algorithm != "auto":
        if algorithm not in possible:
            given = f"algorithm {algorithm} for {ranks} ranks" + (f" of {topology.name}" if topology else "")
            raise Failure(Status.TESS_ERR_UNSUPPORTED, "select", given, f"auto or one of {', '.join(possible)}")
        return Selection(algorithm, "hint", table)
    wishes = (
        (override, "environment"),
        (row_of(brought, bytes).algorithm if brought else None, "environment"),
        (tuned, "autotuner"),
    )
    for wish, source in wishes:
        if wish in possible:
            return Selection(wish, source, table)
    return Selection(row_of(usual, bytes).algorithm, "default", table)


def _of_environment(environment: Mapping[str, str]) -> tuple[str | None, tuple[Row, ...] | None]:
    """The algorithm and the table that the environment gives; None where a variable is not set, or empty."""
    override = environment.get(ALGORITHM_VARIABLE) or "auto"
    require_known("select", f"{ALGORITHM_VARIABLE} =", override, ("auto", *ALGORITHMS))
    text = environment.get(TABLE_VARIABLE)
    return None if override == "auto" else override, parse_table(text, TABLE_VARIABLE) if text else None


def _possible(ranks: int, topology: Topology | None) -> tuple[str, ...]:
    """The algorithms that the ranks can run."""
    if topology is None:
        return ANY
    require_within("select", "ranks", ranks, 1, len(topology.devices))
    return ALGORITHMS if "hierarchical" in algorithms(topology, _devices(ranks, topology)) else ANY


def _for(table: tuple[Row, ...], ranks: int, topology: Topology | None) -> tuple[Row, ...]:
    """A table of the package, with hierarchical for ring where ranks span several nodes of equal size."""
    last = table[-1]
    nodes = topology.by_node(_devices(ranks, topology)) if topology else ()
    spans = len(nodes) > 1 and {len(each) for each in nodes} == {len(nodes[0])} and len(nodes[0]) > 1
    return (*table[:-1], replace(last, algorithm="hierarchical")) if spans and last.algorithm == "ring" else table


def _devices(ranks: int, topology: Topology) -> tuple[int, ...]:
    return tuple(each.id for each in topology.devices[:ranks])
