"""The picture of a trace is what its script draws."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_the_picture_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_trace.py"))
    drawn = (root / "docs" / "images" / "trace.svg").read_text(encoding="utf-8")
    assert drawn == script["drawing"](script["trace"]()) + "\n", "run `python docs/draw_trace.py`"


def test_the_page_shows_it(root: Path) -> None:
    assert "(images/trace.svg)" in (root / "docs" / "runtime.md").read_text(encoding="utf-8")
    assert "\nruntime\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")
