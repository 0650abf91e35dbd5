"""Channels and processes by their tokens alone (PTO-WSP v10, 2.1 and 2.2), through `wsp.execute`.

That a channel holds no more than its capacity shows without times: a producer that is to fill it before it does what
its consumer waits for ends in a deadlock.
"""

from __future__ import annotations

from itertools import chain

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
    kernels,
    network,
    process,
    run,
    send,
    sends,
    stands_still,
    work,
)
from tessera_conformance.marks import clause

CAPACITIES = pytest.mark.parametrize("capacity", [None, 1, 2, 3, 7])


def pipe(tokens, *body, capacity=None, before=(), cycles=()):
    """A producer of tokens, and a consumer with this body, which first does something else."""
    return network(
        process("producer", *sends("c", tokens), close("c")),
        process("consumer", *before, consume("c", *body)),
        channels=[channel("c", capacity)],
        kernels=work(*cycles),
    )


def filling(tokens, capacity=None):
    """The producer sends all tokens before the one that its consumer waits for first."""
    return network(
        process("producer", *sends("data", range(tokens)), send("go", 99), close("data"), close("go")),
        process("consumer", consume("go", consume("data"))),
        channels=[channel("go"), channel("data", capacity)],
    )


@clause("WSP-02.1-01")
@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_token_comes_out_of_the_channel_that_it_went_into(impl, check, count):
    """A producer sends into several channels, each of which has a consumer of its own."""
    names = [f"c{place}" for place in range(count)]
    program = network(
        process("p", *(send(name, place + 10) for place, name in enumerate(names)), *map(close, names)),
        *(process(f"q{name}", consume(name)) for name in reversed(names)),
        channels=channels(*names),
    )
    ending = completed(impl, check, program)
    actual = [arrivals(ending, f"q{name}") for name in names]
    check.equal(actual, [[place + 10] for place in range(count)], "the tokens of each consumer")


@clause("WSP-02.1-01", "WSP-02.1-02")
@pytest.mark.parametrize("length", [8, 31, 32, 63, 64, 90])
def test_names_differ_in_every_character(impl, check, length):
    """Channels, processes and kernels whose names share so many characters at the beginning are different ones."""
    begin = "n" * length
    names = [begin, *(begin + end for end in ("a", "b", "ab"))]
    producers = [process(f"p{name}", send(name, place), close(name)) for place, name in enumerate(names)]
    program = network(
        *producers,
        *(process(name, consume(name, run(name))) for name in reversed(names)),
        channels=channels(*names),
        kernels=[{"name": name, "cycles": place + 1} for place, name in enumerate(names)],
    )
    ending = completed(impl, check, program)
    for place, name in enumerate(names):
        check.equal(arrivals(ending, name), [place], f"the tokens of {name}")
        check.equal(kernels(ending, name), [name], f"the kernels of {name}")


@clause("WSP-02.1-02")
@pytest.mark.parametrize("cycles", [(5, 7, 5), (1,), (3, 2, 1, 2, 3), (9,) * 12], ids=str)
def test_a_process_does_one_thing_after_the_other(impl, check, cycles):
    """Its kernels run in the order of its body and do not overlap; another process has its own order."""
    program = network(
        process("p", *(run(f"w{count}") for count in cycles)),
        process("q", *(run(f"w{count}") for count in reversed(cycles))),
        kernels=work(*dict.fromkeys(cycles)),
    )
    for ending in completed_runs(impl, check, program):
        check.equal(kernels(ending, "p"), [f"w{count}" for count in cycles], "the kernels of one process")
        check.equal(kernels(ending, "q"), [f"w{count}" for count in reversed(cycles)], "the kernels of the other")


