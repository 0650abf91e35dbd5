"""The machine that is simulated: its nodes, switches, devices and links (runtime spec 13; collectives spec 3.3).

A topology is a JSON file of the form that `schemas/topology.schema.json` gives; those in `topologies/` come with the
package. A device takes what one block may have from its target. What anything costs is for `costs` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..ir.targets import TARGETS, Target, target_of
from ..numerics.errors import shown
from .json_reader import InvalidDocument, Place, parse
from .routes import End, Link, Routes

__all__ = ["NAMES", "Device", "Node", "Switch", "Topology", "default", "load", "named", "read"]

NAMES = ("eight-sm90", "mixed", "single", "two-nodes")
"""The topologies that come with the package."""

_MOST_BYTES = 2**48
_MOST_BANDWIDTH = 10**15
_MOST_LATENCY = 10**12
_MOST = 4096
_MOST_LINKS = 65536
_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True)
class Node:
    """A host and its memory; its name is an end of links."""

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Switch:
    """A switch, inside a node or, where that is None, between nodes; its name is an end of links."""

    name: str
    node: str | None


@dataclass(frozen=True)
class Device:
    """A device; its id is an end of links. Its memory moves `memory_bandwidth` bytes a second."""

    id: int
    target: str
    node: str
    memory_bytes: int
    memory_bandwidth: int
    multiprocessors: int

    @property
    def hardware(self) -> Target:
        """What its target says: lanes, shared memory and threads of a block."""
        return target_of(self.target)


@dataclass(frozen=True, eq=False)
class Topology:
    """A machine. Names of nodes and switches, ids of devices and names of links are each given once.

    It is equal to itself only, so that what is worked out about it can be kept by it.
    """

    name: str
    nodes: tuple[Node, ...]
    switches: tuple[Switch, ...]
    devices: tuple[Device, ...]
    links: tuple[Link, ...]

    @cached_property
    def _devices(self) -> dict[int, Device]:
        return {device.id: device for device in self.devices}

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.links)

    @property
    def host(self) -> Node:
        """The node on which the application runs: the first one."""
        return self.nodes[0]

    def has_device(self, number: int) -> bool:
        """Whether there is a device of that id."""
        return number in self._devices

    def device(self, number: int, function: str = "tessMeshCreate") -> Device:
        """The device of an id. Raises `Failure` with TESS_ERR_INVALID_VALUE (AMB-RT-51)."""
        if number not in self._devices:
            known = ", ".join(str(each) for each in self._devices)
            raise Failure(Status.TESS_ERR_INVALID_VALUE, function, f"device {shown(number)}", f"one of {known}")
        return self._devices[number]

    def by_node(self, devices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The devices, kept together by node in the order in which the nodes first come up."""
        together: dict[str, list[int]] = {}
        for number in devices:
            together.setdefault(self.device(number).node, []).append(number)
        return tuple(tuple(each) for each in together.values())

    def route(self, a: End, b: End, down: frozenset[str] = frozenset()) -> tuple[Link, ...] | None:
        """The links from one end to another, without those down; None where they are cut off.

        Of least latency, then of fewest links, then first by their names. From an end to itself it is empty.
        """
        return self._routes.between(a, b, down)


def read(place: Place) -> Topology:
    """The topology in a JSON document. Raises `InvalidDocument`."""
    whole = place.members(("format", "name", "nodes", "switches", "devices", "links"), ("description",))
    whole["format"].whole(1, 1)
    if "description" in whole:
        whole["description"].text(1000)
    topology = Topology(
        whole["name"].name(),
        tuple(_node(each) for each in whole["nodes"].items(1, _MOST)),
        tuple(_switch(each) for each in whole["switches"].items(0, _MOST)),
        tuple(_device(each) for each in whole["devices"].items(1, _MOST)),
        tuple(_link(each) for each in whole["links"].items(0, _MOST_LINKS)),
    )
    _require_once(whole["nodes"], [each.name for each in topology.nodes], "name")
    _require_once(whole["switches"], [each.name for each in topology.switches], "name")
    _require_once(whole["devices"], [each.id for each in topology.devices], "id")
    _require_once(whole["links"], [each.name for each in topology.links], "name")
    _require_known(whole, topology)
    return topology


