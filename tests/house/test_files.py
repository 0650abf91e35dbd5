"""Nothing lies about unused: every test file is collected, every schema is valid and used."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import jsonschema
import pytest

from tessera_conformance.schemas import schemas

TEST_FOLDERS = ("tests", "conformance/abi", "conformance/ir", "conformance/runtime", "conformance/collectives")
PASSED_OVER = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
"""Folders into which pytest does not look, `norecursedirs`."""

DEFINITION = re.compile(r"^\s*(?:async\s+)?def\s+test_", re.MULTILINE)
"""Of a test; in a text within a module too, as no file of another name may have one."""


def test_every_test_file_is_collected(root: Path) -> None:
    """A file that defines tests is named so that pytest finds it, in a folder into which pytest looks."""
    defining = [
        path.relative_to(root)
        for folder in TEST_FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        if "sample_suite" not in path.parts  # run as a suite of its own by the tests of the harness
        if DEFINITION.search(path.read_text(encoding="utf-8"))
    ]
    assert len(defining) > 100
    assert [path for path in defining if not path.name.startswith("test_")] == []
    assert [path for path in defining if any(fnmatch(part, each) for part in path.parts for each in PASSED_OVER)] == []


def test_no_conftest_leaves_files_out(root: Path) -> None:
    conftests = sorted(path for folder in ("tests", "conformance") for path in (root / folder).rglob("conftest.py"))
    left_out = [line for path in conftests for line in path.read_text("utf-8").splitlines() if "collect_ignore" in line]
    assert left_out == ['collect_ignore = ["sample_suite"]']


@pytest.fixture(scope="module")
def literals(modules: Mapping[str, ast.Module]) -> set[str]:
    """Every string that stands in the harness."""
    return {
        node.value
        for name, tree in modules.items()
        if name.startswith("tessera_conformance")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.slow
@pytest.mark.parametrize("identifier", sorted(schemas()))
def test_every_schema_is_valid_and_used(identifier: str, literals: set[str], root: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas()[identifier])
    family = identifier.rpartition("/")[0] + "/"
    used = bool(literals & {identifier, family}) or any(
        identifier in path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("*.py"))
    )
    assert used, f"neither harness nor tests mention {identifier}"


def test_the_root_of_the_harness_stays_small(root: Path) -> None:
    """What belongs together lies in a package of its own."""
    modules = sorted(path.name for path in (root / "conformance/harness/tessera_conformance").glob("*.py"))
    assert "session.py" in modules
    assert len(modules) <= 25, modules
