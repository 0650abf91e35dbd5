"""The frames on the page of the endpoint are those that the bridge sends."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_frames_on_the_page_are_current() -> None:
    script = runpy.run_path(str(DOCS / "draw_host_frames.py"))
    written = (DOCS / "host_io.md").read_text(encoding="utf-8")
    assert written == script["page"](written), "run `python docs/draw_host_frames.py`"
