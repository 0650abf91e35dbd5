"""Writes the page of features, features.md, from registry, interface and names: `python docs/draw_features.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.model import DOCUMENTS, Feature, Registry, features

PAGE = Path(__file__).parent / "features.md"

INTRODUCTION = """# Features

The features that an implementation can claim beyond the core, one sentence each. A feature has methods of the
[protocol](protocol.md) that need it, [operations](names.md) that are called with it, clauses and interpretations. Claim
a feature in the `capabilities` of the Hello only when it works. The cases of one that is left out are unsupported and
fail nothing ([verdicts](verdicts.md)). Features of one product often come together:
[profiles](profiles.md).

"Shows through" are methods that every implementation of the document has; the feature adds something to their
arguments or answers. `tessera-conformance clauses list --feature NAME` lists the clauses of a feature.

This page is written by `python docs/draw_features.py` from `conformance/clauses/features.toml`, the `interface.toml`
files, `operations/names.toml` and the clause registry.
"""
TITLES = {"": "Of several documents, or of none"}
LISTED = 4
"""Clauses that are named; of more, the first and how many there are."""


def page() -> str:
    """The whole page."""
    registry = load_registry(clauses_directory())
    by_document: dict[str, list[Feature]] = {key: [] for key in (*DOCUMENTS, "")}
    for feature in features(registry, clauses_directory()):
        by_document[document_of(feature, registry)].append(feature)
    parts = [INTRODUCTION]
    for key, listed in by_document.items():
        title = registry.documents[key].title if key else TITLES[key]
        parts += [f"## {title}\n", *map(described, listed)]
    return "\n".join(parts)


def document_of(feature: Feature, registry: Registry) -> str:
    """The one document that its clauses and interpretations are of; "" for several, or none."""
    documents = {registry.clauses[name].document for name in feature.clauses}
    documents |= {registry.interpretations[name].document for name in feature.interpretations}
    return documents.pop() if len(documents) == 1 else ""


def described(feature: Feature) -> str:
    """One feature: its sentence, and a line for each kind of thing that it stands for."""
    lines = [f"### `{feature.id}`\n", f"{feature.summary}\n"]
    facts = {
        "methods": code(feature.methods),
        "shows through": code(feature.through),
        "operations": code(feature.operations),
        "clauses": shortened(feature.clauses),
        "interpretations": ", ".join(feature.interpretations),
    }
    lines += [f"- {kind}: {text}" for kind, text in facts.items() if text]
    return "\n".join([*lines, ""])


def code(names: Sequence[str]) -> str:
    """The names in code spans."""
    return ", ".join(f"`{name}`" for name in names)


def shortened(clauses: Sequence[str]) -> str:
    """The clauses, or the first of them and how many there are."""
    if len(clauses) <= LISTED:
        return ", ".join(clauses)
    return f"{', '.join(clauses[: LISTED - 1])} and {len(clauses) - LISTED + 1} more"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
