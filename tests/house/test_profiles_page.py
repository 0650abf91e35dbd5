"""The page of named profiles is what its script writes."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_profiles.py"))
    written = (root / "docs" / "profiles.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run `python docs/draw_profiles.py`"


def test_the_page_is_linked(root: Path) -> None:
    assert "\nprofiles\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")
