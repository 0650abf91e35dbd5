"""The statistics of a run, at its end or between two instants (sections 1.2 and 3.4.2)."""

from __future__ import annotations

from typing import Any

from .machine import Machine
from .stalls import REASONS, TASK_WAIT
from .states import Waiting

__all__ = ["statistics"]


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
