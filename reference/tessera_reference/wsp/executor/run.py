"""A run of a package (sections 1.2, 3.3, 3.4).

Instant by instant or to its end, with statistics and trials of mitigations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..deadlock import AMPLE, Knobs, Trial, mitigations, report
from ..errors import ArgumentRefused, RunError
from ..package import Package, applied, capacity_of
from .machine import REASONS, TASK_WAIT, Agenda, Machine, ProcessState, Waiting
from .processes import CallForms, Code

# The statistics of a run, at its end or between two instants (sections 1.2 and 3.4.2).


def statistics(machine: Machine) -> dict[str, Any]:
    """As `schemas/wsp_result.schema.json` has them; stalls that last count up to now."""
    package, now = machine.package, machine.agenda.now
    current = _current_stalls(machine)
    cycles = dict(machine.stalls.cycles)
    for each in current:
        cycles[each["reason"]] += now - each["since"]
    resources = machine.resources
    fullest = max(worker.places for worker in machine.workers)
    return {
        "total_cycles": max([*(each.time for each in machine.processes), *(each.time for each in machine.workers)]),
        "processes": {each.name: each.time for each in machine.processes},
        "workers": [{"busy": each.busy, "tasks": each.tasks} for each in machine.workers],
        "kernels": {
            each.name: {"runs": machine.kernel_runs[place], "cycles": machine.kernel_cycles[place]}
            for place, each in enumerate(package.kernels)
        },
        "stalls": {each: {"count": machine.stalls.count[each], "cycles": cycles[each]} for each in REASONS},
        "current_stalls": current,
        "used": {**resources.used, "ready_queue": fullest},
        "high_water": dict(resources.high_water),
        "channels": {
            package.channels[each.index].name: {"sent": each.sent, "taken": each.taken, "left": len(each.tokens)}
            for each in machine.channels
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


# Another execution of a package that ended in a deadlock, with other settings and within a bound of steps.


LEAST_STEPS = 200_000
"""The steps of statements that a search may take in all, beside what the deadlocked run itself suggests."""


class StepsSpent(Exception):
    """The bound of a search is reached."""


class Steps:
    """The steps that a search has left, of which each execution may take a quarter."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._end = 0

    def count(self, machine: Machine) -> None:
        """Count the steps of the processes of another execution, which has not begun."""
        self._end = self.left - self.left // 4
        for process in machine.processes:
            process.code = [self._counted(step) for step in process.code]

    def _counted(self, step: Callable[[ProcessState], int]) -> Callable[[ProcessState], int]:
        def counted(process: ProcessState) -> int:
            if self.left <= self._end:
                raise StepsSpent
            self.left -= 1
            return step(process)

        return counted


def progress(machine: Machine) -> int:
    """Return the progress of a run: the tasks that it issued, the kernels that ran, and the tokens sent and taken."""
    tokens = sum(each.sent + each.taken for each in machine.channels)
    return len(machine.assignments) + sum(machine.kernel_runs) + tokens


def outcome_of(machine: Machine, outcome: str, error: RunError | None, past: int) -> Trial:
    """Return the trial of an execution; `past` is the progress at the deadlock."""
    high_water = machine.resources.high_water
    demand = {"task_window" if name == "task_ring" else name: each for name, each in high_water.items()}
    for each, channel in zip(machine.package.channels, machine.channels, strict=True):
        demand[capacity_of(each.name)] = min(channel.sent + len(channel.senders), AMPLE)
    if outcome == "running":
        outcome = "further" if progress(machine) > past else "unknown"
    return Trial(outcome, demand, error="" if error is None else error.code)


# A run of a package: instant by instant or to its end, which is completion, an error or a deadlock.

MOST_STEPS = 100_000_000
"""The steps of statements that a run may take, where its caller names no other bound (AMB-WSP-80)."""
SPINS_IN_A_RUN = 200


class Spinning(Exception):
    """A process takes steps without end and without progress."""

    def __init__(self, process: ProcessState) -> None:
        super().__init__(process.name)
        self.process = process


