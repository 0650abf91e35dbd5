"""A runtime of processes and channels on the threads of Python, made from sections 2 and 3 of the document alone.

A process is a thread and has its own time, which kernels alone advance; a worker is a time. `defects` puts in what a
runtime may get wrong: `lost`, a token for which there is no room beside another producer's; `sum`, a makespan that adds
processes; `empty`, a report in which every channel is empty.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tessera_conformance.adapter import Refusal

POLICIES: Mapping[str, Callable[[int, int, int], int]] = {
    "round_robin": lambda issue, key, count: issue % count,
    "affinity": lambda issue, key, count: key % count,
}


class Ended(Exception):
    """The run is over: a deadlock, or an error of a process."""


class Network:
    """One run of a program."""

    def __init__(self, program: Mapping[str, Any], defects: frozenset[str]) -> None:
        self.program, self.defects, self.changed = program, defects, threading.Condition()
        self.cycles = {kernel["name"]: kernel["cycles"] for kernel in program["kernels"]}
        self.capacity = {channel["name"]: channel.get("capacity", 1) for channel in program["channels"]}
        self.tokens: dict[str, deque[tuple[str, int]]] = {name: deque() for name in self.capacity}
        bodies = {process["name"]: process["body"] for process in program["processes"]}
        self.open = {name: {body for body in bodies if name in produced(bodies[body])} for name in self.capacity}
        self.alive, self.waiting = set(bodies), dict[str, tuple[str, str]]()
        self.time, self.issue = dict.fromkeys(bodies, 0), dict.fromkeys(bodies, 0)
        self.arrivals: dict[str, list[dict[str, Any]]] = {name: [] for name in bodies}
        self.kernels: dict[str, list[dict[str, Any]]] = {name: [] for name in bodies}
        dispatch = program.get("dispatch", {"policy": "round_robin", "workers": 1})
        self.place, self.workers = POLICIES[dispatch["policy"]], [0] * dispatch["workers"]
        self.window, self.high_water = program.get("task_window", {}).get("size", 64), 0
        self.tasks: list[dict[str, Any]] = []
        self.in_flight: list[int] = []
        self.outcome, self.error = "completed", ""

    def execute(self) -> dict[str, Any]:
        """Run every process on a thread; what came of it."""
        threads = [threading.Thread(target=self.run, args=(process,)) for process in self.program["processes"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cycles = (sum if "sum" in self.defects else max)(self.time.values())
        ending = {"outcome": self.outcome, "total_cycles": max(cycles, *self.workers), "arrivals": self.arrivals}
        ending |= {"kernels": self.kernels, "tasks": self.tasks} | ({"error": self.error} if self.error else {})
        return ending | ({"deadlock": self.report()} if self.outcome == "deadlock" else {})

    def report(self) -> dict[str, Any]:
        """Return the waiting processes, their channels and what would help."""
        channels = {name: "empty" if "empty" in self.defects else state for name, state in self.waiting.values()}
        return {
            "window": {"size": self.window, "used": 0, "high_water": self.high_water},
            "channels": [{"name": name, "state": state} for name, state in channels.items()],
            "waiting": [{"process": name, "for": at[0], "reason": at[1]} for name, at in self.waiting.items()],
            "mitigations": [f"more capacity for {name}, or another order" for name in channels],
        }

    def run(self, process: Mapping[str, Any]) -> None:
        """A process, to its end or that of the run."""
        name = process["name"]
        with suppress(Ended):
            self.steps(name, process["body"], 0)
        with self.changed:
            self.alive.discard(name)
            for producers in self.open.values():
                producers.discard(name)
            self.changed.notify_all()
            self.look_for_deadlock()

    def steps(self, name: str, body: Sequence[Mapping[str, Any]], token: int) -> None:
        """The statements of a body, in order."""
        for step in body:
            match step["op"]:
                case "run":
                    self.time[name] += self.cycles[step["kernel"]]
                    self.kernels[name].append({"kernel": step["kernel"], "cycles": self.cycles[step["kernel"]]})
                case "task":
                    self.dispatch(name, step["kernel"], step.get("key", 0))
                case "close":
                    with self.changed:
                        self.open[step["channel"]].discard(name)
                        self.changed.notify_all()
                case "send":
                    self.send(name, step["channel"], step.get("token", token))
                case "consume":
                    for taken in self.take(name, step["channel"]):
                        self.steps(name, step["body"], taken)

    def dispatch(self, name: str, kernel: str, key: int) -> None:
        """Issue a task when the window has room."""
        with self.changed:
            now = max(self.issue[name], self.time[name])
            self.in_flight = sorted(end for end in self.in_flight if end > now)
            self.issue[name] = now = self.in_flight.pop(0) if len(self.in_flight) == self.window else now
            worker = self.place(len(self.tasks), key, len(self.workers))
            self.workers[worker] = max(self.workers[worker], now) + self.cycles[kernel]
            self.in_flight.append(self.workers[worker])
            self.high_water = max(self.high_water, len(self.in_flight))
            self.tasks.append({"kernel": kernel, "worker": worker, "cycles": self.cycles[kernel]})

    def send(self, name: str, channel: str, token: int) -> None:
        """Publish a token when the channel has room."""
        with self.changed:
            if name not in self.open[channel]:
                self.outcome, self.error = "error", f"{name} sends into {channel}, which it has closed"
                self.changed.notify_all()
                raise Ended
            queue = self.tokens[channel]
            while len(queue) >= self.capacity[channel]:
                if "lost" in self.defects and queue[-1][0] != name:
                    return
                self.wait(name, channel, "full")
            queue.append((name, token))
            self.changed.notify_all()

    def take(self, name: str, channel: str) -> Iterator[int]:
        """The tokens of a channel until it is closed and empty."""
        while True:
            with self.changed:
                while not self.tokens[channel] and self.open[channel]:
                    self.wait(name, channel, "empty")
                if not self.tokens[channel]:
                    return
                token = self.tokens[channel].popleft()[1]
                self.arrivals[name].append({"channel": channel, "token": token})
                self.changed.notify_all()
            yield token

    def wait(self, name: str, channel: str, state: str) -> None:
        """Until something has changed."""
        self.waiting[name] = (channel, state)
        self.look_for_deadlock()
        if self.outcome == "completed":
            self.changed.wait()
        if self.outcome != "completed":
            raise Ended
        del self.waiting[name]

    def look_for_deadlock(self) -> None:
        """The run is a deadlock when every live process waits, and for none is there what it waits for."""
        if self.outcome == "completed" and self.alive and self.alive <= set(self.waiting):
            for channel, state in self.waiting.values():
                room = len(self.tokens[channel]) < self.capacity[channel]
                if room if state == "full" else self.tokens[channel] or not self.open[channel]:
                    return
            self.outcome = "deadlock"
            self.changed.notify_all()


def produced(body: Sequence[Mapping[str, Any]]) -> set[str]:
    """The channels that a body sends into or closes."""
    inner = [produced(step["body"]) for step in body if step["op"] == "consume"]
    return {step["channel"] for step in body if step["op"] in ("send", "close")}.union(*inner)


class ThreadRuntime:
    """The adapter: a claim of the document, and no feature."""

    defects: frozenset[str] = frozenset()

    def hello(self) -> dict[str, Any]:
        """Return the identity of the runtime."""
        implementation = {"name": "thread-runtime", "version": "1"}
        return {"protocol": {"minimum": 1, "maximum": 1}, "implementation": implementation, "documents": ["wsp"]}

    def wsp_execute(self, *, program: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outcome of a program."""
        if program.get("dispatch", {}).get("policy", "round_robin") not in POLICIES:
            raise Refusal("UNSUPPORTED_DIRECTIVE", "lower", "there is no such policy")
        return Network(program, self.defects).execute()
