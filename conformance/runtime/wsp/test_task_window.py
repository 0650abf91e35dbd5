"""The task window: the bound of tasks in flight, and issue that stalls (PTO-WSP v10, 3.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.packages import published
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    note,
    op,
    process,
    program,
    repeat,
    run,
    schedule,
    scope,
    slot,
    task,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, instants, noted, statistics, under_seeds
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages")

OTHER_MODES = ("abort", "benchmark")


def issuing(window, tasks=9, workers=4, kernel="w10"):
    """A process issues tasks and notes the number of each after its issue; the workers could take many at once."""
    return program(
        process("p", repeat(tasks, task(kernel), note(op("add", slot("i"), 1)), index="i")),
        kernels=work(4, 10),
        schedule=schedule("round_robin", workers, window),
    )


def in_flight(actual):
    """Tasks that were issued and are not complete."""
    return len(actual["assignments"]) - sum(
        kernel["runs"] for name, kernel in actual["kernels"].items() if name in ("w4", "w10")
    )


@feature("wsp-statistics", "wsp-steps")
@clause("WSP-03.2-01")
@pytest.mark.parametrize("window", [1, 2, 3, 5, 8])
def test_never_more_tasks_are_in_flight_than_the_window_has(impl, check, window):
    """Tasks of two processes and two lengths on four workers, looked at after every instant."""
    source = program(
        process("p", repeat(7, task("w10"), task("w4"))),
        process("q", run("w4"), repeat(5, task("w4"))),
        kernels=work(4, 10),
        schedule=schedule("round_robin", 4, window),
    )
    most = 0
    for actual in instants(impl, check, compiled(impl, check, source)):
        check.true(in_flight(actual) <= window, f"no more than {window} are in flight", in_flight(actual))
        check.true(actual["used"]["task_ring"] <= window, "the use of the task ring", actual["used"])
        most = max(most, in_flight(actual))
    check.equal(most, window, "the most that were in flight after an instant")
    check.equal(len(actual["assignments"]), 19, "the tasks of the run")


@feature("wsp-expressions", "wsp-resources", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-03.2-01")
def test_the_window_of_a_run_is_the_one_that_it_is_given(impl, check):
    """The package has a window of 8, and the run has the requested 2 (AMB-WSP-37)."""
    package = compiled(impl, check, issuing(8))
    for actual in instants(impl, check, package, resources={"task_window": 2}):
        check.true(in_flight(actual) <= 2, "no more than 2 are in flight", in_flight(actual))
    check.equal(noted(actual), "123456789", "all tasks were issued")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics", "wsp-steps")
@clause("WSP-03.2-03")
@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_a_full_window_holds_issue_back_until_a_task_is_complete(impl, check, window):
    """Tasks of 10 cycles start at once on four workers; after each 10 cycles as many more are issued (AMB-WSP-07)."""
    logs = [noted(found) for found in instants(impl, check, compiled(impl, check, issuing(window)))]
    check.equal(logs[0], "123456789"[:window], "the tasks that were issued at first")
    check.equal(logs[1], "123456789"[: 2 * window], "and after 10 cycles")
    actual = under_seeds(impl, check, issuing(window))
    check.equal(noted(actual), "123456789", "the tasks in the order of their issue")
    check.true(actual["stalls"]["TASK_RING_FULL"]["count"] > 0, "the issue stalled")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-03.2-03")
def test_a_window_of_one_makes_tasks_follow_one_another(impl, check):
    """On four workers: the time is the sum of the kernels, by every reading of it (AMB-WSP-23)."""
    actual = under_seeds(impl, check, issuing(1))
    check.equal(actual["total_cycles"], 90, "the time of the run")
    check.equal([worker["busy"] for worker in actual["workers"]], [30, 20, 20, 20], "how long each worker was busy")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-03.2-03")
def test_a_window_that_is_large_enough_stalls_nothing(impl, check):
    """Nine tasks in a window of nine."""
    actual = under_seeds(impl, check, issuing(9))
    check.equal(actual["stalls"]["TASK_RING_FULL"], {"count": 0, "cycles": 0}, "stalls of the issue")
    check.equal(actual["processes"]["p"], 0, "when the last task was issued")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots", "wsp-statistics")
@clause("WSP-03.2-03")
def test_a_slot_is_freed_in_whatever_order_tasks_end(impl, check):
    """The first of three tasks is the longest; while it runs, the others' slots serve one task after the other."""
    source = program(
        process("p", task("w40"), repeat(6, task("w4"), note(op("add", slot("i"), 1)), index="i"), wait(), note(15)),
        process("clock", run("w30"), note(14)),
        kernels=work(4, 30, 40),
        schedule=schedule("round_robin", 7, 2),
    )
    check.equal(
        noted(under_seeds(impl, check, source)), "123456ef", "the tasks that were issued before the first ended"
    )


