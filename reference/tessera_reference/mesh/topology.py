"""The simulated machine, and the logical axes of a mesh (runtime spec 4.2, 4.6, 6, 13, 17; collectives spec 3.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from heapq import heappop, heappush
from importlib.resources import files
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any

from ..abi.status import CopyKind, Failure, Status, invalid
from ..ir.diagnostics import listed, read_json
from ..ir.targets import Target, target_of
from ..numerics.formats import shown

# The logical axes of a mesh: the numbering of ranks, and their groups (spec 4.2, 4.6; AMB-RT-01, -02, -03).
#
# The devices of ranks, and the work of groups, are not known here.


AXES = ("tp", "pp", "dp", "ep")
"""The axes in the order in which ranks count, the last one fastest (AMB-RT-02)."""

_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True)
class MeshAxes:
    """tessMeshAxes: the size along each axis, where 0 means an absent axis (RT-04.2-04, AMB-RT-01).

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a size that is negative or does not fit a C int.
    """

    tp: int = 0
    pp: int = 0
    dp: int = 0
    ep: int = 0

    def __post_init__(self) -> None:
        for axis in AXES:
            size = getattr(self, axis)
            if type(size) is not int or not 0 <= size <= _LARGEST_INT:
                allowed = f"0 for an absent axis, or 1 to {_LARGEST_INT}"
                raise invalid("tessMeshCreate", f"axes.{axis} is {shown(size)}", allowed)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The size along each axis of `AXES`; an absent one counts as 1."""
        return self.tp or 1, self.pp or 1, self.dp or 1, self.ep or 1

    @property
    def ranks(self) -> int:
        """The number of ranks of the mesh."""
        return prod(self.sizes)

    def require(self, devices: int) -> None:
        """Raise `Failure` with TESS_ERR_INVALID_VALUE unless the mesh has as many ranks as devices (AMB-RT-01)."""
        if self.ranks != devices:
            subject = f"axes {self.tp} x {self.pp} x {self.dp} x {self.ep} for {devices} devices"
            raise invalid("tessMeshCreate", subject, f"axes whose product, 0 counting as 1, is {devices}")

    def rank(self, coordinates: Sequence[int]) -> int:
        """Return the rank at coordinates along (tp, pp, dp, ep). Raises `Failure` for coordinates outside the mesh."""
        number = 0
        for axis, size, coordinate in zip(AXES, self.sizes, coordinates, strict=True):
            if not 0 <= coordinate < size:
                raise invalid("mesh", f"coordinate {shown(coordinate)} along {axis}", f"0 to {size - 1}")
            number = number * size + coordinate
        return number

    def size_along(self, axis: str | None) -> int:
        """Return the number of ranks of a group along an axis. Raises as `groups` does."""
        return self.sizes[_position(axis)]

    def groups(self, axis: str | None) -> tuple[tuple[int, ...], ...]:
        """Return the groups of ranks that differ along an axis only, in the order of their coordinate along it.

        Groups are in the order of their first ranks. Raises `Failure` with TESS_ERR_INVALID_VALUE for None or an
        unknown name (AMB-RT-03).
        """
        return _groups(self, _position(axis))

    def group_of(self, axis: str | None, rank: int) -> tuple[int, ...]:
        """Return the group of a rank along an axis; all of its ranks share one object. Raises as `groups` does."""
        return _by_rank(self, _position(axis))[rank]


def _position(axis: str | None) -> int:
    if not isinstance(axis, str) or axis not in AXES:
        raise invalid("mesh", "a NULL axis" if axis is None else f"axis {shown(axis)}", listed(AXES, axis))
    return AXES.index(axis)


@lru_cache(maxsize=256)
def _groups(axes: MeshAxes, position: int) -> tuple[tuple[int, ...], ...]:
    along = [range(size) for size in axes.sizes]
    others = [range(1) if place == position else coordinates for place, coordinates in enumerate(along)]
    step = prod(axes.sizes[position + 1 :])
    starts = [axes.rank(corner) for corner in product(*others)]
    return tuple(tuple(start + step * coordinate for coordinate in along[position]) for start in starts)


