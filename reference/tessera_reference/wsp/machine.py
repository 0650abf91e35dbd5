"""The machine of a run: time, channels, resources, tasks, and the stalls of what waits (sections 2.2, 3.4)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import RunError
from .kernels import DTYPES, execute
from .package import CallSite, Inputs, Package, capacity_of, checked, no_scopes_of

# The bounded resources, and the reasons of stalls, in the document's vocabulary (sections 3.4 and 3.4.2).


POOLS = ("task_ring", "tensormap_pool", "deplist_pool", "heap_arena")
"""The resources that all workers share; beside them, each worker has a ready queue."""
RESOURCE_OF = {f"{resource.upper()}_FULL": resource for resource in (*POOLS, "ready_queue")}
REASONS = (*RESOURCE_OF, "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT")
"""The reasons of stalls. A wait for tasks has the reason TASK_WAIT in reports, and is no stall (AMB-WSP-46)."""


# The state of processes, tasks, workers and scopes in a run.


class Waiting(NamedTuple):
    """A wait of a process or task at its statement: its reason, since when, and for which channel or resource."""

    reason: str
    since: int
    subject: str


@dataclass(slots=True, eq=False)
class ProcessState:
    """A process: its execution, the path of its statement, and the time at which it last did something.

    A scope is what it holds of complete tasks, by resource.
    """

    index: int
    name: str
    produces: tuple[int, ...]
    without_scopes: bool = False
    execution: Iterator[None] = field(default_factory=lambda: iter(()))
    statement: str = "body"
    time: int = 0
    done: bool = False
    runnable: bool = True
    waiting: Waiting | None = None
    delivered: int = 0
    missing: int = 0
    """The tasks that it waits for."""
    scopes: list[Counter[str]] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class TaskState:
    """A task in flight, which holds what it took of the pools.

    `missing` counts the tasks and tokens that it needs before it is ready, and its issue.
    """

    number: int
    site: CallSite
    statement: str
    scalars: Sequence[int]
    process: ProcessState
    worker: WorkerState
    scope: Counter[str] | None
    holds: dict[str, int]
    missing: int
    started: int = 0
    sent: int = 0
    waiting: Waiting | None = None
    dependents: list[TaskState | ProcessState] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class WorkerState:
    """A worker: `ready` is a heap of (time, task number), `places` counts its tasks that have not started."""

    index: int
    ready: list[tuple[int, int]] = field(default_factory=list)
    places: int = 0
    task: TaskState | None = None
    busy: int = 0
    tasks: int = 0
    time: int = 0


KERNEL_ENDS, TOKEN_SEEN, CLOSE_SEEN, PROCESS_GOES_ON = range(4)
"""The kinds of events, in the order in which those of one instant happen."""
LAST_TIME = (1 << 63) - 1
SPINS_IN_A_RUN = 200


# A channel (section 2.2): tokens from send to take, and who waits at both ends, first come, first served.
#
# With capacity 0 a send ends when its token is taken (AMB-WSP-38). The machine delivers tokens and releases senders.


PROCESS, TASK = 0, 1
CLOSED = -1
"""The token taken from a channel that is closed and empty."""
Party: TypeAlias = tuple[int, int]
"""PROCESS and its index, or TASK and its number; in this order those who came at one instant are served."""


@dataclass(eq=False)
class ChannelState:
    """One channel of a run; its producers are processes that have not closed it, and tasks in flight that signal it."""

    index: int
    capacity: int
    latency: int
    producers: int
    name: str
    machine: Machine
    tokens: deque[tuple[int, int]] = field(default_factory=deque)
    takers: list[tuple[int, int, int]] = field(default_factory=list)
    senders: list[tuple[int, int, int, int]] = field(default_factory=list)
    taken: int = 0

    def __post_init__(self) -> None:
        """A channel without producers is closed from the start."""
        self.seen_closed = self.producers == 0

    def send(self, party: Party, value: int) -> bool:
        """True if the send is done; else the party waits, and is released later."""
        if not self.latency and self.takers:
            self.taken += 1
            self.machine.deliver(heappop(self.takers)[1:], value)
            return True
        if len(self.tokens) < self.capacity:
            self._enter(value)
            return True
        offered = self.machine.now if self.capacity else self._visible_at()
        heappush(self.senders, (offered, *party, value))
        return False

    def take(self, party: Party) -> int | None:
        """A token, or CLOSED; None where the party waits; one is delivered to it later."""
        value = self._visible_token()
        if value is not None:
            return value
        if self.seen_closed:
            return CLOSED
        heappush(self.takers, (self.machine.now, *party))
        return None

    def producer_closes(self) -> None:
        """One producer fewer; after the last the channel is closed, which is seen after the latency (AMB-WSP-40)."""
        self.producers -= 1
        if self.producers == 0 and self.latency:
            self.machine.after(self.latency, CLOSE_SEEN, self.index)
        elif self.producers == 0:
            self.close_seen()

    def token_seen(self) -> None:
        """Tokens may have become visible."""
        while self.takers and (value := self._visible_token()) is not None:
            self.machine.deliver(heappop(self.takers)[1:], value)

    def close_seen(self) -> None:
        """Close the channel, and resume what waits for a token."""
        self.seen_closed = True
        while self.takers:
            self.machine.deliver(heappop(self.takers)[1:], CLOSED)

    def _visible_token(self) -> int | None:
        """The first token, which is taken, if it is visible; with capacity 0 a sender has it, and offers it."""
        queue = self.tokens if self.capacity else self.senders
        if not queue or queue[0][0] > self.machine.now:
            return None
        self.taken += 1
        if not self.capacity:
            return self._next_sender()
        value = self.tokens.popleft()[1]
        if self.senders:
            self._next_sender()
        return value

    def _next_sender(self) -> int:
        """The token of the first sender, which is released; it enters the channel where that has a capacity."""
        _, kind, number, value = heappop(self.senders)
        if self.capacity:
            self._enter(value)
        self.machine.release((kind, number))
        return value

    def _enter(self, value: int) -> None:
        """A token is sent; it fits, and nobody takes it at once."""
        self.tokens.append((self._visible_at(), value))

    def _visible_at(self) -> int:
        """Return the time at which a token of now becomes visible, and set the event."""
        if self.latency:
            self.machine.after(self.latency, TOKEN_SEEN, self.index)
        return self.machine.now + self.latency


# The bounded resources (section 3.4): a task takes all that it needs when it is issued, or nothing. Of the DepList pool
# it takes a node for each task in flight that it depends on.


class Resources:
    """Sizes, use and high-water marks; `ready_queue` is that of the fullest worker."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.used = dict.fromkeys(sizes, 0)
        self.high_water = dict.fromkeys(sizes, 0)

    def shortage(self, amounts: Mapping[str, int], worker: WorkerState) -> str | None:
        """The reason why a task cannot be issued: the first resource that lacks, in the order of the document."""
        for pool, amount in amounts.items():
            if self.used[pool] + amount > self.sizes[pool]:
                return f"{pool.upper()}_FULL"
        return "READY_QUEUE_FULL" if worker.places >= self.sizes["ready_queue"] else None

    def take(self, amounts: Mapping[str, int], worker: WorkerState) -> None:
        """A task is issued."""
        used, high_water = self.used, self.high_water
        worker.places += 1
        if worker.places > high_water["ready_queue"]:
            high_water["ready_queue"] = worker.places
        for pool, amount in amounts.items():
            used[pool] += amount
            if used[pool] > high_water[pool]:
                high_water[pool] = used[pool]

    def free(self, amounts: Mapping[str, int]) -> None:
        """Amounts of pools are free again."""
        for pool, amount in amounts.items():
            self.used[pool] -= amount


