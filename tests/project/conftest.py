"""The project's source files, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = (ROOT / "reference", ROOT / "conformance" / "harness")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def modules() -> Mapping[str, ast.Module]:
    """Every module of the two packages, by dotted name."""
    return dict(_modules())


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for source_root in SOURCE_ROOTS:
        for path in sorted(source_root.rglob("*.py")):
            parts = path.relative_to(source_root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, ast.parse(path.read_text(encoding="utf-8"), str(path))
