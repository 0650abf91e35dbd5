"""From a program, in Python or in JSON, to a package (section 7.2), checked against the target's capabilities.

    program = Program("pipeline")
    c = program.channel("c")
    with program.process("producer"), program.repeat(4, index="i") as i:
        program.send(c, i)
    with program.process("consumer"), program.consume(c, into="x") as x:
        ...
    package = program.compile("cpu_sim")

A program in JSON has the members of a package without ids, hash, ABI and target, and names what a package numbers. Ids
are places in order of first mention, so that equal names have equal ids in every build of a program (AMB-WSP-17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from .errors import ProgramRefused, UnsupportedDirective
from .forms import Reader, form
from .kernels import DTYPES
from .package import Package, Slot, TaskWindow, package_bytes, stream_graph, uses
from .targets import Target, target


def compile_program(program: Any, target: Target) -> tuple[Package, list[str]]:
    """The package of a program, and what is said of directives that are diagnosed, each once (AMB-WSP-26).

    Raises `ProgramRefused`, and `UnsupportedDirective` for what the target does not support.
    """
    reader = Reader(numbered=False)
    stated = reader.record(Package, program, "")
    directives = [replace(directive, state=target.state(directive.name)) for directive in stated.schedule.directives]
    schedule = replace(stated.schedule, directives=tuple(directives), capabilities=target.directives)
    slots = tuple(map(Slot, reader.ids["slot"]))
    package = replace(stated, slots=slots, target=target.name, phase=target.phase, schedule=schedule)
    ignored: dict[str, None] = {}
    for table, feature, _ in uses(package, program.get("schedule", {}).get("resources", {})):
        state = target.state(feature, table)
        if state == "unsupported":
            raise UnsupportedDirective(target.name, feature)
        if state == "diagnosed":
            ignored[f"target {target.name} ignores {feature}"] = None
    if target.name == "aie":
        package = replace(package, stream_graph=stream_graph(package))
    return package, list(ignored)


# Building a program in Python, as a `with` of nested bodies; Python has no part in its execution (WSP-01.1-02).


Given = TypeVar("Given")


def _operator(op: str) -> Callable[[Expr, Value], Expr]:
    """Return the method that makes an expression of this and another operand."""

    def expression(self: Expr, other: Value) -> Expr:
        return Expr({"op": op, "operands": [self.form, _form(other)]})

    return expression


@dataclass(frozen=True, eq=False)
class Expr:
    """A ScalarExpr; operators of Python make larger ones. Comparisons are methods, without signs: `i.lt(3)`."""

    form: Mapping[str, Any]

    __add__, __sub__, __mul__ = _operator("add"), _operator("sub"), _operator("mul")
    __floordiv__, __mod__ = _operator("div"), _operator("mod")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("shr")
    eq, ne, lt = _operator("eq"), _operator("ne"), _operator("lt")
    le, gt, ge = _operator("le"), _operator("gt"), _operator("ge")
    min, max = _operator("min"), _operator("max")

    def __bool__(self) -> bool:
        raise TypeError(
            "an Expr has a value only while the package runs: use program.cond(...), .select(...), .eq(...)"
        )

    def __eq__(self, other: object) -> bool:
        return bool(self)

    def __invert__(self) -> Expr:
        return Expr({"op": "not", "operands": [self.form]})

    def select(self, chosen: Value, other: Value) -> Expr:
        """One value where this is not 0, else the other."""
        return Expr({"op": "select", "operands": [self.form, _form(chosen), _form(other)]})


Value: TypeAlias = Expr | int


@dataclass(frozen=True)
class Channel:
    """A channel by name."""

    name: str


@dataclass(frozen=True)
class Tensor:
    """A tensor by name."""

    name: str


@dataclass(frozen=True)
class Compiled:
    """The bytes of a package, and what was said of directives that are ignored."""

    package: bytes
    diagnostics: tuple[str, ...]


def _instruction(op: str, *default: int) -> Callable[..., Kernel]:
    """Return the method that adds an instruction to a kernel."""

    def add(self: Kernel, destination: str, *operands: str | int) -> Kernel:
        read = [
            {"constant": operand} if isinstance(operand, int) else {"parameter": operand}
            for operand in operands or default
        ]
        self.instructions.append({"op": op, "destination": destination, "operands": read})
        return self

    return add


@dataclass(frozen=True)
class Kernel:
    """Records its instructions: `k = program.kernel("scale", x="tensor", by="scalar"); k.mul("x", "x", "by")`.

    Operands are parameters by name or constants. `docs/wsp.md` says what each instruction does.
    """

    name: str
    instructions: list[dict[str, Any]]

    fill, iota, copy, sum = _instruction("fill"), _instruction("iota", 0), _instruction("copy"), _instruction("sum")
    add, sub, mul = _instruction("add"), _instruction("sub"), _instruction("mul")
    min, max = _instruction("min"), _instruction("max")


class Program:
    """A program under construction; `form` is its JSON form so far."""

    form: dict[str, Any]

    def __init__(self, name: str) -> None:
        csp: dict[str, Any] = {"channels": [], "processes": []}
        self.form = {"name": name, "kernels": [], "schedule": {}, "csp": csp, "symbols": [], "tensors": []}
        self._bodies: list[list[dict[str, Any]]] = []

    # declarations

    def channel(self, name: str, capacity: int = 1, latency: int = 0) -> Channel:
        """A channel."""
        self.form["csp"]["channels"].append({"name": name, "capacity": capacity, "latency": latency})
        return Channel(name)

    def kernel(
        self, name: str, cycles: int = 0, per_element: int = 0, executor: str = "vector", **kinds: str
    ) -> Kernel:
        """A kernel with parameters `tensor` or `scalar`, whose instructions follow."""
        kernel = Kernel(name, [])
        parameters = [{"name": parameter, "kind": kind} for parameter, kind in kinds.items()]
        payload = {"form": "wsp-kernel", "parameters": parameters, "instructions": kernel.instructions}
        timing = {"fixed": cycles, "per_element": per_element}
        self.form["kernels"].append({"name": name, "executor": executor, "payload": payload, "cycles": timing})
        return kernel

    def tensor(self, name: str, dtype: str, count: int, initial: Sequence[int | float] | None = None) -> Tensor:
        """A tensor, of zeros or of some numbers."""
        stated: dict[str, Any] = {"name": name, "dtype": dtype, "count": count}
        if initial is not None:
            if dtype not in DTYPES:
                raise ProgramRefused(f"tensor {name}", f"dtype is {dtype!r:.60}, expected one of {', '.join(DTYPES)}")
            stated["initial"] = np.array(initial, dtype=DTYPES[dtype]).tobytes().hex()
        self.form["tensors"].append(stated)
        return Tensor(name)

    def symbol(self, name: str, default: int = 0, width: int = 64) -> Expr:
        """A number that a caller may change between runs."""
        self.form["symbols"].append({"name": name, "width": width, "default": default})
        return Expr({"symbol": name})

    def slot(self, name: str) -> Expr:
        """Return the expression of a slot's value."""
        return Expr({"slot": name})

    # schedule

    def dispatch(self, policy: str, workers: int = 1, **parameters: Value) -> None:
        """The policy that places tasks."""
        given = {name: value if isinstance(value, int) else value.form for name, value in parameters.items()}
        self.form["schedule"]["policy"] = {"id": policy, "parameters": {"workers": workers, **given}}

    def task_window(self, window: TaskWindow) -> None:
        """The bound of tasks in flight."""
        self.form["schedule"]["task_window"] = form(window)

    def resources(self, **sizes: int) -> None:
        """Sizes of tensormap_pool, deplist_pool, heap_arena and ready_queue."""
        self.form["schedule"].setdefault("resources", {}).update(sizes)

    def directive(self, name: str, value: str) -> None:
        """A further directive of the schedule."""
        self.form["schedule"].setdefault("directives", []).append({"name": name, "value": value})

    # bodies

    def process(self, name: str) -> AbstractContextManager[None]:
        """A process, and its body."""
        body: list[dict[str, Any]] = []
        self.form["csp"]["processes"].append({"name": name, "body": body})
        return self._in(body, None)

    def consume(self, channel: Channel, into: str) -> AbstractContextManager[Expr]:
        """The body for each token, which it is given as a slot."""
        return self._nest(self.slot(into), "consume", channel=_name(channel, Channel, "consume"), into=into)

    def scope(self) -> AbstractContextManager[None]:
        """Outputs of tasks issued here stay alive until its end."""
        return self._nest(None, "scope")

    def repeat(self, count: Value, index: str | None = None) -> AbstractContextManager[Expr]:
        """The body `count` times, which is given the index."""
        if index is None:
            return self._nest(Expr({"constant": 0}), "repeat", count=_form(count))
        return self._nest(self.slot(index), "repeat", count=_form(count), index=index)

    def cond(self, when: Value) -> AbstractContextManager[None]:
        """The body where the value is not 0; `otherwise` may follow."""
        return self._nest(None, "cond", "then", when=_form(when))

    def otherwise(self) -> AbstractContextManager[None]:
        """The body where the value of the `cond` just before is 0."""
        before = self._body()
        if not before or before[-1]["op"] != "cond":
            raise ProgramRefused("otherwise", "follows no cond")
        return self._in(before[-1].setdefault("otherwise", []), None)

    # statements

    def run(self, kernel: Kernel, *arguments: Tensor | Value) -> None:
        """Execute a kernel in the time of the process."""
        self._state("run", kernel=_name(kernel, Kernel, "run"), arguments=_arguments(arguments))

    def task(
        self,
        kernel: Kernel,
        *arguments: Tensor | Value,
        key: Value | None = None,
        waits: Sequence[Channel] = (),
        signals: Sequence[Channel] = (),
    ) -> None:
        """Issue a kernel to a worker."""
        more: dict[str, Any] = {} if key is None else {"key": _form(key)}
        more |= {"waits": [_name(wait, Channel, "task") for wait in waits]} if waits else {}
        more |= {"signals": [_name(signal, Channel, "task") for signal in signals]} if signals else {}
        self._state("task", kernel=_name(kernel, Kernel, "task"), arguments=_arguments(arguments), **more)

    def send(self, channel: Channel, value: Value = 0) -> None:
        """Publish a token."""
        self._state("send", channel=_name(channel, Channel, "send"), value=_form(value))

    def receive(self, channel: Channel, into: str) -> Expr:
        """Take one token into a slot."""
        self._state("receive", channel=_name(channel, Channel, "receive"), into=into)
        return self.slot(into)

    def close(self, channel: Channel) -> None:
        """The last act on a channel."""
        self._state("close", channel=_name(channel, Channel, "close"))

    def load(self, slot: str, tensor: Tensor, element: Value = 0) -> Expr:
        """Load an element of a tensor into a slot."""
        self._state("load", slot=slot, tensor=_name(tensor, Tensor, "load"), element=_form(element))
        return self.slot(slot)

    def wait(self) -> None:
        """Until all tasks that the process issued are complete."""
        self._state("wait")

    def compile(self, name: str = "cpu_sim") -> Compiled:
        """The package for a target. Raises `ProgramRefused`, `UnsupportedDirective` and `ArgumentRefused`."""
        package, diagnostics = compile_program(self.form, target(name))
        return Compiled(package_bytes(package), tuple(diagnostics))

    def _body(self) -> list[dict[str, Any]]:
        if not self._bodies:
            raise ProgramRefused(self.form["name"], "a statement is outside of every process")
        return self._bodies[-1]

    def _state(self, op: str, **members: Any) -> None:
        self._body().append({"op": op, **members})

    def _nest(self, given: Given, op: str, part: str = "body", **members: Any) -> AbstractContextManager[Given]:
        """Make a statement with a body, to which `given` is given."""
        body: list[dict[str, Any]] = []
        self._state(op, **members, **{part: body})
        return self._in(body, given)

    @contextmanager
    def _in(self, body: list[dict[str, Any]], given: Given) -> Iterator[Given]:
        self._bodies.append(body)
        try:
            yield given
        finally:
            self._bodies.pop()


def _form(value: Value) -> Mapping[str, Any]:
    if isinstance(value, Expr):
        return value.form
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProgramRefused("value", f"is {value!r:.60}, expected an int or an Expr")
    return {"constant": value}


def _arguments(arguments: Sequence[Tensor | Value]) -> list[Mapping[str, Any]]:
    return [{"tensor": argument.name} if isinstance(argument, Tensor) else _form(argument) for argument in arguments]


def _name(declared: Any, kind: type[Channel | Kernel | Tensor], statement: str) -> str:
    """Return the name of what a statement refers to. Raise `ProgramRefused` where it is of another kind."""
    if not isinstance(declared, kind):
        noun = kind.__name__
        expected = f"expected the {noun} that program.{noun.lower()}(...) returned"
        raise ProgramRefused(statement, f"is given {declared!r:.60}, {expected}")
    return declared.name
