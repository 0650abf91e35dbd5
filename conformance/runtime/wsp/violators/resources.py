"""Resources that grow, have no bound, or are freed or counted differently (WSP 3.4, 3.4.1 and 3.4.2)."""

from tessera_reference.wsp.machine import REASONS, RESOURCE_OF, TASK

from ....ir.violators.changes import around, breaks, changed, finding, wrapped
from .answers import with_statistics

CLAUSE_OF = {
    resource: f"WSP-03.4-{number:02}"
    for number, resource in enumerate(("task_ring", "tensormap_pool", "deplist_pool", "heap_arena", "ready_queue"), 2)
}
COUNTED = [*(f"{name.upper()}_FULL" for name in CLAUSE_OF), "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT"]
COUNT_OF = {reason: f"WSP-03.4.2-{number:02}" for number, reason in enumerate(COUNTED, 8)}
SHORTAGE, ISSUE = "wsp.machine.Resources.shortage", "wsp.machine.Machine.issue"


def sized(clause, name, description, change):
    def init(usual, self, sizes):
        usual(self, {resource: change(resource, size) for resource, size in sizes.items()})

    return wrapped(clause, name, description, "wsp.machine.Resources.__init__", init)


def unbounded(resource, clause):
    description = f"{resource} is never exhausted"
    return sized(clause, f"unbounded_{resource}", description, lambda name, size: 1 << 31 if name == resource else size)


@breaks("WSP-03.4.1-03", "a resource that is exhausted grows", SHORTAGE)
def silent_growth(usual, self, amounts, worker):
    while (reason := usual(self, amounts, worker)) is not None:
        self.sizes[RESOURCE_OF[reason]] += 1


@breaks("WSP-03.4.1-04", "the host executes at once what does not fit", ISSUE)
def host_executes(usual, self, process, site, key, scalars):
    if usual(self, process, site, key, scalars) is not None:
        self.apply(site, scalars)
        self.assignments.append(0)


@breaks("WSP-03.4-04", "a task depends on reads before the last write, too", "wsp.machine.TensorMap.add")
def readers_kept(usual, self, task):
    before = self.readers[:]
    usual(self, task)
    for tensor in task.site.writes:
        self.readers[tensor] = before[tensor]


@breaks("WSP-03.4.1-02", "one of the stalled processes resumes at an instant", "wsp.machine.Machine.freed")
def resumes_one(usual, self):
    stalled = [process for process in self.processes if process.waiting and process.waiting.reason in RESOURCE_OF]
    first = self.__dict__.setdefault("resumed", {}).setdefault(self.now, stalled[0] if stalled else None)
    if first in stalled:
        first.runnable = True


@breaks("WSP-03.4.1-02", "slots are freed in the order of issue", "wsp.machine.Machine._free")
def freed_in_ring_order(usual, self, task):
    waiting = self.__dict__.setdefault("complete", [])
    waiting.append(task)
    for waiter in sorted(waiting, key=lambda other: other.number):
        if any(number < waiter.number for number in self.tasks):
            return
        waiting.remove(waiter)
        usual(self, waiter)


@breaks("WSP-03.4-04", "takes two nodes at most", SHORTAGE)
def two_nodes(usual, self, amounts, worker):
    amounts["deplist_pool"] = min(amounts["deplist_pool"], 2)
    return usual(self, amounts, worker)


@breaks("WSP-03.4.2-07", "the arena comes before the ring", SHORTAGE)
def arena_first(usual, self, amounts, worker):
    if self.used["heap_arena"] + amounts["heap_arena"] > self.sizes["heap_arena"]:
        return "HEAP_ARENA_FULL"
    return usual(self, amounts, worker)


def uncounted(reason, clause):
    def wait(usual, self, who, found, subject):
        usual(self, who, found, subject)
        self.stall_count[reason] = 0

    description = f"{reason} is never counted"
    return wrapped(clause, f"never_{reason.lower()}", description, "wsp.machine.Machine.wait", wait)


def renamed(reason, clause):
    def rename(found):
        found["stalls"][reason.replace("_", " ")] = found["stalls"].pop(reason)
        for current_stall in found["current_stalls"]:
            if current_stall["reason"] == reason:
                current_stall["reason"] = reason.replace("_", " ")

    return with_statistics(clause, f"renamed_{reason.lower()}", f"{reason} has another name", rename)


@breaks("WSP-03.4.2-03", "a wait to signal is too long", "wsp.machine.Machine.release")
def signals_from_0(usual, self, party):
    kind, number = party
    if kind == TASK and (waiting := self.tasks[number].waiting):
        self.tasks[number].waiting = waiting._replace(since=-waiting.since)
    usual(self, party)


def tasks_waits_too(usual, self, who, reason, subject):
    usual(self, who, reason, subject)
    self.stall_count["CHANNEL_EMPTY_WAIT"] += self.stall_count.pop("TASK_WAIT", 0)


def time_of_task_waits(usual, self, who):
    usual(self, who)
    self.stall_cycles["CHANNEL_EMPTY_WAIT"] += self.stall_cycles.pop("TASK_WAIT", 0)


@breaks("WSP-03.4.2-05", "two queues alone have marks", "wsp.machine.Resources.take")
def two_marks(usual, self, amounts, worker):
    mark = self.high_water["ready_queue"]
    usual(self, amounts, worker)
    if worker.index > 1:
        self.high_water["ready_queue"] = mark


@breaks("WSP-03.4.2-04", "stall time is not in cycles", with_statistics)
def time_in_nanoseconds(found):
    for stall in found["stalls"].values():
        stall["cycles"] = stall["cycles"] * 500 // 1000


@breaks("WSP-03.4.2-03", "a stall that lasts has no time", with_statistics)
def time_when_over(found):
    for current_stall in found["current_stalls"]:
        found["stalls"][current_stall["reason"]]["cycles"] = 0


@breaks("WSP-03.4.2-06", "every stall is one of the ring", with_statistics)
def one_current_reason(found):
    for current_stall in found["current_stalls"]:
        current_stall["reason"] = REASONS[0] if current_stall["reason"] in RESOURCE_OF else current_stall["reason"]


VIOLATORS = [
    sized("WSP-03.4-01", "one_too_many", "every resource is one larger than declared",
        lambda resource, size: size + 1),
    *(unbounded(resource, clause) for resource, clause in CLAUSE_OF.items()),
    *(renamed(reason, clause) for reason, clause in COUNT_OF.items()),
    *(uncounted(reason, "WSP-03.4.2-02") for reason in REASONS),
    changed("WSP-03.4.2-07", "waits_for_tasks", "a wait for tasks is a stall",
        ("wsp.machine.Machine.wait", around(tasks_waits_too)),
        ("wsp.machine.Machine.end_wait", around(time_of_task_waits))),
    with_statistics("WSP-03.4.2-01", "no_stalls", "says nothing of stalls", lambda found: found.pop("stalls") and None),
    with_statistics("WSP-03.4.2-06", "processes_only", "says nothing of tasks that stall", lambda found: found.update(
        current_stalls=[stall for stall in found["current_stalls"] if "process" in stall])),
    wrapped("WSP-03.4.1-01", "tasks_dropped", "a task for which there is no room is dropped", ISSUE,
        lambda usual, *given: usual(*given) and None),
    finding("WSP-03.4-07", "ring_of_each_process", "each of two processes has a window", SHORTAGE, "used",
        lambda self: {**self.used, "task_ring": self.used["task_ring"] // 2}),
]  # fmt: skip
