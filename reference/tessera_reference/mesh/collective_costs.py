"""How long collectives take by ring, tree and hierarchical algorithms (runtime spec 13; collectives spec 3.1, 5.2).

A step of an algorithm lasts as long as its slowest transfer: a fixed part, the latency of the route, and the time of
the bytes on its busiest link, whose bandwidth the transfers in one direction share (alpha-beta costs). The order in
which values are combined is not decided here (AMB-RT-26).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown
from .collective_steps import Step, hierarchical, ring, tree
from .routes import End
from .topology import Topology

__all__ = ["ALGORITHMS", "COLLECTIVES", "algorithms", "collective_duration"]

ALGORITHMS = ("ring", "tree", "hierarchical")
"""RT-13-03 to -05."""

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")

STEP = 1_000_000
"""The fixed part of a step's duration, in picoseconds."""

_SECOND = 10**12


def algorithms(topology: Topology, devices: Sequence[int], down: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The algorithms that a group of devices can run, none where some cannot reach others.

    Hierarchical takes several nodes with as many devices of the group on each, or one node on which a switch joins all
    of the group (RT-13-05).
    """
    if any(topology.route(devices[0], each, down) is None for each in devices):
        return ()
    return ALGORITHMS if _is_hierarchy(topology, devices, down) else ALGORITHMS[:2]


def collective_duration(
    topology: Topology,
    devices: Sequence[int],
    collective: str,
    bytes: int,
    algorithm: str,
    root: int = 0,
    down: frozenset[str] = frozenset(),
) -> int:
    """The duration of a collective over a full buffer of a size; `root` is the group index of a broadcast's root.

    A group of one, or an empty buffer, takes no time. Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names or a
    root outside the group, TESS_ERR_UNSUPPORTED for an algorithm it cannot run, TESS_ERR_LAUNCH_FAILED where
    devices are cut off.
    """
    _require_known("collective", collective, COLLECTIVES)
    _require_known("algorithm", algorithm, ALGORITHMS)
    if not 0 <= root < len(devices):
        raise Failure(Status.TESS_ERR_INVALID_VALUE, collective, f"root {shown(root)}", f"0 to {len(devices) - 1}")
    if len(devices) == 1 or bytes == 0:
        return 0
    possible = algorithms(topology, devices, down)
    if not possible:
        given = f"devices {', '.join(map(str, devices))}, some of which are cut off from others"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, collective, given, "links that are not down")
    if algorithm not in possible:
        given = f"algorithm {algorithm!r} for devices {', '.join(map(str, devices))}"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, collective, given, f"one of {', '.join(possible)}")
    return _duration(topology, (*devices[root:], *devices[:root]), collective, bytes, algorithm, down)


@lru_cache(maxsize=4096)
def _duration(
    topology: Topology,
    devices: tuple[int, ...],
    collective: str,
    bytes: int,
    algorithm: str,
    down: frozenset[str],
) -> int:
    every = _steps(topology, devices, collective, bytes, algorithm)
    return sum(step.times * (STEP + _passing(topology, step.transfers, down)) for step in every)


def _steps(topology: Topology, devices: Sequence[int], collective: str, bytes: int, algorithm: str) -> Iterable[Step]:
    if algorithm == "ring":
        return ring(devices, collective, bytes)
    if algorithm == "tree":
        return tree(devices, collective, bytes)
    return hierarchical(topology.by_node(devices), collective, bytes)


def _is_hierarchy(topology: Topology, devices: Sequence[int], down: frozenset[str]) -> bool:
    nodes = topology.by_node(devices)
    if len(nodes) > 1:
        return len({len(each) for each in nodes}) == 1
    switches = [each.name for each in topology.switches if each.node is not None]
    return any(all(_one_link(topology, device, switch, down) for device in devices) for switch in switches)


def _one_link(topology: Topology, a: End, b: End, down: frozenset[str]) -> bool:
    return len(topology.route(a, b, down) or ()) == 1


def _passing(topology: Topology, transfers: Sequence[tuple[int, int, int]], down: frozenset[str]) -> int:
    """The duration of transfers that start together, until the last one ends."""
    ways = [(list(_directed(topology, source, target, down)), bytes) for source, target, bytes in transfers]
    waiting: dict[tuple[str, End], int] = {}
    for way, bytes in ways:
        for name, end, _, _ in way:
            waiting[name, end] = waiting.get((name, end), 0) + bytes
    return max(
        sum(latency for _, _, _, latency in way)
        + max(-(-waiting[name, end] * _SECOND // bandwidth) for name, end, bandwidth, _ in way)
        for way, _ in ways
    )


def _directed(
    topology: Topology, source: int, target: int, down: frozenset[str]
) -> Iterator[tuple[str, End, int, int]]:
    """The links from one device to another, each with the end at which it is entered, its bandwidth and latency."""
    end: End = source
    for link in topology.route(source, target, down) or ():
        yield link.name, end, link.bandwidth, link.latency
        end = link.other(end)


def _require_known(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        hint = did_you_mean(given, known)
        allowed = ", ".join(known) + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "collective", f"{what} {shown(given)}", allowed)
