"""Over which transport two devices exchange chunks: NVLink, PCIe, RDMA or the network of the hosts.

Collectives spec 1, 3.2: COLL-01-06, COLL-03.2-01, -02, -03, -05, -07; AMB-COLL-43, AMB-COLL-45. A path is a class of
links; the way over them is the shortest (`mesh.routes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..abi.status import Failure, Status
from ..mesh.routes import Link
from ..mesh.topology import Topology
from .argument_checks import require_known

__all__ = ["PATHS", "PATH_VARIABLE", "Route", "route"]

PATHS = ("nvlink", "pcie", "rdma", "network")
"""The transports that the attribute `path` may name besides auto."""

PATH_VARIABLE = "TESSERA_COLL_PATH"

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
    within = topology.device(source, "route").node == topology.device(target, "route").node
    names = tuple(link.name for link in topology.links)
    for each in down:
        require_known("route", "link", each, names)
    if source == target:
        return Route("local", (), False)
    if path != "auto":
        _require_present(topology, source, target, path)
    preferred = WITHIN_A_NODE if within else BETWEEN_NODES
    order = preferred if wanted == "auto" else (wanted, *(each for each in preferred if each != wanted))
    for each in order:
        way = _way(topology, source, target, each, frozenset(down))
        if way is not None:
            return Route(each, way, each != order[0])
    return _mixed(topology, source, target, frozenset(down))


def _wanted(path: str, environment: Mapping[str, str]) -> str:
    """The path of the attribute, or the environment's where that is auto (AMB-COLL-13)."""
    allowed = ("auto", *PATHS)
    require_known("route", "path", path, allowed)
    override = environment.get(PATH_VARIABLE) or "auto"
    require_known("route", f"{PATH_VARIABLE} =", override, allowed)
    return override if path == "auto" else path


def _require_present(topology: Topology, source: int, target: int, path: str) -> None:
    present = [each for each in PATHS if _way(topology, source, target, each, frozenset()) is not None]
    if path not in present:
        given = f"path {path} between devices {source} and {target}"
        expected = f"auto or one of {', '.join(present)}" if present else "auto"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "route", given, expected)


def _way(topology: Topology, source: int, target: int, path: str, down: frozenset[str]) -> tuple[str, ...] | None:
    """The names of the links of the shortest way of a transport, None where there is none."""
    carrying = {link.name for link in _carrying(topology, path)}
    others = frozenset(link.name for link in topology.links if link.name not in carrying)
    way = topology.route(source, target, down | others)
    return None if way is None else tuple(link.name for link in way)


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


def _mixed(topology: Topology, source: int, target: int, down: frozenset[str]) -> Route:
    """The shortest way over links of whichever kinds. Raises `Failure`."""
    way = topology.route(source, target, down)
    if way is None:
        cut = f" while {', '.join(sorted(down))} are down" if down else ""
        given = f"no way between devices {source} and {target}{cut}"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "route", given, "links that are not down")
    return Route("mixed", tuple(link.name for link in way), True)
