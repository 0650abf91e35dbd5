"""The files of the checkout: which may exist, what they may say, and that each is used and current."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

import jsonschema
import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.commands.clauses import made_files, wrong_clauses
from tessera_conformance.interface import interface
from tessera_conformance.registry import load_registry
from tessera_conformance.schemas import schemas

# The files that may stand at the root of the checkout and among the published reports.

AT_THE_ROOT = frozenset(
    """
    .ci .gitattributes .gitignore .pre-commit-config.yaml CHANGELOG.md CONTRIBUTING.md Containerfile LICENSE
    README.md action.yml benchmarks conformance docs examples pyproject.toml reference reports schemas tests
    tox.ini vectors
    """.split()
)
AMONG_THE_REPORTS = frozenset(
    """
    .gitignore README.md benchmarks.txt coverage.json equivalent-mutants implementations kill-matrix.json members
    kill-matrix.md libtessera mutants.json mutants.jsonl mutants.md probes reference spec-feedback.md
    variants.json variants.md vendor_c
    """.split()
)
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


FOREIGN = re.compile(r"(?<![\w.])/(?:work|root|home|farm)/|/tmp/tessera-|pypi\.org|pythonhosted|deb\.debian\.org")


def test_no_machine_paths_and_no_package_hosts(root: Path) -> None:
    actual = []
    for name in tracked(root):
        path = root / name
        if path == Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        actual += [f"{name}: {match[0]}" for match in FOREIGN.finditer(text)]
    assert actual == []


# Nothing lies about unused: every test file is collected, every schema is valid and used.

TEST_FOLDERS = ("tests", "conformance/abi", "conformance/ir", "conformance/runtime", "conformance/collectives")
PASSED_OVER = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")
"""Folders into which pytest does not look, `norecursedirs`."""

DEFINITION = re.compile(r"^\s*(?:async\s+)?def\s+test_", re.MULTILINE)
"""The definition of a test, also in a text within a module; no file of another name may have one."""


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
    assert [path for path in defining for part in path.parts if any(fnmatch(part, name) for name in PASSED_OVER)] == []


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
    """Files of one subject lie in a package of their own."""
    modules = sorted(path.name for path in (root / "conformance/harness/tessera_conformance").glob("*.py"))
    assert "session.py" in modules
    assert len(modules) <= 25, modules


# What is made from the interface is current, and the interface names clauses and features that exist.


def test_what_is_made_from_the_interface_is_current(root: Path) -> None:
    stale = [str(path) for path, text in made_files(root).items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `tessera-conformance interface --write`"
    assert {path.name for path in (root / "schemas" / "protocol").iterdir()} == {
        f"{area}.schema.json" for area in interface().areas
    }


def test_every_area_stands_on_the_page(root: Path) -> None:
    page = (root / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert [area for area in interface().areas if f"<!-- interface: {area} -->\n" not in page] == []


def test_clauses_and_features_exist() -> None:
    registry = load_registry(clauses_directory())
    assert wrong_clauses(interface()) == []
    assert sorted(set(needed_features()) - set(registry.features)) == []


def test_every_method_of_a_chapter_names_a_clause() -> None:
    """Those of the session are the protocol's own; no specification has them."""
    methods = interface().methods.items()
    assert [name for name, method in methods if not method.clauses and method.area != "session"] == []


def needed_features() -> Iterator[str]:
    """The features that methods need; `{at}-ir-text` is one for each word that the parameter `at` may be."""
    levels = interface().types["ir_level"].type
    for method in interface().methods.values():
        if method.feature.startswith("{at}"):
            yield from (method.feature.replace("{at}", word) for word in levels["enum"])
        elif method.feature:
            yield method.feature


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments"), [("ruff", ["check"]), ("ruff", ["format", "--check"]), ("mypy", [])], ids=str
)
def test_the_tool_is_content(root: Path, tool: str, arguments: list[str]) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"needs {tool}: pip install -e '.[lint]'")
    done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
