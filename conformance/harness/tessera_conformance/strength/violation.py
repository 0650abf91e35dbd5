"""A violation: the clause it breaks, what it does wrong, and how to get an adapter that does so.

A module in the folder `violators` of a chapter declares violations in one of two ways: an adapter class under
`@violates`, which changes what the adapter itself does, or `replaced(...)` at module level, which swaps one function
or constant of the implementation's code while the violation is in force.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tessera_conformance import chapters
from tessera_conformance.adapter import Adapter
from tessera_conformance.locations import rooms
from tessera_conformance.transports import Transport

PACKAGE = "tessera_violators"
"""The name under which the files of a folder that is no chapter's are imported."""

AdapterClass = TypeVar("AdapterClass", bound=type[Any])


@dataclass(frozen=True)
class Violation:
    """One broken variant of an implementation."""

    name: str
    clause: str
    description: str
    broken: Callable[[], AbstractContextManager[Adapter | Transport]]
    level: str | None = None
    """The numerics level that it claims, where that is known without asking."""
    missing: str = ""
    """What this machine lacks to run it, where it does."""


def violates(clause: str, description: str) -> Callable[[AdapterClass], AdapterClass]:
    """Declare an adapter class as breaking one clause."""

    def declare(adapter: AdapterClass) -> AdapterClass:
        @contextmanager
        def broken() -> Iterator[Adapter]:
            yield adapter()

        adapter.violation = Violation(adapter.__name__, clause, description, broken)
        return adapter

    return declare


def replaced(
    clause: str, description: str, make: Callable[[], Adapter], *substitutions: tuple[Any, str, Any], name: str = ""
) -> Violation:
    """A violation that replaces attributes of modules or classes, each `(owner, attribute name, substitute)`."""

    @contextmanager
    def broken() -> Iterator[Adapter]:
        patches = [mock.patch.object(owner, attribute, value) for owner, attribute, value in substitutions]
        for patch in patches:
            patch.start()
        try:
            yield make()
        finally:
            for patch in reversed(patches):
                patch.stop()

    return Violation(name, clause, description, broken)


def load_violations(directory: Path | None = None) -> list[Violation]:
    """Every violation of the files of a folder, or of every chapter, in order of file and place.

    Those of the chapters are called like `runtime/streams.null_stream`.

    Raises:
        ValueError: two violations share a name.
    """
    if directory is None:
        chapter_packages = {name: _chapter_package(name) for name in rooms("violators")}
        declared = [(f"{name}/", package) for name, package in chapter_packages.items()]
    else:
        declared = [("", _package_of(directory))]
    found: dict[str, Violation] = {}
    for prefix, package in declared:
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            for violation in _declared_in(importlib.import_module(f"{package.__name__}.{path.stem}")):
                name = f"{prefix}{path.stem}.{violation.name}"
                if name in found:
                    raise ValueError(f"{path.name}: two violations are called {violation.name}")
                found[name] = replace(violation, name=name)
    return list(found.values())


def _chapter_package(chapter: str) -> types.ModuleType:
    return importlib.import_module(f"{chapters.__name__}.{chapter.replace('/', '.')}.violators")


def _package_of(directory: Path) -> types.ModuleType:
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(directory)]
    sys.modules[PACKAGE] = package
    return package


def _declared_in(module: types.ModuleType) -> Iterator[Violation]:
    for name, value in vars(module).items():
        values = value if isinstance(value, list | tuple) else [value]
        for entry in values:
            if isinstance(entry, Violation):
                yield replace(entry, name=entry.name or name)
            elif isinstance(entry, type) and entry.__module__ == module.__name__ and "violation" in vars(entry):
                yield vars(entry)["violation"]
