"""Channels that confuse, lose, count or keep tokens wrongly (PTO-WSP v10, 2.1 and 2.2)."""

from unittest import mock

from tessera_conformance.strength import replaced
from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.machine import CLOSED, Machine
from tessera_reference.wsp.package import Channel
from tessera_reference.wsp.statements import Leaf

from ....ir.violators.changes import around, breaks, changed, finding, wrapped
from .changes import RunsLatest, defaulting

END_WAIT = Machine.end_wait


def made(**other):
    """Return the substitution of a channel's capacity or latency, computed from capacity, latency and producers."""

    def make(usual, self, index, capacity, latency, producers, *rest):
        given = {"capacity": capacity, "latency": latency}
        given |= {name: policy(capacity, latency, producers) for name, policy in other.items()}
        usual(self, index, given["capacity"], given["latency"], producers, *rest)

    return "wsp.machine.ChannelState.__init__", around(make)


@breaks("WSP-02.2-02", "goes on at a send, since a task issued before let another end", "wsp.machine.Machine.issue")
def goes_on_after_an_issue(usual, self, process, *arguments):
    with mock.patch.object(self, "end_wait", lambda who: None if who is process else END_WAIT(self, who)):
        reason = usual(self, process, *arguments)
    if reason is None:
        END_WAIT(self, process)
    return reason


@breaks("WSP-02.1-04", "takes the token that was sent last", "wsp.machine.ChannelState._visible_token")
def newest_first(usual, self):
    self.tokens.rotate(1)
    return usual(self)


@breaks("WSP-02.2-03", "ends a consumer when its channel is empty", "wsp.machine.ChannelState.take")
def empty_is_the_end(usual, self, party):
    value = self._visible_token()
    return CLOSED if value is None else value


@breaks("WSP-04.1-01", "has room for 128 expressions", "wsp.statements.read_expression")
def few_expressions(usual, reader, value, path):
    reader.operations = getattr(reader, "operations", 0) + (isinstance(value, dict) and "op" in value)
    if reader.operations > 128:
        raise ProgramRefused(path, "is one operation more than there is room for")
    return usual(reader, value, path)


def tensors_too(usual, reader, value, path):
    return Leaf("constant", 0) if isinstance(value, dict) and set(value) == {"tensor"} else usual(reader, value, path)


CHANNELS = [
    replaced("WSP-02.1-05", "runs the bodies that were compiled last under the name of a program", RunsLatest,
        name="BodiesOfTheLatest"),
    replaced("WSP-02.2-01", "blocks by the channels that were compiled last under the name of a program", RunsLatest,
        name="ChannelsOfTheLatest"),
    wrapped("WSP-02.1-02", "backwards", "executes the statements of a body backwards",
        "wsp.run.Processes.body", lambda usual, self, process, body, path: usual(self, process, body[::-1], path)),
    wrapped("WSP-02.1-03", "tokens_of_32_bits", "keeps 32 bits of a token", "wsp.machine.ChannelState.send",
        lambda usual, self, party, value: usual(self, party, value & 0xFFFFFFFF)),
    wrapped("WSP-02.2-04", "payload_for_tokens", "sends tensors through a channel of tokens",
        "wsp.statements.read_expression", tensors_too),
    wrapped("WSP-02.2-05", "buffers_for_tokens", "takes a buffer for a token",
        "wsp.statements.read_expression", tensors_too),
    changed("WSP-02.2-06", "two_by_default", "gives a channel a capacity of two by default",
        defaulting(Channel, capacity=2)),
    changed("WSP-02.2-07", "one_more_ahead", "lets a producer be two tokens ahead by default",
        made(capacity=lambda capacity, *rest: 2 if capacity == 1 else capacity)),
    changed("WSP-02.2-08", "a_cycle_a_token", "takes a cycle for each token",
        made(latency=lambda capacity, latency, producers: latency + 1)),
    changed("WSP-02.2-10", "a_queue_a_producer", "gives each producer a queue of the whole capacity",
        made(capacity=lambda capacity, latency, producers: capacity * max(producers, 1))),
    changed("WSP-02.2-10", "physical_depth", "counts the places of its queues, a power of two",
        made(capacity=lambda capacity, *rest: 1 << (capacity - 1).bit_length())),
    changed("WSP-02.2-10", "at_most_255", "holds 255 tokens", made(capacity=lambda many, *rest: min(many, 255))),
    changed("WSP-02.2-10", "always_one", "has a capacity of one whatever is declared",
        made(capacity=lambda *arguments: 1)),
    finding("WSP-02.2-10", "visible_is_gone", "has room for another token when one has become visible",
        "wsp.machine.ChannelState.send", "capacity", lambda self: self.capacity + (
            sum(due <= self.machine.now for due, _ in self.tokens) if self.latency and self.capacity else 0)),
]  # fmt: skip
