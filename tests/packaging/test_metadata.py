"""The metadata of the package: which Pythons install it, and which ones it is tested with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = ["3.11", "3.12", "3.13"]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    metadata: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return metadata


def test_no_later_python_is_shut_out(project: dict[str, Any]) -> None:
    assert project["requires-python"] == ">=3.11"


def test_the_tested_pythons_are_named_alike_everywhere(project: dict[str, Any]) -> None:
    classifiers = re.findall(r"Python :: (3\.\d+)", str(project["classifiers"]))
    env_list = re.search(r"env_list = (.*)", (ROOT / "tox.ini").read_text(encoding="utf-8"))
    environments = re.findall(r"py3(\d+)", env_list[1] if env_list else "")
    assert classifiers == TESTED
    assert [f"3.{minor}" for minor in environments] == TESTED
    for page in ("README.md", "CONTRIBUTING.md"):
        assert f"Python {', '.join(TESTED[:-1])} or {TESTED[-1]}" in (ROOT / page).read_text(encoding="utf-8")


def test_the_whole_installation_is_named_alike_everywhere(project: dict[str, Any]) -> None:
    """The commands that install what the tests use have the same extras, all of which exist."""
    pages = (".ci/run", "README.md", "CONTRIBUTING.md")
    named = [re.findall(r"-e '\.\[(test,[\w,-]+)\]'", (ROOT / page).read_text(encoding="utf-8")) for page in pages]
    assert named == [named[0]] * len(pages)
    assert len(named[0]) == 1
    assert set(named[0][0].split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("extra", ["cabi", "completion", "dask", "host-io", "lsp"])
def test_the_tests_have_the_packages_of_small_extras(project: dict[str, Any], extra: str) -> None:
    """The extra `test` has them in the same versions, so that no test of theirs skips."""
    extras = project["optional-dependencies"]
    assert set(extras[extra]) <= set(extras["test"])
