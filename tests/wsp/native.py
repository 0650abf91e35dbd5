"""Executor and native artifact compared in every field: `python -m tests.wsp.native --count 200000` for many programs.

A program runs with one of `SETTINGS`, in turn by batch; the first differences are printed, and the exit code is 1 where
there are any. With tcc, where it is installed, this takes a tenth of the time.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from tessera_reference.wsp.builder import compile_program
from tessera_reference.wsp.deadlock import explained
from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.native import COMPILERS, arguments, build, of_trial, state_of
from tessera_reference.wsp.package import Inputs, Package
from tessera_reference.wsp.run import Run
from tessera_reference.wsp.targets import target

from .programs import program

Settings = Mapping[str, Any]
"""Symbols, tensors and resources of a run, as `Run` takes them."""
Difference = tuple[int, Settings, dict[str, Any], dict[str, Any]]
"""Place of the package, settings, the executor's and the artifact's result, which are not equal."""
QUICK = ("-std=c99", "-O0", "-w")
"""Flags for many programs, of which compiling is what takes time; tcc takes a seventieth of gcc's."""
SANITIZED = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-fsanitize=address,undefined")
SANITIZED += ("-fno-sanitize-recover=all",)


def package_of(form: Mapping[str, Any]) -> Package:
    """The package of a program in JSON form."""
    return compile_program(form, target("cpu_sim"))[0]


def executed(package: Package, settings: Settings) -> dict[str, Any]:
    """The executor's result."""
    return Run(package, **settings).finish().result()


def result(package: Package, program: Path, **inputs: Unpack[Inputs]) -> dict[str, Any]:
    """Return the result of a built program."""
    with TemporaryDirectory() as place:
        options = arguments(inputs, Path(place))
        state = state_of(program, *options)
        return explained(package, state, lambda *trial: state_of(program, *options, *of_trial(*trial)))


def differences(
    packages: Sequence[Package],
    program: Path,
    flags: tuple[str, ...],
    settings: Sequence[Settings] = ({},),
    outcomes: Counter[str] | None = None,
) -> list[Difference]:
    """Return the differences of the two. Count the `outcomes` of all runs."""
    found = []
    for place, package in enumerate(packages):
        build(package, program, flags, ("tcc", *COMPILERS) if flags[: len(QUICK)] == QUICK else COMPILERS)
        for setting in settings:
            expected, native = executed(package, setting), result(package, program, **setting)
            if outcomes is not None:
                outcomes[expected["outcome"]] += 1
            if expected != native:
                found.append((place, setting, expected, native))
    return found


def differs(form: Mapping[str, Any], program: Path, settings: Settings) -> bool:
    """Return True if the two differ for a program in JSON form; False also if the program has lost its meaning."""
    try:
        package = package_of(form)
    except ProgramRefused:
        return False
    return bool(differences([package], program, QUICK, [settings]))


SETTINGS: tuple[Settings, ...] = (
    {},
    {"symbols": {"m": 2, "n": 7}, "resources": {"task_window": 2, "ready_queue": 1}},
    {"symbols": {"m": 255, "n": 1}, "resources": {"tensormap_pool": 2, "deplist_pool": 1, "heap_arena": 60}},
    {"symbols": {"m": 1, "n": 0}, "resources": {"channel.c0.capacity": 0, "scope.p0": 1, "task_window": 1}},
)
BATCH, SHOWN = 200, 5


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, required=True, help="how many programs")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    found = 0
    with TemporaryDirectory() as place:
        for first in range(options.first, options.first + options.count, BATCH):
            seeds = range(first, min(first + BATCH, options.first + options.count))
            packages = [package_of(program(seed)) for seed in seeds]
            chosen = [SETTINGS[first // BATCH % len(SETTINGS)]]
            path = Path(place) / "program"
            for number, settings, expected, native in differences(packages, path, QUICK, chosen, outcomes):
                found += 1
                if found <= SHOWN:
                    print(f"seed {seeds[number]}, {settings}", *_fields(expected, native), sep="\n  ", flush=True)
            if (first - options.first) % (20 * BATCH) == 0:
                print(f"{seeds[-1] + 1 - options.first} programs: {dict(outcomes)}, {found} differ", flush=True)
    print(f"{options.count} programs: {dict(outcomes)}, {found} differ")
    return 1 if found else 0


def _fields(expected: Mapping[str, Any], native: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The fields that differ, innermost."""
    for name in {**expected, **native}:
        a, b = expected.get(name), native.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from _fields(a, b, f"{path}{name}.")
        elif a != b:
            yield f"{path}{name}: executor {a}, artifact {b}"


if __name__ == "__main__":
    sys.exit(main())
