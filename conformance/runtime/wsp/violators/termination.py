"""Channels that close too early, too late or for the wrong processes, and consumers that end so (PTO-WSP v10, 2.3)."""

from __future__ import annotations

from heapq import heappop
from typing import Any

from tessera_reference.wsp.machine import CLOSED, ChannelState, Machine
from tessera_reference.wsp.run import Processes

from .changes import changed, ends_the_process, until_it_ends

CLOSES, TAKE, CLOSE = ChannelState.producer_closes, ChannelState.take, Machine.close
SEND, BODY = Processes.send, Processes.body


def by_the_first(self: Any) -> None:
    if self.producers:
        self.producers = 1
        CLOSES(self)


def open_to_all(self: Any, process: Any, channel: int, value: Any) -> bool:
    process.closed.discard(channel)
    return SEND(self, process, channel, value)


def all_of_them(self: Any, process: Any, channel: int) -> None:
    for produce in process.produces:
        CLOSE(self, process, produce)


def before_signals(self: Any, process: Any, channel: int) -> None:
    if channel not in process.closed:
        process.closed.add(channel)
        self.channels[channel].producer_closes()


def if_any_is_open(self: Processes, process: Any, task: Any) -> Any:
    closed = process.closed
    if not closed.issuperset(self.machine.package.site(task).signals):
        process.closed = set()
    yield from TASK(self, process, task)
    process.closed = closed


TASK = Processes.task


def closed_at_once(self: Any) -> None:
    latency, self.latency = self.latency, 0
    CLOSES(self)
    self.latency = latency


def one_is_told(self: Any) -> None:
    self.seen_closed = True
    if self.takers:
        self.deliver(heappop(self.takers)[1:], CLOSED)


TERMINATION = [
    changed("WSP-02.3-02", "by_the_first", "closes a channel with its first producer",
        ("wsp.machine.ChannelState.producer_closes", by_the_first)),
    changed("WSP-02.3-02", "send_after_close", "accepts a send after a close", ("wsp.run.Processes.send", open_to_all)),
    changed("WSP-02.3-02", "all_of_them", "closes all channels of a process with one",
        ("wsp.machine.Machine.close", all_of_them)),
    changed("WSP-02.3-02", "signals_if_any_is_open", "signals closed channels of a task that signals an open one too",
        ("wsp.run.Processes.task", if_any_is_open)),
    changed("WSP-02.3-02", "before_signals", "closes a channel before the tasks that signal it",
        ("wsp.machine.Machine.close", before_signals)),
    changed("WSP-02.3-03", "one_is_told", "ends one of the consumers that wait",
        ("wsp.machine.ChannelState.close_seen", one_is_told)),
    changed("WSP-02.3-03", "closed_at_once", "lets a close overtake the tokens before it",
        ("wsp.machine.ChannelState.producer_closes", closed_at_once)),
    changed("WSP-02.3-03", "ends_the_process", "ends the process of a consumer with it", (
        "wsp.run.Processes.body", ends_the_process), ("wsp.run.Processes.whole", until_it_ends)),
    changed("WSP-02.3-03", "receives_nothing", "goes on after a receive from a closed channel",
        ("wsp.run.Processes.refuse_end", lambda self, channel: None)),
]  # fmt: skip
