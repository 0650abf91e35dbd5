"""Has the C program of a package compiled by the system's C compiler, and runs it."""

from __future__ import annotations

import atexit
import itertools
import json
import shutil
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from ..deadlock import explained
from ..errors import WspFailure
from ..executor.run import MOST_STEPS, checked
from ..package import Package
from .writer import c_tables, header_text, runtime_text

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
    source.write_text(runtime_text(), encoding="utf-8")
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
        source.write_text(header_text() + tables, encoding="utf-8")
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

    The program executes from its beginning whenever it is asked, up to the same instant. A seed is for the choices of
    a host, and the program makes none. Raises `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """

    def __init__(
        self,
        package: Package,
        symbols: Mapping[str, int] | None = None,
        tensors: Mapping[str, bytes] | None = None,
        resources: Mapping[str, int] | None = None,
        seed: int | None = None,
        max_steps: int = MOST_STEPS,
    ) -> None:
        checked(package, symbols or {}, tensors or {}, resources or {}, max_steps)
        self._package, self._program = package, _program(c_tables([package]))
        self._place = TemporaryDirectory()
        weakref.finalize(self, self._place.cleanup)
        self._given = arguments(symbols, tensors, resources, max_steps, Path(self._place.name))
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
        (state,) = states(self._program.path, *self._given, *further)
        return state


def arguments(
    symbols: Mapping[str, int] | None,
    tensors: Mapping[str, bytes] | None,
    knobs: Mapping[str, int] | None,
    max_steps: int,
    place: Path,
) -> list[str]:
    """Return the arguments of a program for its inputs; the bytes of tensors go to files in a place."""
    given = [part for name, value in (symbols or {}).items() for part in ("--symbol", f"{name}={value}")]
    for number, (name, data) in enumerate((tensors or {}).items()):
        (place / str(number)).write_bytes(data)
        given += ["--tensor", f"{name}={place / str(number)}"]
    return [*given, "--max-steps", str(max_steps), *of_trial(knobs or {})]


def of_trial(knobs: Mapping[str, int], enough: int | None = None) -> list[str]:
    """Return the arguments of a program for other settings, and the steps after which it is left."""
    given = [part for name, value in knobs.items() for part in ("--resource", f"{name}={value}")]
    return given if enough is None else [*given, "--enough", str(enough)]
