"""Channels that close too early, too late or for the wrong processes, and consumers that end so (PTO-WSP v10, 2.3)."""

from heapq import heappop

from tessera_reference.wsp.machine import CLOSED

from ....ir.violators.changes import breaks, changed, wrapped


@breaks("WSP-02.3-02", "closes a channel with its first producer", "wsp.machine.ChannelState.producer_closes")
def by_the_first(usual, self):
    if self.producers:
        self.producers = 1
        usual(self)


@breaks("WSP-02.3-02", "accepts a send after a close", "wsp.run.Processes.send")
def send_after_close(usual, self, process, channel, value):
    process.closed.discard(channel)
    return usual(self, process, channel, value)


@breaks("WSP-02.3-02", "closes all channels of a process with one", "wsp.machine.Machine.close")
def all_of_them(usual, self, process, channel):
    for produce in process.produces:
        usual(self, process, produce)


@breaks("WSP-02.3-02", "closes a channel before the tasks that signal it", "wsp.machine.Machine.close")
def before_signals(usual, self, process, channel):
    tasks = [task for task in self.tasks.values() if task.process is process]
    self.channels[channel].producers -= sum(task.site.signals.count(channel) for task in tasks)
    usual(self, process, channel)


@breaks("WSP-02.3-02", "signals closed channels of a task that signals an open one too", "wsp.run.Processes.task")
def signals_if_any_is_open(usual, self, process, task):
    closed = process.closed
    if not closed.issuperset(self.package.site(task).signals):
        process.closed = set()
    yield from usual(self, process, task)
    process.closed = closed


@breaks("WSP-02.3-03", "ends one of the consumers that wait", "wsp.machine.ChannelState.close_seen")
def one_is_told(usual, self):
    self.seen_closed = True
    if self.takers:
        self.machine.deliver(heappop(self.takers)[1:], CLOSED)


TERMINATION = [
    wrapped("WSP-02.3-03", "late_comers_end_at_once", "ends a consumer that comes after a close, not yet seen, at once",
        "wsp.machine.ChannelState.take", lambda usual, self, party:
        usual(self, party) if self.producers or self.tokens or self.seen_closed else CLOSED),
    changed("WSP-02.3-03", "otherwise_unseen", "looks for producers in the first body of a cond alone",
        ("wsp.package.BODIES", ("body", "then"))),
]  # fmt: skip
