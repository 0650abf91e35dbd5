"""The machine that is simulated: its nodes, switches, NICs, devices and links (runtime spec 13; collectives spec 3.3).

A topology is a JSON file of the form that `topology.schema.json` gives, which is published in `schemas/`; those in
`topologies/` come with the package. A device takes the limits of a block from its target. Costs are in `costs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..ir.targets import Target, target_of
from ..numerics.errors import shown
from .json_documents import InvalidDocument, parse, require_form
from .routes import End, Link, Routes

__all__ = ["NAMES", "Device", "Nic", "Node", "Switch", "Topology", "default", "load", "named", "read"]

NAMES = ("eight-sm90", "mixed", "single", "two-nodes")
"""The topologies that come with the package."""

LINK_PATH = re.compile(r"\$\.links\[(\d+)\]")


@dataclass(frozen=True)
class Node:
    """A host and its memory; its name is an end of links."""

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Switch:
    """A switch, inside a node or, where that is None, between nodes; its name is an end of links."""

    name: str
    node: str | None = None


@dataclass(frozen=True)
class Nic:
    """A network interface of a node; its name is an end of links."""

    name: str
    node: str


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
    """A machine. Names of nodes, switches and NICs, ids of devices and names of links are each given once.

    Compared by identity, so that it can key a cache.
    """

    name: str
    nodes: tuple[Node, ...]
    switches: tuple[Switch, ...]
    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    nics: tuple[Nic, ...] = ()

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


def read(document: Any, file: str = "topology") -> Topology:
    """The topology in a JSON document. Raises `InvalidDocument`."""
    _require_form(document, file)
    return _with_meaning(document, file)


def _require_form(document: Any, file: str) -> None:
    schema = json.loads(files(__package__).joinpath("topology.schema.json").read_text(encoding="utf-8"))
    try:
        require_form(document, schema, file)
    except InvalidDocument as problem:
        raise _naming_the_link(problem, document) from None


def _with_meaning(document: Any, file: str) -> Topology:
    _require_meaning(document, file)
    return _made(document)


@lru_cache(maxsize=64)
def _of_form(text: str, file: str) -> Any:
    """The document of a text, which nobody changes: a validator takes milliseconds, and callers name few machines."""
    document = parse(text, file)
    _require_form(document, file)
    return document


def load(source: str | Path) -> Topology:
    """The topology of a JSON text, or of a file. Raises `InvalidDocument` naming the file and the place in it."""
    if isinstance(source, str):
        return _with_meaning(_of_form(source, "topology"), "topology")
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no such file, no UTF-8
        raise InvalidDocument(str(source), "$", f"cannot be read ({error})", "a readable file in UTF-8") from None
    return _with_meaning(_of_form(text, str(source)), str(source))


@cache
def named(name: str) -> Topology:
    """A topology that comes with the package. Raises `Failure` with TESS_ERR_INVALID_VALUE for another name."""
    if name not in NAMES:
        hint = did_you_mean(name, NAMES)
        allowed = f"one of {', '.join(NAMES)}" + (f": {hint}" if hint else "")
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "topology", f"name {shown(name)}", allowed)
    text = files(__package__).joinpath("topologies", f"{name}.json").read_text(encoding="utf-8")
    return _made(json.loads(text))


def default() -> Topology:
    """Eight devices of sm_90 on one node, joined by an NVSwitch: what the sample program of section 18 runs on."""
    return named("eight-sm90")


def _made(document: Any) -> Topology:
    """The topology of a document that has the form and a meaning."""
    places = _places(document)
    return Topology(
        document["name"],
        tuple(Node(**_whole(each)) for each in document["nodes"]),
        tuple(Switch(**each) for each in document["switches"]),
        tuple(Device(**_whole(each)) for each in document["devices"]),
        tuple(Link(**{"kind": _usual_kind(each, places), **_whole(each)}) for each in document["links"]),
        tuple(Nic(**each) for each in document.get("nics", ())),
    )


def _places(document: Any) -> dict[End, str | None]:
    """The node of each end, None of a switch between nodes."""
    places: dict[End, str | None] = {each["name"]: each["name"] for each in document["nodes"]}
    for each in (*document["switches"], *document.get("nics", ())):
        places[each["name"]] = each.get("node")
    return places | {int(each["id"]): each["node"] for each in document["devices"]}


def _usual_kind(link: dict[str, Any], places: dict[End, str | None]) -> str:
    """The kind of a link that names none (AMB-COLL-42)."""
    return "pcie" if places[link["a"]] == places[link["b"]] is not None else "network"


def _naming_the_link(problem: InvalidDocument, document: Any) -> InvalidDocument:
    """The same problem, which says besides its path which link it is about and between which ends."""
    place = LINK_PATH.match(problem.path)
    link = document["links"][int(place[1])] if place else None
    if not isinstance(link, dict):
        return problem
    name, a, b = (shown(link.get(member)) for member in ("name", "a", "b"))
    found = f"{problem.found} (link {name} between {a} and {b})"
    return InvalidDocument(problem.file, problem.path, found, problem.expected)


def _whole(members: dict[str, Any]) -> dict[str, Any]:
    """The members of an object, with 2.0, a whole number of JSON Schema, as 2."""
    return {name: int(value) if isinstance(value, float) else value for name, value in members.items()}


def _require_meaning(document: Any, file: str) -> None:
    """What the schema cannot say: keys are unique, and what is named exists. Raises `InvalidDocument`."""

    def require(allowed: bool, path: str, value: Any, expected: str) -> None:
        if not allowed:
            raise InvalidDocument(file, path, f"is {shown(value)}", expected)

    def require_named(path: str, value: Any, known: Sequence[str]) -> None:
        hint = "" if value in known else did_you_mean(value, known)
        require(value in known, path, value, f"one of {', '.join(known)}" + (f": {hint}" if hint else ""))

    keys = (("nodes", "name"), ("switches", "name"), ("nics", "name"), ("devices", "id"), ("links", "name"))
    for list_, key in keys:
        seen: set[str | int] = set()
        for at, each in enumerate(document.get(list_, ())):
            require(each[key] not in seen, f"$.{list_}[{at}].{key}", each[key], f"a {key} that no earlier element has")
            seen.add(each[key])
    nodes, switches, nics = (
        tuple(each["name"] for each in document.get(list_, ())) for list_ in ("nodes", "switches", "nics")
    )
    for at, name in enumerate(switches):
        require(name not in nodes, f"$.switches[{at}].name", name, "a name that no node has")
    for at, name in enumerate(nics):
        require(name not in (*nodes, *switches), f"$.nics[{at}].name", name, "a name that no node or switch has")
    for list_ in ("switches", "nics", "devices"):
        for at, each in enumerate(document.get(list_, ())):
            if "node" in each:
                require_named(f"$.{list_}[{at}].node", each["node"], nodes)
    names, ids = (*nodes, *switches, *nics), {each["id"] for each in document["devices"]}
    for at, link in enumerate(document["links"]):
        for end in ("a", "b"):
            if isinstance(link[end], str):
                require_named(f"$.links[{at}].{end}", link[end], names)
            else:
                expected = "the id of a device, or the name of a node, switch or NIC"
                require(link[end] in ids, f"$.links[{at}].{end}", link[end], expected)
            if link.get("kind") == "rdma":
                require(link[end] in (*switches, *nics), f"$.links[{at}].{end}", link[end], "a NIC or a switch")
        require(link["a"] != link["b"], f"$.links[{at}].b", link["b"], "another end than a")
