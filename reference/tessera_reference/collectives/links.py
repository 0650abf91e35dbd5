"""Links: transports, routes, credits, and the topology as a graph (collectives spec 3.2, 3.3, 4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..abi.status import Failure, Status, invalid, unsupported
from ..mesh.topology import End, Link, Topology, carrying, load, named
from ..numerics.formats import shown
from .schedules import require_known, require_within

# The environment variables of collectives (collectives spec 3.2 and 8; AMB-COLL-45).


PREFIX = "TESSERA_COLL_"

ALGORITHM_VARIABLE = "TESSERA_COLL_ALGO"
PATH_VARIABLE = "TESSERA_COLL_PATH"
TABLE_VARIABLE = "TESSERA_COLL_TABLE"

VARIABLES = (ALGORITHM_VARIABLE, PATH_VARIABLE, TABLE_VARIABLE)


def require_variables(function: str, environment: Mapping[str, str]) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for a variable that is none of these but begins as they do."""
    for name in environment:
        if name.startswith(PREFIX):
            require_known(function, "variable", name, VARIABLES)


# Over which transport two devices exchange chunks: NVLink, PCIe, RDMA or the network of the hosts.
#
# Collectives spec 1, 3.2: COLL-01-06, COLL-03.2-01, -02, -03, -05, -07; AMB-COLL-43, AMB-COLL-45. A path is a class
# of links; the way over them is the shortest (`mesh.routes`).


PATHS = ("nvlink", "pcie", "rdma", "network")
"""The transports that the attribute `path` may name besides auto."""

WITHIN_A_NODE = ("nvlink", "pcie", "rdma")
BETWEEN_NODES = ("rdma", "network", "nvlink")
"""The transports that auto tries between nodes, first to last."""


Direction = tuple[str, End]
"""A link, and the end at which it is entered: the two ways of a link do not share it."""

FIXED = 1_000_000
"""The fixed part of the duration of a message, in picoseconds."""


@dataclass(frozen=True)
class Route:
    """The way from a device: the transport, its links, and whether another transport had been preferred.

    Besides the `PATHS`, `path` is local for a device itself, and mixed where only links of several transports lead on.
    """

    source: int
    path: str
    links: tuple[Link, ...]
    fallback: bool

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of its links."""
        directions: list[Direction] = []
        end: End = self.source
        for link in self.links:
            directions.append((link.name, end))
            end = link.other(end)
        return tuple(directions)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its links."""
        return tuple(link.name for link in self.links)

    @cached_property
    def delay(self) -> int:
        """The picoseconds from when a message has left its links free until it arrives (AMB-COLL-60)."""
        return FIXED + sum(link.latency for link in self.links)

    @cached_property
    def bandwidth(self) -> int:
        """The bytes a second of its narrowest link."""
        return min(link.bandwidth for link in self.links)

    def time(self, size: int) -> int:
        """Return the picoseconds for which so many bytes occupy the links, rounded up."""
        return carrying(size, self.bandwidth)


def route(
    topology: Topology,
    source: int,
    target: int,
    path: str = "auto",
    down: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Route:
    """The way from one device to another, where `down` are the names of links that are cut.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown devices, links and paths; TESS_ERR_UNSUPPORTED for a path
    asked for that the machine does not have there, cut or not; TESS_ERR_LAUNCH_FAILED where every way is cut.
    """
    wish = _wanted(path, environment or {})
    for device in (source, target):
        topology.device(device, "route")
    names = tuple(link.name for link in topology.links)
    for failed_link in down:
        require_known("route", "link", failed_link, names)
    if path != "auto" and source != target:
        _require_present(topology, source, target, path)
    return preferred_route(topology, source, target, wish, frozenset(down))


def preferred_route(topology: Topology, source: int, target: int, path: str, down: frozenset[str]) -> Route:
    """The way from one device to another; a path that is not there, or is cut, is passed over (AMB-COLL-78).

    Raises `Failure` with TESS_ERR_LAUNCH_FAILED where every way is cut.
    """
    if source == target:
        return Route(source, "local", (), False)
    preferred = WITHIN_A_NODE if topology.device(source).node == topology.device(target).node else BETWEEN_NODES
    order = preferred if path == "auto" else (path, *(other for other in preferred if other != path))
    for transport in order:
        links = _way(topology, source, target, transport, down)
        if links is not None:
            return Route(source, transport, links, transport != order[0])
    mixed = topology.route(source, target, down)
    if mixed is None:
        cut = f" while {', '.join(sorted(down))} are down" if down else ""
        actual = f"no way between devices {source} and {target}{cut}"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "route", actual, "links that are not down")
    return Route(source, "mixed", mixed, True)


def path_override(function: str, environment: Mapping[str, str]) -> str:
    """The path of the environment, auto where it says nothing. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    override = environment.get(PATH_VARIABLE) or "auto"
    require_known(function, f"{PATH_VARIABLE} =", override, ("auto", *PATHS))
    return override


def _wanted(path: str, environment: Mapping[str, str]) -> str:
    """The path of the attribute, or the environment's where that is auto (AMB-COLL-13)."""
    require_known("route", "path", path, ("auto", *PATHS))
    require_variables("route", environment)
    override = path_override("route", environment)
    return override if path == "auto" else path


def _require_present(topology: Topology, source: int, target: int, path: str) -> None:
    present = [candidate for candidate in PATHS if _way(topology, source, target, candidate, frozenset()) is not None]
    if path not in present:
        actual = f"path {path} between devices {source} and {target}"
        expected = f"auto or one of {', '.join(present)}" if present else "auto"
        raise unsupported("route", actual, expected)


