"""A run of a package, instant by instant or to its end, with its statistics (sections 1.2, 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...mesh.engine import Engine
from ..deadlock import explained
from ..errors import ArgumentRefused, RunError
from ..package import Package, applied
from .machine import REASONS, TASK, TASK_WAIT, Agenda, Machine, ProcessState, Waiting, path_of
from .processes import CallForms, Left, Processes, Spinning, StepCount

# The statistics of a run, at its end or between two instants (sections 1.2 and 3.4.2).


def statistics(machine: Machine) -> dict[str, Any]:
    """Return the statistics of `schemas/wsp_result.schema.json`; stalls that last count up to now."""
    package, now = machine.package, machine.agenda.now
    current = _current_stalls(machine)
    cycles = dict(machine.stalls.cycles)
    for each in current:
        cycles[each["reason"]] += now - each["since"]
    resources = machine.resources
    fullest = max(worker.places for worker in machine.workers)
    return {
        "total_cycles": max(
            [process.time for process in machine.processes] + [worker.time for worker in machine.workers]
        ),
        "processes": {process.name: process.time for process in machine.processes},
        "workers": [{"busy": slot.busy, "tasks": slot.tasks} for slot in machine.workers],
        "kernels": {
            each.name: {"runs": machine.kernel_runs[place], "cycles": machine.kernel_cycles[place]}
            for place, each in enumerate(package.kernels)
        },
        "stalls": {reason: {"count": machine.stalls.count[reason], "cycles": cycles[reason]} for reason in REASONS},
        "current_stalls": current,
        "used": {**resources.used, "ready_queue": fullest},
        "high_water": dict(resources.high_water),
        "channels": {
            stated.name: {"sent": channel.sent, "taken": channel.taken, "left": len(channel.tokens)}
            for stated, channel in zip(package.channels, machine.channels, strict=True)
        },
        "slots": {name: str(machine.slots[place]) for place, name in enumerate(package.slots)},
        "tensors": {each.name: machine.tensors[place].tobytes().hex() for place, each in enumerate(package.tensors)},
        "assignments": list(machine.assignments),
    }


def _current_stalls(machine: Machine) -> list[dict[str, Any]]:
    found = []
    for process in machine.processes:
        if process.waiting is not None and process.waiting.reason != TASK_WAIT:
            found.append({"process": process.name, **_stall(process.waiting)})
    for worker in machine.workers:
        if worker.task is not None and worker.task.waiting is not None:
            found.append({"task": worker.task.number, **_stall(worker.task.waiting)})
    return found


def _stall(waiting: Waiting) -> dict[str, Any]:
    return {"reason": waiting.reason, "since": waiting.since, "for": waiting.subject}


# The state of a run that waits, from which `deadlock.py` makes a report; the native program prints the same.


def waiting_state(machine: Machine) -> dict[str, Any]:
    """Return the processes, channels, tasks in flight and workers of a run, by their numbers; -1 is none."""
    return {
        "time": machine.agenda.now,
        "spinning": -1 if machine.spinning is None else machine.spinning,
        "sizes": list(machine.resources.sizes.values()),
        "processes": [
            {
                "done": process.done,
                "waiting": None if process.waiting is None else _wait(process.waiting),
                "closed": sorted(process.closed),
                "scopes": [[scope.slots, scope.entries, scope.heap] for scope in process.scopes],
            }
            for process in machine.processes
        ],
        "channels": [
            {
                "capacity": channel.capacity,
                "tokens": len(channel.tokens),
                "senders": len(channel.senders),
                "producers": channel.producers,
                "takers": len(channel.takers),
                "tasks": sorted(number for _, kind, number in channel.takers if kind == TASK),
            }
            for channel in machine.channels
        ],
        "tasks": [
            {
                "task": task.number,
                "process": task.process.index,
                "statement": path_of(task.place),
                "worker": task.worker.index,
                "started": task.started >= 0,
                "full": None if task.waiting is None else task.waiting.subject,
                "holds": [1, len(task.site.writes), task.nodes, task.site.heap],
                "signals": list(task.site.signals),
                "dependents": sorted(other.number for other in task.dependents),
                "watchers": sorted(other.index for other in task.watchers),
            }
            for task in machine.tasks.values()
        ],
        "workers": [-1 if worker.task is None else worker.task.number for worker in machine.workers],
    }


def _wait(waiting: Waiting) -> dict[str, Any]:
    return {"reason": waiting.reason, "for": waiting.subject, "statement": waiting.statement}


# A run of a package: instant by instant or to its end, which is completion, an error or a deadlock.

MOST_STEPS = 100_000_000
"""The steps of statements that a run may take, where its caller names no other bound (AMB-WSP-80)."""


class Run:
    """A run that has not begun; `outcome` is running, completed, error or deadlock.

    `symbols`, `tensors` (bytes) and `resources` (sizes, as `package.py` names them) are by name; what is left out is
    as the package has it; `forms` are those of another run of the package. After `max_steps` a run ends with
    STEP_LIMIT, and after `enough` its caller leaves it; a process that takes a 200th of `max_steps` twice in a row
    without progress spins, which is a deadlock (section 3.3). Raises `ArgumentRefused` for what does not fit.
    """

    agenda: type[Agenda] = Agenda

    def __init__(
        self,
        package: Package,
        symbols: Mapping[str, int] | None = None,
        tensors: Mapping[str, bytes] | None = None,
        resources: Mapping[str, int] | None = None,
        seed: int | None = None,
        forms: CallForms | None = None,
        max_steps: int = MOST_STEPS,
        enough: int | None = None,
    ) -> None:
        package = checked(package, symbols or {}, tensors or {}, resources or {}, max_steps)
        self._given = symbols, tensors
        self._max_steps = max_steps
        sizes = {"task_ring": package.schedule.task_window.size, **package.schedule.resources}
        values = _symbols(package, symbols or {})
        self.machine = Machine(package, values, _tensors(package, tensors or {}), sizes, self.agenda(seed))
        self.outcome = "running"
        self.error: RunError | None = None
        self._instants = 0
        self._result: dict[str, Any] | None = None
        self._forms: CallForms = {} if forms is None else forms
        self._steps = StepCount(self.machine, max_steps, enough)
        processes = Processes(self.machine, self._forms, self._steps)
        for process, stated in zip(self.machine.processes, package.processes, strict=True):
            process.execution = processes.whole(process, stated.body)
            self.machine.agenda.make_runnable(process)

    def step(self) -> bool:
        """All that happens at the next instant; False when the run has ended."""
        if self.outcome != "running":
            return False
        with np.errstate(all="ignore"):
            self._step()
        return self.outcome == "running"

    def finish(self) -> Run:
        """Run to the end, or until it is left."""
        with np.errstate(all="ignore"):
            try:
                while self.outcome == "running":
                    self._step()
            except Left:
                pass
        return self

    def observe(self) -> list[list[Any]]:
        """Return the list to which arrivals, kernels and tasks are added as they happen."""
        self.machine.observed = []
        return self.machine.observed

    def state(self) -> dict[str, Any]:
        """Return outcome, statistics and steps; an error; what waits where the run has not ended or is a deadlock."""
        machine = self.machine
        found: dict[str, Any] = {"outcome": self.outcome, "statistics": statistics(machine), "steps": self._steps.taken}
        if self.error is not None:
            found["error"] = {
                "code": self.error.code,
                "process": self.error.process,
                "statement": self.error.statement,
                "time": machine.agenda.now,
                "message": self.error.problem,
            }
        if self.outcome in ("running", "deadlock"):
            found["waiting"] = waiting_state(machine)
        return found

    def result(self) -> dict[str, Any]:
        """The result as `schemas/wsp_result.schema.json` has it; a run that has not ended has one too."""
        if self._result is not None:
            return self._result
        found = explained(self.machine.package, self.state(), self._trial)
        self._result = None if self.outcome == "running" else found
        return found

    def _trial(self, knobs: Mapping[str, int], enough: int) -> dict[str, Any]:
        """Return the state of another execution with other settings, which is left after some steps."""
        trial = Run(
            self.machine.package,
            *self._given,
            knobs,
            forms=self._forms,
            max_steps=self._max_steps,
            enough=enough,
        )
        return trial.finish().state()

    def _step(self) -> None:
        """All that happens at the next instant, by the engine."""
        engine = self.machine.agenda.engine
        if not self._instants:
            self._launch(engine)
        before = self._instants
        engine.run(until=lambda: self._instants > before)
        if self.outcome != "running":
            engine.close()

    def _launch(self, engine: Engine) -> None:
        engine.spawn("scheduler", self._schedule())

    async def _schedule(self) -> None:
        """Handle instant after instant, until nothing is outstanding."""
        agenda = self.machine.agenda
        while self.outcome == "running":
            self._attempt(self._pass)
            await agenda.everything_due()
            while self.outcome == "running" and not agenda.is_settled():
                self._attempt(self._pass)
                await agenda.everything_due()
            if self.outcome == "running" and not agenda.outstanding:
                self._end()
            self._instants += 1
            if self.outcome == "running":
                await agenda.next_instant()

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do something that may end the run."""
        try:
            action()
        except RunError as error:
            self.outcome, self.error = "error", error
        except Spinning:
            self.outcome = "deadlock"

    def _end(self) -> None:
        """Nothing is due any more."""
        done = not self.machine.tasks and all(process.done for process in self.machine.processes)
        self.outcome = "completed" if done else "deadlock"

    def _pass(self) -> None:
        """Do the next thing of this instant: events, then processes in their turn, then idle workers."""
        machine = self.machine
        for kind, number in machine.agenda.due():
            machine.happen(kind, number)
        self._expand()
        machine.start_tasks()

    def _expand(self) -> None:
        """Each process that can go on does, in the order of their indices."""
        while (index := self.machine.agenda.next_runnable()) >= 0:
            self._go_on(self.machine.processes[index])

    def _go_on(self, process: ProcessState) -> None:
        """Execute statements until the process waits; its time is when it last did something."""
        process.queued = False
        machine = self.machine
        if process.waiting is None:
            process.time = machine.agenda.now
        self._steps.begin_turn()
        try:
            next(process.execution, None)
        except Spinning:
            process.time, machine.spinning = machine.agenda.now, process.index
            raise
        except RunError as error:
            process.time = machine.agenda.now
            if not error.process:
                error.process, error.statement = process.name, path_of(process.place)
            raise


