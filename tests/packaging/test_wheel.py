"""The package: its metadata, and its wheel, which works in an empty environment and an empty directory."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance import cases as locations
from tessera_conformance.reports.journal import read

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
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages]
    named = [set(re.findall(r"-e '\.\[(test,[\w,-]+)\]'", text)) for text in texts]
    assert named == [named[0]] * len(pages)
    (extras,) = named[0]
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("extra", ["cabi", "completion", "dask", "host-io", "lsp"])
def test_the_tests_have_the_packages_of_small_extras(project: dict[str, Any], extra: str) -> None:
    """The extra `test` has them in the same versions, so that no test of theirs skips."""
    extras = project["optional-dependencies"]
    assert set(extras[extra]) <= set(extras["test"])


# The wheel works outside a checkout: in an empty environment and an empty directory.

ADAPTER = '''
from tessera_conformance.adapter import NotSupported


class Nothing:
    """Claims the language and has none of it."""

    def hello(self):
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "nothing", "version": "0"},
            "documents": ["language_ir"],
        }

    def language_parse(self, *, source):
        raise NotSupported("language.parse")


make = Nothing
'''


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment in which nothing but the wheel is installed."""
    pytest.importorskip("build", reason="pip install build hatchling")
    pytest.importorskip("pip", reason="python -m ensurepip")
    dist = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = dist.glob("*.whl")
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False)
    scripts = environment / "bin"
    install = ["-m", "pip", "--python", str(scripts / "python"), "install", "-q", "--no-compile", str(wheel)]
    subprocess.run([sys.executable, *install], check=True, capture_output=True, text=True)
    return scripts


SAMPLE = ("abi/test_dtype_ids.py", "collectives/test_all_reduce.py", "ir/test_elementwise.py", "runtime/test_copies.py")


def run(
    scripts: Path, directory: Path, *arguments: str, program: str = "tessera-conformance"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [scripts / program, *arguments],
        cwd=directory,
        env={"PATH": f"{scripts}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_reference_passes(scripts: Path, tmp_path: Path) -> None:
    """A sample of the suite, from a file of each of its four chapters; that all files come along is tested below."""
    done = run(scripts, tmp_path, "run", "--impl=reference", *SAMPLE, "--shard=1/4")
    assert done.returncode == 0, done.stdout + done.stderr
    report = read(tmp_path / "report" / "report.jsonl")
    assert report.claim == "partial"  # of a shard, and nothing failed
    assert len(report.observations) > 50
    assert {line["case"].partition("/")[0] for line in report.observations} == set(locations.CHAPTERS)


@pytest.mark.slow
def test_an_adapter_in_the_working_directory_is_found(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "my_adapter.py").write_text(ADAPTER)
    done = run(scripts, tmp_path, "run", "--impl=py:my_adapter:make", "ir/test_matmul.py", "ir/test_types.py")
    assert done.returncode == 1, done.stdout + done.stderr
    verdicts = {line["verdict"] for line in read(tmp_path / "report" / "report.jsonl").observations}
    assert verdicts <= {"fail", "unsupported", "inapplicable"}


@pytest.mark.slow
def test_an_adapter_that_is_not_there_is_a_clear_error(scripts: Path, tmp_path: Path) -> None:
    done = run(scripts, tmp_path, "run", "--impl=py:my_adapter:make", "--shard=1/64")
    assert done.returncode == 2
    assert "error: py:my_adapter:make: there is no module my_adapter, here or on PYTHONPATH; run `python" in done.stderr


@pytest.mark.slow
def test_the_registry_comes_along(scripts: Path, tmp_path: Path) -> None:
    done = run(scripts, tmp_path, "clauses", "check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_file_of_the_suite_and_the_vectors_comes_along(scripts: Path) -> None:
    """The files are those of the checkout, so that their contents are judged there."""
    (suite,) = scripts.parent.glob("lib/python*/site-packages/tessera_conformance/suite")
    folders = [ROOT / "conformance" / name for name in (*locations.CHAPTERS, "clauses")]
    for folder in (*folders, ROOT / "schemas", ROOT / "vectors"):
        files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        copies = [suite / folder.name / path.relative_to(folder) for path in files]
        assert [copy for copy in copies if not copy.is_file()] == []


@pytest.mark.slow
def test_the_index_of_cases_comes_along(scripts: Path, tmp_path: Path) -> None:
    """It is of the suite as it lies in the wheel: the first question does not collect the suite."""
    code = (
        "from tessera_conformance.cases import suite_directory\n"
        "from tessera_conformance.registry.cases import SHIPPED, digest_of_contents, read_index\n"
        "print(len(read_index(suite_directory() / SHIPPED, digest_of_contents()) or ()))"
    )
    done = run(scripts, tmp_path, "-I", "-c", code, program="python")
    assert int(done.stdout) > 10_000, done.stderr


@pytest.mark.slow
def test_a_part_of_the_suite_runs_by_its_place(scripts: Path, tmp_path: Path) -> None:
    done = run(scripts, tmp_path, "run", "--impl=reference", "abi/test_dtype_ids.py", "--case=abi/dtype-ids/*")
    assert done.returncode == 0, done.stdout + done.stderr
    cases = {line["case"] for line in read(tmp_path / "report" / "report.jsonl").observations}
    assert cases and all(case.startswith("abi/dtype-ids/") for case in cases)


@pytest.mark.slow
def test_no_package_is_called_tessera(scripts: Path, tmp_path: Path) -> None:
    """The name `tessera` belongs to the vendors' own binding."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tessera') is not None)"
    assert subprocess.run([scripts / "python", "-c", code], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.slow
def test_the_skeletons_come_along(scripts: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from tessera_conformance.commands.adapters import KINDS, LANGUAGES, skeleton\n"
        "for language in LANGUAGES:\n"
        "    for kind in KINDS:\n"
        "        skeleton(language, kind, Path(language, kind)).write()\n"
    )
    done = run(scripts, tmp_path, "-c", code, program="python")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c" / "runtime" / "tessera.h").is_file()
    assert (tmp_path / "rust" / "operations" / "protocol.rs").is_file()
