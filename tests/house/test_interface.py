"""What is made from the interface is current, and the interface names clauses and features that exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tessera_conformance.commands.interface import made_files, wrong_clauses
from tessera_conformance.interface import interface
from tessera_conformance.interface.types import Enumeration
from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry


def test_what_is_made_from_the_interface_is_current(root: Path) -> None:
    stale = [str(path) for path, text in made_files(root).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `tessera-conformance interface --write`"
    assert {path.name for path in (root / "schemas" / "protocol").iterdir()} == {
        f"{area}.schema.json" for area in interface().areas
    }


def test_every_area_stands_on_the_page(root: Path) -> None:
    page = (root / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert [area for area in interface().areas if f"<!-- interface: {area} -->\n" not in page] == []


def test_clauses_and_features_exist() -> None:
    registry = load_registry(clauses_directory())
    assert wrong_clauses(interface()) == []
    assert sorted(set(features()) - set(registry.features)) == []


def test_every_method_of_a_chapter_names_a_clause() -> None:
    """Those of the session are the protocol's own; no specification has them."""
    assert [name for name, each in interface().methods.items() if not each.clauses and each.area != "session"] == []


def features() -> Iterator[str]:
    """The features that methods need; `{at}-ir-text` is one for each word that the parameter `at` may be."""
    levels = interface().types["ir_level"].type
    assert isinstance(levels, Enumeration)
    for method in interface().methods.values():
        if method.feature.startswith("{at}"):
            yield from (method.feature.replace("{at}", word) for word in levels.words)
        elif method.feature:
            yield method.feature
