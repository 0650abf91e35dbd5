"""The page about the house names files that exist, and its picture is what its script draws."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PLACES = ("", "conformance/harness/tessera_conformance", "reference/tessera_reference")
"""What the paths of the page are relative to."""

SHAPES = re.compile(r"`([\w./]+\.(?:py|toml|md|jsonl|xml))`")
"""A file in a code span."""

MADE = {"report.jsonl", "junit.xml", "conformance/abi/host_io/interface.toml"}
"""Files that a run makes, and those of a trial."""


@pytest.mark.parametrize(("page", "fewest"), [("docs/architecture.md", 30), ("CONTRIBUTING.md", 1)])
def test_every_file_that_the_page_names_exists(root: Path, page: str, fewest: int) -> None:
    named = set(SHAPES.findall((root / page).read_text(encoding="utf-8"))) - MADE
    assert len(named) >= fewest
    in_a_chapter = ("README.md", "interface.toml")
    places = [root / place for place in PLACES] + [root / "conformance" / "runtime"]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert sorted(set(missing) - set(in_a_chapter)) == []


def test_the_picture_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_house.py"))
    written = (root / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    assert written == script["picture"](), "run `python docs/draw_house.py`"


def test_every_room_of_the_reference_is_described(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in sorted((root / "reference" / "tessera_reference").glob("*/__init__.py"))]
    assert [room for room in rooms if f"`{room}`" not in page] == []
