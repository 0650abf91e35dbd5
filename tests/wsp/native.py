"""What the executor and the native artifact say of the same runs, in every field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_reference.wsp.artifact.build import COMPILERS, build, results
from tessera_reference.wsp.compiler import compile_program
from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import Package
from tessera_reference.wsp.targets import target

__all__ = ["QUICK", "SANITIZED", "Difference", "Settings", "differences", "differs", "executed", "package_of"]

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
    cpu_sim = target("cpu_sim")
    assert cpu_sim is not None
    return compile_program(form, cpu_sim)[0]


def executed(package: Package, settings: Settings) -> dict[str, Any]:
    """The executor's result."""
    return Run(package, **settings).finish().result()


def differences(
    packages: Sequence[Package],
    program: Path,
    flags: tuple[str, ...],
    settings: Sequence[Settings] = ({},),
    outcomes: Counter[str] | None = None,
) -> list[Difference]:
    """Where the two differ; the artifact runs all packages one after the other. Counts the `outcomes` of all runs."""
    build(packages, program, flags, ("tcc", *COMPILERS) if flags[: len(QUICK)] == QUICK else COMPILERS)
    found = []
    for each in settings:
        natives = results(program, **each)
        assert len(natives) == len(packages)
        for place, (package, native) in enumerate(zip(packages, natives, strict=True)):
            expected = executed(package, each)
            if outcomes is not None:
                outcomes[expected["outcome"]] += 1
            if expected != native:
                found.append((place, each, expected, native))
    return found


def differs(form: Mapping[str, Any], program: Path, settings: Settings) -> bool:
    """Whether the two differ for a program in JSON form, which may have lost its meaning; then they do not."""
    try:
        package = package_of(form)
    except ProgramRefused:
        return False
    return bool(differences([package], program, QUICK, [settings]))
