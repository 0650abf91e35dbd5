"""The page of names is current with the table, and the skeleton of a table lists every operation."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tessera_conformance.commands.new_adapter import TEMPLATES
from tessera_conformance.operations.names import OPERATIONS


def test_the_page_is_current(root: Path) -> None:
    written = (root / "docs" / "names.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(root / "docs" / "draw_names.py"))
    assert written == script["page"](), "run `python docs/draw_names.py`"


def test_the_skeleton_lists_every_operation() -> None:
    text = (TEMPLATES / "python" / "operations.py").read_text(encoding="utf-8")
    lines = dict(re.findall(r'^    (?:# )?"(\w+)": lambda(.*?):', text, re.MULTILINE))
    assert list(lines) == list(OPERATIONS)
    for name, row in OPERATIONS.items():
        parameters = re.findall(r"\*?[a-z_0-9]+", lines[name])
        assert [*row.operands, *(each for each in row.attributes if each in parameters)] == parameters, name
