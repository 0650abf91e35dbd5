"""ruff and mypy --strict have nothing to say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("tool", "arguments"), [("ruff", ["check"]), ("ruff", ["format", "--check"]), ("mypy", [])], ids=str
)
def test_the_tool_is_content(root: Path, tool: str, arguments: list[str]) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"needs {tool}: pip install -e '.[lint]'")
    done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