def _way(topology: Topology, source: int, target: int, path: str, down: frozenset[str]) -> tuple[Link, ...] | None:
    """The links of the shortest way of a transport, None where there is none."""
    return topology.route(source, target, _closed(topology, path, down, _carrying))


@lru_cache(maxsize=256)
def _closed(
    topology: Topology, path: str, down: frozenset[str], carrying: Callable[[Topology, str], Iterator[Link]]
) -> frozenset[str]:
    """The links that a transport cannot use: what is down, and what is of others. `carrying` is part of the key."""
    used = {link.name for link in carrying(topology, path)}
    return down | {link.name for link in topology.links if link.name not in used}


def _carrying(topology: Topology, path: str) -> Iterator[Link]:
    """The links that a transport may use: PCIe leads to a NIC for RDMA alone, and to a host for all but RDMA."""
    hosts = {node.name for node in topology.nodes}
    nics = {nic.name for nic in topology.nics}
    for link in topology.links:
        ends = {link.a, link.b}
        if link.kind == "pcie":
            if (path in ("pcie", "network") and not ends & nics) or (path == "rdma" and not ends & hosts):
                yield link
        elif link.kind == path:
            yield link


def like_links(topology: Topology, devices: Sequence[int]) -> Link | None:
    """Return a link that is like those of all devices of a node, or None where one switch does not join them alike.

    Each device then has one link of the transport that is preferred within a node, all to the same switch, so that the
    way between two devices is their two links, which no other way shares in the same direction.
    """
    if len(topology.by_node(devices)) != 1 or len(set(devices)) != len(devices):
        return None
    closed = _closed(topology, WITHIN_A_NODE[0], frozenset(), _carrying)
    members = set(devices)
    ends = [(link, end) for link in topology.links if link.name not in closed for end in (link.a, link.b)]
    joining = [(link, end) for link, end in ends if end in members]
    kinds = {(link.bandwidth, link.latency, link.credits) for link, _ in joining}
    switches = {link.other(end) for link, end in joining}
    alike = len(joining) == len(devices) > 1 and len(kinds) == len(switches) == 1 and switches.isdisjoint(members)
    return joining[0][0] if alike else None


def nodes_of(function: str, topology: Topology, devices: Sequence[int] | None) -> tuple[tuple[int, ...], ...]:
    """Return the devices that are used, all of the topology where none are named, node by node.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for no device, and for one that is named twice or unknown.
    """
    used = [device.id for device in topology.devices] if devices is None else list(devices)
    if not used or len(set(used)) != len(used):
        raise invalid(function, f"devices {used}", "one at least, each once")
    return topology.by_node(used)


# The credits of links (collectives spec 4.2; AMB-COLL-17): a chunk in flight has one of every link on its way.
#
# `CreditLimiter` is the rule alone, asked chunk by chunk; in `travel.py` messages follow it in time.


@dataclass(frozen=True, slots=True)
class ReadyChunk:
    """A chunk that could be issued, and the links on its way."""

    id: str
    links: tuple[str, ...]


class CreditLimiter:
    """A limiter of the chunks in flight on links of so many credits."""

    def __init__(self, credits: Mapping[str, int]) -> None:
        for link, count in credits.items():
            require_within("collectives.limiter", f"credits of {link}", count, 1, (1 << 63) - 1)
        self._left = Counter(credits)
        self._in_flight: dict[str, tuple[str, ...]] = {}

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """Issue the first of these chunks for which every link has credits, and take them; None where there is none.

        Raises `Failure` with TESS_ERR_INVALID_VALUE for a chunk that is in flight, or a link that there is not.
        """
        function = "collectives.acquire"
        for chunk in ready:
            for link in chunk.links:
                require_known(function, "link", link, tuple(self._left))
            if chunk.id in self._in_flight:
                raise invalid(function, f"chunk {shown(chunk.id)} in flight", "a chunk that waits")
        for chunk in ready:
            if all(self._left[link] >= count for link, count in Counter(chunk.links).items()):
                self._left.subtract(chunk.links)
                self._in_flight[chunk.id] = chunk.links
                return chunk.id
        return None

    def release(self, chunk: str) -> None:
        """Return the credits of a chunk. Raises `Failure` with TESS_ERR_INVALID_VALUE where it is not in flight."""
        require_known("collectives.release", "chunk", chunk, tuple(self._in_flight))
        self._left.update(self._in_flight.pop(chunk))


# The topology as a graph that can be asked: GPUs, NICs, switches and hosts, joined by links (collectives spec 3.3).
#
# COLL-03.3-01, -02, -03 and -06; AMB-COLL-42. Reading and routes are those of the simulated machine (`mesh.topology`).


def topology_of(text: str) -> Topology:
    """The topology of a name, or of a JSON text (one that begins with a brace), each of whose devices can be reached.

    Raises `Failure` with TESS_ERR_INVALID_VALUE, for a link naming it and its ends.
    """
    topology = load(text) if text.lstrip().startswith("{") else named(text)
    first, *others = topology.devices
    for device in others:
        if topology.route(first.id, device.id) is None:
            own = [link for link in topology.links if device.id in (link.a, link.b)]
            links = ", ".join(f"{link.name} ({link.a} to {link.b})" for link in own)
            actual = f"no links lead from device {first.id} to device {device.id}, which has "
            raise invalid(
                topology.name, actual + (f"links {links}" if links else "no link"), "a way between every two devices"
            )
    return topology
