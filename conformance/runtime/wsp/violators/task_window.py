"""Windows that are ignored, or freed too early, too late or in the wrong order (PTO-WSP v10, 3.2)."""

from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.package import TaskWindow

from ....ir.violators.changes import around, breaks, changed


def freed_at_issue(usual, self, amounts, worker):
    usual(self, amounts, worker)
    self.used["task_ring"] -= 1


@breaks("WSP-03.2-01", "frees slots that a scope holds", "wsp.machine.Machine._free")
def freed_in_a_scope(usual, self, task):
    task.scope = None
    usual(self, task)


@breaks("WSP-03.2-03", "frees slots in the order of issue", "wsp.machine.Machine._free")
def in_order_of_issue(usual, self, task):
    complete = self.__dict__.setdefault("complete", {})
    complete[task.number] = task
    while (first := self.__dict__.setdefault("first", 0)) in complete:
        usual(self, complete.pop(first))
        self.first += 1


def reading(other):
    def record(usual, self, kind, value, path):
        changed = kind is TaskWindow and not self.numbered and isinstance(value, dict)
        return usual(self, kind, other(value) if changed else value, path)

    return "wsp.forms.Reader.record", around(record)


def without(member):
    def refuse(value):
        if member in value:
            raise ProgramRefused(f"/schedule/task_window/{member}", "is no member of this")
        return value

    return reading(refuse)


WINDOWS = [
    changed("WSP-03.2-03", "freed_at_once", "frees a slot when its task is issued",
        ("wsp.machine.Resources.take", around(freed_at_issue)),
        ("wsp.machine.Resources.free", around(lambda usual, self, amounts:
            usual(self, {pool: amount for pool, amount in amounts.items() if pool != "task_ring"})))),
    changed("WSP-03.2-02", "a_window_of_none", "takes a window of no slot for one of one",
        reading(lambda value: value | {"size": 1} if value.get("size") == 0 else value)),
    changed("WSP-03.2-02", "no_unit", "refuses a window that says its unit", without("unit")),
    changed("WSP-03.2-05", "any_mode", "stalls whatever the mode", reading(lambda value: value | {"mode": "stall"})),
    changed("WSP-03.2-05", "any_unit", "counts tasks whatever the unit",
        reading(lambda value: value | {"unit": "tasks"})),
    changed("WSP-03.2-06", "no_mode", "refuses a window that says its mode", without("mode")),
]  # fmt: skip
