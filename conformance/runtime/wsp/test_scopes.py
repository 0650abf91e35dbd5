"""Scopes keep the outputs of their tasks alive until they end, and what deadlock reports say of them (3.4.3)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.deadlocks import DEADLOCKS, HELD, scope_too_large
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    consume,
    filler,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    scope,
    send,
    slot,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, instants, ran, stalls, statistics
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-scopes", "wsp-statistics")

KNOBS = ("task_window", "tensormap_pool", "deplist_pool", "heap_arena", "ready_queue", "restructure")
"""Remedies, beside those of a scope or a channel (AMB-WSP-71)."""
CORPUS = pytest.mark.parametrize("deadlock", DEADLOCKS, ids=lambda deadlock: deadlock.name)


def reported(check, result):
    """The report of a run that ends in a deadlock."""
    check.equal(result["outcome"], "deadlock", "the outcome")
    return result.get("deadlock", {})


def two_issuers(*statements):
    """A process that holds two slots of the ring, and one that wants them from 6 on."""
    return program(
        process("holder", *statements),
        process("other", run("w6"), task("w3"), task("w3")),
        kernels=work(3, 5, 6, 20),
        schedule=schedule("round_robin", 2, 2),
    )


@clause("WSP-03.4.3-02")
@pytest.mark.parametrize(
    ("body", "stall", "total"),
    [
        pytest.param([task("w5"), task("w5"), run("w20")], (0, 0), 20, id="no scope"),
        pytest.param([scope(task("w5"), task("w5"), run("w20"))], (1, 14), 23, id="a scope"),
        pytest.param([scope(task("w5"), task("w5")), run("w20")], (0, 0), 20, id="a scope that ends before its tasks"),
        pytest.param([scope(task("w5"), task("w5"), wait()), run("w20")], (0, 0), 25, id="a scope that ends at 5"),
        pytest.param(
            [scope(scope(task("w5"), task("w5"), wait()), run("w20"))], (0, 0), 25, id="an inner scope that ends"
        ),
        # The inner scope ends at 0 and its task at 5, so that one slot is left; the task in it ends at 9.
        pytest.param([scope(task("w5"), scope(task("w5")), run("w20"))], (1, 3), 20, id="a scope in a scope"),
        # The inner scope ends at 10 and frees one slot; the other stays with the outer one until 30.
        pytest.param(
            [scope(task("w5"), wait(), scope(task("w5"), wait()), run("w20"))], (2, 7), 30, id="an outer scope stays"
        ),
    ],
)
def test_a_scope_holds_slots_of_complete_tasks(impl, check, body, stall, total):
    """Two tasks are complete at 5; another process that issues at 6 stalls until the scope ends, at 20."""
    actual = statistics(impl, check, two_issuers(*body))
    check.equal(stalls(actual, "TASK_RING_FULL"), {"TASK_RING_FULL": stall}, "the stalls")
    check.equal(actual["total_cycles"], total, "the makespan")


@feature("wsp-resources")
@clause("WSP-03.4.1-02", "WSP-03.4.3-02")
@pytest.mark.parametrize("resource", ["task_window", "tensormap_pool", "heap_arena"])
def test_the_end_of_a_scope_resumes_all_that_stall(impl, check, resource):
    """Two processes lack room from 6 on, and the scope of a third frees enough for both at 20."""
    tasks = [task("five", name, 1) for name in "ab"]
    one = program(
        process("holder", scope(*tasks, run("w20"))),
        process("left", run("w6"), task("three", "c", 1)),
        process("right", run("w6"), task("four", "d", 1)),
        kernels=[filler("three", 3), filler("four", 4), filler("five", 5), *work(6, 20)],
        tensors=[tensor(name, "u8", [0]) for name in "abcd"],
        schedule=schedule("round_robin", 2),
    )
    actual = statistics(impl, check, one, resources={resource: 2})
    check.equal(actual["processes"], {"holder": 20, "left": 20, "right": 20}, "the times of the processes")
    check.equal(actual["total_cycles"], 24, "the makespan")


@feature("wsp-steps")
@clause("WSP-03.4.3-02")
def test_a_scope_holds_entries_and_bytes_until_it_ends(impl, check):
    """Its tasks are complete at 5 and 10, when the DepList node of the second is freed; the rest is at 30."""
    one = program(
        process("p", scope(task("five", "a", 1), task("five", "a", 2), run("w10"), run("w20")), run("w1")),
        kernels=[filler("five", 5), *work(1, 10, 20)],
        tensors=[tensor("a", "i32", [0] * 30)],
    )
    names = ("task_ring", "tensormap_pool", "heap_arena", "deplist_pool")
    used = [[instant["used"][name] for name in names] for instant in instants(impl, check, compiled(impl, check, one))]
    held = [2, 2, 240, 0]
    check.equal(used, [[2, 2, 240, 1], [2, 2, 240, 1], held, [0] * 4, [0] * 4], "what is used at 0, 5, 10, 30 and 31")


@feature("wsp-resources", "wsp-slots")
@clause("WSP-03.4.3-01", "WSP-03.4.3-07")
def test_scopes_nest_in_the_body_of_a_process(impl, check):
    """Three deep, in loops and at every token: all is freed at the end, and results are as without them."""
    inner = scope(task("five", "a", slot("x")), scope(task("five", "b", slot("x")), wait(), scope()))
    body = [consume("c", "x", inner)]

    def one(*consumer):
        return program(
            process("producer", repeat(7, send("c", slot("i")), index="i")),
            process("consumer", *consumer),
            channels=[channel("c")],
            kernels=[filler("five", 5)],
            tensors=[tensor("a", "u8", [0] * 5), tensor("b", "u8", [0] * 3)],
            schedule=schedule("round_robin", 2, 2, heap_arena=8),
        )

    actual = statistics(impl, check, one(*body))
    check.equal(actual["used"]["task_ring"], 0, "the slots at the end")
    check.equal(actual["high_water"]["heap_arena"], 8, "the bytes that are held at a time")
    check.equal(actual["tensors"]["a"] + actual["tensors"]["b"], "06" * 8, "the tensors")
    check.equal(actual["kernels"]["five"]["runs"], 14, "the runs of the kernel")


@clause("WSP-03.4.3-02")
def test_the_end_of_a_scope_is_no_barrier(impl, check):
    """The end of a scope waits for no task (AMB-WSP-56)."""
    one = program(process("p", scope(task("w9")), run("w3")), kernels=work(3, 9), schedule=schedule("round_robin", 1))
    actual = statistics(impl, check, one)
    check.equal(actual["processes"], {"p": 3}, "the time of the process")
    check.equal(actual["total_cycles"], 9, "the makespan")


@clause("WSP-03.4.3-03")
@pytest.mark.parametrize(("tasks", "window"), [(4, 3), (3, 2), (2, 1), (11, 7), (64, 63)])
def test_a_scope_that_holds_more_than_the_window_is_a_deadlock(impl, check, tasks, window):
    """A scope of as many tasks as slots completes (AMB-WSP-36)."""

    def scoped(count):
        return program(
            process("p", scope(*[task("w3")] * count)), kernels=work(3), schedule=schedule("round_robin", 2, window)
        )

    statistics(impl, check, scoped(window))
    report = reported(check, ran(impl, check, scoped(tasks)))
    check.equal(report.get("held_by_scopes"), True, "scopes hold what is lacking")
    check.equal([scope["process"] for scope in report.get("scopes", [])], ["p"], "the processes with scopes")


@clause("WSP-03.4.3-01", "WSP-03.4.3-02", "WSP-03.4.3-04")
@pytest.mark.parametrize("depth", [2, 4, 7])
def test_the_innermost_of_many_scopes_holds_its_tasks(impl, check, depth):
    """Three tasks in a window of two, within so many scopes: the report has the depth, and two complete tasks."""
    body = [task("w3")] * 3
    for _ in range(depth):
        body = [scope(*body)]
    one = program(process("p", *body), kernels=work(3), schedule=schedule("round_robin", 2, 2))
    report = reported(check, ran(impl, check, one))
    check.equal(report.get("scopes"), [{"process": "p", "depth": depth, "held": 2}], "the scopes")


@clause("WSP-03.4.3-05")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_scope_that_holds_what_is_lacking_may_be_of_any_process(impl, check, place):
    """Three processes in turn are the one whose scope is too large; an empty scope of another is not the reason."""
    bodies = [[run("w1")], [run("w1"), scope(receive("c", "x"))]]
    bodies.insert(place, [scope(*[task("w3")] * 3), send("c")])
    one = program(
        *(process(f"p{number}", *body) for number, body in enumerate(bodies)),
        channels=[channel("c")],
        kernels=work(1, 3),
        schedule=schedule("round_robin", 2, 2),
    )
    report = reported(check, ran(impl, check, one))
    check.equal(report.get("held_by_scopes"), True, "held_by_scopes")
    held = {stated.get("process"): stated.get("held") for stated in report.get("scopes", [])}
    check.equal(held, {f"p{place}": 2, f"p{1 if place == 2 else 2}": 0}, "what the scopes hold")


@feature("wsp-resources")
@clause("WSP-03.4.3-04")
@CORPUS
def test_the_report_gives_the_depth_of_scopes(impl, check, deadlock):
    """By process, with how many complete tasks they hold."""
    scopes = reported(check, ran(impl, check, deadlock.program)).get("scopes", [])
    actual = {scope.get("process"): [scope.get("depth"), scope.get("held")] for scope in scopes}
    check.equal(actual, {name: list(scope) for name, scope in deadlock.scopes.items()}, "depth and held tasks")


@feature("wsp-resources")
@clause("WSP-03.4.3-05")
@CORPUS
def test_the_report_says_whether_scopes_hold_what_is_lacking(impl, check, deadlock):
    """An open scope that holds nothing is not the reason, nor is one that holds what nobody waits for."""
    report = reported(check, ran(impl, check, deadlock.program))
    check.equal(report.get("held_by_scopes"), deadlock.held_by_scopes, "held_by_scopes")


@clause("WSP-03.4.3-05")
def test_scopes_that_hold_what_nobody_wants_are_not_the_reason(impl, check):
    """A process with an open scope waits for a token that never comes; there is room for another task."""
    one = program(
        process("p", scope(task("w3"), wait(), receive("c", "x"))),
        process("q", receive("d", "x"), send("c")),
        channels=[channel("c"), channel("d")],
        kernels=work(3),
        schedule=schedule("round_robin", 1, 2),
    )
    one["csp"]["processes"][0]["body"].append(send("d"))
    report = reported(check, ran(impl, check, one))
    check.equal(report.get("held_by_scopes"), False, "held_by_scopes")
    check.equal(report.get("scopes"), [{"process": "p", "depth": 1, "held": 1}], "the scopes")


@feature("wsp-resources")
@clause("WSP-03.4.3-06")
@pytest.mark.parametrize(
    "deadlock", [deadlock for deadlock in HELD if deadlock.held_by_scopes], ids=lambda deadlock: deadlock.name
)
def test_the_report_recommends_another_window_scope_or_program(impl, check, deadlock):
    """A larger resource of those that scopes hold, smaller scopes, or another order of work (AMB-WSP-71)."""
    mitigations = reported(check, ran(impl, check, deadlock.program)).get("mitigations", [])
    concerned = ("task_window", "tensormap_pool", "heap_arena", "scope", "restructure")
    actual = [mitigation["knob"] for mitigation in mitigations]
    check.true(
        any(suggestion.startswith(concerned) for suggestion in actual), "a remedy concerns what scopes hold", actual
    )
    check.equal(
        [mitigation for mitigation in mitigations if not mitigation.get("why")], [], "the remedies without a reason"
    )
    scopes = [f"scope.{name}" for name in deadlock.scopes]
    known = (*KNOBS, *scopes, *(f"channel.{stated['name']}.capacity" for stated in deadlock.program["csp"]["channels"]))
    check.equal([knob for knob in actual if knob not in known], [], "the remedies that are no settings of a run")
    for knob in (suggestion for suggestion in actual if suggestion in scopes):
        statistics(impl, check, deadlock.program, resources={knob: 1})


@clause("WSP-03.4.3-06")
def test_smaller_scopes_are_a_remedy(impl, check):
    """The scope that is too large for its window completes as two."""
    deadlock = scope_too_large()
    smaller = program(
        process("holder", scope(task("w3"), task("w7")), scope(*[task("w7")] * 3)),
        kernels=work(3, 7),
        schedule=deadlock.program["schedule"],
    )
    actual = statistics(impl, check, smaller)
    check.equal(actual["total_cycles"], 3 + 4 * 7, "the makespan")
