"""How long collectives take by each algorithm: until the last of their messages has arrived (runtime spec 13).

The order in which values are combined is not decided here (AMB-RT-26).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..abi.status import Failure, Status
from ..mesh.routes import End
from ..mesh.topology import Topology
from ..numerics.errors import shown
from .argument_checks import require_known
from .message_times import message_times
from .operations import messages
from .schedules import ALGORITHMS, Maker, maker
from .travel import Cut, travel

__all__ = ["COLLECTIVES", "algorithms", "collective_duration"]

FEW = 64
"""Devices among which the engine is asked at once; of more, the recurrence is far quicker where it can tell."""

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")


def algorithms(topology: Topology, devices: Sequence[int], down: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The algorithms that a group of devices can run, none where some cannot reach others.

    Hierarchical takes several nodes with as many devices of the group on each, or one node on which a switch joins all
    of the group (RT-13-05).
    """
    if any(topology.route(devices[0], each, down) is None for each in devices):
        return ()
    possible = tuple(ALGORITHMS)
    if _is_hierarchy(topology, devices, down):
        return possible
    return tuple(name for name in possible if name != "hierarchical")


def collective_duration(
    topology: Topology,
    devices: Sequence[int],
    collective: str,
    bytes: int,
    algorithm: str,
    root: int = 0,
    down: frozenset[str] = frozenset(),
    path: str = "auto",
    cuts: tuple[Cut, ...] = (),
) -> int:
    """The duration of a collective over a full buffer of a size; `root` is the group index of a broadcast's root.

    Messages go by the `path` where it is there. The links of `cuts` fail midway, after which they go by others. A group
    of one, or an empty buffer, takes no time. Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names or a root
    outside the group, TESS_ERR_UNSUPPORTED for an algorithm it cannot run, TESS_ERR_LAUNCH_FAILED where devices are cut
    off.
    """
    require_known("collective", "collective", collective, COLLECTIVES)
    require_known("collective", "algorithm", algorithm, tuple(ALGORITHMS))
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
    around = (*devices[root:], *devices[:root])
    return _duration(topology, around, collective, bytes, algorithm, maker(algorithm), down, path, cuts)


@lru_cache(maxsize=4096)
def _duration(
    topology: Topology,
    devices: tuple[int, ...],
    collective: str,
    bytes: int,
    algorithm: str,
    make: Maker,
    down: frozenset[str],
    path: str,
    cuts: tuple[Cut, ...],
) -> int:
    """The ranks are taken node by node, since those of a hierarchy stand together; `make` is part of the key."""
    nodes = topology.by_node(devices)
    together = tuple(each for node in nodes for each in node)
    if len(together) > FEW:
        per_node = len(nodes[0])
        return message_times(topology, together, collective, algorithm, bytes, 1, per_node=per_node, down=down).last
    sent = messages(collective, algorithm, len(devices), bytes, per_node=len(nodes[0]))
    return max((each.end for each in travel(topology, together, sent, 1, down=down, path=path, cuts=cuts)), default=0)


def _is_hierarchy(topology: Topology, devices: Sequence[int], down: frozenset[str]) -> bool:
    nodes = topology.by_node(devices)
    if len(nodes) > 1:
        return len({len(each) for each in nodes}) == 1
    switches = [each.name for each in topology.switches if each.node is not None]
    return any(all(_one_link(topology, device, switch, down) for device in devices) for switch in switches)


def _one_link(topology: Topology, a: End, b: End, down: frozenset[str]) -> bool:
    return len(topology.route(a, b, down) or ()) == 1
