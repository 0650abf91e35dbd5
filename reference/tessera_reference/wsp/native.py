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
from .forms import MOST
from .kernels import Kernel
from .package import BODIES, MOST_STEPS, CallSite, Inputs, Package, Process, Tensor, checked, least_of, settings
from .run import RUNS, Run
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
    programs = [f"&(const ProgramInfo){_tables(package)}" for package in packages]
    lines = ["const ProgramInfo *const wsp_programs[] = {", ",\n".join(programs), "};"]
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


def table(kind: str, rows: Iterable[object]) -> str:
    """The initializers of a table: the number of its rows, and these, or NULL since C has no empty arrays."""
    entries = list(map(str, rows))
    return f"{len(entries)}, (const {kind}[]){{" + ",\n".join(entries) + "}" if entries else "0, NULL"


def _tables(package: Package) -> str:
    policy, csp = package.schedule.policy, package.csp
    scalars = 1 + max((len(kernel.parameters) for kernel in package.kernels), default=0)
    return row(
        *(len(package.symbols), policy.workers, scalars),
        _value(policy.worker),
        table("KernelInfo", map(_kernel, package.kernels)),
        table("ChannelInfo", [row(text(channel.name), channel.latency) for channel in csp.channels]),
        table("ProcessInfo", [_process(package, process) for process in csp.processes]),
        table("char *const", [text(slot.name) for slot in package.slots]),
        table("InputInfo", _inputs(package)),
        table("TensorInfo", map(_tensor, package.tensors)),
    )


def _kernel(kernel: Kernel) -> str:
    instructions = []
    for op, destination, operands in kernel.code:
        sources = row(*(row(f"OF_{kind.upper()}", unsigned(value)) for kind, value in operands))
        instructions.append(row(f"KERNEL_{op.upper()}", destination, sources))
    return row(text(kernel.name), table("Instruction", instructions))


def _inputs(package: Package) -> Iterator[str]:
    """The symbols, and the settings in their order."""
    for symbol in package.symbols:
        yield row("SYMBOL_INPUT", text(symbol.name), 0, *map(unsigned, (symbol.most, symbol.default)))
    for knob, value in settings(package, {}).items():
        yield row("RESOURCE_INPUT", text(knob), least_of(knob), *map(unsigned, (MOST, value)))


def _tensor(tensor: Tensor) -> str:
    initial = "NULL"
    if tensor.initial is not None:  # a string, which compilers read in a tenth of the time of numbers
        escapes = "".join(map("\\{:03o}".format, tensor.initial))
        initial = f"(const uint8_t *){text(escapes)}"
    return row(text(tensor.name), tensor.dtype.upper(), f"{tensor.count}U", f"{tensor.nbytes}U", initial)


def _value(expression: Expression) -> str:
    match expression:
        case statements.Leaf("input", name):
            stated = row(f"INPUT_{name.upper()}", 0, "{0}")
        case statements.Leaf(kind, content):
            stated = row(kind.upper(), unsigned(content), "{0}")
        case statements.Operation(op, operands):
            stated = row(op.upper(), 0, row(*map(_value, operands)))
    return f"&(const Expression){stated}"


def _site(site: CallSite) -> str:
    """A call of a kernel."""
    lists = site.tensors, site.reads, site.writes, site.waits, site.signals
    numbers = site.kernel, unsigned(site.cycles), unsigned(site.heap)
    scalars = table("Expression *", map(_value, site.scalars))
    return f"&(const Site){row(*numbers, scalars, *(row(table('uint32_t', numbers)) for numbers in lists))}"


def _process(package: Package, process: Process) -> str:
    rows = [*_body(package, process.body, "body"), _row("END", "end")]
    return row(text(process.name), table("Statement", rows), row(table("uint32_t", process.produces)))


def _body(package: Package, body: Body, path: str) -> list[str]:
    return [row for place, stated in enumerate(body) for row in _statement(package, stated, f"{path}/{place}")]


def _statement(package: Package, stated: Statement, path: str) -> list[str]:
    """A statement, which has its members by name, and the call of a kernel its site; then those of its bodies."""
    members = {field.name: getattr(stated, field.name) for field in fields(stated)}
    bodies = [_body(package, members.pop(name), f"{path}/{name}") for name in BODIES if name in members]
    if isinstance(stated, statements.RunKernel | statements.Task):
        key = members.get("key")
        members = {"site": package.site(stated)} | ({} if key is None else {"key": key})
    kind, values = stated.op.upper(), [f".{name} = {_member(member)}" for name, member in members.items()]
    match bodies:
        case [then, otherwise]:
            whole = _row(kind, path, f".jump = {len(then) + 2}", *values)
            return [whole, *then, _row("JUMP", path, f".jump = {len(otherwise) + 1}"), *otherwise]
        case [body] if isinstance(stated, statements.Scope):
            return [_row(kind, path), *body, _row("END_SCOPE", path)]
        case [body]:
            whole = _row(kind, path, f".jump = {len(body) + 2}", *values)
            return [whole, *body, _row("JUMP", path, f".jump = {-len(body) - 1}")]
    return [_row(kind, path, *values)]


def _row(kind: str, path: str, *values: str) -> str:
    return row(f".kind = {kind}", f".path = {text(path)}", *values)


def _member(member: int | CallSite | Expression | None) -> str:
    if member is None or isinstance(member, int):
        return "NONE" if member is None else str(member)
    return _site(member) if isinstance(member, CallSite) else _value(member)


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
    packages: Sequence[Package], program: Path, flags: tuple[str, ...] = FLAGS, compilers: Sequence[str] = COMPILERS
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
        self.path = _directory(self) / "program"
        _link(tables, self.path, QUICK)


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
