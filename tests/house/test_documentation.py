"""The documentation builds without warnings, its commands exist, and its example adapter works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tessera_conformance.observations import Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports.rpc import RpcTransport


@pytest.mark.slow
def test_the_site_builds_without_warnings(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="pip install -e '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    done = subprocess.run([*command, "docs", str(tmp_path / "site")], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "protocol.html").exists()


@pytest.mark.slow
def test_every_command_that_the_documentation_names_exists(root: Path) -> None:
    """`tessera-conformance WORD` and `clauses WORD` in code spans are commands that answer --help."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    commands = set(re.findall(r"tessera-conformance ([a-z-]+)", text)) - {"path"}
    assert {"run", "report", "compare", "reproduce", "clauses", "strength", "serve"} <= commands
    for command in sorted(commands):
        done = subprocess.run(
            [sys.executable, "-m", "tessera_conformance", command, "--help"], capture_output=True, text=True
        )
        assert (command, done.returncode) == (command, 0)


def test_the_example_adapter_speaks_the_protocol(root: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js: apt-get install nodejs")
    session = Session(RpcTransport(f"{node} {root / 'examples' / 'adapters' / 'minimal.mjs'}"))
    try:
        assert session.call("language.parse", {"source": " "}) == Returned({"modules": []})
        assert session.call("language.parse", {"source": "module m {}"}) == Unsupported("language.module")
        assert session.call("language.verify", {"source": ""}) == Unsupported("language.verify")
        assert session.reset() is None
    finally:
        session.close()


def test_continuous_integration_runs_the_command_of_the_readme(root: Path) -> None:
    commands = re.findall(r"```sh\n(python3 -m venv .*)\n```", (root / "README.md").read_text(encoding="utf-8"))
    assert len(commands) == 2
    assert (root / ".ci" / "run").read_text(encoding="utf-8").rstrip().splitlines()[-1] == commands[1]
