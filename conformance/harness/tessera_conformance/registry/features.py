"""The features that can be claimed beyond the core, each with a sentence and what it stands for.

`conformance/clauses/features.toml` has the sentences; methods come from the interface, operations from the table of
names, clauses and interpretations from the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tessera_conformance.interface import interface
from tessera_conformance.operations.names import OPERATIONS
from tessera_conformance.registry.cache import table_of
from tessera_conformance.registry.model import Registry

FILE = "features.toml"
IR_LEVELS = ("graph", "schedule", "tile", "target")
"""Of a method whose feature depends on the level of IR that a request asks about."""


@dataclass(frozen=True)
class Feature:
    """A feature, and what it stands for; `through` are shared methods, where it has none of its own."""

    id: str
    summary: str
    methods: Sequence[str]
    through: Sequence[str]
    operations: Sequence[str]
    clauses: Sequence[str]
    interpretations: Sequence[str]


def features(registry: Registry, directory: Path) -> Sequence[Feature]:
    """Return every feature of a registry, in alphabetical order; of a directory without sentences they are empty."""
    file = directory / FILE
    told: Mapping[str, Any] = table_of(file)["features"] if file.exists() else {}
    own: dict[str, list[str]] = {}
    for method in interface().methods.values():
        for feature in dict.fromkeys(method.feature.format(at=level) for level in IR_LEVELS):
            own.setdefault(feature, []).append(method.full_name)
    return [
        Feature(
            name,
            told.get(name, {}).get("summary", ""),
            own.get(name, ()),
            told.get(name, {}).get("methods", ()),
            [operation.name for operation in OPERATIONS.values() if operation.feature == name],
            [clause.id for clause in registry.clauses.values() if clause.feature == name],
            [row.id for row in registry.interpretations.values() if row.feature == name],
        )
        for name in registry.features
    ]
