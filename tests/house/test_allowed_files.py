"""The files that may stand at the root of the checkout and among the published reports."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

AT_THE_ROOT = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Containerfile",
    "LICENSE",
    "README.md",
    "action.yml",
    "benchmarks",
    "conformance",
    "docs",
    "examples",
    "pyproject.toml",
    "reference",
    "reports",
    "schemas",
    "tests",
    "tox.ini",
    "vectors",
}
AMONG_THE_REPORTS = {
    ".gitignore",
    "README.md",
    "benchmarks.txt",
    "coverage.json",
    "equivalent-mutants",
    "implementations",
    "kill-matrix.json",
    "kill-matrix.md",
    "libtessera",
    "mutants.json",
    "mutants.jsonl",
    "mutants.md",
    "probes",
    "reference",
    "spec-feedback.md",
    "variants.json",
    "variants.md",
    "vendor_c",
}
LARGEST = 4 * 2**20
"""Bytes that a committed file may have: the report of a whole run is kept compressed."""


def tracked(root: Path, folder: str = "") -> list[Path]:
    """The files that git knows under a folder, relative to it."""
    if not (root / ".git").exists():
        pytest.skip("needs a git checkout: an unpacked archive may hold what its user put there")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root / folder, capture_output=True, text=True, check=True)
    return [Path(name) for name in listed.stdout.split("\0") if name]


def test_nothing_else_stands_at_the_root(root: Path) -> None:
    assert {path.parts[0] for path in tracked(root)} <= AT_THE_ROOT


def test_nothing_else_stands_among_the_reports(root: Path) -> None:
    assert {path.parts[0] for path in tracked(root, "reports")} <= AMONG_THE_REPORTS


def test_no_file_is_as_large_as_the_report_of_a_run(root: Path) -> None:
    assert [path for path in tracked(root) if (root / path).exists() and (root / path).stat().st_size > LARGEST] == []
