"""The native program of cpu_sim (sections 1.1 and 6.1): C written from packages, built by the system's C compiler, run.

A package becomes tables, which `runtime/` executes. The program prints the state in which a run ends; `deadlock.py`
explains it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from . import statements
from .deadlock import explained
from .errors import DeviceNeeded, WspFailure
from .forms import MOST, U64
from .kernels import Kernel
from .machine import REASONS, RESOURCE_OF
from .package import BODIES, MOST_STEPS, Inputs, Package, Process, Tensor, checked, least_of, settings
from .run import RUNS, Run
from .statements import Body, Statement

HEADER, RUNTIME = "program.h", ("machine.c", "processes.c", "run.c", "main.c")


def c_program(package: Package) -> str:
    """A whole program in one text."""
    return runtime_text(HEADER, *RUNTIME) + c_tables(package)


def runtime_text(*pieces: str) -> str:
    """Pieces of the runtime in one text."""
    texts = [files(__package__).joinpath("runtime", piece).read_text(encoding="utf-8") for piece in pieces]
    return "\n".join(text.replace(f'#include "{HEADER}"\n', "") for text in texts)


def c_tables(package: Package) -> str:
    """The tables of a package, in a text that follows the declarations of the runtime."""
    lines: list[str] = []
    members: dict[str, object] = {}
    for name, (kind, rows) in _tables(package).items():
        lines.append(f"static {kind} wsp_{name}[{len(rows) or 1}] = {row(rows or [C(0)], NEXT_LINE)};\n")
        members |= {f"{name}_count": len(rows), name: C(f"wsp_{name}")}
    return "".join(lines) + f"Machine wsp_machine = {_machine(package, members)};\n"


NEXT_LINE = ",\n"


class C(str):
    """A text in C."""


def structure(**members: object) -> C:
    """An initializer of a structure; members that are None are left out."""
    return row(f".{name} = {initial(value)}" for name, value in members.items() if value is not None)


def row(values: Iterable[object], separator: str = ", ") -> C:
    """An initializer of several values."""
    return C(f"{{{separator.join(map(str, values))}}}")


def table(kind: str, name: str, rows: Iterable[C]) -> dict[str, object]:
    """The members of a structure for a table: the number of its rows, and these, if there are any."""
    entries = list(rows)
    return {f"{name}_count": len(entries), name: C(f"({kind}[]){row(entries, NEXT_LINE)}")} if entries else {}


def initial(value: object) -> C:
    """The initializer of a value: a number of 64 bits, a text, a list of numbers or an expression."""
    match value:
        case C():
            return value
        case int():
            return C(f"UINT64_C({value})" if value >= 0 else value)
        case str():  # names and paths need no escapes
            return C(f'"{value}"')
        case tuple() | list():
            return structure(count=len(value), items=C(f"(const uint32_t[]){row(value)}") if value else None)
        case statements.Leaf("input", name):
            stated = structure(op=C(f"INPUT_{name.upper()}"))
        case statements.Leaf(kind, content):
            stated = structure(op=C(kind.upper()), value=content)
        case statements.Operation(op, operands):
            stated = structure(op=C(op.upper()), operands=row(map(initial, operands)))
    return C(f"&(const Expression){stated}")


def _tables(package: Package) -> dict[str, tuple[str, list[C]]]:
    """The tables of a machine, and the types of their rows; inputs point into them."""
    csp = package.csp
    return {
        "symbols": ("u64", [initial(symbol.default) for symbol in package.symbols]),
        "kernels": ("Kernel", [_kernel(kernel) for kernel in package.kernels]),
        "channels": ("Channel", [_channel(package, place) for place in range(len(csp.channels))]),
        "processes": ("Process", [_process(package, process) for process in csp.processes]),
        "slots": ("Slot", [structure(name=slot.name) for slot in package.slots]),
        "inputs": ("const Input", list(_inputs(package))),
        "tensors": ("Tensor", [_tensor(tensor) for tensor in package.tensors]),
    }


def _machine(package: Package, tables: Mapping[str, object]) -> C:
    sizes = zip(RESOURCE_OF.values(), settings(package, {}).values(), strict=False)  # of the settings those come first
    resources = row(structure(name=name, size=size) for name, size in sizes)
    stalls = row(structure(name=reason) for reason in (*REASONS, "TASK_WAIT"))
    scalars = max((len(kernel.parameters) for kernel in package.kernels), default=0)
    policy, bounds = package.schedule.policy, {"max_steps": MOST_STEPS, "enough": U64, "instants": U64}
    placing = {"worker": policy.worker, "workers_count": policy.workers}
    return structure(**placing, resources=resources, stalls=stalls, most_scalars=scalars, **bounds, **tables)


def _kernel(kernel: Kernel) -> C:
    instructions = []
    for op, destination, operands in kernel.code:
        sources = row(structure(kind=C(f"OF_{kind.upper()}"), value=value) for kind, value in operands)
        instructions.append(structure(op=C(f"KERNEL_{op.upper()}"), destination=destination, operands=sources))
    return structure(name=kernel.name, **table("const Instruction", "instructions", instructions))


def _channel(package: Package, place: int) -> C:
    channel = package.csp.channels[place]
    producers = sum(place in process.produces for process in package.csp.processes)
    return structure(name=channel.name, capacity=channel.capacity, latency=channel.latency, producers=producers)


def _inputs(package: Package) -> Iterator[C]:
    """The numbers that the command line sets: symbols, settings and bounds, each with its place in the tables."""
    for place, symbol in enumerate(package.symbols):
        yield _input("--symbol", f"{symbol.name}=", 0, symbol.most, f"wsp_symbols[{place}]")
    places = [f"wsp_machine.resources[{place}].size" for place in range(len(RESOURCE_OF))]
    places += [f"wsp_channels[{place}].capacity" for place in range(len(package.csp.channels))]
    places += [f"wsp_processes[{place}].without_scopes" for place in range(len(package.csp.processes))]
    for knob, at in zip(settings(package, {}), places, strict=True):
        yield _input("--resource", f"{knob}=", least_of(knob), MOST, at)
    for bound, least in (("max-steps", 1), ("enough", 0), ("instants", 0)):
        yield _input(f"--{bound}", "", least, U64, f"wsp_machine.{bound.replace('-', '_')}")


def _input(option: str, name: str, least: int, most: int, at: str) -> C:
    return structure(option=option, name=name, least=least, most=most, value=C(f"&{at}"))


def _tensor(tensor: Tensor) -> C:
    data = C(f"(uint8_t[{tensor.nbytes}]){{0}}")
    if tensor.initial is not None:  # a string, which compilers read in a tenth of the time of numbers
        escapes = "".join(map("\\{:03o}".format, tensor.initial))
        data = C(f'(uint8_t[]){{"{escapes}"}}')
    width = tensor.nbytes // tensor.count
    return structure(name=tensor.name, dtype=C(tensor.dtype.upper()), width=width, count=tensor.count, data=data)


def _process(package: Package, process: Process) -> C:
    leaves = [_row("LEAVE", "end", channel=channel) for channel in process.produces]
    rows = [*_body(package, process.body, "body"), *leaves, _row("END", "end")]
    return structure(name=process.name, **table("Statement", "statements", rows))


def _body(package: Package, body: Body, path: str) -> list[C]:
    return [row for place, stated in enumerate(body) for row in _statement(package, stated, f"{path}/{place}")]


def _statement(package: Package, stated: Statement, path: str) -> list[C]:
    """A statement, which has its members by name, and the call of a kernel its site; then those of its bodies."""
    members = {field.name: getattr(stated, field.name) for field in fields(stated)}
    bodies = [_body(package, members.pop(name), f"{path}/{name}") for name in BODIES if name in members]
    if isinstance(stated, statements.RunKernel | statements.Task):
        site = package.site(stated)
        members = {"key": members.get("key")} | {field.name: getattr(site, field.name) for field in fields(site)}
        members |= table("const Expression *const", "scalars", map(initial, members.pop("scalars")))
    kind = stated.op.upper()
    match stated, bodies:
        case statements.Cond(), [then, otherwise]:
            whole = _row(kind, path, len(then) + 2, **members)
            return [whole, *then, _row("JUMP", path, len(otherwise) + 1), *otherwise]
        case statements.Scope(), [body]:
            return [_row(kind, path), *body, _row("END_SCOPE", path)]
        case statements.Repeat(count, _, index), [body]:
            turns = _row("TURN", path, len(body) + 2, index=C("NONE") if index is None else index)
            return [_row(kind, path, count=count), turns, *body, _row("JUMP", path, -len(body) - 1)]
        case statements.Consume(), [body]:
            return [_row(kind, path, len(body) + 2, **members), *body, _row("JUMP", path, -len(body) - 1)]
    return [_row(kind, path, **members)]


def _row(kind: str, path: str, jump: int | None = None, **members: object) -> C:
    return structure(kind=C(kind), path=path, jump=jump, **members)


# Building and running the program.


COMPILERS = ("cc", "gcc", "clang", "tcc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")
QUICK = ("-std=c99", "-O1")
"""The flags of programs that are built to be run at once."""


class NoCompiler(WspFailure):
    """There is no C compiler."""

    text = (
        f"no C compiler ({', '.join(COMPILERS)}) is on the PATH: install one, such as the package gcc or clang, "
        "or run the package by `wsp run --engine executor`"
    )


class BuildFailed(WspFailure):
    """The C compiler or the built program failed."""


def compiler(names: Sequence[str] = COMPILERS) -> str | None:
    """Return the path of the first compiler that there is."""
    return next(filter(None, map(shutil.which, names)), None)


def _directory(owner: object) -> Path:
    """A new directory, which is removed with its owner, or when this process ends."""
    directory = TemporaryDirectory()
    weakref.finalize(owner, directory.cleanup)
    return Path(directory.name)


@cache
def _runtime(path: str, flags: tuple[str, ...]) -> str:
    """The compiled runtime, which all programs of this process share."""
    source = _directory(_runtime) / "runtime.c"
    source.write_text(runtime_text(HEADER, *RUNTIME), encoding="utf-8")
    _compile(path, *flags, "-c", "-o", str(source.with_suffix(".o")), str(source))
    return str(source.with_suffix(".o"))


def _compile(path: str, *arguments: str) -> None:
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{Path(path).name} ended with {done.returncode}: {done.stderr.strip()[:2000]}")


def build(
    package: Package, program: Path, flags: tuple[str, ...] = FLAGS, compilers: Sequence[str] = COMPILERS
) -> None:
    """Write the program of a package for cpu_sim at a path by the first compiler that there is.

    Raises `NoCompiler` and `BuildFailed`.
    """
    if package.target != "cpu_sim":
        raise BuildFailed(f"package {package.name} is for {package.target}, and native programs are for cpu_sim")
    path = compiler(compilers)
    if path is None:
        raise NoCompiler
    runtime = _runtime(path, flags)
    with TemporaryDirectory() as place:
        source = Path(place) / "tables.c"
        source.write_text(runtime_text(HEADER) + c_tables(package), encoding="utf-8")
        _compile(path, *flags, "-o", str(program), str(source), runtime)


@lru_cache(32)
class _Program:
    """A program that is built once for all runs of its package, and removed after the last."""

    def __init__(self, package: Package) -> None:
        self.path = _directory(self) / "program"
        build(package, self.path, QUICK)


def state_of(program: Path, *arguments: str) -> dict[str, Any]:
    """Return the state in which a built program ends. Raise `BuildFailed`."""
    done = subprocess.run([str(program.resolve()), *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or done.stderr:
        raise BuildFailed(done.stderr.strip().removeprefix("error: ")[:2000] or f"it ended with {done.returncode}")
    state: dict[str, Any] = json.loads(done.stdout)
    return state


class NativeRun:
    """A run of a native program, which is built for it; it offers what `Run` offers.

    The program executes from its beginning whenever it is asked, up to the same instant. It makes no choices, and
    ignores a seed. Raises `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """

    def __init__(self, package: Package, **inputs: Unpack[Inputs]) -> None:
        checked(package, inputs)
        self._package, self._program = package, _Program(package)
        self._arguments = arguments(inputs, _directory(self))
        self._instants = 0
        self._events: list[Any] | None = None

    @cached_property
    def _state(self) -> dict[str, Any]:
        """The state after the instants that were asked for; `finish` and `step` make it anew."""
        return self._execute("--instants", str(self._instants))

    @property
    def outcome(self) -> str:
        """Running, completed, error or deadlock."""
        return str(self._state["outcome"])

    def step(self) -> bool:
        """All that happens at the next instant; False when the run has ended."""
        if self.outcome == "running":
            self._instants += 1
            del self._state
        return self.outcome == "running"

    def finish(self) -> NativeRun:
        """Run to the end."""
        self._state = self._execute(*([] if self._events is None else ["--observe"]))
        if self._events is not None:
            self._events += self._state["observed"]
        return self

    def observe(self) -> list[Any]:
        """Return the list to which arrivals, kernels and tasks are added when the run has ended."""
        self._events = []
        return self._events

    def result(self) -> dict[str, Any]:
        """The result as `schemas/wsp_result.schema.json` has it; a run that has not ended has one too."""
        return explained(self._package, self._state, lambda *trial: self._execute(*of_trial(*trial)))

    def _execute(self, *further: str) -> dict[str, Any]:
        return state_of(self._program.path, *self._arguments, *further)


def arguments(inputs: Inputs, place: Path) -> list[str]:
    """Return the arguments of a program for its inputs; the bytes of tensors go to files in a place."""
    options = [part for name, value in inputs.get("symbols", {}).items() for part in ("--symbol", f"{name}={value}")]
    for number, (name, data) in enumerate(inputs.get("tensors", {}).items()):
        (place / str(number)).write_bytes(data)
        options += ["--tensor", f"{name}={place / str(number)}"]
    bound = str(inputs.get("max_steps", MOST_STEPS))
    return [*options, "--max-steps", bound, *of_trial(inputs.get("resources", {}))]


def of_trial(knobs: Mapping[str, int], enough: int | None = None) -> list[str]:
    """Return the arguments of a program for other settings, and the steps after which it is left."""
    options = [part for name, value in knobs.items() for part in ("--resource", f"{name}={value}")]
    return options if enough is None else [*options, "--enough", str(enough)]


def prepared(package: Package, native: bool = False, **inputs: Unpack[Inputs]) -> Run | NativeRun:
    """A run that has not begun, of a package for cpu_sim by its native program where that is asked for.

    Raises `DeviceNeeded` for a target that is not simulated, `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """
    if package.target not in RUNS:
        raise DeviceNeeded(package.target)
    if native and package.target == "cpu_sim":
        return NativeRun(package, **inputs)
    return RUNS[package.target](package, **inputs)
