"""Deadlocks of channels and bounded resources: that they are found, and what the report says (section 3.3)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.deadlocks import DEADLOCKS, HELPED, enlarged, window_and_channel
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    close,
    consume,
    filler,
    load,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    scope,
    send,
    symbol,
    symbol_of,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, ran, statistics
from tessera_conformance.marks import clause, feature
from tessera_conformance.schemas import validator

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

CORPUS = pytest.mark.parametrize("deadlock", DEADLOCKS, ids=lambda deadlock: deadlock.name)
MEMBERS = ("time", "window", "channels", "waiting", "scopes", "held_by_scopes", "mitigations")


def reported(check, result):
    """The report of a run that ends in a deadlock."""
    check.equal(result["outcome"], "deadlock", "the outcome")
    report = result.get("deadlock", {})
    check.equal([member for member in MEMBERS if member not in report], [], "the members that the report lacks")
    return report


def suggested(report):
    """The mitigations of a report, each with the values of its settings by knob."""
    return [
        (
            mitigation,
            {
                setting["knob"]: setting["at_least"]
                for setting in (mitigation, *mitigation.get("also", []))
                if "at_least" in setting
            },
        )
        for mitigation in report["mitigations"]
    ]


@feature("wsp-resources", "wsp-scopes", "wsp-seeds")
@clause("WSP-03.3-01", "WSP-03.3-03", "WSP-07.1-08")
@CORPUS
def test_a_deadlock_is_found_and_reported(impl, check, deadlock):
    """The report comes when nothing can happen any more, has the statistics so far, and is equal under other seeds."""
    package = compiled(impl, check, deadlock.program)
    result = ran(impl, check, package)
    report = reported(check, result)
    check.equal(report["time"], deadlock.time, "the time of the report")
    for seed in range(5):
        check.equal(ran(impl, check, package, seed=seed), result, f"the result under seed {seed}")


@feature("wsp-resources", "wsp-scopes")
@clause("WSP-03.3-03")
@CORPUS
def test_the_report_is_structured(impl, check, deadlock):
    """The report follows the schema `schemas/wsp_report.schema.json`."""
    report = reported(check, ran(impl, check, deadlock.program))
    errors = [error.message[:200] for error in validator("tessera:wsp-report").iter_errors(report)]
    check.equal(errors, [], "what does not follow the schema")


@feature("wsp-resources", "wsp-scopes")
@clause("WSP-03.3-04", "WSP-03.3-05")
@CORPUS
def test_the_report_gives_the_use_and_the_mark_of_the_window(impl, check, deadlock):
    """The report has the window's size, the slots in use, and their highest number."""
    window = reported(check, ran(impl, check, deadlock.program))["window"]
    size, used, high_water = deadlock.window
    check.equal(window, {"size": size, "used": used, "high_water": high_water}, "the window")


@clause("WSP-03.3-05")
def test_the_mark_of_the_window_stays_when_its_slots_are_freed(impl, check):
    """Three tasks are complete before two processes wait for each other."""
    one = program(
        process("a", *[task("w3")] * 3, wait(), receive("c", "x"), send("d")),
        process("b", receive("d", "x"), send("c")),
        channels=[channel("c"), channel("d")],
        kernels=work(3),
        schedule=schedule("round_robin", 2, 5),
    )
    window = reported(check, ran(impl, check, one))["window"]
    check.equal(window, {"size": 5, "used": 0, "high_water": 3}, "the window")


@feature("wsp-resources", "wsp-scopes")
@clause("WSP-03.3-06", "WSP-03.3-10")
@CORPUS
def test_the_report_names_the_channels_that_block(impl, check, deadlock):
    """Channels that block are named with their state; channels without a waiting process are not."""
    report = reported(check, ran(impl, check, deadlock.program))
    actual = {channel["name"]: channel["state"] for channel in report["channels"]}
    check.equal(sorted(actual), sorted(deadlock.channels), "the channels that block")
    check.equal(actual, dict(deadlock.channels), "their states")


