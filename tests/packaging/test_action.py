"""The action and the image: their steps run as they stand, and name what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.reports.journal import read

ROOT = Path(__file__).resolve().parents[2]
SMALL = "--case=ir/elementwise/golden/fp32/add/edges --case=ir/elementwise/golden/fp32/multiply/edges"


@pytest.fixture(scope="module")
def action() -> Mapping[str, Any]:
    yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
    return dict(yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8")))


def step(action: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    (found,) = [step for step in action["runs"]["steps"] if step["name"] == name]
    return found


def judged(action: Mapping[str, Any], folder: Path, impl: str, arguments: str) -> tuple[int, str, str]:
    """The exit code of the step that judges, with the step summary and the outputs that it wrote."""
    made = step(action, "Judge the implementation")
    given = {"inputs.impl": impl, "inputs.arguments": arguments, "inputs.report-dir": "out"}
    variables = {name: given[value.strip("${ }")] for name, value in made["env"].items()}
    summary, outputs = folder / "summary", folder / "outputs"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", made["run"]],  # as GitHub runs `shell: bash`
        cwd=folder,
        env={
            **os.environ,
            **variables,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, summary.read_text(encoding="utf-8"), outputs.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_that_passes_shows_its_summary(action: Mapping[str, Any], tmp_path: Path) -> None:
    code, summary, outputs = judged(action, tmp_path, "reference", SMALL.replace(" ", "\n"))
    assert (code, outputs) == (0, "exit-code=0\n")
    assert summary == (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert len(read(tmp_path / "out" / "report.jsonl").observations) == 2


@pytest.mark.slow
def test_a_run_that_cannot_be_made_fails_the_step_and_says_so(action: Mapping[str, Any], tmp_path: Path) -> None:
    code, summary, outputs = judged(action, tmp_path, "rpc:./no-such-adapter", SMALL)
    assert code == 2 and outputs == "exit-code=2\n"
    assert "exit code 2" in summary


def test_every_input_is_used_and_every_one_used_is_declared(action: Mapping[str, Any]) -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    page = (ROOT / "docs" / "continuous_integration.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == list(action["inputs"])
    assert step(action, "Keep the report")["if"].startswith("${{ always()")


def test_no_input_stands_in_a_script(action: Mapping[str, Any]) -> None:
    """A text of a caller would be run as code there; scripts read it from variables."""
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert [script for script in scripts if "${{" in script] == []


def instructions() -> Sequence[Sequence[str]]:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_copies_what_a_wheel_is_made_of() -> None:
    copied = [word for name, words in instructions() if name == "COPY" for word in words.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    made_of = re.findall(r'^"([\w]+)[/\w.]*" = "tessera_conformance/suite', (ROOT / "pyproject.toml").read_text(), re.M)
    assert {*made_of, "reference", "pyproject.toml", "README.md", "LICENSE"} == set(copied)


def test_the_image_has_a_tested_python_and_known_extras() -> None:
    (base,) = [words for name, words in instructions() if name == "FROM"]
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"Python :: {base.partition('python:')[2].removesuffix('-slim')}" in metadata
    (extras,) = re.findall(r"/source\[([\w,]+)\]", str(instructions()))
    assert all(f"\n{extra} = [" in metadata for extra in extras.split(","))


@pytest.mark.slow
def test_the_image_builds_and_answers() -> None:
    engine = shutil.which("podman") or shutil.which("docker")
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("no engine of containers answers: apt-get install podman")
    name = "tessera-conformance-of-a-test"
    subprocess.run([engine, "build", "-q", "-t", name, "-f", "Containerfile", "."], cwd=ROOT, check=True, timeout=1800)
    told = subprocess.run([engine, "run", "--rm", name], capture_output=True, text=True, check=True, timeout=120)
    assert "judge it:" in told.stdout
