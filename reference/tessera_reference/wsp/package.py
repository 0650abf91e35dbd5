"""A package (section 7.2): its contents and published form, what it uses, its settings, and how it is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NoReturn, TypeVar

from ..ir.diagnostics import read_json
from ..numerics.formats import shown
from . import policies
from .errors import STATES, ArgumentRefused, PackageRefused, ProgramRefused, UnsupportedDirective, first_cycle
from .kernels import DTYPES, Kernel, check_call, kernel_json, read_kernel
from .statements import (
    Body,
    BodyReader,
    Close,
    Cond,
    Consume,
    Expression,
    Load,
    Receive,
    Repeat,
    RunKernel,
    Scope,
    Send,
    Statement,
    Task,
    TensorArgument,
    Wait,
    expression_json,
    member,
    members,
    name,
    objects,
    record,
    statements_json,
    whole,
)
from .targets import NAMES, Target, target

# The canonical bytes of a package and its content hash (section 7.2).


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted members and no blanks, UTF-8, ended by one line feed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def content_hash(document: Mapping[str, Any]) -> str:
    """`sha256:` and the digest of the canonical bytes without the member `hash`."""
    content = {name: value for name, value in document.items() if name != "hash"}
    return f"sha256:{hashlib.sha256(canonical_bytes(content)).hexdigest()}"


# A package (section 7.2): kernel registry, schedule and CSP payload, slots, symbols and tensors, with its version.
#
# `Package` is the typed program that the executor runs; `document` and `package_bytes` are its published form
# (`schemas/wsp_package.schema.json`).


ABI = "v10.0"
FORMAT = 1
RESOURCES: Mapping[str, int] = {
    "tensormap_pool": 256,
    "deplist_pool": 1024,
    "heap_arena": 1 << 20,
    "ready_queue": 64,
}
"""The bounded resources beside the task ring, and their sizes where a program names none (AMB-WSP-51)."""


@dataclass(frozen=True)
class Policy:
    """A dispatch policy with its parameters; an expression of a user's policy is a parameter too."""

    id: str
    parameters: Mapping[str, int | Expression]


@dataclass(frozen=True)
class TaskWindow:
    """The bound of tasks in flight (section 3.2)."""

    size: int = 64
    unit: str = "tasks"
    mode: str = "stall"


@dataclass(frozen=True)
class Directive:
    """A further directive of the schedule, and what its target does with it."""

    name: str
    value: str
    state: str


@dataclass(frozen=True)
class Schedule:
    """The placement of tasks, and the bounds."""

    policy: Policy
    task_window: TaskWindow
    resources: Mapping[str, int]
    directives: tuple[Directive, ...]
    capabilities: Mapping[str, str]


@dataclass(frozen=True)
class Channel:
    """A named edge: at most `capacity` tokens between send and take, each visible `latency` cycles after its send."""

    name: str
    capacity: int = 1
    latency: int = 0


@dataclass(frozen=True)
class Process:
    """A sequential actor; `without_scopes` is a setting of a run, and never in a package."""

    name: str
    body: Body
    without_scopes: bool = False


@dataclass(frozen=True)
class Symbol:
    """A number that changes between runs; `width` in bits."""

    name: str
    width: int
    default: int


@dataclass(frozen=True)
class Tensor:
    """Elements of one dtype in memory; `initial` are its bytes, little-endian, zeros where left out."""

    name: str
    dtype: str
    count: int
    initial: bytes | None = None

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.count * DTYPES[self.dtype].itemsize


@dataclass(frozen=True)
class Package:
    """All of a program; the id of a kernel, channel, process, slot, symbol or tensor is its place.

    A package for aie has the graph of its streams beside it.
    """

    name: str
    target: str
    phase: int
    kernels: tuple[Kernel, ...]
    schedule: Schedule
    channels: tuple[Channel, ...]
    processes: tuple[Process, ...]
    slots: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    tensors: tuple[Tensor, ...]
    stream_graph: Mapping[str, Any] | None = None


def package_bytes(package: Package) -> bytes:
    """The canonical bytes of a package, its hash included."""
    whole = document(package)
    return canonical_bytes(whole | {"hash": content_hash(whole)})


