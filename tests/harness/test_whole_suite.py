"""The real suite and the reference: the same verdicts and the same answers through every transport and order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.reports.journal import read, without_run
from tessera_conformance.strength.violation import load_violations

ROOT = Path(__file__).resolve().parents[2]
SERVED = f"rpc:{sys.executable} -m tessera_reference.cli serve"

PUBLISHED = ROOT / "reports" / "kill-matrix.json"

EVERY_FILE, EVERY_VIOLATION = 12, 48
"""Of so many files of a chapter, and of so many violators and variants, one is tried."""

CHAPTERS = [ROOT / "conformance" / name for name in ("abi", "collectives", "ir", "runtime")]

pytestmark = pytest.mark.slow


def observations(directory: Path, *options: str) -> list[str]:
    """The observation lines of a run over a part of the suite, without what may differ between runs."""
    paths = [ROOT / "conformance" / "harness", ROOT / "reference", Path(__file__).parent / "fakes"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--report-dir={directory}"]
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    report = read(directory / "report.jsonl")
    assert (report.problem, report.claim) == (None, "partial")  # a part of the suite, and nothing failed
    return [json.dumps(without_run(line)) for line in report.observations]


def test_direct_rpc_xdist_and_reversed_order_agree(tmp_path: Path, every: Callable[[int], int]) -> None:
    """What was sent, what came back, what was checked, verdicts and dispositions: all of it, case by case."""
    pytest.importorskip("xdist", reason="pip install pytest-xdist")
    files = [sorted(chapter.rglob("test_*.py"))[:: every(EVERY_FILE)] for chapter in CHAPTERS]
    part = ["--shard=1/8", *(str(path) for chapter in files for path in chapter)]
    served = observations(tmp_path / "rpc", f"--impl={SERVED}", *part)
    assert len(served) > 150
    assert {json.loads(line)["case"].partition("/")[0] for line in served} == {each.name for each in CHAPTERS}
    assert observations(tmp_path / "direct", "--impl=reference", "-n2", "-p", "reversed_order", *part) == served


def verdicts_at(level: str, directory: Path, implementation: str) -> dict[str, str]:
    """The verdict of each product, judged by its bound or its declared order."""
    fakes = str(Path(__file__).parent / "fakes")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--impl={implementation}"]
    environment = {**os.environ, "PYTHONPATH": fakes}
    command += [f"--level={level}", f"--report-dir={directory}", "--case=ir/matmul/golden/*"]
    command.append("conformance/ir/test_matmul.py")
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    report = read(directory / "report.jsonl")
    assert report.claim in ("partial", "failure")
    return {line["case"]: line["verdict"] for line in report.observations}


@pytest.mark.parametrize("level", ["deterministic", "fast"])
def test_products_are_judged_below_strict(tmp_path: Path, level: str) -> None:
    """The reference passes every judgement; products that are half as large again do not."""
    sound = verdicts_at(level, tmp_path / "sound", "reference")
    assert len(sound) > 100
    assert set(sound.values()) == {"pass"}
    careless = verdicts_at(level, tmp_path / "careless", "py:careless_products:CarelessProducts")
    wrong = {case for case, verdict in careless.items() if verdict == "fail"}
    assert len([case for case in wrong if "/fp32/" in case]) > 10


def test_every_violation_is_killed(tmp_path: Path, every: Callable[[int], int]) -> None:
    """`tessera-conformance strength` on a sample of the violators and variants of the project, or all with `--whole`.

    What caught a violator last time is tried first.
    """
    parts = every(EVERY_VIOLATION)
    command = [sys.executable, "-m", "tessera_conformance", "strength", f"--output={tmp_path}", f"--shard=1/{parts}"]
    done = subprocess.run([*command, f"--known={PUBLISHED}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    matrix = json.loads((tmp_path / "kill-matrix.json").read_text())
    assert matrix["control_failures"] == []
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert len(matrix["violators"]) > len(load_violations()) / parts / 2
    assert "Clauses of level MUST that have cases and no violator: none." in (tmp_path / "kill-matrix.md").read_text()


def test_the_published_matrix_has_every_violator(tmp_path: Path) -> None:
    """All were killed when it was made: whoever writes a violator makes it again."""
    matrix = json.loads(PUBLISHED.read_text())
    assert {row["fate"] for row in matrix["violators"]} == {"killed"}
    assert {row["name"] for row in matrix["violators"]} == {each.name for each in load_violations() if not each.missing}
