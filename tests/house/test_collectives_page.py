"""The pictures and tables of the page on collectives are what its script makes."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_collectives.py"))
    written = (root / "docs" / "collectives.md").read_text(encoding="utf-8")
    assert written == script["page"](written), "run `python docs/draw_collectives.py`"
    assert {found[1] for found in script["MARKED"].findall(written)} == set(script["TABLES"])
    for name, drawing in script["PICTURES"].items():
        drawn = (root / "docs" / "images" / name).read_text(encoding="utf-8")
        assert drawn == drawing(), "run `python docs/draw_collectives.py`"
        assert f"(images/{name})" in written


def test_the_page_is_linked(root: Path) -> None:
    assert "\ncollectives\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")
