"""Known deviations made from a report: few patterns, which match what fails and nothing else."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.deviations import Deviations
from tessera_conformance.reports.journal import JournalWriter, Report, read
from tessera_conformance.reports.known_failures import NoBaseline, as_toml, baseline

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "harness" / "fakes"
DAY = datetime.date(2027, 1, 31)

CASES = {
    "ir/matmul/fp32/k-13": ("fail", ["A", "M"]),
    "ir/matmul/bf16/k-13": ("fail", ["B", "M"]),
    "ir/matmul/bf16/small": ("pass", ["B", "M"]),
    "ir/matmul/fp32/small": ("pass", ["A", "M"]),
    "ir/fft/fp32/small": ("crash", ["F"]),
    "ir/fft/fp32/large": ("crash", ["F"]),
    "ir/fft/fp64/small": ("hang", ["F"]),
    "ir/types/one": ("fail", ["T"]),
    "ir/types/two": ("fail", ["T"]),
    "ir/types/three": ("pass", ["U"]),
    "ir/scopes/inner": ("fail", ["S"]),
    "ir/scopes/outer": ("pass", ["S"]),
    "runtime/later": ("unsupported", ["R"]),
}


def report_of(
    tmp_path: Path, cases: Mapping[str, tuple[str, Sequence[str]]], deviations: Deviations | None = None
) -> Report:
    """A sealed report in which each case came to its verdict."""
    known = deviations or Deviations()
    writer = JournalWriter(tmp_path / "report.jsonl")
    selection = {"profile": "extended", "level": "strict", "shard": None, "complete": True, "today": None}
    told = [{**vars(entry), "expires": entry.expires.isoformat()} for entry in known.entries]
    who: dict[str, Any] = {"label": "py:acme", "hello": None, "fault": None}
    registry = {"clauses": 1, "sha256": ""}
    head = {"harness": "h", "registry": registry, "implementation": who, "run": {}}
    writer.header({**head, "selection": {**selection, "deviations": told}})
    writer.plan(cases)
    for case, (verdict, clauses) in cases.items():
        disposition, _ = known.disposition(case, clauses, verdict)
        line = {"case": case, "title": "", "clauses": clauses, "levels": ["strict"], "verdict": verdict}
        line |= {"disposition": disposition, "reason": f"{verdict} of {case}", "checks": [], "exchanges": [], "run": {}}
        writer.observation(line)
    return writer.finish([], {})


def written(tmp_path: Path, text: str) -> Deviations:
    path = tmp_path / "known.toml"
    path.write_text(text)
    return Deviations.read(path)


def test_what_fails_is_grouped_by_what_its_ids_and_clauses_share(tmp_path: Path) -> None:
    entries = baseline(report_of(tmp_path, CASES), {}, "numerics", DAY)
    assert [(entry.cases, entry.clause) for entry in entries] == [
        ("ir/fft/*", None),
        ("ir/matmul/*/k-13", None),
        ("ir/scopes/inner", None),
        ("ir/types/*", "T"),
    ]
    assert entries[0].reason == "crash: crash of ir/fft/fp32/large (3 cases)"
    assert {(entry.mode, entry.owner, entry.expires) for entry in entries} == {("must_fail", "numerics", DAY)}


def test_the_file_turns_green_and_ratchets(tmp_path: Path) -> None:
    deviations = written(tmp_path, as_toml(baseline(report_of(tmp_path, CASES), {}, "numerics", DAY), "acme"))
    assert report_of(tmp_path, CASES, deviations).claim == "success"
    for case, (verdict, clauses) in CASES.items():
        if verdict in ("fail", "crash", "hang"):
            mended = report_of(tmp_path, {**CASES, case: ("pass", clauses)}, deviations)
            assert (mended.claim, [line["case"] for line in mended.failures]) == ("failure", [case])


def test_a_pattern_matches_no_case_that_the_run_left_out(tmp_path: Path) -> None:
    others = {"ir/fft/bf16/small": ["F"], "ir/types/four": ["T"]}
    entries = baseline(report_of(tmp_path, CASES), others, "numerics", DAY)
    assert not [(entry, case) for case, clauses in others.items() for entry in entries if entry.matches(case, clauses)]
    failing = {case: clauses for case, (verdict, clauses) in CASES.items() if verdict in ("fail", "crash", "hang")}
    assert all(any(entry.matches(case, clauses) for entry in entries) for case, clauses in failing.items())


def test_entries_that_still_hold_are_kept_and_others_made_anew(tmp_path: Path) -> None:
    earlier = written(
        tmp_path,
        """
        [[deviation]]
        cases = "ir/fft/*"
        mode = "may_fail"
        reason = "no unit yet"
        owner = "fft team"
        expires = 2027-06-01

        [[deviation]]
        cases = "ir/matmul/*"
        mode = "must_fail"
        reason = "everything is wrong"
        owner = "matmul team"
        expires = 2027-06-01
        """,
    )
    entries = baseline(report_of(tmp_path, CASES, earlier), {}, "numerics", DAY)
    assert [(entry.cases, entry.owner) for entry in entries] == [
        ("ir/fft/*", "fft team"),
        ("ir/matmul/*/k-13", "numerics"),
        ("ir/scopes/inner", "numerics"),
        ("ir/types/*", "numerics"),
    ]


def test_nothing_failing_gives_an_empty_file(tmp_path: Path) -> None:
    text = as_toml(baseline(report_of(tmp_path, {"ir/a": ("pass", ["A"])}), {}, "numerics", DAY), "acme")
    assert tomllib.loads(text) == {"deviation": []}
    assert written(tmp_path, text).entries == ()


@pytest.mark.parametrize("verdict", ["not_run", "harness_error"])
def test_what_is_no_fault_of_the_implementation_is_not_excused(tmp_path: Path, verdict: str) -> None:
    with pytest.raises(NoBaseline, match=f"ir/a: {verdict.replace('_', ' ')}"):
        baseline(report_of(tmp_path, {"ir/a": (verdict, ["A"]), "ir/b": ("pass", ["A"])}), {}, "numerics", DAY)


def test_an_edited_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report_of(tmp_path, CASES).path
    path.write_text(path.read_text().replace('"verdict":"pass"', '"verdict":"fail"', 1))
    assert main(["deviations", "write", str(path), f"--output={tmp_path / 'known.toml'}", "--owner=numerics"]) == 2
    assert "not a valid report" in capsys.readouterr().err
    assert not (tmp_path / "known.toml").exists()


def test_a_run_is_green_until_the_defect_is_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report of products that are too large, its deviations, the same again, and the same without the defect."""

    def run(implementation: str, *options: str) -> tuple[int, Report]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "conformance/ir/test_matmul.py"]
        arguments = [
            *command,
            "-k",
            "golden and fp32",
            f"--impl={implementation}",
            f"--report-dir={tmp_path}",
            *options,
        ]
        path = os.pathsep.join(["reference", "conformance/harness", str(FAKES)])
        done = subprocess.run(
            arguments, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=300, check=False
        )
        return done.returncode, read(tmp_path / "report.jsonl")

    code, report = run("py:careless_products:CarelessProducts")
    failing = {line["case"] for line in report.failures}
    assert code == 1 and len(failing) > 10
    known = tmp_path / "known.toml"
    assert main(["deviations", "write", str(tmp_path), f"--output={known}", "--owner=me", "--expires=2099-01-01"]) == 0
    assert f"for {len(failing)} cases, until 2099-01-01" in capsys.readouterr().out
    assert len(Deviations.read(known).entries) < len(failing)
    code, report = run("py:careless_products:CarelessProducts", f"--deviations={known}")
    assert (code, report.claim, report.failures) == (0, "partial", [])
    code, report = run("reference", f"--deviations={known}")
    assert code == 1
    assert {line["case"] for line in report.failures} == failing
    assert {line["disposition"] for line in report.failures} == {"unexpected_pass"}