@lru_cache(maxsize=256)
def _by_rank(axes: MeshAxes, position: int) -> dict[int, tuple[int, ...]]:
    return {rank: group for group in _groups(axes, position) for rank in group}


# Reading JSON documents that a JSON Schema describes: an error names file, JSON path and expected value.


TYPES = {"object": "an object", "array": "an array", "string": "a string", "integer": "a whole number"}


class InvalidDocument(Failure):
    """A document cannot be read: `file`, JSON `path`, actual and expected value."""

    def __init__(self, file: str, path: str, problem: str, expected: str) -> None:
        super().__init__(Status.TESS_ERR_INVALID_VALUE, file, f"{path} {problem}", expected)
        self.file = file
        self.path = path
        self.expected = expected


def parse(text: str, file: str) -> Any:
    """Return the value of a JSON text. Raises `InvalidDocument`, also for NaN and for a repeated member."""
    try:
        return read_json(text)
    except ValueError as error:
        raise InvalidDocument(file, "$", f"is not JSON ({error})", "a JSON document") from None


def _described(error: Any) -> tuple[str, str]:
    """Return the fault of a `jsonschema.ValidationError`, and the value that the schema expects instead."""
    value, form, bound = error.instance, error.schema, error.validator_value
    problem = f"is {shown(value)}"
    match error.validator:
        case "required":
            return "lacks one", f"a member {next(name for name in bound if name not in value)!r}"
        case "additionalProperties":
            names = tuple(form["properties"])
            unknown = next(name for name in value if name not in names)
            return f"has an unknown member {shown(unknown)}", listed(names, unknown)
        case "minItems" | "maxItems":
            return f"has {len(value)} elements", f"{form.get('minItems', 0)} to {form['maxItems']}"
        case "minimum" | "maximum":
            return problem, f"{form['minimum']} to {form['maximum']}"
        case "maxLength":
            return problem, f"a string of at most {bound} characters"
        case "enum":
            return problem, f"one of {listed(bound, value)}"
        case "const":
            return problem, shown(bound)
        case "type":
            return problem, TYPES[bound]
        case _:
            return problem, form["description"]


# Links between the parts of a machine, and the shortest route between two ends (collectives spec 3.3).


End = int | str
"""The end of a link: the id of a device, or the name of a node (its host), of a switch or of a NIC."""

_MOST_KEPT = 65536


@dataclass(frozen=True)
class Link:
    """A link that carries `bandwidth` bytes a second each way, the first of them after `latency` picoseconds.

    `credits` chunks may be in flight on it at a time, each way (AMB-COLL-17).
    """

    name: str
    a: End
    b: End
    bandwidth: int
    latency: int
    kind: str = "pcie"
    credits: int = 1

    def other(self, end: End) -> End:
        """Return the other end."""
        return self.b if end == self.a else self.a


