"""The end of pipelines, judged by tokens and outcomes alone (PTO-WSP v10, 2.3), through `wsp.execute`."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.networks import (
    RUNS,
    arrivals,
    channel,
    channels,
    close,
    completed,
    completed_runs,
    consume,
    ended,
    kernels,
    network,
    process,
    run,
    send,
    sends,
    work,
)
from tessera_conformance.marks import clause

COUNTS = pytest.mark.parametrize("count", [1, 2, 6])


@clause("WSP-02.3-02", "WSP-02.3-03")
@COUNTS
@pytest.mark.parametrize("capacity", [1, 3, 6])
def test_a_consumer_ends_when_its_channel_is_closed(impl, check, count, capacity):
    """The run completes, and the consumer has all tokens."""
    program = network(
        process("producer", *sends("c", range(count)), close("c")),
        process("consumer", consume("c")),
        channels=[channel("c", capacity)],
    )
    for ending in completed_runs(impl, check, program, RUNS // 4):
        check.equal(arrivals(ending, "consumer"), list(range(count)), "the tokens of the consumer")


@clause("WSP-02.3-03")
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_consumer_has_the_tokens_that_were_sent_before_the_close(impl, check, count):
    """All tokens are in the channel, which is closed, before the consumer takes the first."""
    program = network(
        process("producer", *sends("c", range(count)), close("c"), send("go", 9), close("go")),
        process("consumer", consume("go", run("w50"), consume("c"))),
        channels=[channel("c", count), channel("go")],
        kernels=work(50),
    )
    for ending in completed_runs(impl, check, program, RUNS // 4):
        check.equal(arrivals(ending, "consumer", "c"), list(range(count)), "the tokens of the consumer")


@clause("WSP-02.3-02")
@COUNTS
def test_the_end_of_a_producer_closes_its_channel(impl, check, count):
    """A channel is closed when its producer ends, without an explicit close (AMB-WSP-24)."""
    program = network(
        process("producer", *sends("c", range(count))), process("consumer", consume("c")), channels=channels("c")
    )
    ending = ended(impl, check, program)
    check.reading("AMB-WSP-24", "explicit close only", _waits_for(ending, "consumer", "c"))
    check.equal(ending["outcome"], "completed", "the outcome")
    check.equal(arrivals(ending, "consumer"), list(range(count)), "the tokens of the consumer")


@clause("WSP-02.3-02", "WSP-02.3-03")
@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_channel_of_several_producers_is_closed_by_the_last(impl, check, last):
    """Each producer in turn is the last, by a token that the others send it (AMB-WSP-02)."""
    others = [place for place in range(3) if place != last]
    early = [
        process(f"p{place}", send("c", place), close("c"), send(f"d{place}", place), close(f"d{place}"))
        for place in others
    ]
    late = process(f"p{last}", consume(f"d{others[0]}", consume(f"d{others[1]}", send("c", last), close("c"))))
    program = network(
        *early, late, process("consumer", consume("c")), channels=channels("c", *(f"d{place}" for place in others))
    )
    for _ in range(RUNS // 4):
        ending = ended(impl, check, program)
        tokens = arrivals(ending, "consumer")
        lost = ending["outcome"] != "deadlock" and last not in tokens and set(tokens) < {0, 1, 2}
        check.reading("AMB-WSP-02", "first close wins", lost)
        check.equal(ending["outcome"], "completed", "the outcome")
        check.equal(sorted(tokens), [0, 1, 2], "the tokens of all producers")
        check.equal(tokens[-1], last, "the last token")


@clause("WSP-02.3-02")
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_send_after_a_close_is_an_error(impl, check, before):
    """The token does not arrive, and the run says so (AMB-WSP-03)."""
    program = network(
        process("producer", *sends("c", range(before)), close("c"), send("c", 77)),
        process("consumer", consume("c")),
        channels=[channel("c", 4)],
    )
    ending = ended(impl, check, program)
    tokens = arrivals(ending, "consumer")
    check.true(77 not in tokens, "the token does not arrive", tokens)
    check.reading("AMB-WSP-03", "dropped", ending["outcome"] == "completed" and tokens == list(range(before)))
    check.equal(ending["outcome"], "error", "the outcome")
    check.true(bool(ending.get("error")), "the error says what is wrong", ending.get("error"))


@clause("WSP-02.3-02")
def test_a_close_is_of_one_channel(impl, check):
    """The producer closes one channel and sends into another afterwards."""
    program = network(
        process("producer", close("c"), *sends("d", (5, 6)), close("d")),
        process("first", consume("c")),
        process("second", consume("d")),
        channels=channels("c", "d"),
    )
    ending = completed(impl, check, program)
    check.equal((arrivals(ending, "first"), arrivals(ending, "second")), ([], [5, 6]), "the tokens of both consumers")


@clause("WSP-02.3-02", "WSP-02.3-03")
def test_a_close_is_seen_while_its_producer_goes_on(impl, check):
    """The producer closes a channel, and goes on when its consumer, which that ends, has answered."""
    program = network(
        process("producer", *sends("c", (1, 2)), close("c"), consume("back")),
        process("consumer", consume("c"), send("back", 3), close("back")),
        channels=channels("c", "back"),
    )
    ending = ended(impl, check, program)
    check.reading("AMB-WSP-54", "the process", _ended_with(ending, "producer"))
    check.equal(ending["outcome"], "completed", "the outcome")
    check.equal(arrivals(ending, "producer"), [3], "the answer")


@clause("WSP-02.3-03")
@pytest.mark.parametrize("tokens", [0, 1, 4])
def test_a_process_goes_on_after_its_consumer_has_ended(impl, check, tokens):
    """The consume ends with the channel; the process goes on (AMB-WSP-54)."""
    program = network(
        process("producer", *sends("c", range(tokens)), close("c")),
        process("consumer", consume("c", run("w2")), run("w5")),
        channels=channels("c"),
        kernels=work(2, 5),
    )
    ending = completed(impl, check, program)
    actual = kernels(ending, "consumer")
    check.reading("AMB-WSP-54", "the process", actual == ["w2"] * tokens)
    check.equal(actual, ["w2"] * tokens + ["w5"], "the kernels of the consumer")


@clause("WSP-02.3-03")
@pytest.mark.parametrize("channels_without_tokens", [1, 4])
def test_a_consumer_of_no_token_ends(impl, check, channels_without_tokens):
    """A channel that is closed before any token is sent."""
    names = [f"c{place}" for place in range(channels_without_tokens)]
    program = network(
        process("producer", run("w3"), *map(close, names)),
        *(process(f"q{name}", consume(name)) for name in names),
        channels=channels(*names),
        kernels=work(3),
    )
    for ending in completed_runs(impl, check, program, RUNS // 4):
        check.equal([arrivals(ending, f"q{name}") for name in names], [[]] * len(names), "the tokens")


@clause("WSP-02.3-03")
@pytest.mark.parametrize("consumers", [2, 3, 6])
def test_every_consumer_of_a_closed_channel_ends(impl, check, consumers):
    """All of them wait when the channel is closed, or come later."""
    program = network(
        process("producer", *sends("c", (1, 2)), run("w9"), close("c")),
        *(process(f"q{place}", consume("c", run("w4"))) for place in range(consumers)),
        channels=channels("c"),
        kernels=work(4, 9),
    )
    for ending in completed_runs(impl, check, program, RUNS // 4):
        had = [arrivals(ending, f"q{place}") for place in range(consumers)]
        check.reading("AMB-WSP-27", "broadcast", all(tokens == [1, 2] for tokens in had))
        check.equal(sorted(chain(*had)), [1, 2], "the tokens of all consumers")


@clause("WSP-02.3-03")
@pytest.mark.parametrize("stages", [2, 5])
def test_the_stages_of_a_pipeline_end_one_after_the_other(impl, check, stages):
    """Each closes its channel after the one before it has ended."""
    names = [f"c{place}" for place in range(stages)]
    program = network(
        process("source", *sends("c0", range(4)), close("c0")),
        *(
            process(f"s{before}", consume(before, run("w2"), send(after)), close(after))
            for before, after in pairwise(names)
        ),
        process("sink", consume(names[-1])),
        channels=channels(*names),
        kernels=work(2),
    )
    for _ in range(RUNS // 4):
        ending = ended(impl, check, program)
        check.reading(
            "AMB-WSP-54", "the process", _waits_for(ending, f"s{names[1]}" if stages > 2 else "sink", names[1])
        )
        check.equal(ending["outcome"], "completed", "the outcome")
        check.equal(arrivals(ending, "sink"), [0, 1, 2, 3], "the tokens at the end")


def _waits_for(ending, process, channel):
    """True if the run is a deadlock in which this process waits at this channel."""
    waiting = ending.get("deadlock", {}).get("waiting", [])
    return ending["outcome"] == "deadlock" and (process, channel) in [
        (wait["process"], wait["for"]) for wait in waiting
    ]


def _ended_with(ending, waiting):
    """True if a process that was to answer has ended, so that the other waits, or has had no answer."""
    return _waits_for(ending, waiting, "back") or (ending["outcome"] == "completed" and not arrivals(ending, waiting))