def document(package: Package) -> dict[str, Any]:
    """The published form of a package without its hash."""
    streams = {} if package.stream_graph is None else {"stream_graph": package.stream_graph}
    return streams | {
        "wsp_runtime_abi": ABI,
        "format": FORMAT,
        "name": package.name,
        "target": package.target,
        "phase": package.phase,
        "kernels": _numbered([kernel_json(kernel) for kernel in package.kernels]),
        "schedule": _schedule_json(package.schedule),
        "csp": {
            "channels": _numbered([vars(channel) for channel in package.channels]),
            "processes": _numbered(
                [{"name": process.name, "body": statements_json(process.body)} for process in package.processes]
            ),
        },
        "slots": _numbered([{"name": slot, "width": 64} for slot in package.slots]),
        "symbols": _numbered([vars(symbol) | {"update": "between-runs"} for symbol in package.symbols]),
        "tensors": _numbered([_tensor(tensor) for tensor in package.tensors]),
    }


def _numbered(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": place, **entry} for place, entry in enumerate(entries)]


def _schedule_json(schedule: Schedule) -> dict[str, Any]:
    parameters = {
        name: value if isinstance(value, int) else expression_json(value)
        for name, value in schedule.policy.parameters.items()
    }
    return {
        "policy": {"id": schedule.policy.id, "parameters": parameters},
        "task_window": vars(schedule.task_window),
        "resources": dict(schedule.resources),
        "directives": [vars(directive) for directive in schedule.directives],
        "capabilities": dict(schedule.capabilities),
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    stated = {"name": tensor.name, "dtype": tensor.dtype, "count": tensor.count}
    return stated if tensor.initial is None else stated | {"initial": tensor.initial.hex()}


# Whether every call of a kernel fits it: as many arguments, of the right kinds, with the right dtypes and counts.


def walk(body: Body, path: str) -> Iterator[tuple[str, Statement]]:
    """Every statement of a body and of the bodies within, with its path."""
    for place, statement in enumerate(body):
        at = f"{path}/{place}"
        yield at, statement
        if isinstance(statement, Scope | Consume | Repeat):
            yield from walk(statement.body, f"{at}/body")
        elif isinstance(statement, Cond):
            yield from walk(statement.then, f"{at}/then")
            yield from walk(statement.otherwise, f"{at}/otherwise")


def check_calls(package: Package, path: str) -> None:
    """Raises `ProgramRefused` for the first call that does not fit."""
    checked: set[tuple[object, ...]] = set()
    for place, process in enumerate(package.processes):
        for at, statement in walk(process.body, f"{path}/{place}/body"):
            if isinstance(statement, RunKernel | Task):
                form = (statement.kernel, *(getattr(argument, "tensor", None) for argument in statement.arguments))
                if form not in checked:
                    _check_call(package, statement, f"{at}/arguments")
                    checked.add(form)


def _check_call(package: Package, call: RunKernel | Task, path: str) -> None:
    kernel = package.kernels[call.kernel]
    if len(call.arguments) != len(kernel.parameters):
        raise ProgramRefused(path, f"are {len(call.arguments)}, and {kernel.name} takes {len(kernel.parameters)}")
    tensors = {}
    for (parameter, kind), argument in zip(kernel.parameters.items(), call.arguments, strict=True):
        if (kind == "tensor") != isinstance(argument, TensorArgument):
            raise ProgramRefused(path, f"for {parameter} of {kernel.name} there has to be a {kind}")
        if isinstance(argument, TensorArgument):
            tensor = package.tensors[argument.tensor]
            tensors[parameter] = tensor.dtype, tensor.count
    check_call(kernel, tensors, path)


# Which channels a process produces: those that its body sends to or closes, or that its tasks signal (AMB-WSP-39).


def produced_channels(body: Body) -> tuple[int, ...]:
    """In order of first mention."""
    return tuple(dict.fromkeys(_produced(body)))


def consumed_channels(body: Body) -> tuple[int, ...]:
    """The channels that a process, or a task of it, takes tokens from, in order of first mention."""
    return tuple(dict.fromkeys(_consumed(body)))


def _produced(body: Body) -> Iterator[int]:
    for _, statement in walk(body, ""):
        if isinstance(statement, Send | Close):
            yield statement.channel
        elif isinstance(statement, Task):
            yield from statement.signals


def _consumed(body: Body) -> Iterator[int]:
    for _, statement in walk(body, ""):
        if isinstance(statement, Receive | Consume):
            yield statement.channel
        elif isinstance(statement, Task):
            yield from statement.waits


# The streams of a program for aie (section 6.4): processes, and an edge for each channel between two of them.
#
# The graph has to be free of cycles: a process comes after all that send to it. A channel without a producer or
# consumer has an edge with an open end.


def stream_graph(package: Package) -> dict[str, Any]:
    """Return the graph of `schemas/wsp_stream_graph.schema.json`, its nodes in an order in which no edge leads back."""
    edges = list(_edges(package))
    order = _levels(package, edges)
    return {
        "nodes": [
            {"process": process.name, "level": level}
            for level, process in sorted(zip(order, package.processes, strict=True), key=lambda pair: pair[0])
        ],
        "edges": edges,
    }


def check_acyclic(package: Package) -> None:
    """Raises `UnsupportedDirective` for streams that lead back to where they come from (WSP-06.4-07)."""
    cycle = first_cycle(_successors(list(_edges(package))))
    if cycle:
        around = " -> ".join([*cycle, cycle[0]])
        raise UnsupportedDirective(package.target, f"a cyclic stream graph: {around}; it has to be acyclic")


def _edges(package: Package) -> Iterator[dict[str, Any]]:
    for place, channel in enumerate(package.channels):
        producers = [process.name for process in package.processes if place in produced_channels(process.body)]
        consumers = [process.name for process in package.processes if place in consumed_channels(process.body)]
        for producer, consumer in product(producers or (None,), consumers or (None,)):
            yield {
                "channel": channel.name,
                "from": producer,
                "to": consumer,
                "capacity": channel.capacity,
                "latency": channel.latency,
            }


def _successors(edges: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    successors: dict[str, list[str]] = {}
    for edge in edges:
        if edge["from"] is not None and edge["to"] is not None:
            successors.setdefault(edge["from"], []).append(edge["to"])
    return successors


def _levels(package: Package, edges: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each process, the edges of the longest path to it."""
    level = {process.name: 0 for process in package.processes}
    for _ in package.processes:
        for edge in edges:
            if edge["from"] is not None and edge["to"] is not None:
                level[edge["to"]] = max(level[edge["to"]], level[edge["from"]] + 1)
    return list(level.values())


# What a program uses of the three tables of a capability matrix (section 5.2).


def uses(package: Package, resources: Sequence[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield the table, the feature and the path of each use; `resources` are those whose sizes a program names."""
    schedule = package.schedule
    yield "directives", f"dispatch.{schedule.policy.id}", "/schedule/policy/id"
    yield "directives", f"task_window.unit.{schedule.task_window.unit}", "/schedule/task_window/unit"
    yield "directives", f"task_window.mode.{schedule.task_window.mode}", "/schedule/task_window/mode"
    for resource in resources:
        yield "directives", f"resources.{resource}", f"/schedule/resources/{resource}"
    for place, directive in enumerate(schedule.directives):
        yield "directives", directive.name, f"/schedule/directives/{place}/name"
    for feature, path in _csp_features(package):
        yield "csp", feature, path
    if package.symbols:
        yield "predicates", "symbols_between_runs", "/symbols/0"
    for path, statement in _statements(package):
        match statement:
            case Task() if statement.key is not None:
                yield "predicates", "dispatch_key", f"{path}/key"
            case Cond():
                yield "predicates", "cond", path
            case Repeat():
                yield "predicates", "repeat", path
            case Load():
                yield "predicates", "tensor_to_slot", path


def _csp_features(package: Package) -> Iterator[tuple[str, str]]:
    for place, channel in enumerate(package.channels):
        path = f"/csp/channels/{place}"
        yield "sync_only_channels", path
        if channel.capacity == 0:
            yield "rendezvous", f"{path}/capacity"
        if channel.latency:
            yield "latency", f"{path}/latency"
        if sum(place in produced_channels(process.body) for process in package.processes) > 1:
            yield "several_producers", path
        if sum(place in consumed_channels(process.body) for process in package.processes) > 1:
            yield "several_consumers", path
    for path, statement in _statements(package):
        match statement:
            case Task() if statement.waits or statement.signals:
                yield "task_signals", path
            case RunKernel():
                yield "process_kernels", path
            case Wait():
                yield "wait", path


def _statements(package: Package) -> Iterator[tuple[str, Statement]]:
    for place, process in enumerate(package.processes):
        yield from walk(process.body, f"/csp/processes/{place}/body")


# The settings of a package that a run may change: sizes of resources, capacities of channels, and scopes left out.
#
# `task_window`, `tensormap_pool`, `deplist_pool`, `heap_arena`, `ready_queue`, `channel.NAME.capacity`; `scope.NAME`
# executes a process as if its scopes were not there, whatever the number says (AMB-WSP-71).


MOST = (1 << 32) - 1


def capacity_of(channel: str) -> str:
    """The knob of a channel."""
    return f"channel.{channel}.capacity"


def no_scopes_of(process: str) -> str:
    """The knob that leaves out the scopes of a process."""
    return f"scope.{process}"


def applied(package: Package, knobs: Mapping[str, int]) -> Package:
    """The package with other settings. Raises `ArgumentRefused`."""
    for knob, value in knobs.items():
        package = _with(package, knob, value)
    return package


def _with(package: Package, knob: str, value: int) -> Package:
    schedule = package.schedule
    capacities = {capacity_of(channel.name): place for place, channel in enumerate(package.channels)}
    scopes = {no_scopes_of(process.name): place for place, process in enumerate(package.processes)}
    if not (knob in capacities and value == 0) and not 1 <= value <= MOST:
        raise ArgumentRefused(f"resource {knob}"[:120], f"{value} is no size, expected 1 to {MOST}")
    if knob == "task_window":
        return replace(package, schedule=replace(schedule, task_window=replace(schedule.task_window, size=value)))
    if knob in RESOURCES:
        return replace(package, schedule=replace(schedule, resources={**schedule.resources, knob: value}))
    if knob in capacities:
        channels = list(package.channels)
        channels[capacities[knob]] = replace(channels[capacities[knob]], capacity=value)
        return replace(package, channels=tuple(channels))
    if knob in scopes:
        processes = list(package.processes)
        processes[scopes[knob]] = replace(processes[scopes[knob]], without_scopes=True)
        return replace(package, processes=tuple(processes))
    raise ArgumentRefused(f"resource {knob}"[:120], f"expected task_window, {', '.join([*RESOURCES, *capacities])}")


# What reads the same in a program, which names things, and in a package, which numbers them.
#
# Every function raises `ProgramRefused`.


MOST_ELEMENTS = 1 << 24
MOST_UNITS = ("tasks",)
HEX = re.compile(r"(?:[0-9a-f]{2})*")
KINDS = ("kernel", "channel", "process", "slot", "symbol", "tensor")
Entry = TypeVar("Entry")


class Tables:
    """The ids of what a program or a package declares, by kind and name; an id is a place in a table."""

    def __init__(self) -> None:
        self.ids: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}

    def table(
        self, kind: str, value: Any, path: str, read: Callable[[Mapping[str, Any], str], Entry]
    ) -> tuple[Entry, ...]:
        """The entries of a table, whose names differ."""
        entries = []
        for place, stated in enumerate(objects(value, path)):
            at = f"{path}/{place}"
            entries.append(read(self.entry(kind, place, stated, at), at))
            if stated["name"] in self.ids[kind]:
                raise ProgramRefused(f"{at}/name", f"there are two {kind}s {stated['name']}")
            self.ids[kind][stated["name"]] = place
        return tuple(entries)

    def entry(self, kind: str, place: int, stated: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The members of an entry that a reader knows."""
        return stated

    def resolve(self, kind: str, value: Any, path: str) -> int:
        """The id of an entry; a slot is declared by being mentioned."""
        names = self.ids[kind]
        if isinstance(value, str) and value in names:
            return names[value]
        if kind != "slot":
            raise ProgramRefused(path, f"is {value!r:.120}, expected a declared {kind}")
        return names.setdefault(name(value, path), len(names))


def text(value: Any, path: str) -> str:
    """A text that JSON can carry as UTF-8, of at most 1000 characters."""
    if not isinstance(value, str) or len(value) > 1000 or not value.isprintable():
        raise ProgramRefused(path, f"is {shown(value)}, expected a text of printable characters")
    return value


read_size = partial(whole, least=1, most=MOST)
read_amount = partial(whole, least=0, most=MOST)


def read_channel(value: Mapping[str, Any], path: str) -> Channel:
    """A channel; capacity 1 and latency 0 where left out (WSP-02.2-06, WSP-02.2-08)."""
    return Channel(**record(value, path, {"name": name}, {"capacity": read_amount, "latency": read_amount}))


def read_process(reader: BodyReader, value: Mapping[str, Any], path: str) -> Process:
    """A process with its body."""
    return Process(**record(value, path, {"name": name, "body": reader.body}))


def read_symbol(value: Mapping[str, Any], path: str) -> Symbol:
    """A symbol, of 64 bits and 0 where left out."""
    stated = members(value, path, ("name",), ("width", "default", "update"))
    width = whole(stated.get("width", 64), f"{path}/width", 1, 64)
    member(stated.get("update", "between-runs"), f"{path}/update", ("between-runs",))
    default = whole(stated.get("default", 0), f"{path}/default", 0, (1 << width) - 1)
    return Symbol(name(stated["name"], f"{path}/name"), width, default)


def read_tensor(value: Mapping[str, Any], path: str) -> Tensor:
    """A tensor, of zeros where nothing is said."""
    dtype, count = partial(member, allowed=tuple(DTYPES)), partial(whole, least=1, most=MOST_ELEMENTS)
    stated = record(value, path, {"name": name, "dtype": dtype, "count": count}, {"initial": lambda given, at: given})
    tensor = Tensor(stated["name"], stated["dtype"], stated["count"])
    if "initial" not in stated:
        return tensor
    digits = stated["initial"]
    if not isinstance(digits, str) or not HEX.fullmatch(digits) or len(digits) != 2 * tensor.nbytes:
        raise ProgramRefused(f"{path}/initial", f"is no text of {tensor.nbytes} bytes in lower-case hexadecimal digits")
    initial = bytes.fromhex(digits)
    if tensor.dtype == "bool" and initial.strip(b"\0\1"):
        raise ProgramRefused(f"{path}/initial", "has a byte that is no bool, expected 00 or 01")
    return replace(tensor, initial=initial)


def read_policy(value: Any, path: str, reader: BodyReader) -> Policy:
    """A dispatch policy that there is; a parameter is a number or an expression."""
    stated = members(value, path, ("id", "parameters"))
    parameters = stated["parameters"]
    if not isinstance(parameters, dict):
        raise ProgramRefused(f"{path}/parameters", "is no object")
    policy = Policy(
        name(stated["id"], f"{path}/id"),
        {
            name(called, f"{path}/parameters"): (reader.expression if isinstance(amount, dict) else read_amount)(
                amount, f"{path}/parameters/{called}"
            )
            for called, amount in parameters.items()
        },
    )
    policies.check(policy.id, policy.parameters, path)
    return policy


def read_task_window(value: Any, path: str, units: tuple[str, ...], modes: tuple[str, ...] = ("stall",)) -> TaskWindow:
    """The window: at least one slot (AMB-WSP-25)."""
    unit, mode = partial(member, allowed=units), partial(member, allowed=modes)
    return TaskWindow(**record(value, path, {"size": read_size}, {"unit": unit, "mode": mode}))


def read_resources(value: Any, path: str) -> Mapping[str, int]:
    """The sizes of the resources beside the ring; the default of each that is left out."""
    return {**RESOURCES, **record(value, path, {}, dict.fromkeys(RESOURCES, read_size))}


def read_directive(value: Mapping[str, Any], path: str, state: Callable[[str], str] | None = None) -> Directive:
    """A further directive, with the state that it is said to have, or that its target gives it."""
    if state is None:
        return Directive(**record(value, path, {"name": name, "value": text, "state": partial(member, allowed=STATES)}))
    stated = record(value, path, {"name": name, "value": text})
    return Directive(**stated, state=state(stated["name"]))


def read_tables(
    stated: Mapping[str, Any],
    tables: Tables,
    channel: Callable[[Mapping[str, Any], str], Channel],
    slot: Callable[[Mapping[str, Any], str], str],
    schedule: Callable[[Any, BodyReader], Schedule],
) -> Package:
    """The package whose tables are stated, with readers of what differs between a program and a package."""
    csp, reader = stated["csp"], BodyReader(tables.resolve)
    kernels = tables.table("kernel", stated["kernels"], "/kernels", read_kernel)
    channels = tables.table("channel", csp["channels"], "/csp/channels", channel)
    symbols = tables.table("symbol", stated["symbols"], "/symbols", read_symbol)
    tensors = tables.table("tensor", stated["tensors"], "/tensors", read_tensor)
    tables.table("slot", stated["slots"], "/slots", slot)
    processes = tables.table("process", csp["processes"], "/csp/processes", partial(read_process, reader))
    package = Package(
        name(stated["name"], "/name"),
        name(stated["target"], "/target"),
        whole(stated["phase"], "/phase", 1, 2),
        kernels,
        schedule(stated["schedule"], reader),
        channels,
        processes,
        tuple(tables.ids["slot"]),
        symbols,
        tensors,
    )
    check_calls(package, "/csp/processes")
    return package


# Reading a package: what is unknown, truncated, altered, incomplete or without meaning is refused (section 7.2).


PAYLOADS = {
    "kernels": "kernel registry",
    "schedule": "schedule payload",
    "csp": "CSP payload",
    "slots": "slots schema",
    "symbols": "symbols schema",
    "tensors": "tensors",
}
REQUIRED = ("format", "name", "target", "phase", *PAYLOADS, "hash")
STATED = {"kernel": ("executor", "entry"), "channel": ("capacity", "latency"), "symbol": ("width", "default", "update")}
"""The members of an entry that a program may leave out."""


def load(data: bytes) -> Package:
    """The typed program of a package. Raises `PackageRefused`."""
    try:
        return _package(_document(data))
    except ProgramRefused as problem:
        raise PackageRefused("INVALID", str(problem)) from None
    except RecursionError:
        raise PackageRefused("MALFORMED", "it is nested too deeply") from None


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        document = read_json(data, object_pairs_hook=_distinct, parse_constant=_no_number)
    except ValueError as error:
        raise _unreadable(data, error) from None
    if not isinstance(document, dict):
        raise PackageRefused("MALFORMED", "it is no JSON object")
    abi = document.get("wsp_runtime_abi")
    if abi != ABI:
        stated = "names no wsp_runtime_abi" if abi is None else f"is of wsp_runtime_abi {abi!r:.60}"
        raise PackageRefused("UNKNOWN_ABI", f"it {stated}, and this runtime loads {ABI!r}")
    if not data.endswith(b"\n"):
        raise PackageRefused("TRUNCATED", "it does not end with a line feed")
    for field in REQUIRED:
        if field not in document:
            raise PackageRefused("MISSING_PAYLOAD", f"it has no {PAYLOADS.get(field, field)} (member {field})")
    try:
        stated, actual = document["hash"], content_hash(document)
    except UnicodeEncodeError:
        raise PackageRefused("MALFORMED", "a text of it holds half of a surrogate pair") from None
    if stated != actual:
        raise PackageRefused("ALTERED", f"its hash is {stated!r:.80}, and its content has {actual}")
    return document


def _unreadable(data: bytes, error: ValueError) -> PackageRefused:
    if not data.endswith(b"}\n"):
        return PackageRefused("TRUNCATED", f"it ends after {len(data)} bytes, within its JSON")
    return PackageRefused("MALFORMED", f"it is no JSON: {error}")


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _package(stated: Mapping[str, Any]) -> Package:
    members(stated, "", ("wsp_runtime_abi", *REQUIRED), ("stream_graph",))
    whole(stated["format"], "/format", FORMAT, FORMAT)
    members(stated["csp"], "/csp", ("channels", "processes"))
    package = read_tables(stated, _Numbered(), read_channel, _read_slot, _read_schedule)
    _check_target(package)
    streams = stream_graph(package) if package.target == "aie" else None
    if stated.get("stream_graph") != streams:
        raise ProgramRefused("/stream_graph", f"is not that of the processes of a package for {package.target}")
    return replace(package, stream_graph=streams)


class _Numbered(Tables):
    """Tables whose ids count from 0; a package has no defaults, so that all of their members are there."""

    def entry(self, kind: str, place: int, stated: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The members of an entry without its id."""
        whole(stated.get("id"), f"{path}/id", place, place)
        for field in STATED.get(kind, ()):
            if field not in stated:
                raise ProgramRefused(f"{path}/{field}", "is missing")
        if kind == "kernel" and "cycles" in stated:
            members(stated["cycles"], f"{path}/cycles", ("fixed", "per_element"))
        return {field: member for field, member in stated.items() if field != "id"}

    def resolve(self, kind: str, value: Any, path: str) -> int:
        """An id as it stands."""
        count = len(self.ids[kind])
        if type(value) is not int or not 0 <= value < count:
            raise ProgramRefused(path, f"is {value!r:.60}, expected the id of one of {count} {kind}s")
        return value


def _check_target(package: Package) -> None:
    """Raise `ProgramRefused` for a package that its own target could not have (sections 1.3 and 7.1)."""
    owner = target(package.target)
    if owner is None:
        raise ProgramRefused("/target", f"is {package.target}, expected one of {', '.join(NAMES)}")
    if package.phase != owner.phase:
        raise ProgramRefused("/phase", f"is {package.phase}, and {owner.name} is of phase {owner.phase}")
    schedule = package.schedule
    for directive, state in schedule.capabilities.items():
        _check_state(owner, f"/schedule/capabilities/{directive}", directive, state)
    for place, stated in enumerate(schedule.directives):
        _check_state(owner, f"/schedule/directives/{place}/state", stated.name, stated.state)
    for table, feature, path in uses(package):
        if owner.state_of(table, feature) == "unsupported":
            raise ProgramRefused(path, f"uses {feature}, which {owner.name} does not support")
    if owner.name == "aie":
        try:
            check_acyclic(package)
        except UnsupportedDirective as problem:
            raise ProgramRefused("/csp/processes", str(problem)) from None


def _check_state(owner: Target, path: str, directive: str, state: str) -> None:
    if state != owner.state(directive):
        raise ProgramRefused(path, f"is {state}, and {directive} is {owner.state(directive)} on {owner.name}")


def _read_slot(value: Mapping[str, Any], path: str) -> str:
    return str(record(value, path, {"name": name, "width": partial(whole, least=64, most=64)})["name"])


def _read_schedule(value: Any, reader: BodyReader) -> Schedule:
    path = "/schedule"
    stated = members(value, path, ("policy", "task_window", "resources", "directives", "capabilities"))
    members(stated["resources"], f"{path}/resources", tuple(RESOURCES))
    members(stated["task_window"], f"{path}/task_window", ("size", "unit", "mode"))
    capabilities = stated["capabilities"]
    if not isinstance(capabilities, dict):
        raise ProgramRefused(f"{path}/capabilities", "is no object")
    for directive, state in capabilities.items():
        member(state, f"{path}/capabilities/{directive}", STATES)
    return Schedule(
        read_policy(stated["policy"], f"{path}/policy", reader),
        read_task_window(stated["task_window"], f"{path}/task_window", MOST_UNITS),
        read_resources(stated["resources"], f"{path}/resources"),
        tuple(
            read_directive(listed, f"{path}/directives/{place}")
            for place, listed in enumerate(objects(stated["directives"], f"{path}/directives"))
        ),
        {text(capability, f"{path}/capabilities"): state for capability, state in capabilities.items()},
    )
