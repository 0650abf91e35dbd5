"""What a deadlock report suggests is true: applied, the run goes past the deadlock, and with less it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.schemas import validator
from tessera_reference.wsp.builder import Program, TaskWindow
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import Package
from tessera_reference.wsp.reading import load

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
    """What a mitigation says to set."""
    if mitigation["knob"] == "restructure":
        return {}
    all_of_it = [mitigation, *mitigation.get("also", [])]
    return {each["knob"]: each.get("at_least", 1) for each in all_of_it}


def ends(package: Package, knobs: dict[str, int], instants: int = 1000) -> str:
    """The outcome of a run with other settings, after so many instants at most."""
    run = Run(package, resources=knobs)
    for _ in range(instants):
        if not run.step():
            break
    return run.outcome


def test_the_corpus_is_large() -> None:
    assert len(DEADLOCKS) >= 25


@corpus
def test_the_reasons_are_those_of_the_program(name: str) -> None:
    assert {each["reason"] for each in report_of(name)["waiting"]} == DEADLOCKS[name].reasons


@corpus
def test_the_suggestions_are_the_cures(name: str) -> None:
    suggested = [settings(each) for each in report_of(name)["mitigations"]]
    assert suggested == list(DEADLOCKS[name].cures or [{}])


@corpus
def test_each_suggestion_helps_and_less_does_not(name: str) -> None:
    """Completion for all but one program, which would go on for 2^62 rounds after its deadlock."""
    if name == ENDLESS:
        pytest.skip("its run without end has a test of its own")
    package = package_of(name)
    for each in report_of(name)["mitigations"]:
        knobs = settings(each)
        if not knobs:
            continue
        assert ends(package, knobs) == "completed"
        for knob, value in knobs.items():
            if not knob.startswith("scope."):
                assert each["smallest"]
                assert ends(package, knobs | {knob: value - 1}) == "deadlock"


def test_a_cure_of_an_endless_run_goes_past_the_deadlock() -> None:
    (mitigation,) = report_of(ENDLESS)["mitigations"]
    assert mitigation["why"].endswith("with channel.c.capacity 2 the run goes past this deadlock")


def test_a_large_scope_is_sized_to_its_end() -> None:
    """The smallest window is found among ten thousand, far from the one that deadlocked."""
    program = Program("p")
    kernel = program.kernel("k", cycles=1, x="tensor").add("x", "x", 1)
    x = program.tensor("x", "i32", 1)
    program.task_window(TaskWindow(64))
    program.resources(tensormap_pool=10_000, ready_queue=10_000, deplist_pool=10_000)
    with program.process("p"), program.scope(), program.repeat(10_000):
        program.task(kernel, x)
    result = Run(load(program.compile().package)).finish().result()
    assert settings(result["deadlock"]["mitigations"][0]) == {"task_window": 10_000}


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


@pytest.mark.parametrize(
    ("name", "depth", "held"),
    [("a_scope_holds_the_window", 1, 2), ("nested_scopes_hold_the_window", 2, 2), ("a_scope_holds_the_heap", 1, 2)],
)
def test_the_report_names_depth_and_outputs_of_scopes(name: str, depth: int, held: int) -> None:
    report = report_of(name)
    assert report["scopes"] == [{"process": "p", "depth": depth, "held": held}]
    assert report["held_by_scopes"]


def test_a_scope_that_holds_nothing_that_lacks_is_not_to_blame() -> None:
    """A complete task of the scope holds its slot, and the process waits for a token."""
    program = Program("p")
    kernel = program.kernel("k", cycles=1, x="tensor").add("x", "x", 1)
    c = program.channel("c")
    with program.process("p"), program.scope():
        program.task(kernel, program.tensor("x", "i32", 1))
        program.wait()
        program.receive(c, "v")
        program.send(c)
    report = Run(load(program.compile().package)).finish().result()["deadlock"]
    assert report["scopes"] == [{"process": "p", "depth": 1, "held": 1}]
    assert not report["held_by_scopes"]


def test_a_channel_that_is_named_like_a_resource_is_not_that_resource() -> None:
    """The scope holds bytes of the heap arena, and the process waits for a token of the channel `heap_arena`."""
    program = Program("p")
    kernel = program.kernel("k", cycles=1, x="tensor").add("x", "x", 1)
    c = program.channel("heap_arena")
    with program.process("p"), program.scope():
        program.task(kernel, program.tensor("x", "i32", 1))
        program.wait()
        program.receive(c, "v")
        program.send(c)
    report = Run(load(program.compile().package)).finish().result()["deadlock"]
    assert [each["for"] for each in report["waiting"]] == ["heap_arena"]
    assert not report["held_by_scopes"]


def test_without_its_scopes_a_process_names_its_statements_as_the_program_has_them() -> None:
    program = Program("p")
    c = program.channel("c")
    with program.process("p"):
        with program.scope():
            program.wait()
            program.wait()
        program.receive(c, "v")
        program.send(c)
    package = load(program.compile().package)
    (waiting,) = Run(package, resources={"scope.p": 1}).finish().result()["deadlock"]["waiting"]
    assert waiting["statement"] == "body/1"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("both_receive_first", "no resource is exhausted and no channel is full"),
        ("with_room_it_ends_in_an_error", "the run ends with an error: RECEIVE_AFTER_CLOSE"),
        ("one_with_a_cure_and_one_without", "the wait remains however large the settings are"),
    ],
)
def test_restructuring_has_a_reason(name: str, why: str) -> None:
    (mitigation,) = report_of(name)["mitigations"]
    assert mitigation["knob"] == "restructure"
    assert why in mitigation["why"]