class Routes:
    """The shortest routes over links, each searched once: by least latency, then fewest links, then names."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._at: dict[End, list[Link]] = {}
        self._joining: dict[tuple[End, End], list[Link]] = {}
        for link in links:
            self._at.setdefault(link.a, []).append(link)
            self._at.setdefault(link.b, []).append(link)
            self._joining.setdefault((link.a, link.b), []).append(link)
            self._joining.setdefault((link.b, link.a), []).append(link)
        for joined in self._at.values():
            joined.sort(key=lambda link: link.latency)
        self._found: dict[tuple[End, End, frozenset[str]], tuple[Link, ...] | None] = {}

    def between(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """Return the links of the route, or None where every route needs one that is down."""
        key = (a, b, down)
        if key not in self._found:
            if len(self._found) >= _MOST_KEPT:
                self._found.clear()
            self._found[key] = self._by_only_links(a, b, down)
        return self._found[key]

    def _by_only_links(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """Return the route, searched only between the neighbours of ends with a single link."""
        before, after = self._only_link(a), self._only_link(b)
        if a == b or before is None or after is None or before is after:
            return self._search(a, b, down)
        if before.name in down or after.name in down:
            return None
        inner = (before.other(a), after.other(b), down)
        if inner not in self._found:
            self._found[inner] = self._search(*inner)
        between = self._found[inner]
        return None if between is None else (before, *between, after)

    def _only_link(self, end: End) -> Link | None:
        links = self._at.get(end, ())
        return links[0] if len(links) == 1 else None

    def _search(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """Run Dijkstra's algorithm; ties are decided by the names of the links, which no two routes share.

        Once a route is known, farther ends are left out: a switch may have thousands.
        """
        waiting: list[tuple[int, int, tuple[str, ...], End, tuple[Link, ...]]] = [(0, 0, (), a, ())]
        done: set[End] = set()
        best: tuple[int, int] | None = None
        while waiting:
            latency, hops, names, end, way = heappop(waiting)
            if end == b:
                return way
            if end in done:
                continue
            done.add(end)
            last = [link for link in self._joining.get((end, b), ()) if link.name not in down]
            for link in chain(last, self._at.get(end, ())):
                reached = latency + link.latency, hops + 1
                other = link.other(end)
                if other == b and link.name not in down:
                    best = min(best or reached, reached)
                elif best is not None and reached >= best:
                    break
                if link.name not in down and other not in done:
                    heappush(waiting, (*reached, (*names, link.name), other, (*way, link)))
        return None


# The simulated machine: its nodes, switches, NICs, devices and links (runtime spec 13; collectives spec 3.3).
#
# A topology is a JSON file that `topology.schema.json`, published in `schemas/`, describes; those in `topologies/` come
# with the package. A device takes the limits of a block from its target. Costs are in `costs`.


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
        """The hardware of its target: lanes, shared memory and threads of a block."""
        return target_of(self.target)


@dataclass(frozen=True, eq=False)
class Topology:
    """A machine. Names of nodes, switches and NICs, ids of devices and names of links are each unique.

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
        """Return the device with an id. Raises `Failure` with TESS_ERR_INVALID_VALUE (AMB-RT-51)."""
        if number not in self._devices:
            ids = ", ".join(map(str, self._devices))
            raise invalid(function, f"device {shown(number)}", f"one of {ids}")
        return self._devices[number]

    def by_node(self, devices: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the devices grouped by node, with nodes in order of first appearance."""
        together: dict[str, list[int]] = {}
        for number in devices:
            together.setdefault(self.device(number).node, []).append(number)
        return tuple(tuple(group) for group in together.values())

    def route(self, a: End, b: End, down: frozenset[str] = frozenset()) -> tuple[Link, ...] | None:
        """Return the links from one end to another, without those down; None where they are cut off.

        The route has the least latency, then the fewest links, then the first names. From an end to itself it is empty.
        """
        return self._routes.between(a, b, down)


def read(document: Any, file: str = "topology") -> Topology:
    """Return the topology in a JSON document. Raises `InvalidDocument`."""
    _require_form(document, file)
    _require_meaning(document, file)
    return _made(document)


@lru_cache(maxsize=64)
def _read_text(text: str, file: str) -> Topology:
    """Return the topology of a text, from a cache: a validator takes milliseconds, and callers name few machines."""
    return read(parse(text, file), file)


def load(source: str | Path) -> Topology:
    """Return the topology of a JSON text or a file. Raises `InvalidDocument` with the file and the place in it."""
    if isinstance(source, str):
        return _read_text(source, "topology")
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # no such file, no UTF-8
        raise InvalidDocument(str(source), "$", f"cannot be read ({error})", "a readable file in UTF-8") from None
    return _read_text(text, str(source))


@cache
def named(name: str) -> Topology:
    """Return a topology that comes with the package. Raises `Failure` with TESS_ERR_INVALID_VALUE for another name."""
    if name not in NAMES:
        raise invalid("topology", f"name {shown(name)}", f"one of {listed(NAMES, name)}")
    return _made(json.loads(files(__package__).joinpath("topologies", f"{name}.json").read_text(encoding="utf-8")))


def default() -> Topology:
    """Return eight devices of sm_90 on one node, joined by an NVSwitch: the machine of section 18's sample program."""
    return named("eight-sm90")


def _made(document: Any) -> Topology:
    """Return the topology of a document whose form and meaning were checked."""
    places = _places(document)
    return Topology(
        document["name"],
        tuple(Node(**_whole(node)) for node in document["nodes"]),
        tuple(Switch(**switch) for switch in document["switches"]),
        tuple(Device(**_whole(device)) for device in document["devices"]),
        tuple(Link(**{"kind": _usual_kind(link, places), **_whole(link)}) for link in document["links"]),
        tuple(Nic(**row) for row in document.get("nics", ())),
    )


def _places(document: Any) -> dict[End, str | None]:
    """Return the node of each end; None for a switch between nodes."""
    places: dict[End, str | None] = {node["name"]: node["name"] for node in document["nodes"]}
    for switch in (*document["switches"], *document.get("nics", ())):
        places[switch["name"]] = switch.get("node")
    return places | {int(device["id"]): device["node"] for device in document["devices"]}


def _usual_kind(link: dict[str, Any], places: dict[End, str | None]) -> str:
    """Return the kind of a link that names none (AMB-COLL-42)."""
    return "pcie" if places[link["a"]] == places[link["b"]] is not None else "network"


def _whole(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members of an object, with 2.0, a whole number of JSON Schema, as 2."""
    return {name: int(value) if isinstance(value, float) else value for name, value in members.items()}


def _require_form(document: Any, file: str) -> None:
    """Check the document by the schema; for a faulty link, report its name and ends beside its path."""
    from jsonschema import Draft202012Validator  # slow to import, and the package's own topologies do not need it

    schema = json.loads(files(__package__).joinpath("topology.schema.json").read_text(encoding="utf-8"))
    error = next(Draft202012Validator(schema).iter_errors(document), None)
    if error is None:
        return
    problem, expected = _described(error)
    place = LINK_PATH.match(error.json_path)
    link = document["links"][int(place[1])] if place else None
    if isinstance(link, dict):
        name, a, b = (shown(link.get(member)) for member in ("name", "a", "b"))
        problem += f" (link {name} between {a} and {b})"
    raise InvalidDocument(file, error.json_path, problem, expected)


def _require_meaning(document: Any, file: str) -> None:
    """Check what the schema cannot express: keys are unique, and named things exist. Raises `InvalidDocument`."""

    def require(allowed: bool, path: str, value: Any, expected: str) -> None:
        if not allowed:
            raise InvalidDocument(file, path, f"is {shown(value)}", expected)

    def require_named(path: str, value: Any, names: Sequence[str]) -> None:
        if value not in names:
            require(False, path, value, f"one of {listed(names, value)}")

    keys = (("nodes", "name"), ("switches", "name"), ("nics", "name"), ("devices", "id"), ("links", "name"))
    for list_, key in keys:
        seen: set[str | int] = set()
        for at, entry in enumerate(document.get(list_, ())):
            require(
                entry[key] not in seen, f"$.{list_}[{at}].{key}", entry[key], f"a {key} that no earlier element has"
            )
            seen.add(entry[key])
    nodes, switches, nics = (
        tuple(row["name"] for row in document.get(list_, ())) for list_ in ("nodes", "switches", "nics")
    )
    for at, name in enumerate(switches):
        require(name not in nodes, f"$.switches[{at}].name", name, "a name that no node has")
    for at, name in enumerate(nics):
        require(name not in (*nodes, *switches), f"$.nics[{at}].name", name, "a name that no node or switch has")
    for list_ in ("switches", "nics", "devices"):
        for at, entry in enumerate(document.get(list_, ())):
            if "node" in entry:
                require_named(f"$.{list_}[{at}].node", entry["node"], nodes)
    names, ids = (*nodes, *switches, *nics), {device["id"] for device in document["devices"]}
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


# Machines of many equal nodes, made by a function where a file would repeat itself (collectives spec 3.3).


_WITHIN, _BETWEEN = (450 * 10**9, 500_000), (50 * 10**9, 2_000_000)
"""The bytes a second and picoseconds of a link within a node, and of one between nodes."""


def uniform(nodes: int, per_node: int, *, credits: int = 4, uplink_credits: int = 2, shared: bool = False) -> Topology:
    """Return `nodes` nodes of `per_node` devices, which a switch joins; ids count up from 0.

    Each device has its own link to the switch between nodes, or the node has one that all of its devices share.
    """
    devices = [Device(at, "sm_90", f"node{at // per_node}", 1 << 36, 10**12, 132) for at in range(nodes * per_node)]
    links = [Link(f"nv{d.id}", d.id, f"switch-{d.node}", *_WITHIN, "nvlink", credits) for d in devices]
    if nodes > 1 and shared:
        names = [f"node{number}" for number in range(nodes)]
        links += [Link(f"up-{n}", f"switch-{n}", "spine", *_BETWEEN, "rdma", uplink_credits) for n in names]
    elif nodes > 1:
        links += [Link(f"up{d.id}", d.id, "spine", *_BETWEEN, "rdma", uplink_credits) for d in devices]
    switches = [Switch(f"switch-node{number}", f"node{number}") for number in range(nodes)]
    return Topology(
        f"{nodes}x{per_node}",
        tuple(Node(f"node{number}", 1 << 40) for number in range(nodes)),
        (*switches, Switch("spine")),
        tuple(devices),
        tuple(links),
    )


# The time of kernels and copies on the simulated machine, in whole picoseconds (runtime spec 6, 17; RT-17-01).
#
# A kernel takes the time of its launch and one time for each wave of blocks; a copy the latency of its route and the
# time of its bytes over the narrowest link. The numbers only have the magnitude of a real machine's. Results never
# depend on them (design, section 6). The time of collectives follows from their messages (`collectives.travel`).


LAUNCH = 4_000_000
"""The time of a kernel launch."""
QUICK_LAUNCH = 2_000_000
"""The time of a launch under TESS_LAUNCH_LOW_LATENCY."""
WAVE = 2_000_000
"""The time of one block from start to end, and so of a wave of blocks that run side by side."""
COPY = 1_500_000
"""The time to start a copy."""

THREADS = 2048
"""The threads that a multiprocessor holds, on each of the targets."""
BLOCKS = 32
"""The most blocks that a multiprocessor holds."""

PICOSECONDS = 10**12
"""The picoseconds of one second."""


def resident_blocks(device: Device, block: Sequence[int]) -> int:
    """Return the blocks that one multiprocessor holds: as many as its threads allow, at least one."""
    return max(1, min(BLOCKS, THREADS // _threads(device, block)))


def occupancy(device: Device, grid: Sequence[int], block: Sequence[int]) -> float:
    """Return the part of the device's lanes that the first wave of a kernel takes, above 0 and at most 1 (RT-17-01)."""
    holds = resident_blocks(device, block) * device.multiprocessors
    threads = min(prod(grid), holds) * _threads(device, block)
    return min(1.0, threads / (THREADS * device.multiprocessors))


def kernel_duration(device: Device, grid: Sequence[int], block: Sequence[int], quick: bool = False) -> int:
    """Return the time of a launch, at low latency if `quick`, and of the waves until every block has run."""
    at_once = resident_blocks(device, block) * device.multiprocessors
    return (QUICK_LAUNCH if quick else LAUNCH) + -(-prod(grid) // at_once) * WAVE


def copy_duration(topology: Topology, device: Device, kind: CopyKind, size: int, pinned: bool) -> int:
    """Return the time of a copy on one device, to or from the application's host, or within its memory.

    Within a device every byte is read and written. Host memory that is not pinned passes through a pinned buffer, and
    so is moved twice. Raises `Failure` with TESS_ERR_LAUNCH_FAILED where the host cannot reach the device.
    """
    if kind is CopyKind.TESS_COPY_D2D:
        return COPY + carrying(2 * size, device.memory_bandwidth)
    way = topology.route(topology.host.name, device.id)
    if way is None:
        subject = f"no way between {topology.host.name} and device {device.id}"
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, "tessMemcpyAsync", subject, "links that are not down")
    moved, narrowest = size if pinned else 2 * size, min(link.bandwidth for link in way)
    return COPY + sum(link.latency for link in way) + carrying(moved, narrowest)


def carrying(size: int, bandwidth: int) -> int:
    """Return the picoseconds that bytes take at a bandwidth in bytes a second, rounded up."""
    return -(-size * PICOSECONDS // bandwidth)


def _threads(device: Device, block: Sequence[int]) -> int:
    """Return the lanes that a block takes: whole warps, with one thread in an open dimension (0)."""
    warp = device.hardware.warp
    return -(-prod(size or 1 for size in block) // warp) * warp