# Dependency inference (section 3.4): the task in flight that wrote each tensor last, and those that read it since.


class TensorMap:
    """Tasks by tensor; complete tasks are forgotten."""

    def __init__(self, tensors: int) -> None:
        self.writer: list[TaskState | None] = [None] * tensors
        self.readers: list[dict[int, TaskState]] = [{} for _ in range(tensors)]

    def dependencies(self, reads: Iterable[int], writes: Iterable[int]) -> dict[int, TaskState]:
        """By number, the tasks that must be complete before these tensors are read and written (AMB-WSP-44)."""
        tasks = {task.number: task for tensor in (*reads, *writes) if (task := self.writer[tensor]) is not None}
        for tensor in writes:
            tasks.update(self.readers[tensor])
        return tasks

    def add(self, task: TaskState) -> None:
        """A task is issued."""
        for tensor in task.site.reads:
            self.readers[tensor][task.number] = task
        for tensor in task.site.writes:
            self.writer[tensor] = task
            self.readers[tensor] = {}

    def remove(self, task: TaskState) -> None:
        """A task is complete."""
        for tensor in task.site.reads:
            self.readers[tensor].pop(task.number, None)
        for tensor in task.site.writes:
            if self.writer[tensor] is task:
                self.writer[tensor] = None


# The machine of a run: issues tasks, starts and completes them, and wakes what waits.


