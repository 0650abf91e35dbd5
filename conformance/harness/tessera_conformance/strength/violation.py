"""A violation: the clause it breaks, what it does wrong, and how to get an adapter that does so.

A module in `conformance/violators/` declares violations in one of two ways: an adapter class under `@violates`, which
changes what the adapter itself does, or `replaced(...)` at module level, which swaps one function or constant of the
implementation's code while the violation is in force.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tessera_conformance.adapter import Adapter

PACKAGE = "tessera_violators"
"""The name under which the files of the violators' folder are imported."""

AdapterClass = TypeVar("AdapterClass", bound=type[Any])


@dataclass(frozen=True)
class Violation:
    """One broken variant of an implementation."""

    name: str
    clause: str
    description: str
    broken: Callable[[], AbstractContextManager[Adapter]]


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


def load_violations(directory: Path) -> list[Violation]:
    """Every violation declared in the files of a folder, in order of file and place.

    Raises:
        ValueError: two violations share a name.
    """
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(directory)]
    sys.modules[PACKAGE] = package
    found: dict[str, Violation] = {}
    for path in sorted(directory.glob("*.py")):
        for violation in _declared_in(importlib.import_module(f"{PACKAGE}.{path.stem}")):
            name = f"{path.stem}.{violation.name}"
            if name in found:
                raise ValueError(f"{path.name}: two violations are called {violation.name}")
            found[name] = Violation(name, violation.clause, violation.description, violation.broken)
    return list(found.values())


def _declared_in(module: types.ModuleType) -> Iterator[Violation]:
    for name, value in vars(module).items():
        values = value if isinstance(value, list | tuple) else [value]
        for entry in values:
            if isinstance(entry, Violation):
                yield Violation(entry.name or name, entry.clause, entry.description, entry.broken)
            elif isinstance(entry, type) and entry.__module__ == module.__name__ and "violation" in vars(entry):
                yield vars(entry)["violation"]
