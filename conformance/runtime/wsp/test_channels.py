"""Channels and processes: what is sent, who receives it, and who waits (PTO-WSP v10, 2.1 and 2.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.packages import published
from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    consume,
    filler,
    load,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    send,
    slot,
    task,
    tensor,
    tensor_argument,
    work,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import (
    compiled,
    noted,
    read_by,
    statistics,
    under_seeds,
)
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")


@clause("WSP-02.1-01")
def test_channels_are_edges_by_name(impl, check):
    """Three channels that cross: each token comes out of the channel that it went into."""
    source = program(
        process("left", send("a", 1), send("b", 2), send("c", 3)),
        process("right", receive("b", "y"), receive("a", "x"), receive("c", "z")),
        channels=[channel("a"), channel("b"), channel("c")],
    )
    package = compiled(impl, check, source)
    check.equal(check.returns(impl.wsp.load(package=package))["channels"], ["a", "b", "c"], "channels by name")
    check.equal(statistics(impl, check, package)["slots"], {"x": "1", "y": "2", "z": "3"}, "what was received")


@feature("wsp-seeds")
@clause("WSP-02.1-02")
def test_a_process_does_one_thing_after_the_other(impl, check):
    """Kernels of one process never overlap, and its statements happen in their order; two processes go side by side."""
    first = process("p", note(1), run("w5"), note(2), run("w7"), note(3), run("w5"), note(4))
    second = process("q", run("w11"), note(5, "other"), run("w2"), note(6, "other"))
    source = program(first, second, kernels=work(2, 5, 7, 11), logs=["log", "other"])
    actual = under_seeds(impl, check, source)
    check.equal((noted(actual), noted(actual, "other")), ("1234", "56"), "order of statements")
    check.equal(actual["processes"], {"p": 17, "q": 13}, "the times of the processes")


@clause("WSP-02.1-03")
def test_a_token_is_received_as_it_was_sent(impl, check):
    """All 64 bits of a token arrive, and 0 is a token too."""
    tokens = [0, 1, (1 << 32) + 7, 1 << 63, (1 << 64) - 1]
    source = program(
        process("producer", *(send("c", token) for token in tokens)),
        process("consumer", *(receive("c", f"x{place}") for place in range(len(tokens)))),
        channels=[channel("c")],
    )
    expected = {f"x{place}": str(token) for place, token in enumerate(tokens)}
    check.equal(statistics(impl, check, source)["slots"], expected, "what was received")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.1-04")
@pytest.mark.parametrize(("capacity", "latency"), [(1, 0), (3, 0), (8, 0), (3, 4)])
def test_consume_applies_its_body_to_every_token_in_order(impl, check, capacity, latency):
    """Seven tokens, first in, first out, each once, whatever the capacity and the latency (AMB-WSP-27)."""
    source = program(
        process("producer", repeat(7, send("c", op("add", slot("i"), 1)), index="i")),
        process("consumer", run("w5"), consume("c", "x", note(slot("x")), run("w3")), note(15)),
        channels=[channel("c", capacity, latency)],
        kernels=work(3, 5),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "1234567f", "tokens in the order in which the body had them")
    check.equal(actual["channels"]["c"], {"sent": 7, "taken": 7, "left": 0}, "the tokens of the channel")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.1-04")
def test_each_token_goes_to_one_of_several_consumers(impl, check):
    """Two consumers of different speed: together they have every token once, each its own in order (AMB-WSP-27)."""
    source = program(
        process("producer", repeat(9, send("c", op("add", slot("i"), 1)), index="i")),
        process("fast", consume("c", "x", note(slot("x"), "one"), run("w3"))),
        process("slow", consume("c", "y", note(slot("y"), "two"), run("w7"))),
        channels=[channel("c", 2)],
        kernels=work(3, 7),
        logs=["one", "two"],
    )
    actual = under_seeds(impl, check, source)
    one, two = noted(actual, "one"), noted(actual, "two")
    check.equal("".join(sorted(one + two)), "123456789", "every token once")
    check.equal((one, two), ("".join(sorted(one)), "".join(sorted(two))), "each consumer in order")
    check.true(len(one) > len(two) > 0, "the faster consumer has more of them", [one, two])


@clause("WSP-02.1-05", "WSP-02.2-01")
def test_the_body_of_a_process_and_its_blocking_are_data_of_the_package(impl, check):
    """Two programs of one name: each package runs as it says, though the other was compiled after it (AMB-WSP-22)."""

    def counted(tokens, capacity):
        return program(
            process("producer", repeat(tokens, send("c"), note(1)), note(2)),
            process("consumer", run("w5"), note(3), consume("c", "x")),
            channels=[channel("c", capacity)],
            kernels=work(5),
        )

    few, many = (compiled(impl, check, counted(*numbers)) for numbers in ((2, 1), (4, 3)))
    check.equal(noted(statistics(impl, check, few))[:2], "13", "what is noted with a capacity of one token")
    check.equal(noted(statistics(impl, check, many))[:4], "1113", "what is noted with a capacity of three")
    check.equal(statistics(impl, check, few)["channels"]["c"]["sent"], 2, "the tokens of the first program")


@feature("wsp-seeds")
@clause("WSP-02.2-02", "WSP-02.2-07")
def test_a_send_into_a_full_channel_is_not_done_before_there_is_room(impl, check):
    """By default, the producer is one token ahead: its second send ends when the first token is taken (AMB-WSP-21)."""
    source = program(
        process("producer", *(statement for digit in (1, 2, 3) for statement in (send("c", digit), note(digit)))),
        process(
            "consumer",
            *(statement for digit in (10, 11, 12) for statement in (run("w5"), note(digit), receive("c", "x"))),
        ),
        channels=[channel("c")],
        kernels=work(5),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "1a2b3c", "sends and receipts in order")
    check.true(actual["stalls"]["CHANNEL_FULL_WAIT"]["count"] > 0, "the producer stalled")
    check.equal(actual["total_cycles"], 15, "the time of the run")


@clause("WSP-02.2-02")
def test_a_send_waits_though_the_task_before_it_let_another_end(impl, check):
    """The task that is issued last takes a token; for its place another task waits, which ends and frees resources."""
    source = program(
        process(
            "p",
            task("w1", signals=["c", "c"]),
            task("w5"),
            task("w1", waits=["c"]),
            send("d"),
            send("d"),
            run("w10"),
        ),
        process("q", run("w100"), consume("d", "x")),
        channels=[channel("c"), channel("d")],
        kernels=work(1, 5, 10, 100),
        schedule=schedule("round_robin", 2, 2),
    )
    actual = statistics(impl, check, source)
    check.equal(actual["processes"]["p"], 100 + 10, "the time of the process: its second send waits until 100")


@feature("wsp-seeds", "wsp-slots")
@clause("WSP-02.2-03")
def test_consume_waits_while_its_channel_is_empty(impl, check):
    """An empty channel that is still open ends no consumer, and gives it no token that was not sent."""
    source = program(
        process("consumer", consume("c", "x", note(slot("x"))), note(15)),
        process("producer", run("w5"), note(10), send("c", 1), run("w5"), note(11), send("c", 2), run("w5"), note(12)),
        channels=[channel("c")],
        kernels=work(5),
    )
    actual = under_seeds(impl, check, source)
    check.equal(noted(actual), "a1b2cf", "the order of sends and receipts")
    check.true(actual["stalls"]["CHANNEL_EMPTY_WAIT"]["count"] > 0, "the consumer stalled")


@feature("wsp-capabilities", "wsp-seeds", "wsp-slots")
@clause("WSP-02.2-04", "WSP-02.2-05")
def test_a_channel_carries_no_buffer(impl, check):
    """A send of a tensor is refused; a token orders what two processes do to a tensor, and holds no copy of it."""
    given = {"channels": [channel("c")], "tensors": [tensor("t", "u32", [7, 7])], "kernels": [filler("f", 5), *work(9)]}
    listed = check.returns(impl.wsp.capabilities(target="cpu_sim"))["csp"]
    if listed.get("payload_channels", "unsupported") == "unsupported":
        payload = {"op": "send", "channel": "c", "value": tensor_argument("t")}
        source = program(process("p", payload), process("q", receive("c", "x")), **given)
        check.rejects(impl.wsp.compile(program=source, target="cpu_sim"), category="INVALID_PROGRAM")
    source = program(
        process("p", run("f", "t", 1), send("c", 3), run("f", "t", 2)),
        process("q", receive("c", "x"), load("early", "t", 1), run("w9"), load("late", "t", 1)),
        **given,
    )
    expected = {"x": "3", "early": "1", "late": "2"}
    check.equal(under_seeds(impl, check, source)["slots"], expected, "the slots")


@feature("wsp-expressions", "wsp-slots")
@clause("WSP-02.2-06", "WSP-02.2-08", "WSP-02.4-04")
def test_a_channel_has_one_token_and_no_latency_by_default(impl, check):
    """The package says so; a hundred tokens to and fro take no time."""
    source = program(
        process("p", repeat(100, send("there", slot("i")), receive("back", "x"), index="i")),
        process("q", repeat(100, receive("there", "y"), send("back", op("add", slot("y"), 1)))),
        channels=[channel("there"), channel("back")],
    )
    package = compiled(impl, check, source)
    for declared in read_by(check, published(package) or {"csp": {"channels": []}})["csp"]["channels"]:
        check.equal((declared["capacity"], declared["latency"]), (1, 0), f"capacity and latency of {declared['name']}")
    actual = statistics(impl, check, package)
    check.equal((actual["total_cycles"], actual["slots"]["x"]), (0, "100"), "time of the run, and the last token")


@feature("wsp-capabilities", "wsp-channel-latency", "wsp-slots")
@clause("WSP-02.2-06", "WSP-02.4-03")
@pytest.mark.parametrize(
    ("offered", "wanted", "latency", "both"), [(5, 20, 0, 20), (5, 20, 25, 30), (20, 5, 0, 20), (20, 5, 25, 45)]
)
def test_a_send_into_a_channel_of_capacity_0_ends_when_its_token_is_taken(impl, check, offered, wanted, latency, both):
    """Both processes go on when the token is offered and wanted, and the offer is seen.

    Where the matrix has rendezvous (AMB-WSP-38); elsewhere the program is refused when it is compiled (AMB-WSP-29).
    """
    source = program(
        process("sender", run(f"w{offered}"), send("c", 9)),
        process("receiver", run(f"w{wanted}"), receive("c", "x")),
        channels=[channel("c", 0, latency)],
        kernels=work(5, 20),
    )
    state = check.returns(impl.wsp.capabilities(target="cpu_sim"))["csp"].get("rendezvous", "unsupported")
    if state == "unsupported":
        check.rejects(impl.wsp.compile(program=source, target="cpu_sim"), category="UNSUPPORTED_DIRECTIVE")
        return
    package = compiled(impl, check, source)
    if state == "enforced":
        actual = statistics(impl, check, package)
        check.equal(actual["processes"], {"sender": both, "receiver": both}, "the times of the processes")
        check.equal(actual["slots"], {"x": "9"}, "the token")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.2-10", "WSP-02.2-06")
@pytest.mark.parametrize("capacity", [None, 1, 2, 3, 7])
def test_a_producer_is_ahead_by_the_declared_capacity(impl, check, capacity):
    """The consumer is busy, notes f and then takes: before that the producer has sent `capacity` tokens, no more."""
    ahead = 1 if capacity is None else capacity
    source = program(
        process("producer", repeat(ahead + 3, send("c", slot("i")), note(op("add", slot("i"), 1)), index="i")),
        process("consumer", run("w5"), note(15), consume("c", "x", run("w5"))),
        channels=[channel("c", capacity)],
        kernels=work(5),
    )
    before, after = noted(under_seeds(impl, check, source)).split("f")
    check.equal(before, "123456789ab"[:ahead], "the sends that were done before the first token was taken")
    check.equal(len(after), 3, "the sends that were done afterwards")


@feature("wsp-expressions", "wsp-slots")
@clause("WSP-02.2-10", "WSP-02.2-06")
@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_a_visible_token_takes_room_until_it_is_taken(impl, check, capacity):
    """Each token is visible three cycles after its send, before the next send; the consumer takes none before 99."""
    sending = send("c", slot("i")), note(op("add", slot("i"), 1)), run("w4")
    source = program(
        process("producer", repeat(capacity + 2, *sending, index="i")),
        process("consumer", run("w99"), note(15), consume("c", "x")),
        channels=[channel("c", capacity, 3)],
        kernels=work(4, 99),
    )
    before, after = noted(statistics(impl, check, source)).split("f")
    check.equal(before, "12345"[:capacity], "the sends that were done before the first token was taken")
    check.equal(len(after), 2, "the sends that were done afterwards")


@feature("wsp-expressions", "wsp-seeds", "wsp-slots")
@clause("WSP-02.2-10")
@pytest.mark.parametrize("capacity", [1, 2])
def test_the_capacity_is_that_of_all_producers_together(impl, check, capacity):
    """Three producers at different times; none has a queue of its own, in which there would be room."""
    source = program(
        process("p", send("c", 1), note(1)),
        process("q", run("w2"), send("c", 2), note(2)),
        process("r", run("w4"), send("c", 3), note(3)),
        process("consumer", run("w7"), note(15), consume("c", "x", run("w5"), note(op("add", slot("x"), 9)))),
        channels=[channel("c", capacity)],
        kernels=work(2, 4, 5, 7),
    )
    log = noted(under_seeds(impl, check, source))
    check.equal(log.split("f")[0], "123"[:capacity], "the sends that were done before the first token was taken")
    check.equal([letter for letter in log if letter in "abc"], ["a", "b", "c"], "the tokens in order of their sends")


@feature("wsp-slots")
@clause("WSP-02.3-03", "WSP-02.1-04")
@pytest.mark.parametrize(("capacity", "latency"), [(5, 0), (6, 3)])
def test_tokens_that_nobody_takes_are_left(impl, check, capacity, latency):
    """Five are sent, in order, and two taken: three are left (AMB-WSP-53)."""
    source = program(
        process("producer", *(send("c", value) for value in range(5, 10))),
        process("consumer", run("w5"), *[receive("c", "x"), note(slot("x"))] * 2),
        channels=[channel("c", capacity, latency)],
        kernels=work(5),
    )
    actual = statistics(impl, check, compiled(impl, check, source))
    check.equal(noted(actual), "56", "the tokens that were taken")
    check.equal(actual["channels"]["c"], {"sent": 5, "taken": 2, "left": 3}, "the tokens of the channel")
