"""The page of operations is what its script writes, and leaves nothing out."""

from __future__ import annotations

import runpy
from pathlib import Path

from tessera_reference.ir.operation import OPERATIONS, SPELLINGS


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_operations.py"))
    written = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run `python docs/draw_operations.py`"


def test_every_operation_and_every_spelling_stands_on_it(root: Path) -> None:
    written = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    names = [name for name in OPERATIONS if name.startswith("tessera.graph.")]
    assert len(names) > 80
    assert [name for name in names if f"`{name}`" not in written] == []
    assert [spelling for spelling in SPELLINGS if f"`{spelling}`" not in written] == []


def test_the_page_is_linked(root: Path) -> None:
    assert "\noperations\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")
