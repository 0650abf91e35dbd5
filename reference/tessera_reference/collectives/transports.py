"""Over which transport two devices exchange chunks: NVLink, PCIe, RDMA or the network of the hosts.

Collectives spec 1, 3.2: COLL-01-06, COLL-03.2-01, -02, -03, -05, -07; AMB-COLL-43, AMB-COLL-45. A path is a class of
links; the way over them is the shortest (`mesh.routes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..abi.status import Failure, Status
from ..mesh.routes import Link
from ..mesh.topology import Topology
from .argument_checks import require_known
from .variables import PATH_VARIABLE, require_variables

__all__ = ["PATHS", "Route", "path_override", "route", "way"]

Carrying = Callable[[Topology, str], Iterator[Link]]

PATHS = ("nvlink", "pcie", "rdma", "network")
"""The transports that the attribute `path` may name besides auto."""

WITHIN_A_NODE = ("nvlink", "pcie", "rdma")
BETWEEN_NODES = ("rdma", "network", "nvlink")
"""What auto tries, first to last."""


@dataclass(frozen=True)
class Route:
    """The transport, the names of the links on the way, and whether another transport had been preferred.

    Besides the `PATHS`, `path` is local for a device itself, and mixed where only links of several transports lead on.
    """

    path: str
    links: tuple[str, ...]
    fallback: bool


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
    wanted = _wanted(path, environment or {})
    for device in (source, target):
        topology.device(device, "route")
    names = tuple(link.name for link in topology.links)
    for each in down:
        require_known("route", "link", each, names)
    if path != "auto" and source != target:
        _require_present(topology, source, target, path)
    taken, links, fallback = way(topology, source, target, wanted, frozenset(down))
    return Route(taken, tuple(link.name for link in links), fallback)


def way(
    topology: Topology, source: int, target: int, path: str, down: frozenset[str]
) -> tuple[str, tuple[Link, ...], bool]:
    """The transport from one device to another, its links, and whether another transport had been preferred.

    A path that is not there, or is cut, is passed over. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where every way is
    cut.
    """
    if source == target:
        return "local", (), False
    preferred = WITHIN_A_NODE if topology.device(source).node == topology.device(target).node else BETWEEN_NODES
    order = preferred if path == "auto" else (path, *(each for each in preferred if each != path))
    for each in order:
        links = _way(topology, source, target, each, down)
        if links is not None:
            return each, links, each != order[0]
    return "mixed", _mixed(topology, source, target, down), True


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
    present = [each for each in PATHS if _way(topology, source, target, each, frozenset()) is not None]
    if path not in present:
        given = f"path {path} between devices {source} and {target}"
        expected = f"auto or one of {', '.join(present)}" if present else "auto"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "route", given, expected)


def _way(topology: Topology, source: int, target: int, path: str, down: frozenset[str]) -> tuple[Link, ...] | None:
    """The links of the shortest way of a transport, None where there is none."""
    return topology.route(source, target, _closed(topology, path, down, _carrying))


@lru_cache(maxsize=256)
def _closed(topology: Topology, path: str, down: frozenset[str], carrying: Carrying) -> frozenset[str]:
    """The links that a transport cannot use: what is down, and what is of others. `carrying` is part of the key."""
    used = {link.name for link in carrying(topology, path)}
    return down | {link.name for link in topology.links if link.name not in used}


def _carrying(topology: Topology, path: str) -> Iterator[Link]:
    """The links that a transport may use: PCIe leads to a NIC for RDMA alone, and to a host for all but RDMA."""
    hosts = {each.name for each in topology.nodes}
    nics = {each.name for each in topology.nics}
    for link in topology.links:
        ends = {link.a, link.b}
        if link.kind == "pcie":
            if (path in ("pcie", "network") and not ends & nics) or (path == "rdma" and not ends & hosts):
                yield link
        elif link.kind == path:
            yield link


def _mixed(topology: Topology, source: int, target: int, down: frozenset[str]) -> tuple[Link, ...]:
    """The shortest way over links of whichever kinds. Raises `Failure`."""
    links = topology.route(source, target, down)
    if links is None:
        cut = f" while {', '.join(sorted(down))} are down" if down else ""
        given = f"no way between devices {source} and {target}{cut}"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "route", given, "links that are not down")
    return links
