"""The native program of cpu_sim (sections 1.1 and 6.1): C written from packages, built by the system's C compiler, run.

A package becomes tables, which `runtime/` executes. The program prints the state in which a run ends; `deadlock.py`
explains it.
"""

from __future__ import annotations

import atexit
import itertools
import json
import shutil
import subprocess
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Unpack

from . import policies, statements
from .deadlock import explained
from .errors import DeviceNeeded, WspFailure
from .forms import MOST
from .package import Package, least_of, settings
from .run import MOST_STEPS, RUNS, Inputs, Run, checked
from .statements import Body, Expression, Statement

HEADER, RUNTIME = "program.h", ("machine.c", "processes.c", "run.c", "main.c")


def c_program(packages: Sequence[Package]) -> str:
    """A whole program in one text, for any number of packages."""
    return runtime_text(HEADER, *RUNTIME) + c_tables(packages)


def runtime_text(*pieces: str) -> str:
    """Pieces of the runtime in one text."""
    texts = [files(__package__).joinpath("runtime", piece).read_text(encoding="utf-8") for piece in pieces]
    return "\n".join(text.replace(f'#include "{HEADER}"\n', "") for text in texts)


def c_tables(packages: Sequence[Package]) -> str:
    """The tables of packages, in a text that follows the declarations of the runtime."""
    lines: list[str] = []
    for place, package in enumerate(packages):
        lines += Tables(package, f"p{place}_").lines()
    programs = ", ".join(f"&p{place}_program" for place in range(len(packages)))
    lines.append(f"const ProgramInfo *const wsp_programs[] = {{{programs}}};")
    lines.append(f"const size_t wsp_program_count = {len(packages)};")
    return "\n".join(lines) + "\n"


def text(value: str) -> str:
    """A string literal; names and paths need no escapes."""
    return f'"{value}"'


def unsigned(value: int) -> str:
    """A number of 64 bits."""
    return f"UINT64_C({value})"


def row(*values: object) -> str:
    """An initializer of a structure."""
    return f"{{{', '.join(map(str, values))}}}"