class Run:
    """A run that has not begun; `outcome` is running, completed, error or deadlock.

    `symbols`, `tensors` (bytes) and `resources` (sizes, as `knobs.py` names them) are by name; what is left out is as
    the package has it; `forms` are those of another run of the package. After `max_steps` a run ends with STEP_LIMIT;
    a process that takes a 200th of them twice in a row without progress spins, which is a deadlock (section 3.3).
    Raises `ArgumentRefused` for what does not fit the package.
    """

    def __init__(
        self,
        package: Package,
        symbols: Mapping[str, int] | None = None,
        tensors: Mapping[str, bytes] | None = None,
        resources: Mapping[str, int] | None = None,
        seed: int | None = None,
        agenda: Agenda | None = None,
        forms: CallForms | None = None,
        max_steps: int = MOST_STEPS,
    ) -> None:
        if max_steps < 1:
            raise ArgumentRefused("max_steps", f"is {max_steps}, expected 1 or more")
        self._max_steps = max_steps
        package = applied(package, resources or {})
        self._symbols = _symbols(package, symbols or {})
        self._tensors = _tensors(package, tensors or {})
        sizes = {"task_ring": package.schedule.task_window.size, **package.schedule.resources}
        self.machine = Machine(package, self._symbols, self._tensors, sizes, agenda or Agenda(seed))
        self.outcome = "running"
        self.error: RunError | None = None
        self.deadlock: dict[str, Any] | None = None
        self._forms: CallForms = {} if forms is None else forms
        for process, stated in zip(self.machine.processes, package.processes, strict=True):
            code = Code(self.machine, stated.body, self._forms, not stated.without_scopes)
            process.code, process.statements = code.steps, code.statements
            self.machine.agenda.make_runnable(process)

    def step(self) -> bool:
        """All that happens at the next instant; False when the run has ended."""
        if self.outcome != "running":
            return False
        with np.errstate(all="ignore"):
            self._step()
        return self.outcome == "running"

    def finish(self) -> Run:
        """Run to the end."""
        with np.errstate(all="ignore"):
            while self.outcome == "running":
                self._step()
        return self

    def result(self) -> dict[str, Any]:
        """The result as `schemas/wsp_result.schema.json` has it; a run that has not ended has one too."""
        found: dict[str, Any] = {"outcome": self.outcome, "statistics": statistics(self.machine)}
        if self.error is not None:
            found["error"] = {
                "code": self.error.code,
                "process": self.error.process,
                "statement": self.error.statement,
                "time": self.machine.agenda.now,
                "message": self.error.problem,
            }
        if self.deadlock is not None:
            if "mitigations" not in self.deadlock:
                self.deadlock["mitigations"] = self._mitigations()
            found["deadlock"] = self.deadlock
        return found

    def _mitigations(self) -> list[dict[str, Any]]:
        """Return the mitigations of the deadlock, by executions of the same package (AMB-WSP-72)."""
        assert self.deadlock is not None
        past = progress(self.machine)
        steps = Steps(LEAST_STEPS + 8 * past)
        return mitigations(self.deadlock, lambda knobs: self._trial(knobs, steps, past))

    def _trial(self, knobs: Knobs, steps: Steps, past: int) -> Trial:
        package = self.machine.package
        symbols = {each.name: value for each, value in zip(package.symbols, self._symbols, strict=True)}
        tensors = {each.name: data for each, data in zip(package.tensors, self._tensors, strict=True)}
        trial = Run(package, symbols, tensors, knobs, forms=self._forms, max_steps=self._max_steps)
        steps.count(trial.machine)
        with suppress(StepsSpent):
            trial.finish()
        found = outcome_of(trial.machine, trial.outcome, trial.error, past)
        return replace(found, deadlock=trial.deadlock)

    def _step(self) -> None:
        agenda = self.machine.agenda
        if agenda.events:
            agenda.now = agenda.events[0][0]
        self._attempt(self._instant)
        if self.outcome == "running" and not agenda.events:
            self._end()

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do something that may end the run."""
        try:
            action()
        except RunError as error:
            self.outcome, self.error = "error", error
        except Spinning as spinning:
            self.machine.spinning = spinning.process.name
            self.outcome, self.deadlock = "deadlock", report(self.machine)

    def _end(self) -> None:
        """Nothing is due any more."""
        machine = self.machine
        if machine.tasks or not all(process.done for process in machine.processes):
            self.outcome, self.deadlock = "deadlock", report(machine)
        else:
            self.outcome = "completed"

    def _instant(self) -> None:
        while True:
            self._pass()
            if self.machine.agenda.is_settled():
                return

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
        """Execute steps until the process blocks; its time is when it last did something."""
        process.queued = False
        machine, code, moved, place = self.machine, process.code, process.waiting is None, process.pc
        steps = left = self._steps_left()
        mark = -1
        try:
            while True:
                if not left:
                    machine.steps += steps
                    steps = 0
                    mark = self._mark_progress(process, mark)
                    steps = left = self._steps_left()
                left -= 1
                place = code[place](process)
                if place < 0:
                    break
                process.pc = place
                moved = True
        except Spinning:
            process.time = machine.agenda.now
            raise
        except RunError as error:
            process.time = machine.agenda.now
            if not error.process:
                error.process, error.statement = process.name, process.statements[process.pc]
            raise
        finally:
            machine.steps += steps - left
        if moved:
            process.time = machine.agenda.now

    def _steps_left(self) -> int:
        """Return how many steps a process may take before it is looked at."""
        return min(max(1, self._max_steps // SPINS_IN_A_RUN), self._max_steps - self.machine.steps)

    def _mark_progress(self, process: ProcessState, mark: int) -> int:
        """Return the progress of the run. Raise `RunError` at the bound, `Spinning` where it is still `mark`."""
        if self.machine.steps >= self._max_steps:
            raise RunError("STEP_LIMIT", f"the run has taken {self._max_steps} steps")
        reached = progress(self.machine)
        if reached == mark:
            raise Spinning(process)
        return reached


def _symbols(package: Package, given: Mapping[str, int]) -> list[int]:
    known = {each.name: each for each in package.symbols}
    for name, value in given.items():
        if name not in known:
            raise ArgumentRefused(f"symbol {name}"[:120], f"the package has {', '.join(known) or 'no symbols'}")
        if not 0 <= value < 1 << known[name].width:
            raise ArgumentRefused(f"symbol {name}", f"{value} does not fit its {known[name].width} bits")
    return [given.get(each.name, each.default) for each in package.symbols]


def _tensors(package: Package, given: Mapping[str, bytes]) -> list[bytes]:
    known = {each.name: each for each in package.tensors}
    for name, data in given.items():
        if name not in known:
            raise ArgumentRefused(f"tensor {name}"[:120], f"the package has {', '.join(known) or 'no tensors'}")
        tensor = known[name]
        if len(data) != tensor.nbytes:
            raise ArgumentRefused(f"tensor {name}", f"has {len(data)} bytes, expected {tensor.nbytes}")
        if tensor.dtype == "bool" and data.strip(b"\0\1"):
            raise ArgumentRefused(f"tensor {name}", "has a byte that is no bool, expected 00 or 01")
    return [given.get(each.name, each.initial or bytes(each.nbytes)) for each in package.tensors]
