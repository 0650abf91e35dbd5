"""Nothing lies about unused: every test file is collected, every schema is valid and used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from tessera_conformance.schemas import schemas

TEST_FOLDERS = ("tests", "conformance/abi", "conformance/ir", "conformance/runtime", "conformance/collectives")


@pytest.mark.slow
def test_every_test_file_is_collected(root: Path) -> None:
    """A file that defines tests is named and placed so that pytest finds them."""
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "--slow", "-p", "no:cacheprovider"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    collected = {line.partition(":")[0] for line in listing.splitlines()}
    defining = {
        str(path.relative_to(root))
        for folder in TEST_FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        if "sample_suite" not in path.parts  # run as a suite of its own by the tests of the harness
        if any(
            isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert defining
    assert sorted(defining - collected) == []


@pytest.mark.slow
@pytest.mark.parametrize("identifier", sorted(schemas()))
def test_every_schema_is_valid_and_used(identifier: str, modules: Mapping[str, ast.Module], root: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas()[identifier])
    literals = {
        node.value
        for name, tree in modules.items()
        if name.startswith("tessera_conformance")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    family = identifier.rpartition("/")[0] + "/"
    tested = any(identifier in path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("*.py")))
    assert literals & {identifier, family} or tested, f"neither harness nor tests mention {identifier}"
