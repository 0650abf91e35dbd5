"""The README of a chapter's room names every file of the room that a reader may look for, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.locations import rooms

NAMED = ("test_*.py", "kit/**/*.py", "vector_sources/*.py", "rejections/*.toml")
FILE_NAME = re.compile(r"`([\w*/]+\.(?:py|toml))`")
"""A file, or a glob, in backticks; files of other rooms are linked instead."""


CHAPTERS = rooms("interface.toml")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_readme_of_a_room_names_its_files(root: Path, chapter: str) -> None:
    """Every test file, kit module, vector source and table is named, or matches a glob; every name has a file."""
    room = root / "conformance" / chapter
    patterns = FILE_NAME.findall((room / "README.md").read_text(encoding="utf-8"))
    named = {pattern: set(room.glob(pattern)) for pattern in patterns}
    assert [pattern for pattern, paths in named.items() if not paths] == []
    files = {path for glob in NAMED for path in room.rglob(glob) if path.name != "__init__.py"}
    within = [root / "conformance" / other for other in CHAPTERS if other.startswith(f"{chapter}/")]
    files = {path for path in files if "violators" not in path.parts and not {*within} & {*path.parents}}
    assert sorted(str(path.relative_to(room)) for path in files - set().union(*named.values())) == []
