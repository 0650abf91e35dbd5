"""Deadlocks that are missed or falsely reported, reports that omit or change facts, scopes that hold nothing (WSP 3.3
and 3.4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.wsp.machine import Machine, ScopeState, TaskState
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import Scope, Wait

from ....ir.violators.changes import changed
from .answers import RESULTS, Answer, answered, with_report

usual_body = Processes.body
usual_end_scope = Processes.end_scope
usual_begin_scope = Processes.begin_scope


# Detection


def missed(answer: Answer) -> None:
    """Report a deadlock as a completion."""
    if answer["outcome"] == "deadlock":
        answer["outcome"] = "completed"
        del answer["deadlock"]


def of_processes_alone(answer: Answer) -> None:
    """Report a deadlock in which no process waits for a channel as a completion."""
    waiting = answer.get("deadlock", {}).get("waiting", [])
    if waiting and all(wait["reason"] != "CHANNEL_EMPTY_WAIT" for wait in waiting):
        missed(answer)


LONG_WAIT = 1_000_000_000


def after_a_long_wait(answer: Answer) -> None:
    found = answer["statistics"]
    if answer["outcome"] == "completed" and found["total_cycles"] > LONG_WAIT:
        answer |= {"outcome": "deadlock", "deadlock": NOTHING}


def after_stalls_of_all(answer: Answer) -> None:
    found = answer["statistics"]
    if answer["outcome"] == "completed" and found["stalls"]["TASK_RING_FULL"]["cycles"] > found["total_cycles"] // 2:
        answer |= {"outcome": "deadlock", "deadlock": NOTHING}


def with_tokens_left(answer: Answer) -> None:
    left = [channel["left"] for channel in answer["statistics"]["channels"].values()]
    if answer["outcome"] == "completed" and any(left):
        answer |= {"outcome": "deadlock", "deadlock": NOTHING}


NOTHING: Mapping[str, Any] = {
    "time": 0,
    "window": {"size": 1, "used": 0, "high_water": 0},
    "resources": {},
    "channels": [],
    "waiting": [],
    "cycle": [],
    "scopes": [],
    "held_by_scopes": False,
    "mitigations": [],
}


def text_only(answer: Answer) -> None:
    if "deadlock" in answer:
        answer["deadlock"] = {"text": str(answer["deadlock"])}


def missed_beside_a_spinner(answer: Answer) -> None:
    if "spinning" in answer.get("deadlock", {}):
        missed(answer)


def all_at_the_end(answer: Answer) -> None:
    if "deadlock" in answer:
        processes = answer["statistics"]["processes"]
        processes.update(dict.fromkeys(processes, answer["deadlock"]["time"]))


DETECTION = [
    answered("WSP-03.3-01", "missed_beside_a_spinner", "spinning is progress", missed_beside_a_spinner, *RESULTS),
    answered("WSP-02.4-01", "all_at_the_end", "waits last to the end of a deadlock", all_at_the_end, *RESULTS),
    answered("WSP-03.3-01", "channels_alone", "only deadlocks at channels are found", of_processes_alone, *RESULTS),
    answered("WSP-03.3-03", "text_only", "the report is a text", text_only, *RESULTS),
    answered("WSP-03.3-01", "found_in_long_waits", "a long wait is a deadlock", after_a_long_wait, *RESULTS),
    answered("WSP-03.3-01", "found_in_stalls", "a long stall is a deadlock", after_stalls_of_all, *RESULTS),
    answered("WSP-03.3-01", "found_in_tokens", "tokens that are left are a deadlock", with_tokens_left, *RESULTS),
    answered("WSP-07.1-08", "missed_with_resources", "a resource's deadlock completes", of_processes_alone, *RESULTS),
]


# The report


def use_is_size(report: Answer) -> None:
    report["window"]["used"] = report["window"]["size"]


def mark_is_use(report: Answer) -> None:
    report["window"]["high_water"] = report["window"]["used"]


def one_channel(report: Answer) -> None:
    del report["channels"][1:]


def state_by_tokens(report: Answer) -> None:
    for channel in report["channels"]:
        channel["state"] = "full" if channel["tokens"] + 1 >= channel["capacity"] else "empty"


def one_waiter(report: Answer) -> None:
    del report["waiting"][1:]


def channels_only(report: Answer) -> None:
    report["waiting"] = [wait for wait in report["waiting"] if wait["reason"].startswith("CHANNEL")]


def without_tasks(report: Answer) -> None:
    report["waiting"] = [wait for wait in report["waiting"] if "task" not in wait]


def wrong_knob(report: Answer) -> None:
    report["mitigations"] = [{"knob": "task_window", "at_least": 1000, "why": "more is better"}]


def too_little(report: Answer) -> None:
    for mitigation in report["mitigations"]:
        if "at_least" in mitigation:
            mitigation["at_least"] = max(mitigation["at_least"] - 1, 1)


def queues_only(report: Answer) -> None:
    report["mitigations"] = [{"knob": "ready_queue", "at_least": 1000, "why": "more is better"}]


def one_level(report: Answer) -> None:
    for scope in report["scopes"]:
        scope["depth"] = 1


def held_when_holding(report: Answer) -> None:
    report["held_by_scopes"] = any(scope["held"] for scope in report["scopes"])


def held_by_the_first(report: Answer) -> None:
    report["held_by_scopes"] &= any(scope["held"] for scope in report["scopes"][:1])


REPORTS = [
    with_report("WSP-03.3-04", "window_full", "the window is said to be full", use_is_size),
    with_report("WSP-03.3-05", "mark_is_use", "the mark is what is used", mark_is_use),
    with_report("WSP-03.3-06", "one_channel", "one channel is named", one_channel),
    with_report("WSP-03.3-10", "state_by_tokens", "channels of one token are called full", state_by_tokens),
    with_report("WSP-03.3-07", "one_waiter", "one process is named", one_waiter),
    with_report("WSP-03.3-07", "channels_only", "waits for resources are left out", channels_only),
    with_report("WSP-03.3-08", "no_tasks", "tasks that wait are left out", without_tasks),
    with_report("WSP-03.3-09", "wrong_knob", "a larger window is suggested always", wrong_knob),
    with_report("WSP-03.3-09", "too_little", "one less than helps is suggested", too_little),
    with_report("WSP-03.4.3-06", "queues_only", "nothing suggested concerns scopes", queues_only),
    with_report("WSP-03.4.3-04", "one_level", "the depth is 1 always", one_level),
    with_report("WSP-03.4.3-05", "held_when_holding", "a scope that holds is the reason", held_when_holding),
    with_report("WSP-03.4.3-05", "held_by_the_first", "looks at the scopes of one process", held_by_the_first),
]


# Scopes


def free_at_completion(self: Machine, task: TaskState) -> None:
    """Free everything at completion."""
    self.resources.free(task.holds)
    self.freed()


def barrier_at_end(self: Processes, process: Any, statements: Any, outer: Any) -> Any:
    scopes = [
        Scope((*statement.body, Wait())) if isinstance(statement, Scope) else statement for statement in statements
    ]
    return usual_body(self, process, tuple(scopes), outer)


def frees_64_bytes(self: Processes, process: Any) -> None:
    held = process.scopes[-1].held
    held["heap_arena"] = min(held["heap_arena"], 64)
    END_SCOPE(self, process)


END_SCOPE = Processes.end_scope


def one_at_a_time(self: Processes, process: Any) -> ScopeState:
    return process.scopes[-1] if process.scopes else usual_begin_scope(self, process)


def held_for_good(self: Processes, process: Any) -> None:
    process.scopes.pop().open = False


def with_outer(self: Processes, process: Any) -> None:
    usual_end_scope(self, process)
    for outer in process.scopes:
        self.machine.resources.free(outer.held)
        outer.held.clear()


def three_levels(self: Processes, process: Any) -> ScopeState:
    return ScopeState(open=len(process.scopes) < 3)


SCOPES: list[Violation] = [
    changed("WSP-03.4.3-02", "with_outer", "the end of a scope frees what outer ones hold",
        ("wsp.run.Processes.end_scope", with_outer)),
    changed("WSP-03.4.3-01", "three_levels", "scopes hold on three levels",
        ("wsp.run.Processes.begin_scope", three_levels)),
    changed("WSP-03.4.3-03", "no_scope_deadlock", "scopes hold nothing",
        ("wsp.machine.Machine._free", free_at_completion)),
    changed("WSP-03.4.3-02", "barrier_at_end", "the end of a scope is a barrier",
        ("wsp.run.Processes.body", barrier_at_end)),
    changed("WSP-03.4.3-02", "frees_64_bytes", "frees 64 bytes at most",
        ("wsp.run.Processes.end_scope", frees_64_bytes)),
    changed("WSP-03.4.3-07", "held_for_good", "ends of scopes free nothing",
        ("wsp.run.Processes.end_scope", held_for_good)),
]  # fmt: skip
