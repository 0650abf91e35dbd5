"""A package (section 7.2): its contents and published form, what it uses, its settings, and how it is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from itertools import product
from typing import Annotated, Any, Literal, TypedDict

from ..ir.diagnostics import read_json
from ..numerics.formats import shown
from . import policies, statements
from .errors import ArgumentRefused, PackageRefused, ProgramRefused, UnsupportedDirective, first_cycle
from .forms import MOST, PACKAGE, PROGRAM, Amount, Entry, Name, Reader, Size, State, Text, Word, form, plain, whole
from .kernels import DTYPES, Dtype, Kernel, check_call
from .statements import Body, Expression, Leaf, Statement, TensorArgument, read_expression
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


ABI = "v10.0"
FORMAT = 1
MOST_ELEMENTS = 1 << 24
MOST_WORKERS = 1 << 16
BODIES = ("body", "then", "otherwise")
"""The members of statements that have statements."""
HEX = re.compile(r"(?:[0-9a-f]{2})*")


def _read_parameter(reader: Reader, value: Any, path: str) -> int | Expression:
    """A number, or an expression that may read the inputs of a policy."""
    if not isinstance(value, dict):
        return whole(value, path, 0, MOST)
    reader.of_policy = True
    expression = read_expression(reader, value, path)
    reader.of_policy = False
    return expression


def _read_bytes(reader: Reader, value: Any, path: str) -> bytes:
    if not isinstance(value, str) or not HEX.fullmatch(value):
        raise ProgramRefused(path, "is no text of bytes in lower-case hexadecimal digits")
    return bytes.fromhex(value)


@dataclass(frozen=True)
class Policy:
    """A dispatch policy with its parameters; an expression of a user's policy is a parameter too."""

    id: Name
    parameters: Mapping[Name, Annotated[int | Expression, _read_parameter]]

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for a policy that there is not, and for other parameters than it has."""
        if self.id not in policies.found():
            raise ProgramRefused(f"{path}/id", f"is {self.id}, expected one of {', '.join(policies.found())}")
        expected = signature(policies.found()[self.id]).parameters
        if set(self.parameters) != set(expected):
            actual = ", ".join(self.parameters) or "none"
            raise ProgramRefused(f"{path}/parameters", f"are {actual}, expected {', '.join(expected)}")
        for parameter in expected:
            kind = "number" if parameter == "workers" else "expression"
            if (kind == "number") != isinstance(self.parameters[parameter], int):
                raise ProgramRefused(f"{path}/parameters/{parameter}", f"is no {kind}")
        if not 1 <= self.workers <= MOST_WORKERS:
            raise ProgramRefused(f"{path}/parameters/workers", f"is {self.workers}, expected 1 to {MOST_WORKERS}")

    @property
    def workers(self) -> int:
        """The number of workers."""
        workers = self.parameters["workers"]
        assert isinstance(workers, int)
        return workers

    @property
    def worker(self) -> Expression:
        """The worker of a task as an expression of `task` and `key`."""
        stated = {
            name: Leaf("constant", value) if isinstance(value, int) else value
            for name, value in self.parameters.items()
        }
        return policies.found()[self.id](**stated)


@dataclass(frozen=True)
class TaskWindow:
    """The bound of tasks in flight: at least one slot (section 3.2, AMB-WSP-25)."""

    size: Size
    unit: Literal["tasks", "bytes"] = "tasks"
    mode: Literal["stall", "abort", "benchmark"] = "stall"


@dataclass(frozen=True)
class Directive:
    """A further directive of the schedule, and what its target does with it."""

    name: Name
    value: Text
    state: Annotated[State, PACKAGE] = "unsupported"


@dataclass(frozen=True)
class Resources:
    """The bounded resources beside the task ring, and their sizes where a program names none (AMB-WSP-51)."""

    tensormap_pool: Size = 256
    deplist_pool: Size = 1024
    heap_arena: Size = 1 << 20
    ready_queue: Size = 64


@dataclass(frozen=True)
class Schedule:
    """The placement of tasks, and the bounds; `capabilities` are those of the target."""

    policy: Policy = Policy("round_robin", {"workers": 1})
    task_window: TaskWindow = TaskWindow(64)
    resources: Resources = Resources()
    directives: tuple[Directive, ...] = field(default_factory=tuple)
    capabilities: Annotated[Mapping[Text, State], PACKAGE] = field(default_factory=dict)


@dataclass(frozen=True)
class Channel(Entry):
    """A named edge: at most `capacity` tokens between send and take, each visible `latency` cycles after its send.

    The defaults are those of the document (WSP-02.2-06, WSP-02.2-08). What travels in it is a `token` where a program
    says nothing, else a `tensor` (AMB-WSP-35).
    """

    capacity: Amount = 1
    latency: Amount = 0
    payload: Annotated[Literal["token", "tensor"], PROGRAM] = "token"


@dataclass(frozen=True)
class Process(Entry):
    """A sequential actor."""

    body: Body

    @cached_property
    def produces(self) -> tuple[int, ...]:
        """The channels that it sends to or closes, or its tasks signal, in order of first mention (AMB-WSP-39)."""
        return self._channels((statements.Send, statements.Close), "signals")

    @cached_property
    def consumes(self) -> tuple[int, ...]:
        """The channels from which it, or a task of it, takes tokens, in order of first mention."""
        return self._channels((statements.Receive, statements.Consume), "waits")

    def _channels(self, kinds: tuple[type[Any], ...], of_tasks: str) -> tuple[int, ...]:
        channels: dict[int, None] = {}
        for _, statement in walk(self.body, ""):
            if isinstance(statement, kinds):
                channels[statement.channel] = None
            elif isinstance(statement, statements.Task):
                channels |= dict.fromkeys(getattr(statement, of_tasks))
        return tuple(channels)


@dataclass(frozen=True)
class Slot(Entry):
    """A value of 64 bits that changes within a run."""

    width: Annotated[int, plain(whole, least=64, most=64)] = 64


@dataclass(frozen=True)
class Symbol(Entry):
    """A number that changes between runs; `width` in bits."""

    width: Annotated[int, plain(whole, least=1, most=64)] = 64
    default: Word = 0
    update: Literal["between-runs"] = "between-runs"

    @property
    def most(self) -> int:
        """The largest value of its width."""
        return (1 << self.width) - 1

    def problem_of(self, value: int) -> str:
        """Return what is wrong with a value of this symbol; nothing where it fits."""
        return "" if 0 <= value <= self.most else f"{value} does not fit its {self.width} bits"

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for a default that does not fit the width."""
        whole(self.default, f"{path}/default", 0, self.most)