def load(source: str | Path) -> Topology:
    """The topology of a JSON text, or of a file. Raises `InvalidDocument` naming the file and the place in it."""
    if isinstance(source, str):
        return read(parse(source, "topology"))
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no such file, no UTF-8
        raise InvalidDocument(str(source), "$", f"cannot be read ({error})", "a readable file in UTF-8") from None
    return read(parse(text, str(source)))


@cache
def named(name: str) -> Topology:
    """A topology that comes with the package. Raises `Failure` with TESS_ERR_INVALID_VALUE for another name."""
    if name not in NAMES:
        hint = did_you_mean(name, NAMES)
        allowed = f"one of {', '.join(NAMES)}" + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "topology", f"name {shown(name)}", allowed)
    text = files(__package__).joinpath("topologies", f"{name}.json").read_text(encoding="utf-8")
    return read(parse(text, f"{name}.json"))


def default() -> Topology:
    """Eight devices of sm_90 on one node, joined by an NVSwitch: what the sample program of section 18 runs on."""
    return named("eight-sm90")


def _node(place: Place) -> Node:
    members = place.members(("name", "memory_bytes"))
    return Node(members["name"].name(), members["memory_bytes"].whole(1, _MOST_BYTES))


def _switch(place: Place) -> Switch:
    members = place.members(("name",), ("node",))
    return Switch(members["name"].name(), members["node"].name() if "node" in members else None)


def _device(place: Place) -> Device:
    members = place.members(("id", "target", "node", "memory_bytes", "memory_bandwidth", "multiprocessors"))
    return Device(
        members["id"].whole(0, _LARGEST_INT),
        members["target"].one_of(tuple(TARGETS)),
        members["node"].name(),
        members["memory_bytes"].whole(1, _MOST_BYTES),
        members["memory_bandwidth"].whole(1, _MOST_BANDWIDTH),
        members["multiprocessors"].whole(1, _MOST),
    )


def _link(place: Place) -> Link:
    members = place.members(("name", "a", "b", "bandwidth", "latency"))
    return Link(
        members["name"].name(),
        _end(members["a"]),
        _end(members["b"]),
        members["bandwidth"].whole(1, _MOST_BANDWIDTH),
        members["latency"].whole(0, _MOST_LATENCY),
    )


def _end(place: Place) -> End:
    return place.name() if isinstance(place.value, str) else place.whole(0, _LARGEST_INT)


def _require_once(list_: Place, keys: Sequence[str | int], member: str) -> None:
    seen: set[str | int] = set()
    for place, key in zip(list_.items(0, len(keys)), keys, strict=True):
        if key in seen:
            place.members((member,), place.value)[member].refuse(f"a {member} that no earlier element has")
        seen.add(key)


def _require_known(whole: dict[str, Place], topology: Topology) -> None:
    """Whatever is named exists: the nodes of switches and devices, the ends of links."""
    nodes = {each.name: None for each in topology.nodes}
    for switch in whole["switches"].items(0, _MOST):
        if switch.value["name"] in nodes:
            Place(switch.file, f"{switch.path}.name", switch.value["name"]).refuse("a name that no node has")
    for each in (*whole["switches"].items(0, _MOST), *whole["devices"].items(0, _MOST)):
        if "node" in each.value:
            Place(each.file, f"{each.path}.node", each.value["node"]).one_of(nodes)
    names = {**nodes, **{each.name: None for each in topology.switches}}
    for link in whole["links"].items(0, _MOST_LINKS):
        for end in ("a", "b"):
            place = Place(link.file, f"{link.path}.{end}", link.value[end])
            if isinstance(place.value, str):
                place.one_of(names)
            elif not topology.has_device(place.value):
                place.refuse("the id of a device, or the name of a node or switch")
        if link.value["a"] == link.value["b"]:
            Place(link.file, f"{link.path}.b", link.value["b"]).refuse("another end than a")
