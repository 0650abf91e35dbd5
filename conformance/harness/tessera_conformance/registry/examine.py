"""The whole check of a registry: form, schemas, references, lock, in that order.

Each step needs the one before it: a file that cannot be read would make every id in it look vanished.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tessera_conformance.registry import consistency, load, lock
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.model import Registry
from tessera_conformance.registry.schema import schema_violations


def examine(directory: Path) -> tuple[Registry | None, list[RegistryError]]:
    """The registry of a directory, unless its files cannot be read as one, and everything that is wrong with it."""
    reading = load.read(directory)
    if reading.problems:
        return None, list(reading.problems)
    problems, locked = _form_of_the_lock(directory)
    problems += consistency.problems(reading.registry)
    if not problems:
        problems += _broken_by(reading.registry, lock.entries(locked))
    return reading.registry, problems


def _form_of_the_lock(directory: Path) -> tuple[list[RegistryError], Any]:
    try:
        locked = lock.parsed(directory)
    except RegistryError as error:
        return [error], None
    return [*schema_violations(lock.FILE, locked)], locked


def _broken_by(registry: Registry, entries: lock.Lock) -> Iterator[RegistryError]:
    broken = list(lock.broken_promises(registry, entries))
    yield from broken
    named = {problem.id for problem in broken}
    yield from (problem for problem in lock.differences(registry, entries) if problem.id not in named)
