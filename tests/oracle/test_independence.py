"""The oracle shares nothing with the reference and does no floating-point arithmetic of the machine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tessera_conformance import oracle

FOLDER = Path(oracle.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
STANDARD = {
    "__future__",
    "collections.abc",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "itertools",
    "math",
    "re",
    "types",
    "typing",
}
FROM_MATH = {"ceil", "isqrt", "prod"}
INDEX_FUNCTIONS = {"arange", "broadcast_shapes", "broadcast_to", "moveaxis"}
INTEGER_FUNCTIONS = {"abs", "dtype", "int64", "maximum", "moveaxis", "ndarray", "unique", "where"}
"""What exact sums are made of: their arrays hold integers only."""


def name(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("path", FILES, ids=name)
def test_imports_and_numpy(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = STANDARD | {"numpy", "gmpy2", "tessera_conformance.tensors"}
    assert {module for module in imported if not module.startswith("tessera_conformance.oracle")} <= allowed
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
    }
    assert used <= (INTEGER_FUNCTIONS if path.name == "exact_sum.py" else INDEX_FUNCTIONS)
    from_math = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "math"
        for alias in node.names
    }
    assert from_math <= FROM_MATH


def test_there_are_files_to_look_at() -> None:
    assert {"bounds/enclosures", "exact_sum", "functions"} <= {name(path) for path in FILES}