@feature("wsp-resources", "wsp-scopes")
@clause("WSP-03.3-07", "WSP-03.3-08")
@CORPUS
def test_the_report_names_who_waits_and_why(impl, check, deadlock):
    """Each process that waits, once, with the reason and the channel or resource; none that is done."""
    report = reported(check, ran(impl, check, deadlock.program))
    actual = [wait for wait in report["waiting"] if "task" not in wait]
    check.equal(sorted(wait["process"] for wait in actual), sorted(deadlock.waiting), "the processes that wait")
    why = {wait["process"]: [wait["reason"], wait["for"]] for wait in actual}
    check.equal(why, {name: list(waits) for name, waits in deadlock.waiting.items()}, "why they wait")


@clause("WSP-03.3-08", "WSP-03.3-07")
def test_the_report_says_that_a_process_waits_for_its_tasks(impl, check):
    """The report names the task that waits, and the channel whose token it waits for."""
    one = program(
        process("p", task("w3"), task("w7", waits=["go"]), wait(), send("go")),
        channels=[channel("go"), channel("other")],
        kernels=work(3, 7),
        schedule=schedule("round_robin", 2),
    )
    waiting = reported(check, ran(impl, check, one))["waiting"]
    actual = [(wait.get("task"), wait["process"], wait["reason"], wait["for"]) for wait in waiting]
    expected = [(None, "p", "TASK_WAIT", "tasks"), (1, "p", "CHANNEL_EMPTY_WAIT", "go")]
    check.equal(sorted(actual, key=lambda row: row[0] is not None), expected, "the process and the task that wait")


@clause("WSP-03.3-08", "WSP-03.3-07")
def test_the_report_says_that_a_task_waits_for_another(impl, check):
    """The second task writes what the first one writes, which waits for a token that comes after both."""
    one = program(
        process("p", task("five", "a", 1, waits=["go"]), task("five", "a", 2), wait(), send("go")),
        channels=[channel("go")],
        kernels=[filler("five", 5)],
        tensors=[tensor("a", "u8", [0])],
        schedule=schedule("round_robin", 2),
    )
    waiting = reported(check, ran(impl, check, one))["waiting"]
    actual = {wait.get("task"): (wait["process"], wait["reason"], wait["for"]) for wait in waiting}
    tasks = ("p", "TASK_WAIT", "tasks")
    check.equal(actual, {None: tasks, 0: ("p", "CHANNEL_EMPTY_WAIT", "go"), 1: tasks}, "who waits, and for what")


@clause("WSP-03.3-10", "WSP-03.3-06")
def test_a_full_channel_of_a_task_that_signals(impl, check):
    """The second signal finds the channel full, and keeps its worker; the consumer wants another channel first."""
    one = program(
        process("p", task("w3", signals=["done"]), task("w7", signals=["done"]), wait(), send("first")),
        process("q", receive("first", "x"), consume("done", "x")),
        channels=[channel("first"), channel("done")],
        kernels=work(3, 7),
        schedule=schedule("round_robin", 2),
    )
    report = reported(check, ran(impl, check, one))
    states = {
        channel["name"]: (channel["state"], channel["capacity"], channel["tokens"]) for channel in report["channels"]
    }
    check.equal(states, {"first": ("empty", 1, 0), "done": ("full", 1, 1)}, "the channels that block")
    tasks = [(wait["task"], wait["reason"], wait["for"]) for wait in report["waiting"] if "task" in wait]
    check.equal(tasks, [(1, "CHANNEL_FULL_WAIT", "done")], "the task that waits")


@clause("WSP-03.3-10", "WSP-03.3-06")
def test_the_report_gives_the_room_of_the_channels_that_block(impl, check):
    """Capacity and tokens, and that nobody has closed them: of a full channel, and of an empty one with more room."""
    one = program(
        process("p", *[send("a")] * 4, send("b")),
        process("q", receive("b", "x"), consume("a", "x")),
        process("r", send("c")),
        channels=[channel("a", 3), channel("b", 5), channel("c", 2)],
    )
    names = ("state", "capacity", "tokens", "closed")
    channels = {
        channel["name"]: [channel[name] for name in names]
        for channel in reported(check, ran(impl, check, one))["channels"]
    }
    check.equal(channels, {"a": ["full", 3, 3, False], "b": ["empty", 5, 0, False]}, "the channels that block")