def checked(
    package: Package,
    symbols: Mapping[str, int],
    tensors: Mapping[str, bytes],
    resources: Mapping[str, int],
    max_steps: int,
) -> Package:
    """Return the package with the settings of a run. Raise `ArgumentRefused` for what does not fit it."""
    if max_steps < 1:
        raise ArgumentRefused("max_steps", f"is {max_steps}, expected 1 or more")
    package = applied(package, resources)
    _symbols(package, symbols)
    _tensors(package, tensors)
    return package


def _symbols(package: Package, given: Mapping[str, int]) -> list[int]:
    known = {symbol.name: symbol for symbol in package.symbols}
    for name, value in given.items():
        if name not in known:
            raise ArgumentRefused(f"symbol {name}"[:120], f"the package has {', '.join(known) or 'no symbols'}")
        if not 0 <= value < 1 << known[name].width:
            raise ArgumentRefused(f"symbol {name}", f"{value} does not fit its {known[name].width} bits")
    return [given.get(symbol.name, symbol.default) for symbol in package.symbols]


def _tensors(package: Package, given: Mapping[str, bytes]) -> list[bytes]:
    known = {buffer.name: buffer for buffer in package.tensors}
    for name, data in given.items():
        if name not in known:
            raise ArgumentRefused(f"tensor {name}"[:120], f"the package has {', '.join(known) or 'no tensors'}")
        tensor = known[name]
        if len(data) != tensor.nbytes:
            raise ArgumentRefused(f"tensor {name}", f"has {len(data)} bytes, expected {tensor.nbytes}")
        if tensor.dtype == "bool" and data.strip(b"\0\1"):
            raise ArgumentRefused(f"tensor {name}", "has a byte that is no bool, expected 00 or 01")
    return [given.get(buffer.name, buffer.initial or bytes(buffer.nbytes)) for buffer in package.tensors]
