"""By which algorithm a collective runs: a hint, the environment, the autotuner's result, or a table by size.

Collectives spec 1, 3.1, 3.2, 8: COLL-01-03, COLL-03.1-01 to -04, COLL-03.2-04, -06, COLL-08-12, -17; runtime spec 13:
RT-13-06 to -08; AMB-COLL-09, -13, -44, -45, AMB-RT-180. The one choice: `select` asks for it with the values of a call,
the runtime with those of a context (`runtime.algorithms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..abi.status import Failure, Status
from ..graph.collective_hints import ALL_TO_ALL_ALGORITHMS
from ..mesh.topology import Topology
from .argument_checks import require_known, require_within
from .durations import algorithms
from .thresholds import ALGORITHMS, Row, parse_table, row_of, tables
from .transports import path_override
from .variables import ALGORITHM_VARIABLE, TABLE_VARIABLE, require_variables

__all__ = [
    "Overrides",
    "Selection",
    "choose",
    "followed",
    "read_overrides",
    "require_followed",
    "select",
]

ANY = tuple(each for each in ALGORITHMS if each != "hierarchical")
"""What ranks can run however they are joined."""

Tuner = Callable[[tuple[str, ...]], str | None]
"""What the autotuner has found among these algorithms; asked only where its result decides."""


@dataclass(frozen=True)
class Selection:
    """The algorithm, why (hint, environment, autotuner or default), and the table by size that is in force."""

    algorithm: str
    source: str
    table: tuple[Row, ...]


@dataclass(frozen=True)
class Overrides:
    """What the environment has instead of auto: an algorithm, a table by size, a path; None where it says nothing."""

    algorithm: str | None = None
    table: tuple[Row, ...] | None = None
    path: str = "auto"


def read_overrides(function: str, environment: Mapping[str, str]) -> Overrides:
    """The overrides of these variables; a variable that is empty is not set (AMB-COLL-45).

    Raises `Failure` with TESS_ERR_INVALID_VALUE, naming the variable, for one that is misspelled, an unknown name and a
    malformed table.
    """
    require_variables(function, environment)
    override = environment.get(ALGORITHM_VARIABLE) or "auto"
    require_known(function, f"{ALGORITHM_VARIABLE} =", override, ("auto", *ALGORITHMS))
    text = environment.get(TABLE_VARIABLE)
    try:
        table = parse_table(text, TABLE_VARIABLE) if text else None
    except Failure as wrong:
        raise Failure(wrong.status, function, f"{TABLE_VARIABLE}: {wrong.given}", wrong.allowed) from None
    return Overrides(None if override == "auto" else override, table, path_override(function, environment))


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
    overrides = read_overrides("select", environment or {})
    groups: tuple[tuple[int, ...], ...] = ()
    if topology is not None:
        require_within("select", "ranks", ranks, 1, len(topology.devices))
        groups = (tuple(each.id for each in topology.devices[:ranks]),)
    possible = followed(collective, topology, groups)
    hint = None if algorithm == "auto" else algorithm
    if hint is not None:
        group = f"{ranks} ranks" + (f" of {topology.name}" if topology else "")
        require_followed("select", hint, possible, f"{collective} of {group}")
    return choose(collective, bytes, topology, groups, hint, overrides, lambda _: tuned)


def choose(
    collective: str,
    bytes: int,
    topology: Topology | None,
    groups: Sequence[Sequence[int]],
    hint: str | None,
    overrides: Overrides,
    tuned: Tuner,
) -> Selection:
    """The algorithm for a full buffer of a size in each of these groups of devices.

    A hint goes first, then the environment's algorithm, its table, the autotuner's result and the usual table
    (AMB-COLL-13, AMB-COLL-45). What one of the groups cannot follow is passed over.
    """
    possible = followed(collective, topology, groups)
    spanning = topology is not None and all(spans_nodes(topology, each) for each in groups)
    usual = _for(tables()[collective], spanning)
    table = overrides.table or usual
    if hint in possible:
        return Selection(hint, "hint", table)
    for wish in (overrides.algorithm, row_of(overrides.table, bytes).algorithm if overrides.table else None):
        if wish in possible:
            return Selection(wish, "environment", table)
    found = tuned(possible)
    if found in possible:
        return Selection(found, "autotuner", table)
    return Selection(row_of(usual, bytes).algorithm, "default", table)


def followed(collective: str, topology: Topology | None, groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The algorithms that each of these groups of devices can run; without a topology, those that any ranks can."""
    found = [ANY] if topology is None else [algorithms(topology, each) for each in groups]
    if collective == "all_to_all":
        found.append(ALL_TO_ALL_ALGORITHMS)
    return tuple(name for name in ALGORITHMS if all(name in each for each in found))


def require_followed(function: str, algorithm: str, possible: Sequence[str], group: str) -> None:
    """Raises `Failure` with TESS_ERR_UNSUPPORTED for an algorithm asked for that a group cannot run (AMB-COLL-45)."""
    if algorithm not in possible:
        given = f"algorithm {algorithm} for {group}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, given, f"auto or one of {', '.join(possible)}")


def spans_nodes(topology: Topology, devices: Sequence[int]) -> bool:
    """Whether devices are on several nodes, equally many and at least two on each (AMB-COLL-44)."""
    nodes = topology.by_node(devices)
    return len(nodes) > 1 and {len(each) for each in nodes} == {len(nodes[0])} and len(nodes[0]) > 1


def _for(table: tuple[Row, ...], spanning: bool) -> tuple[Row, ...]:
    """A table of the package, with hierarchical for ring in its last row where every group spans nodes."""
    last = table[-1]
    return (*table[:-1], replace(last, algorithm="hierarchical")) if spanning and last.algorithm == "ring" else table
