"""The command line itself: help that helps, and requests that cannot be met."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tessera_conformance.adapter import Diagnostic, Refusal
from tessera_conformance.cli import TASKS, main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_help_shows_the_options_of_the_suite(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(word in printed for word in ("--impl IMPL", "--deviations FILE", "--start-deadline", "examples:"))


def test_help_lists_the_commands_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Each task is a heading with its commands below it, each command on one line of at most 80 characters."""
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert stop.value.code == 0
    for task, commands in TASKS.items():
        start = lines.index(f"{task}:") + 1
        listed = lines[start : lines.index("", start)]
        assert [line.split()[0] for line in listed] == list(commands)
        assert [line for line in listed if len(line) > 80] == []


@pytest.mark.parametrize("arguments", [["run"], ["reproduce", "ir/matmul/golden/fp32/k-13"], ["run", "-k", "x"]])
def test_an_implementation_must_be_named(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Forgetting it must not praise the reference."""
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(
        "error: tessera-conformance run: no implementation is named; expected --impl"
    )


def test_a_selection_of_nothing_is_said(tmp_path: object) -> None:
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "-k", "no_such_thing"]
    command.append("ir/test_softmax.py")  # to collect the suite takes seconds
    done = subprocess.run(command, cwd=str(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: -k no_such_thing: no case has no_such_thing in its name; " in done.stderr


def test_cases_are_listed_without_being_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "--collect-only"]
    done = subprocess.run([*command, "ir/test_softmax.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "tests collected" in done.stdout, done.stderr) == (0, True, "")


def test_a_report_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=reference", "--report-dir=taken"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "is a file; name a folder" in done.stderr) == (2, True)


def test_no_violator_is_no_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["strength", "--only", "no-such-violator"]) == 2
    assert "no violator" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m tessera_conformance clauses list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


def test_diagnostics_may_be_given_as_the_protocol_has_them() -> None:
    given = {"category": "types", "message": "no", "line": 3}
    assert Refusal("types", "verify", "no", [given]).outcome.diagnostics == (Diagnostic("types", "no", line=3),)