@feature("wsp-resources", "wsp-scopes")
@clause("WSP-03.3-09", "WSP-03.4.3-06")
@pytest.mark.parametrize("deadlock", HELPED, ids=lambda deadlock: deadlock.name)
def test_a_setting_that_is_suggested_helps(impl, check, deadlock):
    """Each setting that would help is named, and with the value that is suggested the program completes."""
    settings = {
        knob: (mitigation["why"], values)
        for mitigation, values in suggested(reported(check, ran(impl, check, deadlock.program)))
        for knob in values
    }
    check.equal(
        [suggestion for suggestion in deadlock.knobs if suggestion not in settings],
        [],
        "the knobs that are not suggested",
    )
    for knob, least in deadlock.knobs.items():
        why, values = settings[knob]
        check.true(bool(why), "the suggestion says why", settings[knob])
        larger, resources = enlarged(deadlock.program, values)
        statistics(impl, check, larger, resources=resources)
        smaller, resources = enlarged(deadlock.program, {knob: least - 1})
        check.equal(ran(impl, check, smaller, resources=resources)["outcome"], "deadlock", f"with {knob} one less")


@feature("wsp-expressions", "wsp-resources")
@clause("WSP-03.3-09")
@pytest.mark.parametrize(
    "inputs",
    [{"symbols": {"n": "7"}}, {"resources": {"task_window": 2, "ready_queue": 2}}],
    ids=["symbols", "resources"],
)
def test_a_setting_that_is_suggested_helps_with_the_inputs_of_the_run(impl, check, inputs):
    """A symbol says how many tasks wait for tokens to come; each suggestion is tried beside what the run was given."""
    one = program(
        process("issuer", repeat(symbol("n"), task("w3", waits=["go"])), repeat(symbol("n"), send("go"))),
        channels=[channel("go", 7)],
        kernels=work(3),
        symbols=[symbol_of("n", 3)],
        schedule=schedule("round_robin", 1, 3),
    )
    package = compiled(impl, check, one)
    suggestions = [values for _, values in suggested(reported(check, ran(impl, check, package, **inputs))) if values]
    check.true(bool(suggestions), "a setting is suggested")
    for values in suggestions:
        more = {**inputs, "resources": {**inputs.get("resources", {}), **values}}
        check.equal(ran(impl, check, package, **more)["outcome"], "completed", f"the outcome with {values}")


@clause("WSP-03.3-09")
def test_where_no_setting_helps_none_is_suggested(impl, check):
    """Processes that wait in a circle for tokens of each other need another program."""
    mitigations = reported(check, ran(impl, check, DEADLOCKS[0].program))["mitigations"]
    check.true(len(mitigations) > 0, "there is a suggestion")
    check.equal([mitigation["knob"] for mitigation in mitigations], ["restructure"], "the suggestions")


