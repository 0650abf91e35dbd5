"""Writes the page of named profiles, profiles.md, from the clause registry: `python docs/draw_profiles.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import Registry, load_registry
from tessera_conformance.registry.model import NamedProfile

PAGE = Path(__file__).parent / "profiles.md"

INTRODUCTION = """# Profiles

An implementation claims documents and, of what is optional, features. Most features are beyond the core: who lacks one
leaves nothing out. Some core MUST clauses, though, cannot be judged without a feature: what ranks hold is seen only
where the memory of single ranks can be read, and Tile IR only where a compiler shows it. These features make up the
**named profiles**. An implementation claims a profile by claiming all of its features.

Core stays core. Where a profile is not claimed its clauses are unsupported, the claim is *partial* at best, and it says
how many of which profile are missing; a claim of *success* names the profiles that it covers. [Verdicts](verdicts.md)
has examples.

This page is written by `python docs/draw_profiles.py` from `conformance/clauses/profiles.toml`. That the table is
neither too long nor too short is a test: the reference without any feature leaves exactly these clauses unjudged.
"""


def page() -> str:
    """The whole page."""
    registry = load_registry(clauses_directory())
    rows = [row(profile) for profile in registry.profiles]
    head = ["| profile | document | what it is | features | core MUST clauses |", "|---|---|---|---|---|"]
    parts = [
        INTRODUCTION,
        "\n".join([*head, *rows, ""]),
        *(listing(profile, registry) for profile in registry.profiles),
    ]
    return "\n".join(parts)


def row(profile: NamedProfile) -> str:
    """One line of the table."""
    features = ", ".join(f"`{name}`" for name in profile.features)
    cells = (f"`{profile.id}`", f"`{profile.document}`", profile.summary, features, str(len(profile.clauses)))
    return f"| {' | '.join(cells)} |"


def listing(profile: NamedProfile, registry: Registry) -> str:
    """The clauses of a profile with their summaries."""
    return "\n".join([f"## {profile.id}\n", *described(profile, registry), ""])


def described(profile: NamedProfile, registry: Registry) -> Iterator[str]:
    """A line for each clause."""
    for name in profile.clauses:
        yield f"- {name}: {registry.clauses[name].summary}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