class Tables:
    """The tables of a package, whose names begin with `prefix`."""

    def __init__(self, package: Package, prefix: str) -> None:
        self.package = package
        self.prefix = prefix
        self.numbers: list[int] = []
        self.expressions: list[str] = []
        self.sites: list[str] = []
        self.statements: list[str] = []
        self.most_scalars = 1

    def lines(self) -> Iterator[str]:
        """The definitions, the last of which is the program."""
        package = self.package
        instructions: list[str] = []
        kernels: list[str] = []
        for kernel in package.kernels:
            kernels.append(row(text(kernel.name), row(len(instructions), len(kernel.payload.instructions))))
            for op, destination, operands in kernel.code:
                sources = row(*(row(f"OF_{kind.upper()}", unsigned(value)) for kind, value in operands))
                instructions.append(row(f"KERNEL_{op.upper()}", destination, sources))
        processes = [
            row(text(process.name), self._body(process.body, "body"), self._list(process.produces))
            for process in package.csp.processes
        ]
        policy = package.schedule.policy
        worker = self._value(policies.worker(policy.id, policy.parameters))
        tables: Sequence[tuple[str, str, Sequence[object]]] = (
            ("KernelInfo", "kernels", kernels),
            ("Instruction", "instructions", instructions),
            ("ChannelInfo", "channels", [row(text(c.name), c.latency) for c in package.csp.channels]),
            ("ProcessInfo", "processes", processes),
            ("Statement", "statements", self.statements),
            ("Site", "sites", self.sites),
            ("Expression", "expressions", self.expressions),
            ("uint32_t", "numbers", self.numbers),
            ("char *const", "slots", [text(slot.name) for slot in package.slots]),
            ("InputInfo", "inputs", list(self._inputs())),
            ("TensorInfo", "tensors", [self._tensor(place) for place in range(len(package.tensors))]),
        )
        yield f"/* package {package.name} */"
        for kind, name, values in tables:
            if values:  # C has no arrays without elements
                yield f"static const {kind} {self.prefix}{name}[] = {{"
                yield from (f"    {value}," for value in values)
                yield "};"
        members: list[object] = [len(package.symbols), policy.parameters["workers"], worker, self.most_scalars]
        members += [f"{len(values)}, {f'{self.prefix}{name}' if values else 'NULL'}" for _, name, values in tables]
        yield f"static const ProgramInfo {self.prefix}program = {row(*members)};"

    def _inputs(self) -> Iterator[str]:
        """The symbols, and the settings in their order."""
        for symbol in self.package.symbols:
            yield row("SYMBOL_INPUT", text(symbol.name), 0, *map(unsigned, (symbol.most, symbol.default)))
        for knob, value in settings(self.package, {}).items():
            yield row("RESOURCE_INPUT", text(knob), least_of(knob), *map(unsigned, (MOST, value)))

    def _tensor(self, place: int) -> str:
        tensor = self.package.tensors[place]
        initial = "NULL"
        if tensor.initial is not None:  # a string, which compilers read in a tenth of the time of numbers
            escapes = "".join(map("\\{:03o}".format, tensor.initial))
            initial = f"(const uint8_t *){text(escapes)}"
        return row(text(tensor.name), tensor.dtype.upper(), f"{tensor.count}U", f"{tensor.nbytes}U", initial)

    def _list(self, values: Sequence[int]) -> str:
        """A list among the numbers."""
        first = len(self.numbers)
        self.numbers += values
        return row(first, len(values))

    def _value(self, expression: Expression) -> int:
        """The place of an expression, whose operands come before it."""
        stated: list[int | str]
        match expression:
            case statements.Constant(value):
                stated = ["CONSTANT", unsigned(value)]
            case statements.SymbolValue(symbol):
                stated = ["SYMBOL", symbol]
            case statements.SlotValue(slot):
                stated = ["SLOT", slot]
            case statements.Input(name):
                stated = [f"INPUT_{name.upper()}", 0]
            case statements.Operation(name, operands):
                stated = [name.upper(), 0, row(*map(self._value, operands))]
        self.expressions.append(row(*stated, *([] if len(stated) == 3 else ["{0}"])))
        return len(self.expressions) - 1

    def _site(self, call: statements.RunKernel | statements.Task) -> int:
        """The place of a call of a kernel."""
        site = self.package.site(call)
        scalars = [self._value(scalar) for scalar in site.scalars]
        self.most_scalars = max(self.most_scalars, len(scalars))
        lists = site.tensors, scalars, site.reads, site.writes, site.waits, site.signals
        numbers = unsigned(site.cycles), unsigned(site.heap)
        self.sites.append(row(site.kernel, *numbers, *map(self._list, lists)))
        return len(self.sites) - 1

    def _body(self, body: Body, path: str) -> str:
        """A list of statements; the bodies in them come before it."""
        statements = [self._statement(statement, f"{path}/{place}") for place, statement in enumerate(body)]
        first = len(self.statements)
        self.statements += statements
        return row(first, len(statements))

    def _statement(self, statement: Statement, path: str) -> str:
        """A statement with its members by name; a call of a kernel has its site."""
        stated = {"kind": statement.op.upper(), "path": text(path)}
        names = [member.name for member in fields(statement)]
        if isinstance(statement, statements.RunKernel | statements.Task):
            stated["site"], names = str(self._site(statement)), [name for name in names if name == "key"]
        if isinstance(statement, statements.Load):
            stated["reads"] = self._list([statement.tensor])
        stated |= {name: self._member(getattr(statement, name), f"{path}/{name}") for name in names}
        return row(*(f".{name} = {value}" for name, value in stated.items()))

    def _member(self, value: int | Expression | Body | None, path: str) -> str:
        match value:
            case None:
                return "NONE"
            case int():
                return str(value)
            case tuple():
                return self._body(value, path)
        return str(self._value(value))