@feature("wsp-scopes")
@clause("WSP-03.3-01", "WSP-03.3-03")
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            program(
                process("p", run("w3"), send("c"), receive("d", "x")),
                process("q", receive("c", "x"), run("slow"), send("d")),
                channels=[channel("c", latency=4_000_000_000), channel("d", latency=4_000_000_000)],
                kernels=[*work(3), {**work(1)[0], "name": "slow", "cycles": {"fixed": 4_000_000_000}}],
            ),
            id="long latencies and kernels",
        ),
        pytest.param(
            program(
                process("p", scope(*[task("w3")] * 3), *[task("w7")] * 4),
                process("q", *[task("w9")] * 5),
                kernels=work(3, 7, 9),
                schedule=schedule("round_robin", 2, 3),
            ),
            id="a scope as large as the window, and others that stall",
        ),
        pytest.param(
            program(
                process("p", repeat(40, send("c")), close("c"), receive("d", "x")),
                process("q", consume("c", "x", run("w3")), send("d")),
                channels=[channel("c"), channel("d")],
                kernels=work(3),
            ),
            id="a producer that waits for its consumer's end",
        ),
        pytest.param(
            program(
                process("p", *[task("w3", waits=["go"])] * 3),
                process("q", repeat(3, run("w9"), send("go"))),
                channels=[channel("go")],
                kernels=work(3, 9),
                schedule=schedule("round_robin", 2, 1),
            ),
            id="a full window of tasks that wait for tokens to come",
        ),
        pytest.param(program(process("p"), process("q", wait(), scope())), id="processes that do nothing"),
        pytest.param(
            program(process("p", send("c"), send("c")), channels=[channel("c", 2)]), id="tokens that nobody takes"
        ),
    ],
)
def test_what_is_no_deadlock_is_not_reported(impl, check, one):
    """A run that waits long, stalls often or leaves tokens completes."""
    result = ran(impl, check, one)
    check.equal(result["outcome"], "completed", "the outcome")
    check.true("deadlock" not in result, "there is no report", sorted(result))


@feature("wsp-resources")
@clause("WSP-03.3-01", "WSP-03.2-03")
def test_the_same_program_completes_with_a_window_that_suffices(impl, check):
    """Three tasks that wait for tokens of their issuer need three slots, seven tasks seven."""
    for window, tasks in ((2, 3), (6, 7)):
        deadlock = window_and_channel(window, tasks)
        check.equal(ran(impl, check, deadlock.program)["outcome"], "deadlock", f"the outcome with {window} slots")
        actual = statistics(impl, check, deadlock.program, resources={"task_window": tasks})
        check.equal(actual["high_water"]["task_ring"], tasks, "the high-water mark")


@feature("wsp-expressions", "wsp-slots")
@clause("WSP-03.3-01", "WSP-03.3-07")
def test_a_circle_beside_a_process_that_spins_is_found(impl, check):
    """Three wait for each other when a fourth begins to load an element forever, which is no progress (AMB-WSP-80)."""
    waiters = {"a": ("ca", "cb"), "b": ("cb", "cc"), "c": ("cc", "ca")}
    stated = program(
        *(process(name, receive(own, "x"), send(other)) for name, (own, other) in waiters.items()),
        process("d", run("w3"), repeat(2**64 - 1, load("seen", "t", 0))),
        channels=[channel(name) for name in ("ca", "cb", "cc")],
        kernels=work(3),
        tensors=[tensor("t", "i32", [1])],
        schedule=schedule(window=64),
    )
    report = reported(check, ran(impl, check, stated))
    waiting = {wait["process"]: (wait["reason"], wait["for"]) for wait in report["waiting"]}
    check.equal(waiting, {name: ("CHANNEL_EMPTY_WAIT", own) for name, (own, _) in waiters.items()}, "who waits")


@clause("WSP-03.3-03", "WSP-02.4-01")
def test_the_time_of_a_process_in_a_deadlock_is_when_it_came_to_wait(impl, check):
    """After its last kernel or token, and not when the run is given up (AMB-WSP-81)."""
    stated = program(
        process("early", run("w3"), receive("a", "x")),
        process("late", run("w7"), receive("b", "x")),
        process("woken", receive("c", "x"), receive("a", "x")),
        process("sender", run("w7"), run("w3"), *[send(token) for token in "cccab"]),
        process("done", run("w40")),
        channels=[channel(name) for name in "abc"],
        kernels=work(3, 7, 40),
        schedule=schedule(window=64),
    )
    result = ran(impl, check, stated)
    check.equal(reported(check, result)["time"], 40, "the time of the deadlock")
    times = {"early": 3, "late": 7, "woken": 10, "sender": 10, "done": 40}
    check.equal(result["statistics"]["processes"], times, "the times of the processes")