@clause("WSP-02.1-03", "WSP-02.2-04", "WSP-02.2-05")
@pytest.mark.parametrize("tokens", [[0], [1, 0, 1], [7, 7, 7], [2**31 - 1, 2**16, 255, 256]], ids=str)
def test_a_token_is_received_as_it_was_sent(impl, check, tokens):
    """Tokens are whole numbers such as task numbers; 0 is one too, and equal tokens are several."""
    ending = completed(impl, check, pipe(tokens))
    check.equal(arrivals(ending, "consumer"), tokens, "the tokens that were received")


@clause("WSP-02.1-03")
@pytest.mark.parametrize("stages", [1, 2, 5])
def test_a_token_that_is_passed_on_stays_the_same(impl, check, stages):
    """Each stage sends on what it receives; an inner consume has tokens of its own."""
    names = [f"c{place}" for place in range(stages + 1)]
    program = network(
        process("source", *sends(names[0], (4, 5, 6)), close(names[0])),
        *(
            process(f"s{place}", consume(names[place], send(names[place + 1])), close(names[place + 1]))
            for place in range(stages)
        ),
        process("sink", consume(names[-1])),
        channels=channels(*names),
    )
    check.equal(arrivals(completed(impl, check, program), "sink"), [4, 5, 6], "the tokens at the end")


@clause("WSP-02.1-04")
@CAPACITIES
@pytest.mark.parametrize("count", [1, 2, 7, 25])
def test_consume_applies_its_body_to_every_token_in_order(impl, check, capacity, count):
    """First in, first out, each once; the body runs a kernel for each."""
    program = pipe(range(count), run("w3"), capacity=capacity, before=[run("w5")], cycles=(3, 5))
    ending = completed(impl, check, program)
    check.equal(arrivals(ending, "consumer"), list(range(count)), "the tokens in order")
    check.equal(kernels(ending, "consumer"), ["w5", *["w3"] * count], "the kernels of the consumer")


@clause("WSP-02.1-04")
@pytest.mark.parametrize("consumers", [2, 3])
def test_each_token_goes_to_one_of_several_consumers(impl, check, consumers):
    """Together they have every token once, each its own in order (AMB-WSP-27)."""
    names = [f"q{place}" for place in range(consumers)]
    program = network(
        process("producer", *sends("c", range(12)), close("c")),
        *(process(name, consume("c", run("w3"))) for name in names),
        channels=[channel("c", 2)],
        kernels=work(3),
    )
    for ending in completed_runs(impl, check, program):
        had = [arrivals(ending, name) for name in names]
        check.reading("AMB-WSP-27", "broadcast", all(tokens == list(range(12)) for tokens in had))
        check.equal(sorted(chain(*had)), list(range(12)), "the tokens of all consumers")
        check.equal([sorted(tokens) for tokens in had], had, "the tokens of each in order")


@clause("WSP-02.2-02", "WSP-02.2-07", "WSP-02.2-10")
@CAPACITIES
@pytest.mark.parametrize("more", [1, 2, 9])
def test_a_send_into_a_full_channel_stalls(impl, check, capacity, more):
    """The producer gets no further than the capacity, so its consumer never has what it waits for first."""
    stands_still(impl, check, filling((capacity or 1) + more, capacity))


@clause("WSP-02.2-06", "WSP-02.2-10", "WSP-02.2-07")
@pytest.mark.parametrize("capacity", [None, 1, 2, 3, 7, 300])
@pytest.mark.parametrize("less", [0, 1])
def test_a_channel_has_room_for_as_many_tokens_as_it_declares(impl, check, capacity, less):
    """The producer sends as many and goes on; by default it is one token."""
    count = max(1, (capacity or 1) - less)
    ending = completed(impl, check, filling(count, capacity))
    check.equal(arrivals(ending, "consumer", "data"), list(range(count)), "the tokens that were held")
    stands_still(impl, check, filling((capacity or 1) + 1, capacity))


