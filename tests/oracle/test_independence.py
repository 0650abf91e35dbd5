"""The oracle shares nothing with the reference and does no arithmetic with numpy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tessera_conformance import oracle

FILES = sorted(Path(oracle.__file__).parent.glob("*.py"))
INDEX_FUNCTIONS = {"arange", "broadcast_shapes", "broadcast_to", "moveaxis"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports_and_numpy(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"numpy", "functools", "itertools", "fractions", "dataclasses", "enum", "typing", "collections.abc"}
    ours = {"tessera_conformance.tensors", "__future__"}
    assert {name for name in imported if not name.startswith("tessera_conformance.oracle")} <= allowed | ours
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
    }
    assert used <= INDEX_FUNCTIONS