class Machine:
    """All state of one run. Methods raise `RunError`, which ends it."""

    events: list[list[Any]] | None = None
    spinning: str | None = None  # of the class: more than 30 attributes of its own would make an instance slow

    def __init__(self, package: Package, inputs: Inputs) -> None:
        symbols, tensors, settings, self.most = checked(package, inputs)
        self.spin = max(1, self.most // SPINS_IN_A_RUN)
        self.package = package
        self.now = 0
        self.agenda: list[tuple[int, int, int]] = []
        """The events that are due, a heap of their times, kinds and numbers."""
        self.slots = [0] * len(package.slots)
        self.values: dict[str, Any] = {"symbol": symbols, "slot": self.slots}
        self.tensors: list[npt.NDArray[Any]] = [
            np.frombuffer(data, dtype=DTYPES[tensor.dtype]).copy()
            for tensor, data in zip(package.tensors, tensors, strict=True)
        ]
        self.stall_count: Counter[str] = Counter()
        self.stall_cycles: Counter[str] = Counter()
        sizes = {resource: settings[resource] for resource in vars(package.schedule.resources)}
        self.resources = Resources({"task_ring": settings["task_window"], **sizes})
        self.tensor_map = TensorMap(len(package.tensors))
        self.tasks: dict[int, TaskState] = {}
        self.assignments: list[int] = []
        self.kernel_runs = [0] * len(package.kernels)
        self.kernel_cycles = [0] * len(package.kernels)
        self.processes = [
            ProcessState(index, process.name, process.produces, settings[no_scopes_of(process.name)] > 0)
            for index, process in enumerate(package.csp.processes)
        ]
        self.channels: list[ChannelState] = []
        for index, channel in enumerate(package.csp.channels):
            capacity = settings[capacity_of(channel.name)]
            producers = sum(index in process.produces for process in self.processes)
            self.channels.append(ChannelState(index, capacity, channel.latency, producers, channel.name, self))
        self.workers = [WorkerState(index) for index in range(package.schedule.policy.workers)]
        self.policy = package.schedule.policy.worker

    # time, which neither the host nor a seed has a part in

    def after(self, cycles: int, kind: int, number: int) -> None:
        """Set an event of a kind, for a task, channel or process, `cycles` from now. Raise `RunError`."""
        time = self.now + cycles
        if time > LAST_TIME:
            raise RunError("TIME_OVERFLOW", f"{cycles} cycles after {self.now} lie beyond {LAST_TIME}")
        heappush(self.agenda, (time, kind, number))

    def is_due(self) -> bool:
        """True if an event happens now."""
        return bool(self.agenda) and self.agenda[0][0] == self.now

    # processes

    def wait(self, who: ProcessState | TaskState, reason: str, subject: str) -> None:
        """A process, until `wake`, or a task waits at its statement."""
        who.waiting = Waiting(reason, self.now, subject)
        self.stall_count[reason] += 1

    def wake(self, process: ProcessState) -> None:
        """Resume a process that need not wait any more."""
        self.end_wait(process)
        process.runnable = True

    def end_wait(self, who: ProcessState | TaskState) -> None:
        """An episode of waiting is over."""
        if who.waiting is not None:
            self.stall_cycles[who.waiting.reason] += self.now - who.waiting.since
            who.waiting = None

    def stall(self, process: ProcessState, reason: str) -> None:
        """A task cannot be issued; a change of the reason is another episode (AMB-WSP-43)."""
        if process.waiting is None or process.waiting.reason != reason:
            self.end_wait(process)
            self.wait(process, reason, RESOURCE_OF[reason])

    def freed(self) -> None:
        """Something was freed: processes that could not issue a task try again, in turn."""
        for process in self.processes:
            if process.waiting is not None and process.waiting.reason in RESOURCE_OF:
                process.runnable = True

    def close(self, process: ProcessState, channel: int) -> None:
        """The process closes a channel, once its tasks that signal it are complete (AMB-WSP-41)."""
        if channel not in process.closed:
            process.closed.add(channel)
            self.channels[channel].producer_closes()

    # tasks

    def issue(self, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
        """Issue a task; the reason where a resource lacks."""
        number = len(self.assignments)
        dependencies = self.tensor_map.dependencies(site.reads, site.writes)
        worker = self.workers[self.place(number, key)]
        nodes = len(dependencies)
        amounts = {"task_ring": 1, "tensormap_pool": len(site.writes), "deplist_pool": nodes, "heap_arena": site.heap}
        reason = self.resources.shortage(amounts, worker)
        if reason is not None:
            return reason
        self.resources.take(amounts, worker)
        self.end_wait(process)
        scope = process.scopes[-1] if process.scopes else None
        missing = nodes + len(site.waits) + 1
        task = TaskState(number, site, process.statement, scalars, process, worker, scope, amounts, missing)
        self.assignments.append(worker.index)
        self.record("task", site.kernel, worker.index, site.cycles)
        self.tasks[number] = task
        self.tensor_map.add(task)
        for dependency in dependencies.values():
            dependency.dependents.append(task)
        for channel in site.signals:
            self.channels[channel].producers += 1
        for channel in site.waits:
            if (token := self.channels[channel].take((TASK, number))) is not None:
                self.deliver((TASK, number), token)
        self._one_less(task)
        return None

    def place(self, number: int, key: int) -> int:
        """Return the worker of a task, by the policy. Raise `RunError` for one that there is not."""
        self.values["input"] = {"task": number, "key": key}
        worker = self.policy.value(self.values)
        if worker >= len(self.workers):
            problem = f"the policy places task {number} on worker {worker} of {len(self.workers)}"
            raise RunError("WORKER_OUT_OF_RANGE", problem)
        return worker

    def start_tasks(self) -> None:
        """Each idle worker starts the first of its tasks that are ready."""
        startable = [worker for worker in self.workers if worker.task is None and worker.ready]
        for worker in startable:
            task = self.tasks[heappop(worker.ready)[1]]
            worker.task = task
            worker.places -= 1
            task.started = self.now
            self.after(task.site.cycles, KERNEL_ENDS, task.number)
        if startable:
            self.freed()

    def happen(self, kind: int, number: int) -> None:
        """An event."""
        if kind == KERNEL_ENDS:
            task = self.tasks[number]
            self.apply(task.site, task.scalars)
            self._signal(task)
        elif kind == TOKEN_SEEN:
            self.channels[number].token_seen()
        elif kind == CLOSE_SEEN:
            self.channels[number].close_seen()
        else:
            self.processes[number].runnable = True

    def record(self, *event: Any) -> None:
        """Record an arrival, a kernel or a task, where somebody asked for the record."""
        if self.events is not None:
            self.events.append([*event])

    def progress(self) -> int:
        """Return the progress of the run: the tasks issued, the kernels that ran, the tokens sent and taken."""
        tokens = sum(2 * channel.taken + len(channel.tokens) for channel in self.channels)
        return len(self.assignments) + sum(self.kernel_runs) + tokens

    def apply(self, site: CallSite, scalars: Sequence[int]) -> None:
        """Execute a kernel on its tensors, and count it."""
        execute(self.package.kernels[site.kernel], [self.tensors[tensor] for tensor in site.tensors], scalars)
        self.kernel_runs[site.kernel] += 1
        self.kernel_cycles[site.kernel] += site.cycles

    def _one_less(self, waiter: TaskState | ProcessState) -> None:
        """A task or process waits for one thing less: a task, a token, or the end of its issue."""
        waiter.missing -= 1
        if waiter.missing:
            return
        if isinstance(waiter, ProcessState):
            self.wake(waiter)
        else:
            heappush(waiter.worker.ready, (self.now, waiter.number))

    def _signal(self, task: TaskState) -> None:
        """Send what is left of the signals; the task is complete after the last (AMB-WSP-45)."""
        signals = task.site.signals
        while task.sent < len(signals):
            channel = self.channels[signals[task.sent]]
            if not channel.send((TASK, task.number), task.number):
                self.wait(task, "CHANNEL_FULL_WAIT", channel.name)
                return
            task.sent += 1
        self._complete(task)

    def _complete(self, task: TaskState) -> None:
        now, worker = self.now, task.worker
        del self.tasks[task.number]
        self.tensor_map.remove(task)
        worker.task = None
        worker.busy += now - task.started
        worker.tasks += 1
        worker.time = now
        for dependent in task.dependents:
            self._one_less(dependent)
        self._free(task)
        for channel in task.site.signals:
            self.channels[channel].producer_closes()

    def _free(self, task: TaskState) -> None:
        """Free the resources of a complete task; a scope that lasts keeps all but DepList nodes (AMB-WSP-07)."""
        self.resources.used["deplist_pool"] -= task.holds.pop("deplist_pool")
        if task.scope is not None and any(scope is task.scope for scope in task.process.scopes):
            task.scope.update(task.holds)
        else:
            self.resources.free(task.holds)
        self.freed()

    # what channels tell

    def deliver(self, party: Party, value: int) -> None:
        """Resume a party that waited for a token. Raise `RunError` for a task at the end of its channel."""
        kind, number = party
        if kind == PROCESS:
            process = self.processes[number]
            process.delivered = value
            self.wake(process)
            return
        task = self.tasks[number]
        if value == CLOSED:
            problem = f"task {number} waits for a token of a channel that is closed and empty"
            raise RunError("RECEIVE_AFTER_CLOSE", problem, task.process.name, task.statement)
        self._one_less(task)

    def release(self, party: Party) -> None:
        """Resume a party that waited for room: its token is sent."""
        kind, number = party
        if kind == PROCESS:
            self.wake(self.processes[number])
            return
        task = self.tasks[number]
        self.end_wait(task)
        task.sent += 1
        self._signal(task)

    # The state of a run, at its end or between two instants (sections 1.2 and 3.4.2).

    def state(self) -> dict[str, Any]:
        """Return the state of all parts, from which `deadlock.py` makes a result; the native program prints the same.

        Processes and channels stand by name, tasks in flight and workers by number.
        """
        resources, runs = self.resources, zip(self.package.kernels, self.kernel_runs, self.kernel_cycles, strict=True)
        tensors = zip(self.package.tensors, self.tensors, strict=True)
        times = [process.time for process in self.processes] + [worker.time for worker in self.workers]
        return {
            "total_cycles": max(times),
            "time": self.now,
            "spinning": self.spinning,
            "processes": {process.name: self._process(process) for process in self.processes},
            "channels": {channel.name: self._channel(channel) for channel in self.channels},
            "tasks": [self._task(task) for task in self.tasks.values()],
            "workers": [
                {"busy": worker.busy, "tasks": worker.tasks, "task": worker.task and worker.task.number}
                for worker in self.workers
            ],
            "kernels": {kernel.name: {"runs": count, "cycles": cycles} for kernel, count, cycles in runs},
            "stalls": {
                reason: {"count": self.stall_count[reason], "cycles": self.stall_cycles[reason]} for reason in REASONS
            },
            "resources": {
                name: {"size": size, "used": resources.used[name], "high_water": resources.high_water[name]}
                for name, size in resources.sizes.items()
            },
            "slots": {slot.name: str(value) for slot, value in zip(self.package.slots, self.slots, strict=True)},
            "tensors": {tensor.name: values.tobytes().hex() for tensor, values in tensors},
            "assignments": list(self.assignments),
        }

    def _process(self, process: ProcessState) -> dict[str, Any]:
        return {
            "time": process.time,
            "done": process.done,
            "statement": process.statement,
            "waiting": process.waiting and process.waiting._asdict(),
            "closed": [self.channels[channel].name for channel in process.closed],
            "scopes": [dict(scope) for scope in process.scopes],
        }

    def _channel(self, channel: ChannelState) -> dict[str, Any]:
        return {
            "capacity": channel.capacity,
            "tokens": len(channel.tokens),
            "taken": channel.taken,
            "senders": len(channel.senders),
            "producers": channel.producers,
            "takers": len(channel.takers),
            "tasks": [number for _, kind, number in channel.takers if kind == TASK],
        }

    def _task(self, task: TaskState) -> dict[str, Any]:
        dependents = [
            f"process {other.name}" if isinstance(other, ProcessState) else f"task {other.number}"
            for other in task.dependents
        ]
        return {
            "task": task.number,
            "process": task.process.name,
            "statement": task.statement,
            "worker": task.worker.index,
            "waiting": task.waiting and task.waiting._asdict(),
            "holds": task.holds | {"ready_queue": int(task.worker.task is not task)},
            "signals": [self.channels[channel].name for channel in task.site.signals],
            "dependents": dependents,
        }
