"""Has the C program of a package compiled by the system's C compiler, and runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import WspFailure
from ..executor.run import MOST_STEPS
from ..package import Package
from .writer import c_program

COMPILERS = ("cc", "gcc", "clang", "tcc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")


class NoCompiler(WspFailure):
    """There is no C compiler."""

    def __init__(self) -> None:
        names = ", ".join(COMPILERS)
        super().__init__(f"no C compiler ({names}) is on the PATH: install one, such as the package gcc or clang")


class BuildFailed(WspFailure):
    """The C compiler or the built program failed."""


def build(
    packages: Sequence[Package], program: Path, flags: Sequence[str] = FLAGS, compilers: Sequence[str] = COMPILERS
) -> str:
    """Write the program of packages for cpu_sim at a path by the first compiler that there is; its C text.

    Raises `NoCompiler` and `BuildFailed`.
    """
    for each in packages:
        if each.target != "cpu_sim":
            raise BuildFailed(f"package {each.name} is for {each.target}, and native programs are those of cpu_sim")
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        raise NoCompiler
    text = c_program(packages)
    with TemporaryDirectory() as place:
        source = Path(place) / "program.c"
        source.write_text(text, encoding="utf-8")
        command = [compiler, *flags, "-o", str(program), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{Path(compiler).name} ended with {done.returncode}: {done.stderr.strip()[:2000]}")
    return text


def results(
    program: Path,
    symbols: Mapping[str, int] | None = None,
    tensors: Mapping[str, bytes] | None = None,
    resources: Mapping[str, int] | None = None,
    max_steps: int = MOST_STEPS,
) -> list[dict[str, Any]]:
    """The result of each package of a built program, all with the same inputs. Raises `BuildFailed`."""
    with TemporaryDirectory() as place:
        arguments = [*_arguments(symbols or {}, tensors or {}, resources or {}, Path(place))]
        arguments += ["--max-steps", str(max_steps)]
        done = subprocess.run([str(program.resolve()), *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or done.stderr:
        raise BuildFailed(done.stderr.strip().removeprefix("error: ")[:2000] or f"it ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def native_result(
    package: Package,
    symbols: Mapping[str, int] | None = None,
    tensors: Mapping[str, bytes] | None = None,
    resources: Mapping[str, int] | None = None,
    max_steps: int = MOST_STEPS,
) -> dict[str, Any]:
    """The result of a package by a program that is built for this run. Raises `NoCompiler` and `BuildFailed`."""
    with TemporaryDirectory() as place:
        program = Path(place) / "program"
        build([package], program)
        (found,) = results(program, symbols, tensors, resources, max_steps)
    return found


def _arguments(
    symbols: Mapping[str, int], tensors: Mapping[str, bytes], resources: Mapping[str, int], place: Path
) -> Iterator[str]:
    for name, value in symbols.items():
        yield from ("--symbol", f"{name}={value}")
    for name, value in resources.items():
        yield from ("--resource", f"{name}={value}")
    for number, (name, data) in enumerate(tensors.items()):
        file = place / str(number)
        file.write_bytes(data)
        yield from ("--tensor", f"{name}={file}")
