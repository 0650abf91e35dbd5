"""Runtimes that answer `wsp.execute` alone, and read a silence of the document as a listed alternative has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.machine import Machine
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import Consume

NETWORKS = ("runtime/wsp/*",)
CLOSE, SEND, ISSUE, BODY = Machine.close, Processes.send, Machine.issue, Processes.body


class Networks(ReferenceAdapter):
    """A claim of the document without a feature."""

    def hello(self) -> dict[str, Any]:
        """Nothing beyond the core."""
        return super().hello() | {"documents": ["wsp"], "capabilities": {}}


class TensorNetworks(Networks):
    """A claim of the document, and of tasks that name their tensors."""

    def hello(self) -> dict[str, Any]:
        """One feature beyond the core."""
        return super().hello() | {"capabilities": {"wsp-task-tensors": "enforced"}}


def closed_by_the_first(self: Any, process: Any, channel: int) -> None:
    """One process closes for all, once its tasks that signal the channel are complete."""
    if self.channels[channel].producers > 0:
        tasks = [task for task in self.tasks.values() if task.process is process]
        self.channels[channel].producers = 1 + sum(task.site.signals.count(channel) for task in tasks)
    CLOSE(self, process, channel)


def refused_once_closed(self: Any, process: Any, channel: int, value: Any) -> bool:
    """A send of any process after the close is an error."""
    if self.channels[channel].producers <= 0:
        process.closed.add(channel)
    return SEND(self, process, channel, value)


def dropped(self: Any, process: Any, channel: int, value: Any) -> bool:
    """A send after a close sends nothing."""
    return channel in process.closed or SEND(self, process, channel, value)


def counted_by_kernel(self: Any, process: Any, site: Any, key: int, scalars: Any) -> Any:
    """A policy has the number of the task among those of its kernel, which the cases' cycles tell apart."""
    place, counts = self.place, vars(self).setdefault("issued", Counter())
    self.place = lambda number, key: place(counts[site.cycles], key)
    try:
        reason = ISSUE(self, process, site, key, scalars)
        counts[site.cycles] += reason is None
        return reason
    finally:
        self.place = place


def unclosed(self: Any, process: Any, body: Any) -> Any:
    """A process ends without a close."""
    yield from self.body(process, body, "body")
    process.done = True


class Ended(Exception):
    """Raised by a process that ends before its last statement."""


def ends_the_process(self: Any, process: Any, statements: Any, path: Any) -> Any:
    """End the whole process of a consumer that has no more tokens."""
    for statement in statements:
        yield from BODY(self, process, (statement,), path)
        if isinstance(statement, Consume):
            raise Ended


def until_it_ends(self: Any, process: Any, body: Any) -> Any:
    """Run a process that may end before its last statement."""
    with suppress(Ended):
        yield from self.body(process, body, "body")
    for channel in process.produces:
        self.close(process, channel)
    process.done = True


READINGS = [
    altered("AMB-WSP-02", "closes a channel with its first producer", NETWORKS, Networks, (
        Machine, "close", closed_by_the_first
    ), (Processes, "send", refused_once_closed), name="first_close_wins"),
    altered("AMB-WSP-03", "drops a token that is sent after the close", NETWORKS, Networks, (
        Processes, "send", dropped
    ), name="dropped_after_close"),
    altered("AMB-WSP-05", "counts the tasks of each kernel", NETWORKS, TensorNetworks, (
        Machine, "issue", counted_by_kernel
    ), name="counters_of_kernels"),
    altered("AMB-WSP-24", "closes a channel where a process says so, not at its end", NETWORKS, Networks, (
        Processes, "whole", unclosed
    ), name="explicit_close"),
    altered("AMB-WSP-54", "ends the process of a consumer with its channel", NETWORKS, Networks, (
        Processes, "body", ends_the_process), (Processes, "whole", until_it_ends
    ), name="consumer_is_the_process"),
]  # fmt: skip


@varies("AMB-WSP-27", "gives each token to all consumers of its channel", *NETWORKS)
class Broadcast(Networks):
    """A channel of several consumers stands for one to each of them."""

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        return (lambda *, program: _one_name(method(program=_split(program)))) if name == "wsp_execute" else method


def _split(program: Mapping[str, Any]) -> Mapping[str, Any]:
    consumers = Counter(name for process in program["processes"] for name in _consumed(process["body"]))
    ends: dict[str, list[str]] = {channel["name"]: [channel["name"]] for channel in program["channels"]}
    for name, number in consumers.items():
        if number > 1:
            ends[name] = [
                f"{name}--{process['name']}" for process in program["processes"] if name in _consumed(process["body"])
            ]
    return {
        **program,
        "channels": [{**channel, "name": end} for channel in program["channels"] for end in ends[channel["name"]]],
        "processes": [
            {**process, "body": _to_all(process["body"], process["name"], ends)} for process in program["processes"]
        ],
    }


def _to_all(body: Sequence[Mapping[str, Any]], process: str, ends: Mapping[str, Sequence[str]]) -> list[Any]:
    steps: list[Any] = []
    for step in body:
        match step["op"]:
            case "send" | "close":
                steps += [{**step, "channel": end} for end in ends[step["channel"]]]
            case "consume":
                own = [
                    end for end in ends[step["channel"]] if end in (step["channel"], f"{step['channel']}--{process}")
                ]
                steps.append({**step, "channel": own[0], "body": _to_all(step["body"], process, ends)})
            case _:
                steps.append(step)
    return steps


def _consumed(body: Sequence[Mapping[str, Any]]) -> set[str]:
    inner = [_consumed(step["body"]) for step in body if step["op"] == "consume"]
    return {step["channel"] for step in body if step["op"] == "consume"}.union(*inner)


def _one_name(ending: dict[str, Any]) -> dict[str, Any]:
    for tokens in ending["arrivals"].values():
        for token in tokens:
            token["channel"] = token["channel"].partition("--")[0]
    return ending