# Building and running the program.


COMPILERS = ("cc", "gcc", "clang", "tcc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")
QUICK = ("-std=c99", "-O1")
"""The flags of programs that are built to be run at once."""


NUMBERS = itertools.count()
"""The numbers of what this process compiles."""


class NoCompiler(WspFailure):
    """There is no C compiler."""

    def __init__(self) -> None:
        names = ", ".join(COMPILERS)
        super().__init__(
            f"no C compiler ({names}) is on the PATH: install one, such as the package gcc or clang, "
            "or run the package by `wsp run --engine executor`"
        )


class BuildFailed(WspFailure):
    """The C compiler or the built program failed."""


def compiler(names: Sequence[str] = COMPILERS) -> str | None:
    """Return the path of the first compiler that there is."""
    return next(filter(None, map(shutil.which, names)), None)


@cache
def _directory() -> Path:
    """The directory of what this process compiles, which is removed when it ends."""
    path = mkdtemp()
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


@cache
def _runtime(path: str, flags: tuple[str, ...]) -> str:
    """The compiled runtime, which all programs of this process share."""
    source = _directory() / "runtime.c"
    found = _directory() / f"runtime{next(NUMBERS)}.o"
    source.write_text(runtime_text(HEADER, *RUNTIME), encoding="utf-8")
    _compile(path, *flags, "-c", "-o", str(found), str(source))
    return str(found)


def _compile(path: str, *arguments: str) -> None:
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{Path(path).name} ended with {done.returncode}: {done.stderr.strip()[:2000]}")


def build(
    packages: Sequence[Package],
    program: Path,
    flags: tuple[str, ...] = FLAGS,
    compilers: Sequence[str] = COMPILERS,
) -> None:
    """Write the program of packages for cpu_sim at a path by the first compiler that there is.

    Raises `NoCompiler` and `BuildFailed`.
    """
    for package in packages:
        if package.target != "cpu_sim":
            raise BuildFailed(f"package {package.name} is for {package.target}, and native programs are for cpu_sim")
    _link(c_tables(packages), program, flags, compilers)


def _link(tables: str, program: Path, flags: tuple[str, ...], compilers: Sequence[str] = COMPILERS) -> None:
    path = compiler(compilers)
    if path is None:
        raise NoCompiler
    runtime = _runtime(path, flags)
    with TemporaryDirectory() as place:
        source = Path(place) / "tables.c"
        source.write_text(runtime_text(HEADER) + tables, encoding="utf-8")
        _compile(path, *flags, "-o", str(program), str(source), runtime)


class _Program:
    """A program that is built once for all runs of its tables, and removed after the last."""

    def __init__(self, tables: str) -> None:
        self.path = _directory() / f"program{next(NUMBERS)}"
        _link(tables, self.path, QUICK)
        weakref.finalize(self, self.path.unlink, missing_ok=True)


_program = lru_cache(32)(_Program)


def states(program: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the state in which each package of a built program ends. Raise `BuildFailed`."""
    done = subprocess.run([str(program.resolve()), *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or done.stderr:
        raise BuildFailed(done.stderr.strip().removeprefix("error: ")[:2000] or f"it ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class NativeRun:
    """A run of a native program, which is built for it; it offers what `Run` offers.

    The program executes from its beginning whenever it is asked, up to the same instant. It makes no choices, and
    ignores a seed. Raises `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """

    def __init__(self, package: Package, **inputs: Unpack[Inputs]) -> None:
        checked(package, inputs)
        self._package, self._program = package, _program(c_tables([package]))
        self._place = TemporaryDirectory()
        weakref.finalize(self, self._place.cleanup)
        self._arguments = arguments(inputs, Path(self._place.name))
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
        (state,) = states(self._program.path, *self._arguments, *further)
        return state


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
