"""Resources that grow, have no bound, or are freed or counted differently (WSP 3.4, 3.4.1 and 3.4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tessera_conformance.strength import Violation
from tessera_reference.wsp.machine import (
    REASONS,
    RESOURCE_OF,
    TASK,
    Machine,
    Party,
    ProcessState,
    Resources,
    TaskState,
    WorkerState,
)
from tessera_reference.wsp.package import CallSite

from ....ir.violators.changes import changed
from .answers import Answer, with_statistics, without

Amounts: TypeAlias = Mapping[str, int]
UNBOUNDED = 1 << 31
CLAUSE_OF = {
    "task_ring": "WSP-03.4-02",
    "tensormap_pool": "WSP-03.4-03",
    "deplist_pool": "WSP-03.4-04",
    "heap_arena": "WSP-03.4-05",
    "ready_queue": "WSP-03.4-06",
}
COUNT_OF = {
    "TASK_RING_FULL": "WSP-03.4.2-08",
    "TENSORMAP_POOL_FULL": "WSP-03.4.2-09",
    "DEPLIST_POOL_FULL": "WSP-03.4.2-10",
    "HEAP_ARENA_FULL": "WSP-03.4.2-11",
    "READY_QUEUE_FULL": "WSP-03.4.2-12",
    "CHANNEL_EMPTY_WAIT": "WSP-03.4.2-13",
    "CHANNEL_FULL_WAIT": "WSP-03.4.2-14",
}

usual_init = Resources.__init__
usual_shortage = Resources.shortage
usual_take = Resources.take
usual_free_in_machine = Machine._free
usual_wait = Machine.wait
usual_end_wait = Machine.end_wait
usual_release = Machine._release


def sized(clause: str, name: str, description: str, change: Any) -> Violation:
    """Return a violation with other sizes than requested."""

    def init(self: Resources, sizes: Mapping[str, int]) -> None:
        usual_init(self, {resource: change(resource, size) for resource, size in sizes.items()})

    return changed(clause, name, description, ("wsp.machine.Resources.__init__", init))


def unbounded(resource: str, clause: str) -> Violation:
    """Return a violation with one resource without a bound."""
    return sized(
        clause, f"unbounded_{resource}", f"{resource} is never exhausted", lambda name, size: (
            UNBOUNDED if name == resource else size
        )
    )  # fmt: skip


BOUNDS = [unbounded(resource, clause) for resource, clause in CLAUSE_OF.items()]
one_too_many = sized("WSP-03.4-01", "", "every resource is one larger than declared", lambda resource, size: size + 1)


def growing(self: Resources, amounts: Amounts, worker: WorkerState) -> str | None:
    reason = usual_shortage(self, amounts, worker)
    while reason is not None:
        self.sizes[RESOURCE_OF[reason]] += 1
        reason = usual_shortage(self, amounts, worker)
    return None


silent_growth = changed(
    "WSP-03.4.1-03", "", "a resource that is exhausted grows", ("wsp.machine.Resources.shortage", growing)
)


def dropping(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Any) -> str | None:
    reason = usual_issue(self, process, site, key, scalars)
    if reason is not None:
        self.apply(site, scalars)
        self.assignments.append(0)
    return None


usual_issue = Machine.issue
host_executes = changed(
    "WSP-03.4.1-04", "", "the host executes at once what does not fit", ("wsp.machine.Machine.issue", dropping)
)


def lost(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Any) -> str | None:
    usual_issue(self, process, site, key, scalars)
    return None


tasks_dropped = changed(
    "WSP-03.4.1-01", "", "a task for which there is no room is dropped", ("wsp.machine.Machine.issue", lost)
)


def one_alone(self: Machine) -> None:
    stalled = [process for process in self.processes if process.waiting and process.waiting.reason in RESOURCE_OF]
    first = self.__dict__.setdefault("resumed", {}).setdefault(self.agenda.now, stalled[0] if stalled else None)
    if first in stalled:
        first.runnable = True


resumes_one = changed(
    "WSP-03.4.1-02", "", "one of the stalled processes resumes at an instant", ("wsp.machine.Machine.freed", one_alone)
)


def in_ring_order(self: Machine, task: TaskState) -> None:
    waiting: list[TaskState] = self.__dict__.setdefault("complete", [])
    waiting.append(task)
    for waiter in sorted(waiting, key=lambda other: other.number):
        if any(number < waiter.number for number in self.tasks):
            return
        waiting.remove(waiter)
        usual_free_in_machine(self, waiter)


freed_in_ring_order = changed(
    "WSP-03.4.1-02", "", "slots are freed in the order of issue", ("wsp.machine.Machine._free", in_ring_order)
)


class Each:
    """A resource of each process: the bound holds for each of them alone."""

    @staticmethod
    def shortage(self: Resources, amounts: Amounts, worker: WorkerState) -> str | None:
        """Read half of the ring as used."""
        used = self.used["task_ring"]
        self.used["task_ring"] = used // 2
        reason = usual_shortage(self, amounts, worker)
        self.used["task_ring"] = used
        return reason


ring_of_each_process = changed(
    "WSP-03.4-07", "", "each of two processes has a window", ("wsp.machine.Resources.shortage", Each.shortage)
)


# Statistics


def uncounted(reason: str, clause: str) -> Violation:
    """Return a violation that does not count stalls for one reason."""

    def wait(self: Machine, who: Any, found: str, subject: str) -> None:
        usual_wait(self, who, found, subject)
        self.stall_count[reason] = 0

    return changed(clause, f"never_{reason.lower()}", f"{reason} is never counted", ("wsp.machine.Machine.wait", wait))


def renamed(reason: str, clause: str) -> Violation:
    """Return a violation that gives a reason another name, in current stalls and in the statistics."""

    def rename(found: Answer) -> None:
        found["stalls"][reason.replace("_", " ")] = found["stalls"].pop(reason)
        for current_stall in found["current_stalls"]:
            if current_stall["reason"] == reason:
                current_stall["reason"] = reason.replace("_", " ")

    return with_statistics(clause, f"renamed_{reason.lower()}", f"{reason} has another name", rename)


VOCABULARY = [renamed(reason, clause) for reason, clause in COUNT_OF.items()]
UNCOUNTED = [uncounted(reason, "WSP-03.4.2-02") for reason in REASONS]


def twice(self: Machine, who: Any, reason: str, subject: str) -> None:
    usual_wait(self, who, reason, subject)
    self.stall_count[reason] += 1


def counted_from_before(self: Machine, party: Party) -> None:
    kind, number = party
    if kind == TASK and (waiting := self.tasks[number].waiting):
        self.tasks[number].waiting = waiting._replace(since=-waiting.since)
    usual_release(self, party)


def tasks_waits_too(self: Machine, who: Any, reason: str, subject: str) -> None:
    usual_wait(self, who, reason, subject)
    self.stall_count["CHANNEL_EMPTY_WAIT"] += self.stall_count.pop("TASK_WAIT", 0)


def time_of_task_waits(self: Machine, who: Any) -> None:
    usual_end_wait(self, who)
    self.stall_cycles["CHANNEL_EMPTY_WAIT"] += self.stall_cycles.pop("TASK_WAIT", 0)


def heap_first(self: Resources, amounts: Amounts, worker: WorkerState) -> str | None:
    if self.used["heap_arena"] + amounts["heap_arena"] > self.sizes["heap_arena"]:
        return "HEAP_ARENA_FULL"
    return usual_shortage(self, amounts, worker)


def without_marks(self: Resources, amounts: Amounts, worker: WorkerState) -> None:
    marks = dict(self.high_water)
    usual_take(self, amounts, worker)
    if marks["task_ring"]:
        self.high_water.update(marks)


def two_marks(self: Resources, amounts: Amounts, worker: WorkerState) -> None:
    mark = self.high_water["ready_queue"]
    usual_take(self, amounts, worker)
    if worker.index > 1:
        self.high_water["ready_queue"] = mark


def instants(found: Answer) -> None:
    for stall in found["stalls"].values():
        stall["cycles"] = stall["count"]


def in_nanoseconds(found: Answer) -> None:
    for stall in found["stalls"].values():
        stall["cycles"] = stall["cycles"] * 500 // 1000


def finished_only(found: Answer) -> None:
    for current_stall in found["current_stalls"]:
        found["stalls"][current_stall["reason"]]["cycles"] = 0


def last_reason(found: Answer) -> None:
    for current_stall in found["current_stalls"]:
        current_stall["reason"] = REASONS[0] if current_stall["reason"] in RESOURCE_OF else current_stall["reason"]


def two_nodes(self: Resources, amounts: dict[str, int], worker: WorkerState) -> str | None:
    """A task takes two nodes at most, however many it depends on."""
    amounts["deplist_pool"] = min(amounts["deplist_pool"], 2)
    return usual_shortage(self, amounts, worker)


def processes_only(found: Answer) -> None:
    found["current_stalls"] = [stall for stall in found["current_stalls"] if "process" in stall]


STATISTICS = [
    changed("WSP-03.4.2-03", "signals_from_0", "a wait to signal is too long",
        ("wsp.machine.Machine._release", counted_from_before)),
    changed("WSP-03.4.2-07", "waits_for_tasks", "a wait for tasks is a stall",
        ("wsp.machine.Machine.wait", tasks_waits_too), ("wsp.machine.Machine.end_wait", time_of_task_waits)),
    changed("WSP-03.4.2-07", "arena_first", "the arena comes before the ring",
        ("wsp.machine.Resources.shortage", heap_first)),
    changed("WSP-03.4.2-05", "two_marks", "two queues alone have marks", ("wsp.machine.Resources.take", two_marks)),
    with_statistics("WSP-03.4.2-04", "time_in_nanoseconds", "stall time is not in cycles", in_nanoseconds),
    with_statistics("WSP-03.4.2-03", "time_when_over", "a stall that lasts has no time", finished_only),
    with_statistics("WSP-03.4.2-06", "one_current_reason", "every stall is one of the ring", last_reason),
    changed("WSP-03.4-04", "two_nodes", "takes two nodes at most", ("wsp.machine.Resources.shortage", two_nodes)),
    with_statistics("WSP-03.4.2-06", "processes_only", "says nothing of tasks that stall", processes_only),
    with_statistics("WSP-03.4.2-01", "no_stalls", "says nothing of stalls", without("stalls")),
]  # fmt: skip
