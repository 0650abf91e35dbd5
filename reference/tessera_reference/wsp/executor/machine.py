"""The machine of a run: issues tasks, starts and completes them, and wakes whoever waits."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import policies
from ..errors import RunError
from ..kernels import DTYPES
from ..package import Package
from ..producers import produced_channels
from .agenda import CLOSE_SEEN, KERNEL_ENDS, TOKEN_SEEN, Agenda
from .channels import CLOSED, PROCESS, TASK, ChannelState, Party
from .observed import Observed
from .resources import Resources
from .stalls import CHANNEL_FULL_WAIT, Stalls
from .states import CallSite, ProcessState, TaskState, Waiting, WorkerState
from .tensor_map import TensorMap

__all__ = ["Machine"]


class Machine:
    """All state of one run. Methods raise `RunError`, which ends it."""

    def __init__(
        self,
        package: Package,
        symbols: Sequence[int],
        tensors: Sequence[bytes],
        sizes: dict[str, int],
        agenda: Agenda,
    ) -> None:
        self.package = package
        self.agenda = agenda
        self.symbols = list(symbols)
        self.slots = [0] * len(package.slots)
        self.tensors: list[npt.NDArray[Any]] = [
            np.frombuffer(data, dtype=DTYPES[each.dtype]).copy()
            for each, data in zip(package.tensors, tensors, strict=True)
        ]
        self.stalls = Stalls()
        self.resources = Resources(sizes)
        self.tensor_map = TensorMap(len(package.tensors))
        self.tasks: dict[int, TaskState] = {}
        self.assignments: list[int] = []
        self.kernel_runs = [0] * len(package.kernels)
        self.kernel_cycles = [0] * len(package.kernels)
        self.processes = [
            ProcessState(index, each.name, produced_channels(each.body)) for index, each in enumerate(package.processes)
        ]
        self.channels = [
            ChannelState(
                index,
                each.capacity,
                each.latency,
                sum(index in process.produces for process in self.processes),
                self.agenda,
                self._deliver,
                self._release,
            )
            for index, each in enumerate(package.channels)
        ]
        policy = package.schedule.policy
        count = policy.parameters["workers"]
        assert isinstance(count, int)
        self.workers = [WorkerState(index) for index in range(count)]
        self._place = policies.placement(policy.id, policy.parameters, self.symbols)
        self.observed: Observed | None = None
        self._stalled: dict[int, ProcessState] = {}
        self._startable: dict[int, WorkerState] = {}

    # processes

    def wait(self, process: ProcessState, reason: str, subject: str) -> None:
        """The process waits at its statement, until `wake`."""
        process.waiting = Waiting(reason, self.agenda.now, subject, process.statements[process.pc])
        self.stalls.begin(reason)

    def wake(self, process: ProcessState) -> None:
        """What the process waited for is there."""
        self.end_wait(process)
        self.agenda.make_runnable(process)

    def end_wait(self, process: ProcessState) -> None:
        """An episode of waiting is over."""
        if process.waiting is not None:
            self.stalls.end(process.waiting.reason, self.agenda.now - process.waiting.since)
            process.waiting = None

    def stall(self, process: ProcessState, reason: str, resource: str) -> None:
        """A task cannot be issued; a change of the reason is another episode (AMB-WSP-43)."""
        if process.waiting is None or process.waiting.reason != reason:
            self.end_wait(process)
            self.wait(process, reason, resource)
        self._stalled[process.index] = process

    def freed(self) -> None:
        """Something was freed: whoever could not issue a task tries again, in its turn."""
        if self._stalled:
            for process in self._stalled.values():
                self.agenda.make_runnable(process)
            self._stalled.clear()

    def await_tasks(self, process: ProcessState, tasks: Sequence[TaskState]) -> None:
        """The process goes on when these tasks are complete."""
        process.awaited = len(tasks)
        for each in tasks:
            each.watchers.append(process)

    def close(self, process: ProcessState, channel: int) -> None:
        """The process closes a channel, once its tasks that signal it are complete (AMB-WSP-41)."""
        if channel not in process.closed:
            process.closed.add(channel)
            if not process.signalling.get(channel):
                self.channels[channel].producer_closes()

    # tasks

    def issue(self, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
        """Issue a task; the reason where a resource lacks."""
        number = len(self.assignments)
        dependencies = self.tensor_map.dependencies(site.reads, site.writes)
        worker = self.workers[self._place(number, key)]
        nodes = len(dependencies)
        reason = self.resources.shortage(site, nodes, worker)
        if reason is not None:
            return reason
        self.resources.take(site, nodes, worker)
        scope = process.scopes[-1] if process.scopes else None
        task = TaskState(number, site, scalars, process, worker, scope, nodes, missing=nodes + len(site.waits) + 1)
        self.assignments.append(worker.index)
        if self.observed is not None:
            self.observed.tasks.append((site.kernel, site.cycles))
        self.tasks[number] = task
        self.tensor_map.add(site, task)
        for each in dependencies.values():
            each.dependents.append(task)
        process.in_flight += 1
        for channel in site.signals:
            process.signalling[channel] = process.signalling.get(channel, 0) + 1
        for channel in site.waits:
            taken = self.channels[channel].take((TASK, number))
            if taken == CLOSED:
                raise _no_token(task)
            if taken is not None:
                task.missing -= 1
        self._one_less(task)
        return None

    def start_tasks(self) -> None:
        """Each idle worker starts the first of its tasks that are ready."""
        if not self._startable:
            return
        startable = sorted(self._startable)
        self._startable.clear()
        for index in startable:
            worker = self.workers[index]
            task = self.tasks[heappop(worker.ready)[1]]
            worker.task = task
            worker.places -= 1
            task.started = self.agenda.now
            self.agenda.after(task.site.cycles, KERNEL_ENDS, task.number)
        self.freed()

    def happen(self, kind: int, number: int) -> None:
        """An event."""
        if kind == KERNEL_ENDS:
            self._kernel_ends(self.tasks[number])
        elif kind == TOKEN_SEEN:
            self.channels[number].token_seen()
        elif kind == CLOSE_SEEN:
            self.channels[number].close_seen()
        else:
            self.agenda.make_runnable(self.processes[number])

    def count_kernel(self, site: CallSite) -> None:
        """A kernel has run."""
        self.kernel_runs[site.kernel] += 1
        self.kernel_cycles[site.kernel] += site.cycles

    def _one_less(self, task: TaskState) -> None:
        """A task waits for one thing less: a token, a task, or the end of its issue."""
        task.missing -= 1
        if not task.missing:
            worker = task.worker
            heappush(worker.ready, (self.agenda.now, task.number))
            if worker.task is None:
                self._startable[worker.index] = worker

    def _kernel_ends(self, task: TaskState) -> None:
        task.site.effect(task.scalars)
        self.count_kernel(task.site)
        self._signal(task)

    def _signal(self, task: TaskState) -> None:
        """Send what is left of the signals; the task is complete after the last (AMB-WSP-45)."""
        signals = task.site.signals
        while task.sent < len(signals):
            channel = self.channels[signals[task.sent]]
            if not channel.send((TASK, task.number), task.number):
                name = self.package.channels[channel.index].name
                task.waiting = Waiting(CHANNEL_FULL_WAIT, self.agenda.now, name, task.site.statement)
                self.stalls.begin(CHANNEL_FULL_WAIT)
                return
            task.sent += 1
        self._complete(task)

    def _complete(self, task: TaskState) -> None:
        now, site, worker, process = self.agenda.now, task.site, task.worker, task.process
        del self.tasks[task.number]
        self.tensor_map.remove(site, task)
        worker.task = None
        worker.busy += now - task.started
        worker.tasks += 1
        worker.time = now
        if worker.ready:
            self._startable[worker.index] = worker
        for each in task.dependents:
            self._one_less(each)
        for watcher in task.watchers:
            watcher.awaited -= 1
            if not watcher.awaited:
                self.wake(watcher)
        process.in_flight -= 1
        self._free(task)
        for channel in site.signals:
            process.signalling[channel] -= 1
            if not process.signalling[channel] and channel in process.closed:
                self.channels[channel].producer_closes()

    def _free(self, task: TaskState) -> None:
        """What a complete task held; an open scope keeps all but DepList nodes (AMB-WSP-07)."""
        site, scope = task.site, task.scope
        self.resources.free_nodes(task.nodes)
        if scope is not None and scope.open:
            scope.slots += 1
            scope.entries += len(site.writes)
            scope.heap += site.heap
        else:
            self.resources.free(1, len(site.writes), site.heap)
        self.freed()

    # what channels tell

    def _deliver(self, party: Party, value: int) -> None:
        kind, number = party
        if kind == PROCESS:
            process = self.processes[number]
            process.delivered = value
            self.wake(process)
            return
        task = self.tasks[number]
        if value == CLOSED:
            raise _no_token(task)
        self._one_less(task)

    def _release(self, party: Party) -> None:
        kind, number = party
        if kind == PROCESS:
            self.wake(self.processes[number])
            return
        task = self.tasks[number]
        if task.waiting is not None:
            self.stalls.end(task.waiting.reason, self.agenda.now - task.waiting.since)
            task.waiting = None
        task.sent += 1
        self._signal(task)


def _no_token(task: TaskState) -> RunError:
    problem = f"task {task.number} waits for a token of a channel that is closed and empty"
    return RunError("RECEIVE_AFTER_CLOSE", problem, task.process.name, task.site.statement)