@feature("wsp-scopes", "wsp-seeds", "wsp-statistics")
@clause("WSP-03.2-01", "WSP-03.2-03")
def test_a_scope_keeps_the_slots_of_its_tasks_until_its_end(impl, check):
    """Two tasks of a scope are complete after 4 cycles, and hold two of the three slots until 30 (AMB-WSP-07)."""
    source = program(
        process("p", scope(task("w4"), task("w4"), run("w30"), note(1)), run("w1"), note(2)),
        process("q", run("w10"), task("w8"), note(3), task("w8"), note(4), task("w8"), note(5), task("w8"), note(6)),
        kernels=work(1, 4, 8, 10, 30),
        schedule=schedule("round_robin", 4, 3),
    )
    check.equal(noted(under_seeds(impl, check, source)), "345162", "issues of the other process, and the scope's end")


@feature("wsp-expressions", "wsp-slots", "wsp-statistics")
@clause("WSP-03.2-02", "WSP-03.2-06")
def test_a_window_in_tasks_that_stalls_is_accepted(impl, check):
    """`TaskWindow(3, unit="tasks", mode=STALL)`; its package has the three of them, and they hold."""
    package = compiled(impl, check, issuing({"size": 3, "unit": "tasks", "mode": "stall"}))
    check.equal(statistics(impl, check, package)["high_water"]["task_ring"], 3, "the most that were in flight")
    short = compiled(impl, check, issuing({"size": 5}))
    check.equal(statistics(impl, check, short)["high_water"]["task_ring"], 5, "the most, where only the size is given")
    for candidate, size in ((package, 3), (short, 5)):
        if (document := published(candidate)) is not None:
            stated = {"size": size, "unit": "tasks", "mode": "stall"}
            check.equal(document["schedule"]["task_window"], stated, "the window in the package")


@feature("wsp-expressions", "wsp-slots")
@clause("WSP-03.2-02")
@pytest.mark.parametrize("size", [0, -1, "3", 2.5, True, None])
def test_a_window_without_a_slot_is_refused(impl, check, size):
    """The size is a whole number from 1 up (AMB-WSP-25)."""
    made = issuing({"size": size, "unit": "tasks", "mode": "stall"})
    check.rejects(impl.wsp.compile(program=made, target="cpu_sim"), category="INVALID_PROGRAM")


@feature("wsp-capabilities", "wsp-expressions", "wsp-slots")
@clause("WSP-03.2-05")
@pytest.mark.parametrize("mode", OTHER_MODES)
def test_another_mode_works_only_where_the_matrix_has_it(impl, check, mode):
    """A mode outside of the matrix is unsupported, and refused when it is compiled (AMB-WSP-19, AMB-WSP-29)."""
    state = _state(impl, check, f"task_window.mode.{mode}")
    compiles = impl.wsp.compile(program=issuing({"size": 3, "unit": "tasks", "mode": mode}), target="cpu_sim")
    if state == "unsupported":
        check.rejects(compiles, category="UNSUPPORTED_DIRECTIVE")
    else:
        check.accepts(compiles)


@feature("wsp-capabilities", "wsp-expressions", "wsp-slots")
@clause("WSP-03.2-05", "WSP-03.2-02")
def test_another_unit_works_only_where_the_matrix_has_it(impl, check):
    """A window in bytes may be supported (AMB-WSP-08); one in an unknown unit is no legal program."""
    compiles = impl.wsp.compile(program=issuing({"size": 3, "unit": "bytes", "mode": "stall"}), target="cpu_sim")
    if _state(impl, check, "task_window.unit.bytes") == "unsupported":
        check.rejects(compiles, category="UNSUPPORTED_DIRECTIVE")
    else:
        check.accepts(compiles)
    made = issuing({"size": 3, "unit": "parsecs", "mode": "stall"})
    refusals = ("INVALID_PROGRAM", "UNSUPPORTED_DIRECTIVE")
    check.rejects(impl.wsp.compile(program=made, target="cpu_sim"), category=refusals)


@feature("window-modes", "wsp-capabilities", "wsp-expressions", "wsp-slots")
@clause("WSP-03.2-04")
def test_a_backend_with_other_modes_has_one_of_them_in_its_matrix(impl, check):
    """A program with that mode compiles."""
    states = {mode: _state(impl, check, f"task_window.mode.{mode}") for mode in OTHER_MODES}
    offered = [mode for mode, state in states.items() if state != "unsupported"]
    check.true(bool(offered), "a mode beside stall is offered", states)
    for mode in offered:
        check.accepts(impl.wsp.compile(program=issuing({"size": 3, "mode": mode}), target="cpu_sim"))


def _state(impl, check, directive):
    directives = check.returns(impl.wsp.capabilities(target="cpu_sim"))["directives"]
    return directives.get(directive, "unsupported")
