"""Freezing: only what two independent computations agree on, always the same bytes, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.schemas import first_problem
from tessera_conformance.vectors import load
from tessera_conformance.vectors.model import DamagedFile, Unanswerable

CHECKOUT = Path(__file__).resolve().parents[2]


def test_filling_writes_lines_tensors_and_a_manifest(project: Any) -> None:
    code, said = project.fill()
    assert code == 0, said
    assert "ir/sums: 2 vectors" in said
    header, *cases = [json.loads(line) for line in project.lines.read_text(encoding="utf-8").splitlines()]
    assert header == {"format": 2, "topic": "ir/sums", "documentation": "Sums of fp32."}
    assert [case["name"] for case in cases] == ["ties", "large"]
    assert all(first_problem("tessera:vectors/lines", "case", case) is None for case in cases)
    assert cases[0]["provenance"]["reference"] == "adder 1"
    assert len(list(project.vectors.glob("ir/*.bin"))) == 3


def test_what_was_written_is_what_is_loaded(frozen: Any) -> None:
    ties, large = load("ir/sums", frozen.vectors)
    assert ties.id == "ir/sums/ties"
    assert ties.clauses == ("LANG-10-06", "LANG-02.3-61")
    assert ties.call.method == "language.execute"
    assert ties.expected[0].bits() == "3f800000" + "3f800001" + "7fc00000"
    assert large.expected[0].shape == (5000,)


def test_an_implementation_that_disagrees_freezes_nothing(project: Any) -> None:
    code, said = project.fill("Wrong")
    assert code == 1
    assert "py:fake_adder:Wrong and oracle.add disagree: element [0]: 0x3f800001, expected 0x3f800000  1 ULP" in said
    assert "ir/sums/ties" in said
    assert not project.vectors.exists()


def test_an_implementation_that_cannot_answer_freezes_nothing(project: Any) -> None:
    code, said = project.fill("Unable")
    assert (code, "does not support adding" in said) == (1, True)
    assert not project.vectors.exists()


@pytest.mark.parametrize("adapter", ["Dead", "Missing"])
def test_an_implementation_that_does_not_start_is_reported(project: Any, adapter: str) -> None:
    code, said = project.fill(adapter)
    assert (code, "error:" in said) == (2, True)


def test_filling_again_changes_nothing(frozen: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in frozen.vectors.rglob("*")}
    code, said = frozen.fill()
    assert (code, said) == (0, "ir/sums: 2 vectors, unchanged\n")
    assert {path: path.stat().st_mtime_ns for path in frozen.vectors.rglob("*")} == before


def test_changing_a_frozen_question_takes_a_reason(frozen: Any) -> None:
    before = frozen.lines.read_bytes()
    frozen.edit_source("2.0**-23", "3 * 2.0**-24")
    code, said = frozen.fill()
    assert (code, "--reason" in said, frozen.lines.read_bytes() == before) == (1, True, True)
    code, said = frozen.fill("Adder", "--reason=a tie upwards")
    assert (code, "ir/sums.jsonl" in said) == (0, True)
    ties, large = load("ir/sums", frozen.vectors)
    assert (ties.provenance.reason, large.provenance.reason) == ("a tie upwards", None)
    assert frozen("check")[0] == 0


def test_a_new_wording_takes_no_reason_and_keeps_the_provenance(frozen: Any) -> None:
    before = load("ir/sums", frozen.vectors)
    frozen.edit_source("Half a step", "Half a unit")
    assert frozen.fill()[0] == 0
    after = load("ir/sums", frozen.vectors)
    assert after[0].comment == "Half a unit above one goes to the even number."
    assert after[0].provenance == before[0].provenance


def test_only_the_named_cases_are_run(frozen: Any) -> None:
    """The adapter is wrong about every case, but only one is asked for, and it is said."""
    code, said = frozen.fill("Wrong", "ir/sums/ties")
    assert (code, "ir/sums/ties" in said, "ir/sums/large" in said) == (1, True, False)
    assert frozen.fill("Adder", "ir/nothing")[0] == 2


def test_tensors_that_nothing_names_any_more_are_removed(frozen: Any) -> None:
    frozen.edit_source("(5000,)", "(4999,)")
    assert frozen.fill("Adder", "--reason=one fewer")[0] == 0
    assert len(list(frozen.vectors.glob("ir/*.bin"))) == 3
    assert frozen("check")[0] == 0


def test_damage_is_not_filled_over(frozen: Any, flipped: Any) -> None:
    flipped(frozen.lines, 200, 1)
    damaged = frozen.lines.read_bytes()
    code, _ = frozen.fill("Adder", "--reason=why not")
    assert (code, frozen.lines.read_bytes() == damaged) == (1, True)
    with pytest.raises(DamagedFile):
        load("ir/sums", frozen.vectors)


def test_a_topic_that_is_not_there(frozen: Any) -> None:
    with pytest.raises(Unanswerable):
        load("ir/nothing", frozen.vectors)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"""More than a line can show."""', "", "no docstring"),
        ('"large"', '"ties"', "two cases are called ties"),
        ("2.0**-24", "0.1", "is not a value of fp32"),
        ("topic = Topic(__doc__)", "topic = Topic(None)", "no documented topic"),
        ("import Topic", "import Topics", "ImportError"),
    ],
)
def test_a_broken_source_is_named(project: Any, old: str, new: str, complaint: str) -> None:
    project.edit_source(old, new)
    code, said = project.fill()
    assert (code, complaint in said, "sums.py" in said) == (2, True, True), said


@pytest.mark.slow
def test_the_hash_seed_changes_no_byte(project: Any, tmp_path: Path) -> None:
    folders = []
    for seed in ("1", "2"):
        folder = tmp_path / f"seed{seed}"
        paths = [str(tmp_path), str(CHECKOUT / "conformance" / "harness"), str(CHECKOUT / "reference")]
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "tessera_conformance", "vectors", "fill", "--impl=py:fake_adder:Adder"]
        places = [f"--vectors={folder}", f"--sources={project.sources}"]
        done = subprocess.run([*command, *places], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        folders.append({path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert folders[0] == folders[1]
    assert len(folders[0]) == 5
