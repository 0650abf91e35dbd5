"""Channels that confuse, lose, count or keep tokens wrongly (PTO-WSP v10, 2.1 and 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from tessera_conformance.strength import violates
from tessera_reference.wsp import statements
from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.machine import CLOSED, ChannelState, Machine, Party
from tessera_reference.wsp.package import Channel
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import Constant

from .changes import RunsLatest, changed, defaulting

SEND, TAKE, VISIBLE, MAKE = ChannelState.send, ChannelState.take, ChannelState._visible_token, ChannelState.__init__
ISSUE, END_WAIT = Machine.issue, Machine.end_wait
SEND_OF_PROCESS, BODY, EXPRESSION = Processes.send, Processes.body, statements.read_expression


def made(**other: Callable[..., int]) -> tuple[Any, str, Any]:
    """Return the substitution of a channel's capacity or latency, computed from capacity, latency and producers."""

    def make(self: Any, index: int, capacity: int, latency: int, producers: int, *rest: Any) -> None:
        given = {"capacity": capacity, "latency": latency}
        given |= {name: policy(capacity, latency, producers) for name, policy in other.items()}
        MAKE(self, index, given["capacity"], given["latency"], producers, *rest)

    return "wsp.machine.ChannelState.__init__", make


def backwards(self: Any, process: Any, statements: Any, outer: Any) -> Any:
    return BODY(self, process, tuple(reversed(statements)), outer)


def beside_visible_tokens(self: Any, party: Party, value: int) -> bool:
    capacity, now = self.capacity, self.agenda.now
    self.capacity += sum(due <= now for due, _ in self.tokens) if self.latency and capacity else 0
    try:
        return SEND(self, party, value)
    finally:
        self.capacity = capacity


def ended_late(self: Any, process: Any, *arguments: Any) -> str | None:
    """End the wait of a process for resources after the task that it issues has taken its tokens."""
    with mock.patch.object(self, "end_wait", lambda who: None if who is process else END_WAIT(self, who)):
        reason: str | None = ISSUE(self, process, *arguments)
    if reason is None:
        END_WAIT(self, process)
    return reason


def newest_first(self: Any) -> int | None:
    self.tokens.rotate(1)
    return VISIBLE(self)


def dropped(self: Any, party: Party, value: int) -> bool:
    return len(self.tokens) >= self.capacity or SEND(self, party, value)


def never_empty(self: Any, party: Party) -> int | None:
    value = VISIBLE(self)
    return CLOSED if value is None else value


def few(reader: Any, value: Any, path: str) -> Any:
    """Read an expression, and refuse the operation after the first 128."""
    reader.operations = getattr(reader, "operations", 0) + (isinstance(value, dict) and "op" in value)
    if reader.operations > 128:
        raise ProgramRefused(path, "is one operation more than there is room for")
    return EXPRESSION(reader, value, path)


def tensors_too(reader: Any, value: Any, path: str) -> Any:
    """Read a tensor as a value."""
    return Constant(0) if isinstance(value, dict) and set(value) == {"tensor"} else EXPRESSION(reader, value, path)


@violates("WSP-02.1-05", "runs the bodies that were compiled last under the name of a program")
class BodiesOfTheLatest(RunsLatest):
    """A runtime whose packages lack the bodies of processes."""


@violates("WSP-02.2-01", "blocks by the channels that were compiled last under the name of a program")
class ChannelsOfTheLatest(RunsLatest):
    """A runtime whose packages lack the blocking of channels."""


CHANNELS = [
    changed("WSP-02.1-02", "backwards", "executes the statements of a body backwards",
        ("wsp.run.Processes.body", backwards)),
    changed("WSP-02.1-03", "tokens_of_32_bits", "keeps 32 bits of a token",
        ("wsp.machine.ChannelState.send", lambda self, party, value: SEND(self, party, value & 0xFFFFFFFF))),
    changed("WSP-02.1-04", "newest_first", "takes the token that was sent last",
        ("wsp.machine.ChannelState._visible_token", newest_first)),
    changed("WSP-02.2-02", "goes_on_after_an_issue", "goes on at a send, since a task issued before let another end",
        ("wsp.machine.Machine.issue", ended_late)),
    changed("WSP-02.2-03", "empty_is_the_end", "ends a consumer when its channel is empty",
        ("wsp.machine.ChannelState.take", never_empty)),
    changed("WSP-02.2-04", "payload_for_tokens", "sends tensors through a channel of tokens",
        ("wsp.statements.read_expression", tensors_too)),
    changed("WSP-02.2-05", "buffers_for_tokens", "takes a buffer for a token",
        ("wsp.statements.read_expression", tensors_too)),
    changed("WSP-04.1-01", "few_expressions", "has room for 128 expressions", ("wsp.statements.read_expression", few)),
    changed("WSP-02.2-06", "two_by_default", "gives a channel a capacity of two by default",
        (defaulting(Channel, capacity=2))),
    changed("WSP-02.2-07", "one_more_ahead", "lets a producer be two tokens ahead by default",
        made(capacity=lambda capacity, *rest: 2 if capacity == 1 else capacity)),
    changed("WSP-02.2-08", "a_cycle_a_token", "takes a cycle for each token",
        made(latency=lambda capacity, latency, producers: latency + 1)),
    changed("WSP-02.2-10", "a_queue_a_producer", "gives each producer a queue of the whole capacity",
        made(capacity=lambda capacity, latency, producers: capacity * max(producers, 1))),
    changed("WSP-02.2-10", "physical_depth", "counts the places of its queues, a power of two",
        made(capacity=lambda capacity, *rest: 1 << (capacity - 1).bit_length())),
    changed("WSP-02.2-10", "visible_is_gone", "has room for another token when one has become visible",
        ("wsp.machine.ChannelState.send", beside_visible_tokens)),
    changed("WSP-02.2-10", "always_one", "has a capacity of one whatever is declared",
        made(capacity=lambda *arguments: 1)),
]  # fmt: skip
