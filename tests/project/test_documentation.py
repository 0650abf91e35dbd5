"""The documentation builds and is linked, its commands run, and what it names exists."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tessera_conformance.cases import chapter_files, clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.commands.adapters import KINDS, LANGUAGES, skeleton
from tessera_conformance.commands.clauses import core_methods
from tessera_conformance.interface import interface
from tessera_conformance.protocol import Returned, Unsupported
from tessera_conformance.registry import load_registry
from tessera_conformance.reports.journal import read
from tessera_conformance.session import Session
from tessera_conformance.transports.rpc import RpcTransport
from tessera_reference.runtime import Runtime
from tessera_reference.schedule.lowering import DIRECTIVES
from tessera_reference.wsp.kernels import INSTRUCTIONS
from tessera_reference.wsp.statements import ARITY, STATEMENTS


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
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert (command, end.value.code) == (command, 0)


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


# The page about the architecture names files that exist, and its picture is what its script draws.

PLACES = ("", "conformance/harness/tessera_conformance", "reference/tessera_reference")
"""The folders to which the paths of a page are relative."""

SHAPES = re.compile(r"`([\w./]+\.(?:py|toml|md|jsonl|xml))`")
"""A file in a code span."""

MADE = {"report.jsonl", "junit.xml", "conformance/abi/host_io/interface.toml"}
"""Files that a run makes, and those of a trial."""


@pytest.mark.parametrize(("page", "fewest"), [("docs/architecture.md", 30), ("CONTRIBUTING.md", 1)])
def test_every_file_that_the_page_names_exists(root: Path, page: str, fewest: int) -> None:
    named = set(SHAPES.findall((root / page).read_text(encoding="utf-8"))) - MADE
    assert len(named) >= fewest
    in_a_chapter = ("README.md", "interface.toml")
    places = [root / place for place in PLACES] + [root / "conformance" / "runtime"]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert sorted(set(missing) - set(in_a_chapter)) == []


def test_the_picture_is_current(root: Path) -> None:
    script = runpy.run_path(str(root / "docs" / "draw_architecture.py"))
    written = (root / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")
    assert written == script["picture"](), "run `python docs/draw_architecture.py`"


def test_every_package_of_the_reference_is_described(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    chapter_files = [
        path.parent.name for path in sorted((root / "reference" / "tessera_reference").glob("*/__init__.py"))
    ]
    assert [room for room in chapter_files if f"`{room}`" not in page] == []


def grammar_statements(root: Path) -> set[str]:
    """The keywords that begin a statement in the grammar of the language."""
    grammar = (root / "reference" / "tessera_reference" / "language" / "grammar.lark").read_text(encoding="utf-8")
    return set(re.findall(r'^(?:\w+_stmt|var_decl)\s*: "(\w+)"', grammar, re.MULTILINE))


def test_the_page_of_wsp_lists_statements_operators_and_instructions(root: Path) -> None:
    page = (root / "docs" / "wsp.md").read_text(encoding="utf-8")
    assert [name for name in (*STATEMENTS, *ARITY, *INSTRUCTIONS) if f"`{name}`" not in page] == []


def test_the_page_of_the_language_lists_statements_and_directives(root: Path) -> None:
    page = (root / "docs" / "language.md").read_text(encoding="utf-8")
    statements = grammar_statements(root)
    assert {"let", "if", "for", "return"} <= statements
    names = sorted(statements | {*DIRECTIVES, "schedule.layout_cast"})
    assert [name for name in names if not re.search(rf"^\| `{re.escape(name)}\b", page, re.MULTILINE)] == []


def test_the_page_of_the_runtime_lists_every_function(root: Path) -> None:
    page = (root / "docs" / "runtime.md").read_text(encoding="utf-8")
    names = [name for name in dir(Runtime) if name.startswith("tess")]
    assert len(names) >= 29
    assert [name for name in names if f"`{name}`" not in page] == []


NAMED = ("test_*.py", "kit/**/*.py", "vector_sources/*.py", "rejections/*.toml")
FILE_NAME = re.compile(r"`([\w*/]+\.(?:py|toml))`")
"""A file, or a glob, in backticks; files of other chapter_files are linked instead."""

CHAPTERS = chapter_files("interface.toml")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_readme_of_a_chapter_names_its_files(root: Path, chapter: str) -> None:
    """Every test file, kit module, vector source and table is named, or matches a glob; every name has a file."""
    folder = root / "conformance" / chapter
    patterns = FILE_NAME.findall((folder / "README.md").read_text(encoding="utf-8"))
    named = {pattern: set(folder.glob(pattern)) for pattern in patterns}
    assert [pattern for pattern, paths in named.items() if not paths] == []
    files = {path for glob in NAMED for path in folder.rglob(glob) if path.name != "__init__.py"}
    within = [root / "conformance" / other for other in CHAPTERS if other.startswith(f"{chapter}/")]
    files = {path for path in files if "violators" not in path.parts and not {*within} & {*path.parents}}
    assert sorted(str(path.relative_to(folder)) for path in files - set().union(*named.values())) == []


# The page of the first hour: each of its blocks of commands runs as it stands and ends in a report.

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PACKAGES = {"gcc": "gcc", "g++": "g++", "rustc": "rustc", "go": "golang-go", "node": "nodejs", "pkg-config": "pkgconf"}


def name_of(block: str) -> str:
    match = re.search(r"--kind=(\w+) --language=(\w+)", block)
    return f"{match[1]}-{match[2]}{'-later' if 'bundle' in block else ''}" if match else "reference"


def run_block(block: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run commands in a folder, or skip the test and say what to install if they start a program that is not there."""
    for program, package in PACKAGES.items():
        if re.search(rf"(^|[: ]){re.escape(program)} ", block, re.MULTILINE) and shutil.which(program) is None:
            pytest.skip(f"{program} is not there: apt-get install {package}")
    command = ["timeout", "--kill-after=10", "1800", "bash", "-euc", block]
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_a_block_runs_and_ends_in_a_report(block: str, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = run_block(block, tmp_path, {**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    report = read(tmp_path / "report" / "report.jsonl")
    passed = [line["case"] for line in report.observations if line["verdict"] == "pass"]
    assert report.claim == "partial" and passed, done.stdout


def test_the_page_has_every_language_and_every_vendor() -> None:
    made = [found for block in BLOCKS for found in re.findall(r"--kind=(\w+) --language=(\w+)", block)]
    assert {language for _, language in made} == set(LANGUAGES)
    assert {kind for kind, _ in made} == set(KINDS) - {"collectives"}


def test_the_commands_of_the_page_are_those_that_the_skeletons_name() -> None:
    """The build and the arguments of `run`; a block may write quotes where the shell needs none."""
    for block in BLOCKS:
        made = re.search(r"--kind=(\w+) --language=(\w+)", block)
        if made is None or "bundle" in block:
            continue
        told = skeleton(made[2], made[1])
        words = block.replace('"', "").replace("'", "")
        assert told.build in words
        assert f"run --impl={told.impl} {' '.join(told.first)}" in words


def test_the_core_methods_are_those_without_a_feature() -> None:
    methods = core_methods(interface(), load_registry(clauses_directory()))
    assert {"language.parse", "language.verify"} <= set(methods["language_ir"])
    assert {"tessInit", "tessMemcpyAsync", "tessModuleLoad"} <= set(methods["runtime_abi"])
    assert not {"numerics.evaluate", "tessxPeek", "language.execute", "abi.compile", "abi.parameter_layout"} & {
        name for names in methods.values() for name in names
    }
