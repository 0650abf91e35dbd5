"""The whole check of a registry: form, schemas, references, lock, in that order.

Each step needs the one before it: a file that cannot be read would make every id in it look vanished.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tessera_conformance.registry import consistency, load, lock, schema
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.model import Registry


def examine(directory: Path) -> tuple[Registry | None, list[RegistryError]]:
    """The registry of a directory, unless its files cannot be read as one, and everything that is wrong with it."""
    reading = load.read(directory)
    if reading.problems:
        return None, list(reading.problems)
    registry = reading.registry
    locked, problems = _parsed_lock(directory)
    files = {**reading.files, lock.FILE: locked} if not problems else reading.files
    problems += [*schema.schema_violations(files), *consistency.problems(registry)]
    if not problems:
        problems += _lock_problems(registry, locked)
    return registry, problems


def _parsed_lock(directory: Path) -> tuple[Any, list[RegistryError]]:
    try:
        return lock.parsed(directory), []
    except RegistryError as error:
        return None, [error]


def _lock_problems(registry: Registry, locked: Any) -> Iterator[RegistryError]:
    try:
        entries = lock.decoded(locked)
    except RegistryError as error:
        yield error
        return
    broken = list(lock.broken_promises(registry, entries))
    yield from broken
    named = {problem.id for problem in broken}
    yield from (problem for problem in lock.differences(registry, entries) if problem.id not in named)
