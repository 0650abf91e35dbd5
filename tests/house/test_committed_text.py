"""Committed text speaks of the project alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

FOREIGN = re.compile(r"(?<![\w.])/(?:work|root|home|farm)/|/tmp/tessera-|pypi\.org|pythonhosted|deb\.debian\.org")


def tracked_files(root: Path) -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("needs a git checkout")
    return [root / name for name in listing.stdout.decode().split("\0") if name]


def test_no_machine_paths_and_no_package_hosts(root: Path) -> None:
    found = []
    for path in tracked_files(root):
        if path == Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(root)}: {match[0]}" for match in FOREIGN.finditer(text)]
    assert found == []
