"""The page of levels is what its script writes, and its texts are what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tessera_reference.ir.operation import OPERATIONS
from tessera_reference.ir.targets import target_of
from tessera_reference.levels.texts import read_at


def test_the_page_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_levels.py"))
    written = (root / "docs" / "levels.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run `python docs/draw_levels.py`"


def test_its_texts_are_read_as_ir_of_their_levels(root: Path) -> None:
    written = (root / "docs" / "levels.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```\n(.*?)^```$", written, re.DOTALL | re.MULTILINE)[1:]
    levels = (("graph", "sm_90"), ("schedule", "sm_90"), ("tile", "sm_90"), ("target", "sm_90"), ("target", "gfx942"))
    for text, (level, target) in zip(texts, levels, strict=True):
        (module,) = read_at(level, text, target_of(target))
        assert any(function.device for function in module.functions.values()) == (level in ("tile", "target"))


def test_the_page_is_linked(root: Path) -> None:
    assert "\nlevels\n" in (root / "docs" / "index.md").read_text(encoding="utf-8")


def test_the_protocol_names_every_operation_of_the_lower_levels(root: Path) -> None:
    """One of a row stands in full, those beside it without their dialect or beginning; `rocdl.mfma...` for them all."""
    page = (root / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = set()
    for row in rows:
        words = [word.removesuffix(".x") for word in re.findall(r"`([\w.]+)`", row)]
        starts = {".".join(word.split(".")[:count]) for word in words for count in range(1, word.count(".") + 1)}
        named |= {f"{start}.{word}" for start in starts for word in words} | set(words)
    lower = [name for name in OPERATIONS if not name.startswith(("tessera.graph.", "rocdl.mfma."))]
    assert len(lower) > 80
    assert [name for name in lower if re.sub(r"\.[xyz]$", "", name) not in named] == []
