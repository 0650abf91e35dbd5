"""Pages work for a newcomer: what a page installs, in an environment of its own, then its shell blocks in order.

The checkout is the placeholder of the pages, and stand-ins make the library or the endpoint that a reader has.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from .test_code_blocks import BLOCKS, PAGES, ROOT
from .test_documentation import run_block

PLACEHOLDER = "path/to/this/checkout"
INSTALL = re.compile(rf"pip install '?{PLACEHOLDER}(?:\[([\w,-]+)\])?'?(?=\n|`)")
NOT_RUN = {
    "README-2": "all tests of the project, with these; `.ci/run` has the same command",
    "README-4": "a whole run of the reader's program",
    "README-5": "a whole run of the reader's library, with the reader's compiler",
    "CONTRIBUTING-1": "the installation of README-2, and hooks in the reader's clone",
    "cabi-1": "a whole run of the reader's library, with the reader's compiler",
    "continuous_integration-2": "podman builds an image",
    "editors-2": "an extension for VS Code, with packages of npm",
    "many_machines-2": "servers on two nodes",
    "many_machines-3": "a cluster on two nodes",
    "reports-1": "a program that `reproduce` writes for a failure of the reader's library",
}
"""Shell blocks that no test can run, with the reason."""

ENDPOINT = """
tessera-reference host-io serve --{0} --description acme.json >'{0}' &
until grep -q listening '{0}'; do sleep 0.1; done
python -c 'import json
for name, value in json.load(open("acme.json")).items():
    print(name, "=", json.dumps(value).replace(": ", "="))' >acme.toml
"""
STAND_INS = {
    "README-6": ENDPOINT.format("unix acme.sock"),
    "c_library-2": f"cp {PLACEHOLDER}/tests/c_library/programs/section_18.c program.c\n",
    "start_endpoint-1": ENDPOINT.format("unix acme.sock") + ENDPOINT.format("tcp 127.0.0.1:4711"),
    "start_runtime-1": "tessera-reference build-c-library --output build\ncp build/lib/lib*.so build/libacme.so\n",
}
"""Commands that make what the reader has, by block."""

SHELL = [name for name, (language, _) in BLOCKS.items() if language == "sh" and name not in NOT_RUN]


def test_the_tables_name_shell_blocks() -> None:
    assert STAND_INS.keys() <= {*SHELL}
    assert {BLOCKS[name][0] for name in NOT_RUN} == {"sh"}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Make an environment with this checkout and its extras, shared by pages; return its scripts."""

    @cache
    def install(extras: str) -> Path:
        scripts = tmp_path_factory.mktemp("environment") / "bin"
        command = f"{sys.executable} -m venv {scripts.parent} && {scripts}/pip install -q '{PLACEHOLDER}{extras}'"
        done = run_block(command.replace(PLACEHOLDER, str(ROOT)), ROOT, newcomer(scripts))
        assert done.returncode == 0, done.stdout + done.stderr
        return scripts

    return install


def newcomer(scripts: Path) -> dict[str, str]:
    """Return the environment variables of a shell that knows nothing of the one that runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL"))}
    path = [folder for folder in kept["PATH"].split(os.pathsep) if folder != str(Path(sys.executable).parent)]
    return kept | {"PIP_COMPILE": "0", "PATH": os.pathsep.join([str(scripts), *path])}


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("page", dict.fromkeys(name.rpartition("-")[0] for name in SHELL))
def test_the_commands_of_a_page_run(page: str, scripts: Callable[[str], Path], tmp_path: Path) -> None:
    """Blocks share a folder and exported variables, but in `first-hour`, which promises that each runs alone."""
    (text,) = (path.read_text(encoding="utf-8") for path in PAGES if path.stem == page)
    assert INSTALL.search(text), f"the page installs nothing: name pip install {PLACEHOLDER}"
    environment = newcomer(scripts("".join(f"[{extras}]" for extras in {*INSTALL.findall(text)} - {""})))
    exported = tmp_path / "exported"
    exported.touch()
    for name in (name for name in SHELL if name.startswith(f"{page}-")):
        folder = tmp_path / (name if page in ("first-hour", "README") else page)
        folder.mkdir(exist_ok=True)
        made = f"git clone -q {ROOT} .\n" if name == "README-1" else STAND_INS.get(name, "")
        commands = made + re.sub(r"^pip install .*\n", "", BLOCKS[name][1], flags=re.MULTILINE)
        script = f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n. {exported}\n{commands}\nexport -p >{exported}\n"
        done = run_block(script.replace(PLACEHOLDER, str(ROOT)), folder, environment)
        assert done.returncode == 0, f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
