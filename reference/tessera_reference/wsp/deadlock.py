"""The report of a deadlock (sections 3.3 and 3.4.3): nothing is due, and a process or task is not done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cycles import first_cycle
from .executor.channels import TASK
from .executor.machine import Machine
from .executor.stalls import CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT, RESOURCE_OF, TASK_WAIT
from .executor.states import ProcessState, ScopeState, TaskState
from .producers import consumed_channels

__all__ = ["report"]


def report(machine: Machine) -> dict[str, Any]:
    """As `schemas/wsp_report.schema.json` has it, without mitigations."""
    resources = machine.resources
    fullest = max(worker.places for worker in machine.workers)
    used = {**resources.used, "ready_queue": fullest}
    found = {
        name: {"size": size, "used": used[name], "high_water": resources.high_water[name]}
        for name, size in resources.sizes.items()
    }
    scopes = list(_scopes(machine))
    return {
        "time": machine.agenda.now,
        "window": found["task_ring"],
        "resources": found,
        "channels": list(_channels(machine)),
        "waiting": list(_waiting(machine)),
        "cycle": first_cycle(_wait_graph(machine)),
        "scopes": scopes,
        "held_by_scopes": _wants_what_scopes_hold(machine),
    }


def _waiting(machine: Machine) -> Iterator[dict[str, Any]]:
    """Every process that waits, then every task that does, with the reason."""
    for process in machine.processes:
        if process.waiting is not None:
            reason, _, subject, statement = process.waiting
            yield {"process": process.name, "reason": reason, "for": subject, "statement": statement}
    empty = _awaited_channels(machine)
    for task in machine.tasks.values():
        stated = {"task": task.number, "process": task.process.name, "statement": task.site.statement}
        if task.waiting is not None:
            yield {**stated, "reason": task.waiting.reason, "for": task.waiting.subject}
        elif task.number in empty:
            name = machine.package.channels[empty[task.number][0]].name
            yield {**stated, "reason": CHANNEL_EMPTY_WAIT, "for": name}
        else:
            yield {**stated, "reason": TASK_WAIT, "for": "tasks"}


def _awaited_channels(machine: Machine) -> Mapping[int, Sequence[int]]:
    """The channels of which tasks in flight wait for tokens, by task number."""
    found: dict[int, list[int]] = {}
    for channel in machine.channels:
        for _, kind, number in channel.takers:
            if kind == TASK:
                found.setdefault(number, []).append(channel.index)
    return found


def _channels(machine: Machine) -> Iterator[dict[str, Any]]:
    """The channels at which somebody waits."""
    for channel in machine.channels:
        if channel.takers or channel.senders:
            yield {
                "name": machine.package.channels[channel.index].name,
                "state": "full" if channel.senders else "empty",
                "capacity": channel.capacity,
                "tokens": len(channel.tokens),
                "closed": channel.producers == 0,
            }


def _scopes(machine: Machine) -> Iterator[dict[str, Any]]:
    for process in machine.processes:
        if process.scopes:
            held = sum(scope.slots for scope in process.scopes)
            yield {"process": process.name, "depth": len(process.scopes), "held": held}


def _wants_what_scopes_hold(machine: Machine) -> bool:
    """Whether a process waits for a resource of which some scope holds a part."""
    reasons = {each.waiting.reason for each in machine.processes if each.waiting is not None}
    wanted = [resource for reason, resource in RESOURCE_OF.items() if reason in reasons]
    scopes = [scope for process in machine.processes for scope in process.scopes]
    return any(_held_by_scope(scope, resource) for scope in scopes for resource in wanted)


def _wait_graph(machine: Machine) -> dict[str, list[str]]:
    """Who or what each process, task, channel and resource waits for, by name."""
    graph: dict[str, list[str]] = {}
    names = [f"channel {each.name}" for each in machine.package.channels]
    tasks = list(machine.tasks.values())
    bodies = [each.body for each in machine.package.processes]
    for process in machine.processes:
        if process.waiting is not None:
            kind = "channel" if process.waiting.reason in (CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT) else "resource"
            awaits_tasks = process.waiting.reason == TASK_WAIT
            graph[_of(process)] = [] if awaits_tasks else [f"{kind} {process.waiting.subject}"]
    for channel in machine.channels:
        if channel.senders:
            ends = [_of(each) for each in _alive(machine) if channel.index in consumed_channels(bodies[each.index])]
        else:
            index = channel.index
            ends = [_of(each) for each in _alive(machine) if index in each.produces and index not in each.closed]
            ends += [_of_task(each) for each in tasks if channel.index in each.site.signals]
        graph[names[channel.index]] = ends
    graph |= {f"scope of {each.name}": [_of(each)] for each in machine.processes if each.scopes}
    graph |= {f"resource {name}": list(_holders(machine, name)) for name in machine.resources.sizes}
    empty = _awaited_channels(machine)
    for task in tasks:
        graph[_of_task(task)] = list(_task_waits_for(task, names, empty))
    for task in tasks:
        for each in task.dependents:
            graph[_of_task(each)].append(_of_task(task))
        for watcher in task.watchers:
            graph[_of(watcher)].append(_of_task(task))
    return graph


def _holders(machine: Machine, resource: str) -> Iterator[str]:
    """The scopes and tasks that hold some of a resource."""
    for process in machine.processes:
        if any(_held_by_scope(scope, resource) for scope in process.scopes):
            yield f"scope of {process.name}"
    size = machine.resources.sizes["ready_queue"]
    for task in machine.tasks.values():
        held = {
            "task_ring": 1,
            "tensormap_pool": len(task.site.writes),
            "deplist_pool": task.nodes,
            "heap_arena": task.site.heap,
            "ready_queue": task.started < 0 and task.worker.places >= size,
        }
        if held[resource]:
            yield _of_task(task)


def _held_by_scope(scope: ScopeState, resource: str) -> int:
    return {"task_ring": scope.slots, "tensormap_pool": scope.entries, "heap_arena": scope.heap}.get(resource, 0)


def _task_waits_for(task: TaskState, names: Sequence[str], empty: Mapping[int, Sequence[int]]) -> Iterator[str]:
    if task.waiting is not None:
        yield f"channel {task.waiting.subject}"
    yield from (names[each] for each in empty.get(task.number, ()))
    current = task.worker.task
    if current is not None and current is not task:
        yield _of_task(current)


def _alive(machine: Machine) -> list[ProcessState]:
    return [each for each in machine.processes if not each.done]


def _of(process: ProcessState) -> str:
    return f"process {process.name}"


def _of_task(task: TaskState) -> str:
    return f"task {task.number}"
