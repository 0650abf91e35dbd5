"""Reports of deadlocks: cures that help, cycles, scopes, and `tessera-reference wsp explain`."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.schemas import validator
from tessera_reference.cli import main
from tessera_reference.wsp.deadlock import MOST_SHOWN, drawing, explanation
from tessera_reference.wsp.package import Package, load
from tessera_reference.wsp.run import Run

from .deadlocks import DEADLOCKS

ENDLESS = "long_after_the_deadlock_it_goes_on"
corpus = pytest.mark.parametrize("name", DEADLOCKS)


def package_of(name: str) -> Package:
    return load(DEADLOCKS[name].program.compile().package)


def report_of(name: str) -> dict[str, Any]:
    result = Run(package_of(name)).finish().result()
    assert [error.message for error in validator("tessera:wsp-result").iter_errors(result)] == []
    assert result["outcome"] == "deadlock"
    report: dict[str, Any] = result["deadlock"]
    assert [error.message for error in validator("tessera:wsp-report").iter_errors(report)] == []
    return report


def settings(mitigation: dict[str, Any]) -> dict[str, int]:
    """Return the settings of a mitigation."""
    if mitigation["knob"] == "restructure":
        return {}
    all_of_it = [mitigation, *mitigation.get("also", [])]
    return {setting["knob"]: setting.get("at_least", 1) for setting in all_of_it}


def ends(package: Package, knobs: dict[str, int], instants: int = 1000) -> str:
    """The outcome of a run with other settings, after so many instants at most."""
    run = Run(package, resources=knobs)
    for _ in range(instants):
        if not run.step():
            break
    return run.outcome


@corpus
def test_the_reasons_are_those_of_the_program(name: str) -> None:
    assert {wait["reason"] for wait in report_of(name)["waiting"]} == DEADLOCKS[name].reasons


@corpus
def test_the_suggestions_are_the_cures(name: str) -> None:
    suggested = [settings(mitigation) for mitigation in report_of(name)["mitigations"]]
    assert suggested == list(DEADLOCKS[name].cures or [{}])


@corpus
def test_each_suggestion_helps_and_less_does_not(name: str) -> None:
    """Completion for all but one program, which would go on for 2^62 rounds after its deadlock."""
    if name == ENDLESS:
        pytest.skip("its run without end has a test of its own")
    package = package_of(name)
    for mitigation in report_of(name)["mitigations"]:
        knobs = settings(mitigation)
        if not knobs:
            continue
        assert ends(package, knobs) == "completed"
        for knob, value in knobs.items():
            if not knob.startswith("scope."):
                assert mitigation["smallest"]
                assert ends(package, knobs | {knob: value - 1}) == "deadlock"


def test_a_cure_of_an_endless_run_goes_past_the_deadlock() -> None:
    (mitigation,) = report_of(ENDLESS)["mitigations"]
    assert mitigation["why"].endswith("with channel.c.capacity 2 the run goes past this deadlock")


CYCLES = {
    "both_receive_first": ["process p", "channel a", "process q", "channel b"],
    "sends_twice_to_itself": ["process p", "channel c"],
    "full_against_empty": ["process p", "channel a", "process q", "channel b"],
    "window_against_a_channel": ["process p", "resource task_ring", "task 0", "channel c"],
    "a_scope_holds_the_heap": ["process p", "resource heap_arena", "scope of p"],
    "waits_for_a_task_that_needs_its_token": ["process p", "task 0", "channel c"],
    "an_output_is_larger_than_the_heap": [],
}


@pytest.mark.parametrize("name", CYCLES)
def test_the_cycle_is_who_waits_for_whom(name: str) -> None:
    """Empty where a request is larger than its resource, which nobody can end."""
    assert report_of(name)["cycle"] == CYCLES[name]


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A scope of three tasks in a window of two."""
    path = tmp_path / "package.json"
    path.write_bytes(DEADLOCKS["a_scope_holds_the_window"].program.compile().package)
    return path


EXPLAINED = """\
deadlock at 20
resource task_ring: 2 of 2 used, at most 2
resource tensormap_pool: 2 of 256 used, at most 2
resource heap_arena: 8 of 1048576 used, at most 8
resource ready_queue: 0 of 64 used, at most 2
scope of p: depth 1, holds 2
process p: TASK_RING_FULL, for task_ring, at body/0/body/2
cycle: process p -> resource task_ring -> scope of p -> process p
scopes hold the resources that are lacking
helps: task_window = 3: with task_window 3 the run completes
helps: scope.p: its scopes hold the outputs of 2 complete tasks: without them the run goes on, so end them sooner
"""


def test_a_package_is_run_and_explained(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wsp", "explain", str(package)]) == 1
    assert capsys.readouterr().out == EXPLAINED


def test_the_page_of_the_model_shows_this_report() -> None:
    page = (Path(__file__).parents[2] / "docs/wsp.md").read_text(encoding="utf-8")
    assert f"```\n{EXPLAINED}```\n" in page


@pytest.mark.parametrize(
    ("cure", "stalls"),
    [
        ("task_window=3", ""),
        ("scope.p=1", "stalled: TASK_RING_FULL once, 10 cycles in all; task_ring held at most 2\n"),
    ],
)
def test_the_cure_is_an_option(package: Path, capsys: pytest.CaptureFixture[str], cure: str, stalls: str) -> None:
    """Three tasks of 10 cycles on one worker; what a completed run waited for is said."""
    assert main(["wsp", "explain", str(package), "--resource", cure]) == 0
    assert capsys.readouterr().out == f"completed, total_cycles 30\n{stalls}"


def test_a_result_is_explained_as_its_package(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["wsp", "run", str(package)])
    result = tmp_path / "result.json"
    result.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["wsp", "explain", str(result), "--svg", str(tmp_path / "d.svg")]) == 1
    assert capsys.readouterr().out == EXPLAINED
    assert ElementTree.parse(tmp_path / "d.svg").getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize("text", ['{"outcome": "deadlock", "deadlock": 3}', '{"outcome": "deadlock"}', "[]", "{", "\0"])
def test_what_is_no_result_and_no_package_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    assert main(["wsp", "explain", str(path)]) == 2
    assert "x.json" in capsys.readouterr().err


def test_a_run_that_completed_is_not_drawn(package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "d.svg"
    assert main(["wsp", "explain", str(package), "--resource", "task_window=3", "--svg", str(svg)]) == 2
    assert "nothing to draw" in capsys.readouterr().err
    assert not svg.exists()


@pytest.mark.parametrize("name", DEADLOCKS)
def test_every_report_is_explained_and_drawn(name: str) -> None:
    """A box for each of the cycle, and an arrow in its colour from each to the next; a run is explained once."""
    run = Run(package_of(name)).finish()
    result = run.result()
    assert run.result() is result
    report = result["deadlock"]
    assert (
        sum(line.startswith(("process", "task")) for line in explanation(result))
        == len(report["waiting"])
        <= MOST_SHOWN
    )
    root = ElementTree.fromstring(drawing(report))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert all(any(text.startswith(node) for text in texts) for node in report["cycle"])
    arrows = [element for element in root.iter() if element.get("marker-end") == "url(#cycle)"]
    assert len(arrows) == len(report["cycle"])