@clause("WSP-02.2-10")
@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_the_capacity_is_that_of_all_producers_together(impl, check, capacity):
    """As many producers go on as there is room for; one more waits. All close the channel after the last send."""

    def crowd(producers):
        places = range(producers)
        body = [step for place in places for step in (send(f"go{place}", 2), close(f"go{place}"))] + [consume("c")]
        for place in places:
            body = [consume(f"g{place}", *body)]
        return network(
            *(
                process(
                    f"p{place}",
                    send("c", 1),
                    send(f"g{place}", 2),
                    close(f"g{place}"),
                    consume(f"go{place}", close("c")),
                )
                for place in places
            ),
            process("q", *body),
            channels=[
                channel("c", capacity),
                *channels(*(f"{name}{place}" for name in ("g", "go") for place in places)),
            ],
        )

    completed(impl, check, crowd(capacity))
    for _ in range(RUNS // 4):
        stands_still(impl, check, crowd(capacity + 1))


@clause("WSP-02.2-03")
@pytest.mark.parametrize("order", ["consumer-first", "producer-first"])
@pytest.mark.parametrize("pause", [1, 5, 400])
def test_consume_waits_while_its_channel_is_empty(impl, check, order, pause):
    """An empty channel that is still open ends no consumer, and gives it no token that was not sent."""
    producer = process(
        "producer", *(step for token in (1, 2, 3) for step in (run(f"w{pause}"), send("c", token))), close("c")
    )
    consumer = process("consumer", consume("c"))
    processes = [consumer, producer] if order == "consumer-first" else [producer, consumer]
    program = network(*processes, channels=channels("c"), kernels=work(pause))
    for ending in completed_runs(impl, check, program, RUNS // 4):
        check.equal(arrivals(ending, "consumer"), [1, 2, 3], "the tokens of the consumer")


@clause("WSP-02.2-08", "WSP-02.4-04")
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("count", [1, 20])
def test_channel_operations_take_no_time_by_default(impl, check, stages, count):
    """Tokens through a row of channels, without a kernel: the run takes no cycle."""
    names = [f"c{place}" for place in range(stages + 1)]
    passing = [
        process(f"s{place}", consume(names[place], send(names[place + 1])), close(names[place + 1]))
        for place in range(stages)
    ]
    program = network(
        process("source", *sends(names[0], range(count)), close(names[0])),
        *passing,
        process("sink", consume(names[-1])),
        channels=channels(*names),
    )
    for ending in completed_runs(impl, check, program):
        check.equal(ending["total_cycles"], 0, "the time of the run")


@clause("WSP-02.1-04", "WSP-02.3-03")
@pytest.mark.parametrize("capacity", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 10])
def test_the_tokens_of_two_producers_all_arrive(impl, check, capacity, count):
    """Each producer's in its order. Both close the channel when both are done, so that no close is early."""
    first, second = range(count), range(100, 100 + count)
    program = network(
        process("p", *sends("c", first), send("d", 0), close("d"), consume("e", close("c"))),
        process("q", *sends("c", second), send("e", 0), close("e"), consume("d", close("c"))),
        process("consumer", consume("c")),
        channels=[channel("c", capacity), *channels("d", "e")],
    )
    for ending in completed_runs(impl, check, program):
        tokens = arrivals(ending, "consumer")
        check.equal(sorted(tokens), [*first, *second], "the tokens of both producers")
        check.equal([token for token in tokens if token < 100], list(first), "the order of the first producer's")
        check.equal([token for token in tokens if token >= 100], list(second), "the order of the second producer's")


@clause("WSP-02.1-01")
def test_the_token_that_is_sent_on_is_that_of_the_innermost_consume(impl, check):
    """A relay consumes one channel within another, and sends on what came last."""
    program = network(
        process("outer", *sends("a", [4]), close("a")),
        process("inner", *sends("b", [5, 6, 7]), close("b")),
        process("relay", consume("a", consume("b", send("c"))), close("c")),
        process("sink", consume("c")),
        channels=channels("a", "b", "c"),
    )
    for ending in completed_runs(impl, check, program):
        check.equal(arrivals(ending, "sink", "c"), [5, 6, 7], "the tokens that the sink takes")
