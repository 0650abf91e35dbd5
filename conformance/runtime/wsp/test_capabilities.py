"""Capability matrices: what each entry promises, compared with what the target does (sections 1.3, 5.2, 7 and 7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.bounded import TASK_RING
from tessera_conformance.chapters.runtime.wsp.kit.packages import document_of, published
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    cond,
    filler,
    load,
    process,
    program,
    receive,
    run,
    schedule,
    send,
    slot,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, instants, statistics
from tessera_conformance.chapters.runtime.wsp.kit.targets import PROBES, STATES, UNUSUAL, directive, targets, tasks
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Unsupported

TABLES = ("directives", "csp", "predicates")
RUNNABLE = targets("cpu_sim", "pto_runtime_a2a3sim", "pto_runtime_a2a3sim_host_graph")
EVERY_TARGET = pytest.mark.parametrize("target", targets())
EVERY_RUNNABLE = pytest.mark.parametrize("target", RUNNABLE)


def matrix(impl, check, target):
    """The matrix of a target."""
    return check.returns(impl.wsp.capabilities(target=target))


def state(impl, check, target, name):
    """Return the state of a directive; one that the matrix does not list is unsupported (AMB-WSP-29)."""
    return matrix(impl, check, target)["directives"].get(name, "unsupported")


def fill(value, **where):
    """A task that fills a tensor with a value."""
    return task("fill", "t", value, **where)


def one_fill(*body):
    """A program of one process over three workers and a tensor."""
    return program(
        process("p", *body),
        kernels=[filler("fill", 5)],
        tensors=[tensor("t", "i32", [1, 4, 2])],
        schedule=schedule("affinity", 3, 64),
    )


def behaviour(impl, check, package):
    """Return all statistics of a run."""
    return statistics(impl, check, package)


@feature("wsp-capabilities", "wsp-kernels", "wsp-packages")
@clause("WSP-01.3-01", "WSP-01.3-09")
@EVERY_TARGET
def test_a_target_declares_its_matrix(impl, check, target):
    """Each entry is one of the four states; the entries that the document names are there."""
    declared = matrix(impl, check, target)
    for table in TABLES:
        check.true(len(declared[table]) > 0, f"{table} has entries", declared[table])
        check.equal({name: state for name, state in declared[table].items() if state not in STATES}, {}, "other states")
    packed = compiled(impl, check, program(process("p")), target)
    if published(packed) is not None:
        stated = document_of(check, packed)["schedule"]["capabilities"]
        others = {name: state for name, state in stated.items() if state not in STATES}
        check.equal(others, {}, "other states of the package")
        differing = {name: state for name, state in stated.items() if declared["directives"].get(name) != state}
        check.equal(differing, {}, "the states of the package that the matrix does not have")
    named = {"dispatch.round_robin", "task_window.mode.stall", "task_window.unit.tasks"}
    check.equal(sorted(named - set(declared["directives"])), [], "the directives that are missing")


@feature("wsp-capabilities")
@clause("WSP-05.2-01")
@EVERY_TARGET
def test_a_target_exposes_its_directives(impl, check, target):
    """Policies, units and modes of the window; sizes of resources need not be directives."""
    directives = matrix(impl, check, target)["directives"]
    policies = [
        directive
        for directive in directives
        if directive.startswith("dispatch.") and directive != "dispatch.round_robin"
    ]
    check.true(len(policies) > 0, "there is another policy than round_robin", sorted(directives))
    for prefix in ("task_window.unit.", "task_window.mode."):
        check.true(
            any(name.startswith(prefix) for name in directives), f"there are entries {prefix}*", sorted(directives)
        )


@feature("wsp-capabilities")
@clause("WSP-05.2-02")
@EVERY_TARGET
def test_a_target_exposes_its_csp_features(impl, check, target):
    """Channels that only synchronize, or payload channels; one may be left out (AMB-WSP-29, AMB-WSP-35)."""
    csp = matrix(impl, check, target)["csp"]
    known = {"sync_only_channels", "payload_channels"} & set(csp)
    check.true(bool(known), "the matrix has sync_only_channels or payload_channels", sorted(csp))


@feature("wsp-capabilities")
@clause("WSP-05.2-03")
@EVERY_TARGET
def test_a_target_exposes_its_predicate_mechanisms(impl, check, target):
    """Conditions, keys of dispatch, and elements that are loaded into slots; none has to be supported (AMB-WSP-29)."""
    predicates = matrix(impl, check, target)["predicates"]
    known = {"cond", "dispatch_key", "tensor_to_slot"} & set(predicates)
    check.true(bool(known), "the matrix has one of cond, dispatch_key and tensor_to_slot", sorted(predicates))


@feature("wsp-capabilities", "wsp-kernels", "wsp-packages")
@clause("WSP-05.2-01", "WSP-05.2-02", "WSP-05.2-03")
def test_an_unknown_target_has_no_matrix(impl, check):
    """A part of the name of a target has no matrix either."""
    for name in ("cpu", "CPU_SIM", "cpu_sim ", ""):
        answers = [
            impl.wsp.capabilities(target=name),
            impl.wsp.compile(program=program(process("p")), target=name),
        ]
        for answer in answers:
            check.true(isinstance(answer, Rejected | Unsupported), f"the target {name!r} is refused or missing", answer)


@feature(
    "wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-resources", "wsp-slots", "wsp-statistics"
)
@pytest.mark.parametrize("name", PROBES)
@EVERY_RUNNABLE
@clause("WSP-01.3-02", "WSP-07-04", "WSP-07.1-09")
def test_an_enforced_directive_changes_what_a_run_does(impl, check, target, name):
    """The same tasks with and without it; one that is recorded or diagnosed changes nothing, results never."""
    declared = state(impl, check, target, name)
    given, usual = (tasks(probe) for probe in PROBES[name])
    if declared == "unsupported":
        check.status(impl.wsp.compile(program=given, target=target), "UNSUPPORTED_DIRECTIVE")
        return
    actual, other = (behaviour(impl, check, compiled(impl, check, variant, target)) for variant in (given, usual))
    check.equal(actual["tensors"], other["tensors"], "the results")
    if name == "dispatch.round_robin" and state(impl, check, target, "dispatch.affinity") != "enforced":
        return
    differs = any(actual[member] != other[member] for member in ("assignments", "stalls", "total_cycles"))
    check.equal(differs, declared == "enforced", f"whether {name}, which is {declared}, changes the run")


LEAST: Mapping[str, Mapping[str, Any]] = UNUSUAL | {
    "task_window.unit.bytes": UNUSUAL["task_window.unit.bytes"] | {"size": 1}
}
"""The windows of other units and modes, so small that one that is enforced shows."""


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots", "wsp-statistics")
@clause("WSP-07-04", "WSP-01.3-02")
@pytest.mark.parametrize("name", LEAST)
@EVERY_RUNNABLE
def test_an_unusual_window_does_what_its_state_says(impl, check, target, name):
    """Nine tasks run otherwise than in a window of 64, or end with an error, only where it is enforced."""
    declared = state(impl, check, target, name)
    observation = impl.wsp.compile(program=tasks(schedule("round_robin", 3, LEAST[name])), target=target)
    if declared == "unsupported":
        check.status(observation, "UNSUPPORTED_DIRECTIVE")
        return
    usual = behaviour(impl, check, compiled(impl, check, tasks(schedule("round_robin", 3, 64)), target))
    if not isinstance(observation, Rejected):
        observation = impl.wsp.run(package=check.returns(observation)["package"])
    same = not isinstance(observation, Rejected) and check.returns(observation).get("statistics") == usual
    check.equal(not same, declared == "enforced", f"whether {name}, which is {declared}, changes the run")


MECHANISMS: Mapping[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    ("csp", "sync_only_channels"): (
        program(
            process("p", run("w9"), send("c")),
            process("q", receive("c", "x"), run("w3")),
            channels=[channel("c")],
            kernels=work(3, 9),
        ),
        program(process("p", run("w9")), process("q", run("w3")), kernels=work(3, 9)),
    ),
    ("predicates", "cond"): (one_fill(cond(0, [fill(7)], [fill(5)])), one_fill(fill(7))),
    ("predicates", "dispatch_key"): (
        one_fill(fill(7, key=1), fill(7, key=1)),
        one_fill(fill(7, key=1), fill(7, key=2)),
    ),
    ("predicates", "tensor_to_slot"): (one_fill(load("x", "t", 1), fill(slot("x"))), one_fill(fill(slot("x")))),
}
"""By table and name a program that uses the mechanism, and one without it that does something else."""


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots", "wsp-statistics")
@clause("WSP-07-04", "WSP-05.2-02", "WSP-05.2-03")
@pytest.mark.parametrize(("table", "name"), MECHANISMS, ids=[name for _, name in MECHANISMS])
@EVERY_RUNNABLE
def test_an_enforced_mechanism_changes_what_a_run_does(impl, check, target, table, name):
    """One that is recorded or diagnosed changes nothing; one that is unsupported is refused when it is compiled."""
    declared = matrix(impl, check, target)[table].get(name, "unsupported")
    using, without = MECHANISMS[table, name]
    if declared == "unsupported":
        check.status(impl.wsp.compile(program=using, target=target), "UNSUPPORTED_DIRECTIVE")
        return
    actual, other = (behaviour(impl, check, compiled(impl, check, program, target)) for program in (using, without))
    differs = any(actual[member] != other[member] for member in ("tensors", "assignments", "total_cycles"))
    check.equal(differs, declared == "enforced", f"whether {name}, which is {declared}, changes the run")


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots", "wsp-statistics")
@clause("WSP-01.3-03", "WSP-01.3-07")
@pytest.mark.parametrize("target", targets("cpu_sim", "pto_runtime_a2a3sim"))
def test_a_recorded_directive_is_kept_and_changes_nothing(impl, check, target):
    """Its values are in the package, with its state; the run is that of the program without it."""
    usual = schedule("round_robin", 3, 2)
    without = behaviour(impl, check, compiled(impl, check, tasks(usual), target))
    recorded = in_state(impl, check, target, "recorded")
    check.given(len(recorded) > 0, "the target records a directive", matrix(impl, check, target)["directives"])
    for name in recorded:
        answer = check.returns(impl.wsp.compile(program=tasks(directive(name, "near", "7 of 9")), target=target))
        kept = document_of(check, answer["package"])["schedule"]["directives"]
        expected = [{"name": name, "value": value, "state": "recorded"} for value in ("near", "7 of 9")]
        check.equal(kept, expected, "the directives of the package")
        check.equal(answer["diagnostics"], [], "the diagnostics")
        check.equal(behaviour(impl, check, answer["package"]), without, "the run")


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots", "wsp-statistics")
@clause("WSP-01.3-04", "WSP-01.3-08")
@pytest.mark.parametrize("target", targets("cpu_sim", "pto_runtime_a2a3sim"))
def test_a_diagnosed_directive_is_reported_once_and_ignored(impl, check, target):
    """However often it is written, and again for the next program (AMB-WSP-26, AMB-WSP-65)."""
    without = behaviour(impl, check, compiled(impl, check, tasks(schedule("round_robin", 3, 2)), target))
    diagnosed = in_state(impl, check, target, "diagnosed")
    check.given(len(diagnosed) > 0, "the target diagnoses a directive", matrix(impl, check, target)["directives"])
    for name in diagnosed:
        for values in (["4"], ["4", "8", "4"], ["4"]):
            answer = check.returns(impl.wsp.compile(program=tasks(directive(name, *values)), target=target))
            about = [diagnostic for diagnostic in answer["diagnostics"] if name in diagnostic]
            check.equal(len(about), 1, f"the diagnostics that name {name}, written {len(values)} times")
            check.equal(len(answer["diagnostics"]), 1, "all diagnostics")
            check.equal(behaviour(impl, check, answer["package"]), without, "the run")


def in_state(impl, check, target, expected):
    """The further directives of a target in a state."""
    known = (*PROBES, *UNUSUAL)
    return [
        name
        for name, directive in matrix(impl, check, target)["directives"].items()
        if directive == expected and name not in known
    ]


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots")
@clause("WSP-01.3-05")
@pytest.mark.parametrize("name", UNUSUAL)
@EVERY_TARGET
def test_an_unsupported_window_is_refused_when_it_is_compiled(impl, check, target, name):
    """An error, in whatever words; a unit or mode that is supported is not refused."""
    observation = impl.wsp.compile(program=tasks(schedule("round_robin", 3, UNUSUAL[name])), target=target)
    if state(impl, check, target, name) != "unsupported":
        check.returns(observation)
        return
    check.status(observation, "UNSUPPORTED_DIRECTIVE")


@feature("wsp-capabilities", "wsp-expressions", "wsp-kernels", "wsp-packages", "wsp-slots")
@clause("WSP-01.3-05")
@EVERY_TARGET
@pytest.mark.parametrize("name", ["teleport", "placement2", "Prefetch", "dispatch", "place"])
def test_a_directive_that_is_not_in_the_matrix_is_refused(impl, check, target, name):
    """The directive is unsupported (AMB-WSP-29), alone and behind one that is not."""
    check.equal(state(impl, check, target, name), "unsupported", f"the state of {name}")
    for known in ([], in_state(impl, check, target, "recorded"), in_state(impl, check, target, "diagnosed")):
        directives = [{"name": stated, "value": "1"} for stated in (*known[:1], name)]
        plan = schedule("round_robin", 3, 2, directives=directives)
        check.status(impl.wsp.compile(program=tasks(plan), target=target), "UNSUPPORTED_DIRECTIVE")


FEATURES_OF_PROCESSES: Mapping[str, Any] = {
    "several_producers": program(
        *(process(name, send("c")) for name in "pq"),
        process("r", receive("c", "x"), receive("c", "x")),
        channels=[channel("c")],
    ),
    "several_consumers": program(
        process("p", send("c"), send("c")),
        *(process(name, receive("c", "x")) for name in "qr"),
        channels=[channel("c")],
    ),
    "rendezvous": program(process("p", send("c")), process("q", receive("c", "x")), channels=[channel("c", 0)]),
    "latency": program(process("p", send("c")), process("q", receive("c", "x")), channels=[channel("c", latency=3)]),
    "process_kernels": program(process("p", run("w3")), kernels=work(3)),
    "wait": program(process("p", task("w3"), wait()), kernels=work(3)),
}
"""Programs that use one feature of the table csp, beside plain channels, by its name."""


@feature("wsp-capabilities", "wsp-kernels", "wsp-packages")
@clause("WSP-01.3-05")
@pytest.mark.parametrize("name", FEATURES_OF_PROCESSES)
@EVERY_TARGET
def test_an_unsupported_feature_of_processes_is_refused_when_it_is_compiled(impl, check, target, name):
    """Features absent from the table csp are unsupported (AMB-WSP-29), plain channels too; other programs compile."""
    csp, one = matrix(impl, check, target)["csp"], FEATURES_OF_PROCESSES[name]
    stated = one["csp"]["channels"]
    used = [name, *(["sync_only_channels"] if stated else [])]
    for channels in [stated, [channel("plain"), *stated]][: 2 if stated else 1]:
        observation = impl.wsp.compile(program=one | {"csp": one["csp"] | {"channels": channels}}, target=target)
        if any(csp.get(entry, "unsupported") == "unsupported" for entry in used):
            check.status(observation, "UNSUPPORTED_DIRECTIVE")
        else:
            check.accepts(observation, f"a program with {name}")


@feature("wsp-capabilities", "wsp-kernels", "wsp-packages")
@clause("WSP-07.1-03", "WSP-07-04")
@EVERY_TARGET
def test_only_phase_2_claims_back_pressure(impl, check, target):
    """In phase 1 orchestration runs to completion, so that no window or resource is enforced (AMB-WSP-20)."""
    declared = matrix(impl, check, target)
    bounds = {
        name: directive
        for name, directive in declared["directives"].items()
        if name.startswith(("task_window.", "resources.")) and directive == "enforced"
    }
    check.true(declared["phase"] in (1, 2), "the phase is 1 or 2", declared["phase"])
    windowed = program(process("p"), schedule=schedule(window=2))
    check.equal(bounds if declared["phase"] == 1 else {}, {}, "the bounds that phase 1 says to enforce")
    answer = check.returns(impl.wsp.load(package=compiled(impl, check, windowed, target)))
    check.equal(answer["phase"], declared["phase"], "the phase of the package")


@feature("wsp-capabilities", "wsp-kernels", "wsp-packages", "wsp-resources", "wsp-statistics", "wsp-steps")
@clause("WSP-07.1-05", "WSP-07.1-06")
@pytest.mark.parametrize("target", targets("cpu_sim", "pto_runtime_a2a3sim"))
@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_phase_2_tasks_come_step_by_step_into_the_ring(impl, check, target, size):
    """After each instant so many are issued as are complete and as have room; the last comes when there is room."""
    check.equal(matrix(impl, check, target)["phase"], 2, "the phase")
    package = compiled(impl, check, TASK_RING.program, target)
    issued = []
    for actual in instants(impl, check, package, resources={"task_window": size}):
        complete = sum(worker["tasks"] for worker in actual["workers"])
        issued.append(len(actual["assignments"]))
        check.true(issued[-1] - complete <= size, f"at most {size} tasks are in flight", (issued[-1], complete))
    check.equal(issued[0], size, "the tasks that are issued in the first instant")
    check.equal(issued[-1], 6, "the tasks that are issued at the end")


@feature("wsp-kernels", "wsp-packages", "wsp-statistics", "wsp-steps")
@clause("WSP-07.1-07")
@pytest.mark.parametrize("target", targets("cpu_sim", "pto_runtime_a2a3sim"))
def test_in_phase_2_a_task_is_ready_when_its_waits_are_satisfied(impl, check, target):
    """The first task waits for tokens at 9 and 16, the second for one at 12; the third needs none (AMB-WSP-48)."""
    one = program(
        process("issuer", task("w3", waits=["a", "b"]), task("w3", waits=["c"]), task("w3")),
        process("early", run("w9"), send("a"), run("w7"), send("b")),
        process("late", run("w9"), run("w3"), send("c")),
        channels=[channel("a"), channel("b"), channel("c")],
        kernels=work(3, 7, 9),
        schedule=schedule("round_robin", 3, 3),
    )
    actual = statistics(impl, check, compiled(impl, check, one, target))
    check.equal([worker["busy"] for worker in actual["workers"]], [3, 3, 3], "the busy cycles of the workers")
    check.equal(actual["total_cycles"], 19, "the makespan")
    times = [
        [worker["tasks"] for worker in at["workers"]]
        for at in instants(impl, check, compiled(impl, check, one, target))
    ]
    seen = [time for place, time in enumerate(times) if place == 0 or time != times[place - 1]]
    check.equal(seen, [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], "the order in which tasks complete")


@feature("wsp-kernels", "wsp-packages", "wsp-statistics")
@clause("WSP-07.1-07")
def test_a_task_takes_one_token_of_each_channel(impl, check):
    """Two tokens serve two tasks; a third token is left for the process."""
    one = program(
        process("p", task("w3", waits=["a"]), task("w3", waits=["a"]), {"op": "wait"}, receive("a", "x")),
        process("q", send("a", 1), send("a", 2), run("w9"), send("a", 3)),
        channels=[channel("a", 3)],
        kernels=work(3, 9),
        schedule=schedule("round_robin", 2, 3),
    )
    actual = statistics(impl, check, one)
    check.equal(actual["channels"]["a"], {"sent": 3, "taken": 3, "left": 0}, "the tokens")
    check.equal(actual["slots"]["x"], "3", "the token of the process")


@feature("wsp-kernels", "wsp-packages", "wsp-statistics")
@clause("WSP-07.1-07")
def test_a_task_signals_each_channel_and_waits_for_each(impl, check):
    """Five channels between two tasks on two workers; the third of five comes 20 cycles later by another process."""
    names = "abcde"
    one = program(
        process("p", task("w3", signals=[*names[:2], *names[3:]]), task("w3", waits=[*names])),
        process("late", run("w23"), send("c")),
        channels=[channel(name) for name in names],
        kernels=work(3, 23),
        schedule=schedule("round_robin", 2, 3),
    )
    actual = statistics(impl, check, one)
    check.equal(actual["channels"], {name: {"sent": 1, "taken": 1, "left": 0} for name in names}, "the tokens")
    check.equal(actual["total_cycles"], 26, "the makespan")
