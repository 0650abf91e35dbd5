"""Deadlocks of processes and channels, and their reports (PTO-WSP v10, 3.3), through `wsp.execute`.

What a report is to say of who waits follows from the model of section 2.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.networks import (
    channel,
    channels,
    close,
    completed,
    consume,
    deadlocked,
    model_of,
    network,
    process,
    run,
    send,
    sends,
    task,
    work,
)
from tessera_conformance.marks import clause


def circle(size):
    """Processes of which each waits for a token of the one before it; another one is done."""
    names = [f"c{place}" for place in range(size)]
    waiters = [
        process(f"p{place}", run("w3"), consume(name, send(names[(place + 1) % size])))
        for place, name in enumerate(names)
    ]
    return network(*waiters, process("done", run("w7")), channels=channels(*names), kernels=work(3, 7), window=4)


def crossed(capacity):
    """A producer fills one channel before it sends into the other, which its consumer wants first."""
    return network(
        process("producer", *sends("data", range(capacity + 1)), send("go", 1), close("data"), close("go")),
        process("consumer", consume("go", consume("data"))),
        channels=[channel("data", capacity), channel("go")],
        window=8,
    )


def after_work():
    """Tasks are complete and tokens have been exchanged before two processes wait for each other."""
    return network(
        process("a", task("w3"), task("w3"), *sends("x", (1, 2, 3)), close("x"), consume("c", send("d"))),
        process("b", consume("d", send("c"))),
        process("sink", consume("x", run("w5"))),
        channels=channels("x", "c", "d"),
        kernels=work(3, 5),
        policy="round_robin",
        workers=2,
        window=2,
    )


def both_full():
    """Two processes send to each other before they take."""
    return network(
        process("a", *sends("ab", (1, 2)), close("ab"), consume("ba")),
        process("b", *sends("ba", (1, 2)), close("ba"), consume("ab")),
        channels=channels("ab", "ba"),
        window=1,
    )


def one_branch():
    """A pipeline that is done, beside two processes that wait for each other, and one that waits for them."""
    return network(
        process("source", *sends("s", (1, 2, 3)), close("s")),
        process("sink", consume("s", run("w2"))),
        process("a", consume("c", send("d"))),
        process("b", consume("d", send("c"), send("e"))),
        process("late", consume("e")),
        channels=channels("s", "c", "d", "e"),
        kernels=work(2),
        window=3,
    )


DEADLOCKS = {
    "circle-2": circle(2),
    "circle-5": circle(5),
    "crossed-1": crossed(1),
    "crossed-4": crossed(4),
    "after-work": after_work(),
    "both-full": both_full(),
    "one-branch": one_branch(),
}
CORPUS = pytest.mark.parametrize("program", DEADLOCKS.values(), ids=DEADLOCKS)


@clause("WSP-03.3-01", "WSP-07.1-08")
@CORPUS
def test_a_deadlock_is_found(impl, check, program):
    """The run ends, in every of several runs, and says that it is a deadlock."""
    for _ in range(5):
        deadlocked(impl, check, program)


@clause("WSP-03.3-03")
@CORPUS
def test_a_deadlock_has_a_structured_report(impl, check, program):
    """Window, channels, who waits, and what would help."""
    report = deadlocked(impl, check, program)
    lacking = [name for name in ("window", "channels", "waiting", "mitigations") if name not in report]
    check.equal(lacking, [], "the members that the report lacks")


@clause("WSP-03.3-04", "WSP-03.3-05")
@CORPUS
def test_the_report_gives_the_use_and_the_mark_of_the_window(impl, check, program):
    """No task is in flight any more; where two were issued, at least one was."""
    window = deadlocked(impl, check, program)["window"]
    size = program["task_window"]["size"]
    issued = sum(statement["op"] == "task" for process in program["processes"] for statement in process["body"])
    check.equal((window["size"], window["used"]), (size, 0), "size and use of the window")
    least, most = min(issued, 1), min(issued, size)
    check.true(least <= window["high_water"] <= most, f"the mark is from {least} to {most}", window)


@clause("WSP-03.3-06", "WSP-03.3-10")
@CORPUS
def test_the_report_names_the_channels_that_block(impl, check, program):
    """Channels that block are named with their state; channels without a waiting process are not."""
    report = deadlocked(impl, check, program)
    states = {channel["name"]: channel["state"] for channel in report["channels"]}
    check.equal(sorted(states), sorted(model_of(program).channels), "the channels that block")
    check.equal(states, dict(model_of(program).channels), "their states")


@clause("WSP-03.3-07", "WSP-03.3-08")
@CORPUS
def test_the_report_names_who_waits_and_why(impl, check, program):
    """Each process that waits, once, with the channel and a reason; none that is done."""
    waiting = deadlocked(impl, check, program)["waiting"]
    expected = {name: channel for name, (channel, _) in model_of(program).waiting.items()}
    check.equal(sorted(wait["process"] for wait in waiting), sorted(expected), "the processes that wait")
    check.equal({wait["process"]: wait["for"] for wait in waiting}, expected, "what they wait for")
    names = ["", *(stated["name"] for part in ("processes", "channels") for stated in program[part])]
    check.equal([wait["process"] for wait in waiting if wait["reason"] in names], [], "the processes without a reason")


@clause("WSP-03.3-09")
@CORPUS
def test_the_report_suggests_what_would_help(impl, check, program):
    """The report has at least one suggestion, in words."""
    mitigations = deadlocked(impl, check, program)["mitigations"]
    check.true(bool(mitigations) and all(mitigations), "there is a suggestion", mitigations)


@clause("WSP-03.3-01")
@pytest.mark.parametrize("capacity", [1, 3])
def test_a_larger_capacity_ends_a_deadlock_of_a_full_channel(impl, check, capacity):
    """The same program with one more place completes."""
    deadlocked(impl, check, crossed(capacity))
    program = crossed(capacity)
    program["channels"][0]["capacity"] = capacity + 1
    completed(impl, check, program)


WAITING = {
    "long kernels": network(
        process("p", run("long"), send("c", 1), close("c")),
        process("q", consume("c", run("long"))),
        channels=channels("c"),
        kernels=[{"name": "long", "cycles": 1_000_000}],
    ),
    "a producer that waits for the end of its consumer": network(
        process("p", *sends("c", range(40)), close("c"), consume("d")),
        process("q", consume("c", run("w3")), close("d")),
        channels=channels("c", "d"),
        kernels=work(3),
    ),
    "a window that is often full": network(
        process("p", *[task("w3")] * 30), process("q", *[run("w9")] * 3), kernels=work(3, 9), window=1
    ),
    "processes that do nothing": network(process("p"), process("q"), channels=channels("c")),
    "to and fro": network(
        process("p", *sends("a", range(9)), close("a")),
        process("q", consume("a", send("b")), close("b")),
        process("r", consume("b", send("d")), close("d")),
        process("s", consume("d")),
        channels=channels("a", "b", "d"),
    ),
}


@clause("WSP-03.3-01", "WSP-03.3-03")
@pytest.mark.parametrize("program", WAITING.values(), ids=WAITING)
def test_what_is_no_deadlock_is_not_reported(impl, check, program):
    """A run that waits long or often completes, and has no report."""
    for _ in range(5):
        check.true("deadlock" not in completed(impl, check, program), "there is no report")
