"""A model of processes, channels and kernels from sections 2 and 4.1, to compare random programs with.

In Kahn's view of a program, a process is a sequence of operations, and a channel with one producer and one consumer is
a queue. Token k of a channel is sent when the producer is ready and token k - capacity was taken, and received when the
consumer is ready and `latency` after its send (AMB-WSP-01, the decision). So each time follows from earlier ones, in
any order of execution. `busy` is the time of a process if waits cost nothing, the other reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

U64 = (1 << 64) - 1


@dataclass
class Queue:
    """A channel: the times at which each token was sent and taken, and the tokens."""

    capacity: int
    latency: int
    tokens: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    closed: int | None = None


@dataclass
class Outcome:
    """The result of a run: true if all processes ended, their times by either reading, and the noted digits."""

    completed: bool
    times: dict[str, int]
    busy: dict[str, int]
    noted: dict[str, str]


def executed(program: Mapping[str, Any]) -> Outcome:
    """Execute a program of sends, receives, consumes, closes, repeats, kernels and notes."""
    queues = {channel["name"]: Queue(channel["capacity"], channel["latency"]) for channel in program["csp"]["channels"]}
    cycles = {kernel["name"]: kernel["cycles"]["fixed"] for kernel in program["kernels"]}
    actors = [Actor(process, queues, cycles) for process in program["csp"]["processes"]]
    moved = True
    while moved:
        moved = any(actor.goes_on() for actor in actors)
    return Outcome(
        all(actor.done for actor in actors),
        {actor.name: actor.time for actor in actors},
        {actor.name: actor.busy for actor in actors},
        {actor.name: "".join(f"{digit:x}" for digit in actor.notes) for actor in actors},
    )


class Actor:
    """A process: its times, its slots and its progress."""

    def __init__(self, process: Mapping[str, Any], queues: Mapping[str, Queue], cycles: Mapping[str, int]) -> None:
        self.name = process["name"]
        self.queues = queues
        self.cycles = cycles
        self.time = self.busy = 0
        self.ended = False
        self.done = False
        self.slots: dict[str, int] = {}
        self.notes: list[int] = []
        self._produced = {
            statement["channel"] for statement in statements(process["body"]) if statement["op"] in ("send", "close")
        }
        self._course = self._body(process["body"])

    def goes_on(self) -> bool:
        """Run as far as possible; return True if it made progress."""
        moved = False
        while not self.done:
            try:
                if not next(self._course):
                    return moved
            except StopIteration:
                self.done = True
                for channel in sorted(self._produced):
                    self._close(self.queues[channel])
            moved = True
        return moved

    def _body(self, body: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
        """Yield repeatedly; True if the body made progress."""
        for statement in body:
            yield from getattr(self, f"_{statement['op']}_statement")(statement)

    def _send_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        queue = self.queues[statement["channel"]]
        place = len(queue.sent) - queue.capacity
        while place >= len(queue.taken):
            yield False
        self.time = max(self.time, queue.taken[place]) if place >= 0 else self.time
        queue.tokens.append(self._value(statement["value"]))
        queue.sent.append(self.time)
        yield True

    def _taken(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        """Take a token into a slot; `ended` is True if the channel has none any more."""
        queue = self.queues[statement["channel"]]
        place = len(queue.taken)
        while place >= len(queue.sent) and queue.closed is None:
            yield False
        self.ended = place >= len(queue.sent)
        since = queue.closed if self.ended else queue.sent[place]
        assert since is not None
        self.time = max(self.time, since + queue.latency)
        if not self.ended:
            queue.taken.append(self.time)
            self.slots[statement["into"]] = queue.tokens[place]
        yield True

    def _receive_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        yield from self._taken(statement)
        assert not self.ended, "a program of the model receives no more than is sent"

    def _consume_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        while True:
            yield from self._taken(statement)
            if self.ended:
                return
            yield from self._body(statement["body"])

    def _close_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        self._close(self.queues[statement["channel"]])
        yield True

    def _close(self, queue: Queue) -> None:
        if queue.closed is None:
            queue.closed = self.time

    def _repeat_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        for index in range(self._value(statement["count"])):
            if "index" in statement:
                self.slots[statement["index"]] = index
            yield from self._body(statement["body"])

    def _run_statement(self, statement: Mapping[str, Any]) -> Iterator[bool]:
        if statement["kernel"] == "note":
            self.notes.append(self._value(statement["arguments"][1]))
        self.time += self.cycles[statement["kernel"]]
        self.busy += self.cycles[statement["kernel"]]
        yield True

    def _value(self, expression: Mapping[str, Any]) -> int:
        if "constant" in expression:
            return int(expression["constant"])
        if "slot" in expression:
            return self.slots.get(expression["slot"], 0)
        a, b = (self._value(operand) for operand in expression["operands"])
        return {"add": a + b & U64, "mod": a % b if b else 0}[expression["op"]]


def statements(body: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield all statements of a body, including those inside others."""
    for statement in body:
        yield statement
        yield from statements(statement.get("body", ()))
