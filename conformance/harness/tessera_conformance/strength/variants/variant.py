"""A variant: the freedom it takes, where that can show, and how to get an adapter that takes it.

A module in the folder `variants` of a chapter declares variants in one of two ways: an adapter class under `@varies`,
or `altered(...)` at module level, which swaps functions or constants of the implementation's code meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tessera_conformance.adapter import Adapter
from tessera_conformance.strength.loading import load_declared, load_whole
from tessera_conformance.strength.violation import substituted

__all__ = ["Variant", "altered", "load_variants", "varies"]

AdapterClass = TypeVar("AdapterClass", bound=type[Any])


@dataclass(frozen=True)
class Variant:
    """One legal implementation beside the control."""

    name: str
    freedom: str
    """The clause or the interpretation that leaves it."""
    description: str
    reach: tuple[str, ...]
    """Patterns of the ids of cases that can show it, in which `*` stands for any text."""
    made: Callable[[], AbstractContextManager[Adapter]]
    taken_for: tuple[str, ...] = ()
    """Other interpretations as whose alternatives an answer of it may be read, since a case cannot tell the two."""


def varies(
    freedom: str, description: str, *reach: str, taken_for: Sequence[str] = ()
) -> Callable[[AdapterClass], AdapterClass]:
    """Declare an adapter class as another legal implementation."""

    def declare(adapter: AdapterClass) -> AdapterClass:
        load_whole(adapter)
        name = adapter.__name__
        adapter.variant = Variant(name, freedom, description, reach, lambda: nullcontext(adapter()), tuple(taken_for))
        return adapter

    return declare


def altered(
    freedom: str,
    description: str,
    reach: Sequence[str],
    make: Callable[[], Adapter],
    *substitutions: tuple[Any, str, Any],
    name: str = "",
) -> Variant:
    """A variant that replaces attributes of modules or classes, each `(owner, attribute name, substitute)`."""
    return Variant(name, freedom, description, tuple(reach), lambda: substituted(make, substitutions))


def load_variants(directory: Path | None = None) -> list[Variant]:
    """Every variant of the files of a folder, or of every chapter. Raises `ValueError` where two share a name."""
    return load_declared(Variant, "variants", "variant", directory)