@dataclass(frozen=True)
class Tensor(Entry):
    """Elements of one dtype in memory; `initial` are its bytes, little-endian, zeros where left out."""

    dtype: Dtype
    count: Annotated[int, plain(whole, least=1, most=MOST_ELEMENTS)]
    initial: Annotated[bytes, _read_bytes] | None = None

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.count * DTYPES[self.dtype].itemsize

    @property
    def default(self) -> bytes:
        """Its bytes where a run names none."""
        return self.initial or bytes(self.nbytes)

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for initial bytes that are not its own."""
        if self.initial is not None and (problem := self.problem_of(self.initial)):
            raise ProgramRefused(f"{path}/initial", problem)

    def problem_of(self, data: bytes) -> str:
        """Return what is wrong with bytes as those of this tensor; nothing where they fit."""
        if len(data) != self.nbytes:
            return f"has {len(data)} bytes, expected {self.nbytes}"
        return "has a byte that is no bool, expected 00 or 01" if self.dtype == "bool" and data.strip(b"\0\1") else ""


@dataclass(slots=True, eq=False)
class CallSite:
    """A `run` or `task` statement as it is executed: its arguments by kind; `reads` and `writes` have a tensor once.

    `heap` is the bytes of tensors written. Nothing changes a site; it is not frozen since that takes three times as
    long to make.
    """

    kernel: int
    tensors: Sequence[int]
    scalars: Sequence[Expression]
    cycles: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    heap: int
    waits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True)
class Csp:
    """The channels and the processes."""

    channels: tuple[Channel, ...] = field(default_factory=tuple)
    processes: tuple[Process, ...] = field(default_factory=tuple)


@dataclass(frozen=True, eq=False)
class Package:
    """All of a program; the id of a kernel, channel, process, slot, symbol or tensor is its place.

    The order of the members is that in which they are read. A package for aie has the graph of its streams beside it.
    """

    name: Name
    kernels: tuple[Kernel, ...] = field(default_factory=tuple)
    symbols: tuple[Symbol, ...] = field(default_factory=tuple)
    tensors: tuple[Tensor, ...] = field(default_factory=tuple)
    slots: tuple[Slot, ...] = field(default_factory=tuple)
    csp: Csp = field(default_factory=Csp)
    target: Annotated[Name, PACKAGE] = ""
    phase: Annotated[int, plain(whole, least=1, most=2), PACKAGE] = 0
    schedule: Schedule = field(default_factory=Schedule)
    stream_graph: Annotated[Mapping[str, Any] | None, lambda reader, value, path: value, PACKAGE] = None

    def check(self, path: str) -> None:
        """Raise `ProgramRefused` for arguments of a call that are too many or few, or of another kind or type."""
        for at, call in self.walk():
            if isinstance(call, statements.RunKernel | statements.Task):
                self._check_call(call, f"{at}/arguments")

    def _check_call(self, call: statements.RunKernel | statements.Task, path: str) -> None:
        kernel = self.kernels[call.kernel]
        if len(call.arguments) != len(kernel.parameters):
            raise ProgramRefused(path, f"are {len(call.arguments)}, and {kernel.name} takes {len(kernel.parameters)}")
        tensors = {}
        for (parameter, kind), argument in zip(kernel.parameters.items(), call.arguments, strict=True):
            if (kind == "tensor") != isinstance(argument, TensorArgument):
                raise ProgramRefused(path, f"for {parameter} of {kernel.name} there has to be a {kind}")
            if isinstance(argument, TensorArgument):
                tensor = self.tensors[argument.tensor]
                tensors[parameter] = tensor.dtype, tensor.count
        check_call(kernel, tensors, path)

    def walk(self) -> Iterator[tuple[str, Statement]]:
        """Every statement of every process, with its path."""
        for place, process in enumerate(self.csp.processes):
            yield from walk(process.body, f"/csp/processes/{place}/body")

    @cached_property
    def _sites(self) -> dict[int, CallSite]:
        return {}

    def site(self, call: statements.RunKernel | statements.Task) -> CallSite:
        """Return the call of a statement of this package, which all executions share."""
        site = self._sites.get(id(call))
        if site is None:
            kernel = self.kernels[call.kernel]
            tensors = [argument.tensor for argument in call.arguments if isinstance(argument, TensorArgument)]
            writes = tuple(dict.fromkeys(tensors[place] for place in sorted({place for _, place, _ in kernel.code})))
            site = self._sites[id(call)] = CallSite(
                call.kernel,
                tensors,
                [argument for argument in call.arguments if not isinstance(argument, TensorArgument)],
                kernel.cycles.of([self.tensors[tensor].count for tensor in tensors]),
                tuple(dict.fromkeys(tensor for tensor in tensors if tensor not in writes)),
                writes,
                sum(self.tensors[write].nbytes for write in writes),
                *((call.waits, call.signals) if isinstance(call, statements.Task) else ()),
            )
        return site


def package_bytes(package: Package) -> bytes:
    """The canonical bytes of the published form of a package (`schemas/wsp_package.schema.json`), its hash included."""
    document = {"wsp_runtime_abi": ABI, "format": FORMAT, **form(package)}
    return canonical_bytes(document | {"hash": content_hash(document)})


def walk(body: Body, path: str) -> Iterator[tuple[str, Statement]]:
    """Every statement of a body and of the bodies within, with its path."""
    for place, statement in enumerate(body):
        at = f"{path}/{place}"
        yield at, statement
        for part in BODIES:
            if inner := getattr(statement, part, ()):
                yield from walk(inner, f"{at}/{part}")


# The streams of a program for aie (section 6.4): processes, and an edge for each channel between two of them. A channel
# without a producer or consumer has an edge with an open end.


def stream_graph(package: Package) -> dict[str, Any]:
    """Return the graph of `schemas/wsp_stream_graph.schema.json`, its nodes in an order in which no edge leads back.

    The level of a process is the number of edges of the longest path to it. Raises `UnsupportedDirective` for streams
    that lead back to where they come from (WSP-06.4-07).
    """
    edges: list[dict[str, Any]] = []
    for place, channel in enumerate(package.csp.channels):
        producers = [process.name for process in package.csp.processes if place in process.produces]
        consumers = [process.name for process in package.csp.processes if place in process.consumes]
        timing = {"capacity": channel.capacity, "latency": channel.latency}
        for producer, consumer in product(producers or (None,), consumers or (None,)):
            edges.append({"channel": channel.name, "from": producer, "to": consumer, **timing})
    between = [(edge["from"], edge["to"]) for edge in edges if edge["from"] is not None and edge["to"] is not None]
    successors: dict[str, list[str]] = {}
    for producer, consumer in between:
        successors.setdefault(producer, []).append(consumer)
    cycle = first_cycle(successors)
    if cycle:
        around = " -> ".join([*cycle, cycle[0]])
        raise UnsupportedDirective(package.target, f"a cyclic stream graph: {around}; it has to be acyclic")
    level = dict.fromkeys([process.name for process in package.csp.processes], 0)
    for _ in package.csp.processes:
        for producer, consumer in between:
            level[consumer] = max(level[consumer], level[producer] + 1)
    nodes = sorted(level.items(), key=lambda pair: pair[1])
    return {"nodes": [{"process": process, "level": depth} for process, depth in nodes], "edges": edges}


# The features of a capability matrix that a program uses (section 5.2).


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
    for place, channel in enumerate(package.csp.channels):
        used = {
            ("sync_only_channels", ""): True,
            ("payload_channels", "/payload"): channel.payload != "token",
            ("rendezvous", "/capacity"): channel.capacity == 0,
            ("latency", "/latency"): channel.latency > 0,
            ("several_producers", ""): sum(place in process.produces for process in package.csp.processes) > 1,
            ("several_consumers", ""): sum(place in process.consumes for process in package.csp.processes) > 1,
        }
        yield from (
            ("csp", feature, f"/csp/channels/{place}{member}") for feature, member in used if used[feature, member]
        )
    if package.symbols:
        yield "predicates", "symbols_between_runs", "/symbols/0"
    for path, statement in package.walk():
        match statement:
            case statements.RunKernel():
                yield "csp", "process_kernels", path
            case statements.Wait():
                yield "csp", "wait", path
            case statements.Cond() | statements.Repeat():
                yield "predicates", statement.op, path
            case statements.Load():
                yield "predicates", "tensor_to_slot", path
            case statements.Task():
                if statement.waits or statement.signals:
                    yield "csp", "task_signals", path
                if statement.key is not None:
                    yield "predicates", "dispatch_key", f"{path}/key"


# The inputs of a run: symbols, tensors, and settings, which are sizes of resources, capacities of channels, and scopes
# left out (AMB-WSP-71).


MOST_STEPS = 100_000_000
"""The steps of statements that a run may take, where its caller names no other bound (AMB-WSP-80)."""


class Inputs(TypedDict, total=False):
    """The inputs of a run, by name; what is left out is as the package has it.

    `resources` are settings, and `seed` is for the choices of a host. After `max_steps` a run ends with STEP_LIMIT; a
    process that takes a 200th of them twice in a row without progress spins, which is a deadlock (section 3.3).
    """

    symbols: Mapping[str, int]
    tensors: Mapping[str, bytes]
    resources: Mapping[str, int]
    seed: int | None
    max_steps: int


def decimal(name: str, digits: Any) -> int:
    """Return the number of a text of decimal digits. Raise `ArgumentRefused`."""
    if not isinstance(digits, str) or not digits.isascii() or not digits.isdigit() or len(digits) > 20:
        raise ArgumentRefused(name[:120], f"is {shown(digits)}, expected decimal digits")
    return int(digits)


def checked(package: Package, inputs: Inputs) -> tuple[list[int], list[bytes], dict[str, int], int]:
    """Return the symbols, tensors and settings of a run, and its bound. Raise `ArgumentRefused` for what is unfit."""
    max_steps = inputs.get("max_steps", MOST_STEPS)
    if max_steps < 1:
        raise ArgumentRefused("max_steps", f"is {max_steps}, expected 1 or more")
    sizes = settings(package, inputs.get("resources", {}))
    symbols = _values("symbol", package.symbols, inputs.get("symbols", {}))
    return symbols, _values("tensor", package.tensors, inputs.get("tensors", {})), sizes, max_steps


def _values(noun: str, entries: Sequence[Symbol | Tensor], values: Mapping[str, Any]) -> list[Any]:
    """Return the values of symbols or tensors, those of a caller over those of the package."""
    by_name = {entry.name: entry for entry in entries}
    for name, value in values.items():
        if name not in by_name:
            raise ArgumentRefused(f"{noun} {name}"[:120], f"the package has {', '.join(by_name) or f'no {noun}s'}")
        if problem := by_name[name].problem_of(value):
            raise ArgumentRefused(f"{noun} {name}", problem)
    return [values.get(name, entry.default) for name, entry in by_name.items()]


def capacity_of(channel: str) -> str:
    """The knob of a channel."""
    return f"channel.{channel}.capacity"


def no_scopes_of(process: str) -> str:
    """The knob that, above 0, executes a process as if its scopes were not there."""
    return f"scope.{process}"


def least_of(knob: str) -> int:
    """The least value of a knob."""
    return 0 if knob.startswith("channel.") else 1


def settings(package: Package, knobs: Mapping[str, int]) -> dict[str, int]:
    """The settings of a run by name, those of its caller over those of the package. Raises `ArgumentRefused`."""
    stated = {"task_window": package.schedule.task_window.size, **vars(package.schedule.resources)}
    stated |= {capacity_of(channel.name): channel.capacity for channel in package.csp.channels}
    scopes = {no_scopes_of(process.name): 0 for process in package.csp.processes}
    for knob, value in knobs.items():
        if type(value) is not int or not least_of(knob) <= value <= MOST:
            raise ArgumentRefused(f"resource {knob}"[:120], f"{shown(value)} is no size, expected 1 to {MOST}")
        if knob not in stated and knob not in scopes:
            raise ArgumentRefused(f"resource {knob}"[:120], f"expected {', '.join(stated)}")
    return {**stated, **scopes, **knobs}


# Loading: what is unknown, truncated, altered, incomplete or without meaning is refused (section 7.2).


REQUIRED = ("format", "name", "target", "phase", "kernels", "schedule", "csp", "slots", "symbols", "tensors", "hash")


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
        document = read_json(data)
    except ValueError as error:
        if not data.endswith(b"}\n"):
            raise PackageRefused("TRUNCATED", f"it ends after {len(data)} bytes, within its JSON") from None
        raise PackageRefused("MALFORMED", f"it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise PackageRefused("MALFORMED", "it is no JSON object")
    abi = document.get("wsp_runtime_abi")
    if abi != ABI:
        stated = "names no wsp_runtime_abi" if abi is None else f"is of wsp_runtime_abi {abi!r:.60}"
        raise PackageRefused("UNKNOWN_ABI", f"it {stated}, and this runtime loads {ABI!r}")
    if not data.endswith(b"\n"):
        raise PackageRefused("TRUNCATED", "it does not end with a line feed")
    for part in REQUIRED:
        if part not in document:
            raise PackageRefused("MISSING_PAYLOAD", f"it has no member {part}")
    try:
        stated, actual = document["hash"], content_hash(document)
    except UnicodeEncodeError:
        raise PackageRefused("MALFORMED", "a text of it holds half of a surrogate pair") from None
    if stated != actual:
        raise PackageRefused("ALTERED", f"its hash is {stated!r:.80}, and its content has {actual}")
    return document


def _package(stated: Mapping[str, Any]) -> Package:
    whole(stated["format"], "/format", FORMAT, FORMAT)
    content = {name: value for name, value in stated.items() if name not in ("wsp_runtime_abi", "format", "hash")}
    package = Reader(numbered=True).record(Package, content, "")
    _check_target(package)
    try:
        streams = stream_graph(package) if package.target == "aie" else None
    except UnsupportedDirective as problem:
        raise ProgramRefused("/csp/processes", str(problem)) from None
    if package.stream_graph != streams:
        raise ProgramRefused("/stream_graph", f"is not that of the processes of a package for {package.target}")
    return package


def _check_target(package: Package) -> None:
    """Raise `ProgramRefused` for a package that its own target could not have (sections 1.3 and 7.1)."""
    if package.target not in NAMES:
        raise ProgramRefused("/target", f"is {package.target}, expected one of {', '.join(NAMES)}")
    owner = target(package.target)
    if package.phase != owner.phase:
        raise ProgramRefused("/phase", f"is {package.phase}, and {owner.name} is of phase {owner.phase}")
    for directive, state in package.schedule.capabilities.items():
        _check_state(owner, f"/schedule/capabilities/{directive}", directive, state)
    for place, stated in enumerate(package.schedule.directives):
        _check_state(owner, f"/schedule/directives/{place}/state", stated.name, stated.state)
    for table, feature, path in uses(package):
        if owner.state(feature, table) == "unsupported":
            raise ProgramRefused(path, f"uses {feature}, which {owner.name} does not support")


def _check_state(owner: Target, path: str, directive: str, state: str) -> None:
    if state != owner.state(directive):
        raise ProgramRefused(path, f"is {state}, and {directive} is {owner.state(directive)} on {owner.name}")
