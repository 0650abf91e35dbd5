"""A violation: the clause it breaks, what it does wrong, and how to get an adapter that does so.

A module in the folder `violators` of a chapter declares violations in one of two ways: an adapter class under
`@violates`, which changes what the adapter itself does, or `replaced(...)` at module level, which swaps one function
or constant of the implementation's code while the violation is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tessera_conformance.adapter import Adapter
from tessera_conformance.strength.loading import load_declared, load_whole
from tessera_conformance.transports import Transport

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
        load_whole(adapter)
        adapter.violation = Violation(adapter.__name__, clause, description, lambda: nullcontext(adapter()))
        return adapter

    return declare


def replaced(
    clause: str, description: str, make: Callable[[], Adapter], *substitutions: tuple[Any, str, Any], name: str = ""
) -> Violation:
    """A violation that replaces attributes of modules or classes, each `(owner, attribute name, substitute)`."""

    return Violation(name, clause, description, lambda: substituted(make, substitutions))


@contextmanager
def substituted(make: Callable[[], Adapter], substitutions: Sequence[tuple[Any, str, Any]]) -> Iterator[Adapter]:
    """A new adapter, while attributes of modules or classes are replaced."""
    load_whole(make())
    with ExitStack() as stack:
        for owner, attribute, value in substitutions:
            stack.enter_context(mock.patch.object(owner, attribute, value))
        yield make()


def load_violations(directory: Path | None = None) -> list[Violation]:
    """Every violation of the files of a folder, or of every chapter. Raises `ValueError` where two share a name."""
    return load_declared(Violation, "violators", "violation", directory)
