"""A model of processes, channels and kernels from section 2, to compare networks with.

In Kahn's view, a process is a sequence of operations, and a channel with one producer and one consumer is a queue.
Token k is sent when the producer is ready and token k - capacity was taken. It is received when the consumer is ready
and it was sent (AMB-WSP-01, the decision). Each time follows from earlier ones, so that the order of execution does not
matter. `busy` is the time of a process if waits cost nothing, the other reading. The model does not cover tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Modelled", "modelled"]


@dataclass(frozen=True)
class Modelled:
    """By process: its time by either reading, the tokens it received, and the channel and state at which it waits."""

    times: Mapping[str, int]
    busy: Mapping[str, int]
    arrivals: Mapping[str, Sequence[tuple[str, int]]]
    waiting: Mapping[str, tuple[str, str]]

    @property
    def completed(self) -> bool:
        """True if no process waits forever."""
        return not self.waiting

    @property
    def channels(self) -> Mapping[str, str]:
        """The state of each channel at which a process waits."""
        return dict(self.waiting.values())


@dataclass
class _Queue:
    capacity: int
    tokens: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    closed: int | None = None


def modelled(network: Mapping[str, Any], reported: Mapping[str, Sequence[int]]) -> Modelled:
    """Return the outcome of a network; kernels take the cycles they reported, by process, else the declared ones."""
    queues = {channel["name"]: _Queue(channel.get("capacity", 1)) for channel in network["channels"]}
    declared = {kernel["name"]: kernel["cycles"] for kernel in network["kernels"]}
    actors = [
        _Actor(process["name"], process["body"], queues, declared, iter(reported.get(process["name"], ())))
        for process in network["processes"]
    ]
    moved = True
    while moved:
        moved = any(actor.goes_on() for actor in actors)
    return Modelled(
        {actor.name: actor.time for actor in actors},
        {actor.name: actor.busy for actor in actors},
        {actor.name: tuple(actor.arrivals) for actor in actors},
        {actor.name: actor.waits for actor in actors if actor.waits is not None},
    )


class _Actor:
    def __init__(
        self,
        name: str,
        body: Sequence[Mapping[str, Any]],
        queues: Mapping[str, _Queue],
        declared: Mapping[str, int],
        reported: Iterator[int],
    ) -> None:
        self.name = name
        self.time = self.busy = 0
        self.arrivals: list[tuple[str, int]] = []
        self.waits: tuple[str, str] | None = None
        self.queues, self.declared, self.reported = queues, declared, reported
        self._course = self._whole(body)

    def goes_on(self) -> bool:
        """Run until the process waits or ends; return False if it made no progress."""
        moved = False
        for waits in self._course:
            self.waits = waits
            if waits is not None:
                return moved
            moved = True
        return moved

    def _whole(self, body: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str] | None]:
        yield from self._body(body, 0)
        for name in sorted(_produced(body)):
            self._close(self.queues[name])
        self.waits = None
        yield None

    def _body(self, body: Sequence[Mapping[str, Any]], token: int) -> Iterator[tuple[str, str] | None]:
        """Yield repeatedly: the reason for which the process waits, None if it has moved."""
        for statement in body:
            match statement:
                case {"op": "run", "kernel": kernel}:
                    cycles = next(self.reported, self.declared[kernel])
                    self.time += cycles
                    self.busy += cycles
                    yield None
                case {"op": "send", "channel": name}:
                    yield from self._send(name, statement.get("token", token))
                case {"op": "consume", "channel": name, "body": inner}:
                    yield from self._consume(name, inner)
                case {"op": "close", "channel": name}:
                    self._close(self.queues[name])
                    yield None

    def _send(self, name: str, token: int) -> Iterator[tuple[str, str] | None]:
        queue = self.queues[name]
        place = len(queue.sent) - queue.capacity
        while place >= len(queue.taken):
            yield name, "full"
        self.time = max(self.time, queue.taken[place]) if place >= 0 else self.time
        queue.tokens.append(token)
        queue.sent.append(self.time)
        yield None

    def _consume(self, name: str, inner: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str] | None]:
        queue = self.queues[name]
        while True:
            place = len(queue.taken)
            while place >= len(queue.sent) and queue.closed is None:
                yield name, "empty"
            since = queue.sent[place] if place < len(queue.sent) else queue.closed
            assert since is not None
            self.time = max(self.time, since)
            if place >= len(queue.sent):
                yield None
                return
            queue.taken.append(self.time)
            self.arrivals.append((name, queue.tokens[place]))
            yield None
            yield from self._body(inner, queue.tokens[place])

    def _close(self, queue: _Queue) -> None:
        if queue.closed is None:
            queue.closed = self.time


def _produced(body: Sequence[Mapping[str, Any]]) -> set[str]:
    """Yield the channels that a body sends into or closes."""
    found = {statement["channel"] for statement in body if statement["op"] in ("send", "close")}
    return found.union(*(_produced(statement["body"]) for statement in body if "body" in statement))
