"""Channels: capacity, latency, order, closing; every time is computed by hand (sections 2.2, 2.3 and 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.wsp.builder import Program

Execute = Callable[..., dict[str, Any]]


def stall(result: dict[str, Any], reason: str) -> tuple[int, int]:
    found = result["statistics"]["stalls"][reason]
    return found["count"], found["cycles"]


def test_a_pipeline_with_one_token_between(execute: Execute, program: Program) -> None:
    """Tokens at 10, 20 and 30; the consumer works 10-35, 35-60 and 60-85. The third send waits from 30 to 35."""
    channel = program.channel("c")
    produce, work = program.kernel("produce", cycles=10), program.kernel("work", cycles=25)
    with program.process("producer"), program.repeat(3):
        program.run(produce)
        program.send(channel)
    with program.process("consumer"), program.consume(channel, into="x"):
        program.run(work)
    result = execute(program)
    statistics = result["statistics"]
    assert result["outcome"] == "completed"
    assert statistics["processes"] == {"producer": 35, "consumer": 85}
    assert statistics["total_cycles"] == 85
    assert stall(result, "CHANNEL_FULL_WAIT") == (1, 5)
    assert stall(result, "CHANNEL_EMPTY_WAIT") == (1, 10)
    assert statistics["kernels"] == {"produce": {"runs": 3, "cycles": 30}, "work": {"runs": 3, "cycles": 75}}


@pytest.mark.parametrize(("capacity", "producer"), [(1, 128), (2, 88), (3, 48), (4, 40)])
def test_capacity_counts_tokens_between_send_and_take(
    execute: Execute, program: Program, capacity: int, producer: int
) -> None:
    """A token every 8; the consumer takes one at 8 and one every 40: token k waits for the take of k - capacity."""
    channel = program.channel("c", capacity=capacity)
    produce, work = program.kernel("produce", cycles=8), program.kernel("work", cycles=40)
    with program.process("producer"), program.repeat(5):
        program.run(produce)
        program.send(channel)
    with program.process("consumer"), program.consume(channel, into="x"):
        program.run(work)
    assert execute(program)["statistics"]["processes"] == {"producer": producer, "consumer": 208}


def test_latency_delays_what_is_seen_and_not_the_sender(execute: Execute, program: Program) -> None:
    """Sent at 3, seen at 10. The second is sent when the first is taken, at 10, and seen at 17, as is the close."""
    channel = program.channel("c", latency=7)
    step = program.kernel("step", cycles=3)
    with program.process("producer"):
        program.run(step)
        program.send(channel)
        program.send(channel)
    with program.process("consumer"), program.consume(channel, into="x"):
        pass
    result = execute(program)
    assert result["statistics"]["processes"] == {"producer": 10, "consumer": 17}
    assert stall(result, "CHANNEL_FULL_WAIT") == (1, 7)


def test_a_close_is_seen_after_the_latency(execute: Execute, program: Program) -> None:
    channel = program.channel("c", latency=7)
    step = program.kernel("step", cycles=3)
    with program.process("producer"):
        program.run(step)
        program.close(channel)
    with program.process("consumer"), program.consume(channel, into="x"):
        pass
    assert execute(program)["statistics"]["processes"] == {"producer": 3, "consumer": 10}


@pytest.mark.parametrize(("latency", "both"), [(0, 20), (25, 30)])
def test_capacity_0_is_a_rendezvous(execute: Execute, program: Program, latency: int, both: int) -> None:
    """Offered at 5, wanted at 20: both go on at 20, or when the offer is seen, at 30."""
    channel = program.channel("c", capacity=0, latency=latency)
    early, late = program.kernel("early", cycles=5), program.kernel("late", cycles=20)
    with program.process("sender"):
        program.run(early)
        program.send(channel, 9)
    with program.process("receiver"):
        program.run(late)
        program.receive(channel, "x")
    result = execute(program)
    assert result["statistics"]["processes"] == {"sender": both, "receiver": both}
    assert result["statistics"]["slots"] == {"x": "9"}
    assert stall(result, "CHANNEL_FULL_WAIT") == (1, both - 5)


def test_tokens_are_first_in_first_out(execute: Execute, program: Program) -> None:
    """The sum of value * 10^place tells the order: 7 then 5 then 6."""
    channel = program.channel("c", capacity=3)
    with program.process("producer"):
        for value in (7, 5, 6):
            program.send(channel, value)
    digits = program.tensor("digits", "u64", 1)
    shift = program.kernel("shift", d="tensor", digit="scalar").mul("d", "d", 10).add("d", "d", "digit")
    with program.process("consumer"), program.consume(channel, into="x") as x:
        program.run(shift, digits, x)
    tensors = execute(program)["statistics"]["tensors"]
    assert int.from_bytes(bytes.fromhex(tensors["digits"]), "little") == 756


def test_who_waits_longer_is_served_first(execute: Execute, program: Program) -> None:
    """Process b waits since 1, a since 2: b has the first token, 10, although a comes before it."""
    channel = program.channel("c")
    one, two, three = (program.kernel(f"k{cycles}", cycles=cycles) for cycles in (1, 2, 3))
    with program.process("a"):
        program.run(two)
        program.receive(channel, "of_a")
    with program.process("b"):
        program.run(one)
        program.receive(channel, "of_b")
    with program.process("sender"):
        program.run(three)
        program.send(channel, 10)
        program.send(channel, 11)
    assert execute(program)["statistics"]["slots"] == {"of_a": "11", "of_b": "10"}


def test_of_those_that_come_at_once_the_first_process_is_served_first(execute: Execute, program: Program) -> None:
    channel = program.channel("c")
    one = program.kernel("one", cycles=1)
    with program.process("sender"):
        program.run(one)
        program.send(channel, 10)
        program.send(channel, 11)
    for name in ("a", "b"):
        with program.process(name):
            program.receive(channel, f"of_{name}")
    assert execute(program)["statistics"]["slots"] == {"of_a": "10", "of_b": "11"}


def test_a_channel_is_closed_when_all_its_producers_have_closed_it(execute: Execute, program: Program) -> None:
    channel = program.channel("c")
    short, long = program.kernel("short", cycles=5), program.kernel("long", cycles=50)
    with program.process("first"):
        program.send(channel, 1)
        program.close(channel)
        program.run(short)
    with program.process("second"):
        program.run(long)
        program.send(channel, 2)
    with program.process("consumer"), program.consume(channel, into="x"):
        pass
    result = execute(program)
    assert result["statistics"]["processes"] == {"first": 5, "second": 50, "consumer": 50}
    assert result["statistics"]["slots"] == {"x": "2"}


def test_the_process_goes_on_after_a_consume(execute: Execute, program: Program) -> None:
    channel = program.channel("c")
    after = program.kernel("after", cycles=4)
    with program.process("producer"):
        program.send(channel)
    with program.process("consumer"):
        with program.consume(channel, into="x"):
            pass
        program.run(after)
    assert execute(program)["statistics"]["processes"] == {"producer": 0, "consumer": 4}


def test_a_channel_that_nobody_produces_is_closed(execute: Execute, program: Program) -> None:
    channel = program.channel("c", latency=9)
    with program.process("consumer"), program.consume(channel, into="x"):
        pass
    assert execute(program)["statistics"]["processes"] == {"consumer": 0}


def test_tokens_left_over_are_told_and_no_error(execute: Execute, program: Program) -> None:
    channel = program.channel("c", capacity=3)
    with program.process("producer"), program.repeat(3):
        program.send(channel)
    with program.process("consumer"):
        program.receive(channel, "x")
    result = execute(program)
    assert result["outcome"] == "completed"
    assert result["statistics"]["channels"] == {"c": {"sent": 3, "taken": 1, "left": 2}}


def test_send_after_close(execute: Execute, program: Program) -> None:
    channel = program.channel("c", capacity=3)
    step = program.kernel("step", cycles=3)
    with program.process("producer"):
        program.close(channel)
        program.run(step)
        program.send(channel)
    error = execute(program)["error"]
    message = error.pop("message")
    assert error == {"code": "SEND_AFTER_CLOSE", "process": "producer", "statement": "body/2", "time": 3}
    assert message == "producer has closed c"


def test_a_task_that_signals_after_close(execute: Execute, program: Program) -> None:
    channel = program.channel("c", capacity=3)
    step = program.kernel("step", cycles=3)
    with program.process("producer"):
        program.close(channel)
        program.task(step, signals=[channel])
    assert execute(program)["error"]["code"] == "SEND_AFTER_CLOSE"


def test_closing_twice_is_closing(execute: Execute, program: Program) -> None:
    channel, other = program.channel("c"), program.channel("other")
    with program.process("first"):
        program.close(channel)
        program.close(channel)
        program.receive(other, "x")
    with program.process("second"):
        program.send(channel, 1)
        program.send(other)
    with program.process("consumer"), program.consume(channel, into="y"):
        pass
    result = execute(program)
    assert result["outcome"] == "completed"
    assert result["statistics"]["channels"]["c"] == {"sent": 1, "taken": 1, "left": 0}


@pytest.mark.parametrize("waits_first", [True, False])
def test_receive_after_close(execute: Execute, program: Program, waits_first: bool) -> None:
    """The close comes at 3, while the receiver waits or before it comes at 7."""
    channel = program.channel("c")
    step, late = program.kernel("step", cycles=3), program.kernel("late", cycles=7)
    with program.process("producer"):
        program.run(step)
        program.close(channel)
    with program.process("receiver"):
        if not waits_first:
            program.run(late)
        program.receive(channel, "x")
    error = execute(program)["error"]
    assert (error["code"], error["process"]) == ("RECEIVE_AFTER_CLOSE", "receiver")
    assert error["time"] == (3 if waits_first else 7)


def test_a_task_that_waits_after_close(execute: Execute, program: Program) -> None:
    channel = program.channel("c")
    step = program.kernel("step", cycles=3)
    with program.process("producer"):
        program.run(step)
        program.close(channel)
    with program.process("issuer"):
        program.task(step, waits=[channel])
    error = execute(program)["error"]
    assert (error["code"], error["process"], error["statement"], error["time"]) == (
        "RECEIVE_AFTER_CLOSE",
        "issuer",
        "body/0",
        3,
    )


def test_the_end_of_a_process_closes_after_its_tasks_have_signalled(execute: Execute, program: Program) -> None:
    """The process ends at 0, its task signals at 12; the consumer has the token and then the close."""
    channel = program.channel("c")
    step = program.kernel("step", cycles=12)
    with program.process("issuer"):
        program.task(step, signals=[channel])
    with program.process("consumer"), program.consume(channel, into="x"):
        pass
    result = execute(program)
    assert result["statistics"]["processes"] == {"issuer": 0, "consumer": 12}
    assert result["statistics"]["channels"]["c"]["taken"] == 1
