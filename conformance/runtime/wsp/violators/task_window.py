"""Windows that are ignored, or freed too early, too late or in the wrong order (PTO-WSP v10, 3.2)."""

from __future__ import annotations

from typing import Any

from tessera_reference.wsp.errors import ProgramRefused
from tessera_reference.wsp.forms import Reader
from tessera_reference.wsp.machine import Machine, Resources
from tessera_reference.wsp.package import TaskWindow

from .changes import changed

TAKE, FREE, FREE_TASK, RECORD = Resources.take, Resources.free, Machine._free, Reader.record


def freed_at_issue(self: Any, amounts: Any, worker: Any) -> None:
    """Take a slot and free it at once."""
    TAKE(self, amounts, worker)
    self.used["task_ring"] -= 1


def no_slots(self: Any, amounts: Any) -> None:
    """Free no slots of the task ring."""
    FREE(self, {pool: amount for pool, amount in amounts.items() if pool != "task_ring"})


def without_scopes(self: Any, task: Any) -> None:
    task.scope = None
    FREE_TASK(self, task)


def in_order(self: Any, task: Any) -> None:
    complete = self.__dict__.setdefault("complete", {})
    complete[task.number] = task
    while (first := self.__dict__.setdefault("first", 0)) in complete:
        FREE_TASK(self, complete.pop(first))
        self.first += 1


def reading(other: Any) -> tuple[Any, str, Any]:
    """Return the substitution that reads a window as another."""

    def record(self: Any, kind: Any, value: Any, path: str) -> Any:
        changed = kind is TaskWindow and not self.numbered and isinstance(value, dict)
        return RECORD(self, kind, other(value) if changed else value, path)

    return "wsp.forms.Reader.record", record


def without_mode(value: Any) -> Any:
    if "mode" in value:
        raise ProgramRefused("/schedule/task_window/mode", "is no member of this")
    return value


def without_unit(value: Any) -> Any:
    if "unit" in value:
        raise ProgramRefused("/schedule/task_window/unit", "is no member of this")
    return value


WINDOWS = [
    changed("WSP-03.2-03", "freed_at_once", "frees a slot when its task is issued",
        ("wsp.machine.Resources.take", freed_at_issue), ("wsp.machine.Resources.free", no_slots)),
    changed("WSP-03.2-03", "in_order_of_issue", "frees slots in the order of issue",
        ("wsp.machine.Machine._free", in_order)),
    changed("WSP-03.2-01", "freed_in_a_scope", "frees slots that a scope holds",
        ("wsp.machine.Machine._free", without_scopes)),
    changed("WSP-03.2-02", "a_window_of_none", "takes a window of no slot for one of one",
        reading(lambda value: value | {"size": 1} if value.get("size") == 0 else value)),
    changed("WSP-03.2-02", "no_unit", "refuses a window that says its unit", reading(without_unit)),
    changed("WSP-03.2-05", "any_mode", "stalls whatever the mode", reading(lambda value: value | {"mode": "stall"})),
    changed("WSP-03.2-05", "any_unit", "counts tasks whatever the unit",
        reading(lambda value: value | {"unit": "tasks"})),
    changed("WSP-03.2-06", "no_mode", "refuses a window that says its mode", reading(without_mode)),
]  # fmt: skip
