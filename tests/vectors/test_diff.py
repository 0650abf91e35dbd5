"""Changes are told case by case and element by element."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def old(frozen: Any, tmp_path: Path) -> Path:
    """A copy of the vectors as they were."""
    return Path(shutil.copytree(frozen.vectors, tmp_path / "old"))


def test_no_difference(frozen: Any, old: Path) -> None:
    assert frozen("diff", str(old)) == (0, "2 vectors, no differences\n")


def test_added_removed_and_changed(frozen: Any, old: Path) -> None:
    frozen.edit_source('"large"', '"huge"')
    frozen.edit_source("2.0**-23, 1]", "2.0**-22, 1]")
    assert frozen.fill("Adder", "--reason=wider")[0] == 0
    code, said = frozen("diff", str(old), str(frozen.vectors))
    assert code == 1
    assert said.splitlines()[0] == "~ ir/sums/ties"
    assert "    input B: element [1]: 0x34000000 -> 0x34800000, 8388608 ULP (1 of 3 elements differ)" in said
    assert "    expected output 0: element [1]: 0x3f800001 -> 0x3f800002, 1 ULP (1 of 3 elements differ)" in said
    assert "- ir/sums/large" in said
    assert "+ ir/sums/huge" in said


def test_a_line_edited_by_hand_can_still_be_looked_at(frozen: Any, old: Path) -> None:
    frozen.lines.write_bytes(frozen.lines.read_bytes().replace(b"7fc00000", b"7fc00001"))
    code, said = frozen("diff", str(old / "ir" / "sums.jsonl"), str(frozen.lines))
    assert (code, "NaN codes differ" in said) == (1, True)


@pytest.mark.slow
def test_against_a_git_revision(frozen: Any) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=frozen.vectors.parent, capture_output=True, check=True)

    git("init")
    git("add", "vectors")
    git("commit", "-m", "frozen")
    assert frozen("diff", "HEAD")[0] == 0
    frozen.edit_source("goes to", "moves to")
    assert frozen.fill()[0] == 0
    code, said = frozen("diff", "HEAD")
    assert (code, "comment: Half a step above one goes to" in said) == (1, True)


@pytest.mark.parametrize("place", ["nothing-there", "--version"])
def test_a_side_that_is_not_there(frozen: Any, place: str) -> None:
    code, said = frozen("diff", "--", place)
    assert (code, "folder, a vector file or a git revision" in said) == (2, True)
