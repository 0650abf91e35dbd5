"""The end of pipelines: closing, several producers, consumers that exit (PTO-WSP v10, 2.3)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    close,
    cond,
    consume,
    filler,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    run,
    send,
    slot,
    task,
    tensor,
    wait,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import ends_with_error, noted, ran, under_seeds
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

CLOSES = pytest.mark.parametrize("closes", [[], [close("c")]], ids=["by-its-end", "explicitly"])


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.3-02", "WSP-02.3-03")
@CLOSES
def test_a_channel_is_closed_by_the_close_or_the_end_of_its_producer(impl, check, closes):
    """The consumer has all tokens, those sent just before the close too, and goes on after them (AMB-WSP-24)."""
    source = program(
        process("producer", repeat(5, send("c", op("add", slot("i"), 1)), index="i"), *closes),
        process("consumer", run("w7"), consume("c", "x", note(slot("x")), run("w7")), note(15)),
        channels=[channel("c", 3)],
        kernels=work(7),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "12345f", "every token, then the end")
    check.equal(actual["total_cycles"], 42, "the time of the run")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.3-02")
def test_a_close_is_seen_while_its_producer_goes_on(impl, check):
    """An explicit close ends the consumer; what the producer does afterwards comes later."""
    source = program(
        process("producer", run("w3"), send("c", 1), close("c"), run("w20"), note(14)),
        process("consumer", consume("c", "x", note(slot("x"))), run("w5"), note(15)),
        channels=[channel("c")],
        kernels=work(3, 5, 20),
    )
    check.equal(noted(under_seeds(impl, check, source)), "1fe", "what was noted")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.3-02", "WSP-02.3-03")
@CLOSES
@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_channel_of_several_producers_is_closed_by_the_last(impl, check, closes, last):
    """Three producers, of which each in turn ends last: the consumer has the tokens of all of them (AMB-WSP-02)."""
    producers = [
        process(f"p{index}", run("w9" if index == last else "w2"), send("c", index + 1), *closes) for index in range(3)
    ]
    source = program(
        *producers,
        process("consumer", consume("c", "x", note(slot("x"))), note(15)),
        channels=[channel("c", 2)],
        kernels=work(2, 9),
    )
    log = noted(under_seeds(impl, check, source))
    check.equal(sorted(log[:3]), ["1", "2", "3"], "the tokens of all producers")
    check.equal(log[2:], f"{last + 1}f", "the last token, and the end after it")


@clause("WSP-02.3-02")
@pytest.mark.parametrize("first", [[], [send("c", 1)]], ids=["no-token", "a-token"])
def test_a_send_after_a_close_is_an_error(impl, check, first):
    """The error names its code and the process; the token is not sent (AMB-WSP-03)."""
    source = program(
        process("other", send("c", 7)),
        process("producer", run("w2"), *first, close("c"), send("c", 2)),
        process("consumer", consume("c", "x")),
        channels=[channel("c", 4)],
        kernels=work(2),
    )
    result = ran(impl, check, source)
    ends_with_error(check, result, "SEND_AFTER_CLOSE", "producer")
    check.equal(result["statistics"]["channels"]["c"]["sent"], 1 + len(first), "the tokens that were sent")


@clause("WSP-02.3-02")
@pytest.mark.parametrize("signals", [["c", "d"], ["d", "c"]], ids=["first", "last"])
def test_a_task_that_signals_a_closed_channel_among_others_is_an_error(impl, check, signals):
    """The process has closed c, and not d: neither has a token of the task (AMB-WSP-03)."""
    source = program(
        process("producer", close("c"), task("fill", "t", 1, signals=signals)),
        process("one", consume("c", "x")),
        process("two", consume("d", "y")),
        channels=[channel("c", 4), channel("d", 4)],
        kernels=[filler("fill", 5)],
        tensors=[tensor("t", "i32", [0])],
    )
    result = ran(impl, check, source)
    ends_with_error(check, result, "SEND_AFTER_CLOSE", "producer")
    check.equal([result["statistics"]["channels"][name]["sent"] for name in "cd"], [0, 0], "the tokens that were sent")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.3-02")
def test_a_process_that_closes_one_channel_sends_into_another(impl, check):
    """A close is of one channel."""
    source = program(
        process("producer", close("c"), send("d", 5)),
        process("first", consume("c", "x", note(1)), note(2)),
        process("second", run("w3"), consume("d", "y", note(slot("y"))), note(6)),
        channels=[channel("c"), channel("d")],
        kernels=work(3),
    )
    check.equal(noted(under_seeds(impl, check, source)), "256", "what was noted")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.3-02")
def test_a_producer_ends_before_its_tasks_signal(impl, check):
    """The channel stays open until the last task of the process that signals it is complete (AMB-WSP-41)."""
    source = program(
        process("producer", *(task(f"w{number}", signals=["c"]) for number in (5, 9, 2))),
        process("consumer", consume("c", "x", note(op("add", slot("x"), 1))), note(15)),
        channels=[channel("c")],
        kernels=work(2, 5, 9),
    )
    check.equal(noted(under_seeds(impl, check, source)), "123f", "the tokens of the tasks, then the end")


@feature("wsp-seeds")
@clause("WSP-02.3-03")
def test_a_consumer_of_no_token_ends(impl, check):
    """A channel that is closed before any send; a cond that never sends makes its process a producer all the same."""
    for never in (cond(0, [send("c")]), cond(1, [], [send("c")])):
        source = program(
            process("producer", run("w3"), never, note(1)),
            process("consumer", consume("c", "x", note(2)), run("w2"), note(15)),
            channels=[channel("c")],
            kernels=work(2, 3),
        )
        actual = under_seeds(impl, check, source)
        check.equal(noted(actual), "1f", "what was noted")


@feature("wsp-seeds")
@clause("WSP-02.3-03")
def test_every_consumer_of_a_closed_channel_ends(impl, check):
    """Three consumers, which all wait when the channel is closed."""
    consumers = [process(f"q{number}", consume("c", f"x{number}", run("w4")), note(number)) for number in (1, 2, 3)]
    source = program(
        process("producer", send("c"), send("c"), run("w9")), *consumers, channels=[channel("c")], kernels=work(4, 9)
    )
    actual = under_seeds(impl, check, source)
    check.equal(sorted(noted(actual)), ["1", "2", "3"], "the consumers that ended")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.3-03")
def test_the_stages_of_a_pipeline_end_one_after_the_other(impl, check):
    """Four stages; each adds one to a token and ends after the one before it."""
    names = ["a", "b", "c", "d"]
    stages = [
        process(
            f"s{place}",
            consume(before, f"x{place}", run("w2"), send(after, op("add", slot(f"x{place}"), 1))),
            run("w9"),
            note(place + 10),
        )
        for place, (before, after) in enumerate(pairwise(names))
    ]
    source = program(
        process("source", repeat(4, send("a", slot("i")), index="i")),
        *stages,
        process("sink", consume("d", "y", note(slot("y")))),
        channels=[channel(name) for name in names],
        kernels=work(2, 9),
    )
    log = noted(under_seeds(impl, check, source))
    check.equal("".join(letter for letter in log if letter < "a"), "3456", "tokens at the end of the pipeline")
    check.equal("".join(letter for letter in log if letter >= "a"), "abc", "the ends of the stages")


@feature("wsp-slots")
@clause("WSP-02.3-03")
def test_a_receive_from_a_channel_that_is_closed_and_empty_is_an_error(impl, check):
    """Tokens sent before the close are received before the error (AMB-WSP-58)."""
    source = program(
        process("producer", send("c", 5)),
        process("consumer", run("w3"), receive("c", "x"), note(slot("x")), receive("c", "x"), note(6)),
        channels=[channel("c")],
        kernels=work(3),
    )
    result = ran(impl, check, source)
    ends_with_error(check, result, "RECEIVE_AFTER_CLOSE", "consumer")
    check.equal(result["error"]["time"], 3, "the time of the error")
    check.equal(noted(result["statistics"]), "5", "what was received before")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.3-03")
def test_wait_and_the_end_of_a_consumer_are_two_things(impl, check):
    """A consumer that issues tasks ends with its channel, and its `wait` lasts until they are complete."""
    source = program(
        process("producer", send("c", 1), send("c", 2)),
        process("consumer", consume("c", "x", task("w20"), note(slot("x"))), note(10), wait(), note(11)),
        process("clock", run("w30"), note(12)),
        channels=[channel("c")],
        kernels=work(20, 30),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "12acb", "what was noted")


@feature("wsp-seeds")
@clause("WSP-02.3-03", "WSP-02.4-03")
@pytest.mark.parametrize("latency", [0, 1, 6])
def test_a_close_is_seen_after_the_latency(impl, check, latency):
    """A close travels as long as a token: each stage ends one latency after the one before it (AMB-WSP-40).

    So does a consumer that comes between the close and the time at which it is seen.
    """
    source = program(
        process("sink", consume("d", "y"), note(15)),
        process("stage", consume("c", "x")),
        process("late", run("w3"), consume("c", "z")),
        process("other", run("w3"), close("d")),
        process("source", cond(0, [send("c")])),
        channels=[channel("c", latency=latency), channel("d", latency=latency)],
        kernels=work(3),
    )
    actual = under_seeds(impl, check, source)
    expected = {"sink": 3 + latency, "stage": latency, "late": max(3, latency), "other": 3, "source": 0}
    check.equal(actual["processes"], expected, "the times")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.1-04", "WSP-02.3-02")
def test_tokens_of_several_producers_are_in_the_order_of_their_sends(impl, check):
    """Two that send at one time are ordered by index; a full channel serves the first that came (AMB-WSP-42)."""
    source = program(
        process("p", run("w4"), send("c", 1), run("w4"), send("c", 4)),
        process("q", run("w2"), send("c", 2), run("w5"), send("c", 5)),
        process("r", run("w4"), send("c", 3)),
        process("consumer", run("w30"), consume("c", "x", note(slot("x")), run("w2"))),
        channels=[channel("c", 2)],
        kernels=work(2, 4, 5, 30),
    )
    check.equal(noted(under_seeds(impl, check, source)), "21354", "the tokens in order of their sends")
