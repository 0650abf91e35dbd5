"""Deadlocks missed or wrongly reported, reports that omit facts, scopes that hold nothing (WSP 3.3 and 3.4.3)."""

from tessera_reference.wsp.statements import Scope, Wait

from ....ir.violators.changes import breaks, finding, wrapped
from .answers import RESULTS, answered, with_report


def missed(answer):
    """Report a deadlock as a completion."""
    if answer["outcome"] == "deadlock":
        answer["outcome"] = "completed"
        del answer["deadlock"]


def of_processes_alone(answer):
    waiting = answer.get("deadlock", {}).get("waiting", [])
    if waiting and all(wait["reason"] != "CHANNEL_EMPTY_WAIT" for wait in waiting):
        missed(answer)


NOTHING = {
    "time": 0,
    "window": {"size": 1, "used": 0, "high_water": 0},
    "resources": {},
    **{name: [] for name in ("channels", "waiting", "cycle", "scopes", "mitigations")},
    "held_by_scopes": False,
}


def found_where(clause, name, description, holds):
    """Return a violation that calls a completion a deadlock where this holds for the statistics."""

    def change(answer):
        if answer["outcome"] == "completed" and holds(answer["statistics"]):
            answer |= {"outcome": "deadlock", "deadlock": NOTHING}

    return answered(clause, name, description, change, *RESULTS)


@breaks("WSP-03.3-01", "spinning is progress", answered, *RESULTS)
def missed_beside_a_spinner(answer):
    if "spinning" in answer.get("deadlock", {}):
        missed(answer)


@breaks("WSP-02.4-01", "waits last to the end of a deadlock", answered, *RESULTS)
def all_at_the_end(answer):
    if "deadlock" in answer:
        processes = answer["statistics"]["processes"]
        processes.update(dict.fromkeys(processes, answer["deadlock"]["time"]))


@breaks("WSP-03.3-10", "channels of one token are called full", with_report)
def state_by_tokens(report):
    for channel in report["channels"]:
        channel["state"] = "full" if channel["tokens"] + 1 >= channel["capacity"] else "empty"


@breaks("WSP-03.3-09", "one less than helps is suggested", with_report)
def too_little(report):
    for mitigation in report["mitigations"]:
        if "at_least" in mitigation:
            mitigation["at_least"] = max(mitigation["at_least"] - 1, 1)


@breaks("WSP-03.4.3-05", "looks at the scopes of one process", with_report)
def held_by_the_first(report):
    report["held_by_scopes"] &= any(scope["held"] for scope in report["scopes"][:1])


@breaks("WSP-03.4.3-06", "names scopes by their number", with_report)
def numbered_scopes(report):
    for number, mitigation in enumerate(report["mitigations"]):
        if mitigation["knob"].startswith("scope."):
            mitigation["knob"] = f"scope.{number}"


@breaks("WSP-03.3-10", "calls full channels closed", with_report)
def full_is_closed(report):
    for channel in report["channels"]:
        channel["closed"] |= channel["state"] == "full"


@breaks("WSP-02.3-03", "gives errors the time at which their process began", answered, *RESULTS)
def errors_at_the_start(answer):
    if "error" in answer:
        answer["error"]["time"] = 0


@breaks("WSP-03.4.3-03", "scopes hold nothing", "wsp.machine.Machine._free")
def no_scope_deadlock(usual, self, task):
    self.resources.free(task.holds)
    self.freed()


@breaks("WSP-03.4.3-02", "the end of a scope is a barrier", "wsp.run.Processes.body")
def barrier_at_end(usual, self, process, statements, path):
    ended = [Scope((*given.body, Wait())) if isinstance(given, Scope) else given for given in statements]
    return usual(self, process, tuple(ended), path)


@breaks("WSP-03.4.3-02", "frees 64 bytes at most", "wsp.run.Processes.end_scope")
def frees_64_bytes(usual, self, process):
    held = process.scopes[-1]
    held["heap_arena"] = min(held["heap_arena"], 64)
    usual(self, process)


@breaks("WSP-03.4.3-02", "the end of a scope frees what outer ones hold", "wsp.run.Processes.end_scope")
def with_outer(usual, self, process):
    usual(self, process)
    for outer in process.scopes:
        self.resources.free(outer)
        outer.clear()


@breaks("WSP-03.4.3-01", "scopes hold on three levels", "wsp.machine.Machine._free")
def three_levels(usual, self, task):
    task.scope = None if any(scope is task.scope for scope in task.process.scopes[3:]) else task.scope
    usual(self, task)


VIOLATORS = [
    answered("WSP-03.3-01", "channels_alone", "only deadlocks at channels are found", of_processes_alone, *RESULTS),
    answered("WSP-07.1-08", "missed_with_resources", "a resource's deadlock completes", of_processes_alone, *RESULTS),
    answered("WSP-03.3-03", "text_only", "the report is a text",
        lambda answer: answer | {"deadlock": {"text": str(answer["deadlock"])}} if "deadlock" in answer else answer,
        *RESULTS),
    found_where("WSP-03.3-01", "found_in_long_waits", "a long wait is a deadlock",
        lambda found: found["total_cycles"] > 1_000_000_000),
    found_where("WSP-03.3-01", "found_in_stalls", "a long stall is a deadlock",
        lambda found: found["stalls"]["TASK_RING_FULL"]["cycles"] > found["total_cycles"] // 2),
    found_where("WSP-03.3-01", "found_in_tokens", "tokens that are left are a deadlock",
        lambda found: any(channel["left"] for channel in found["channels"].values())),
    with_report("WSP-03.3-04", "window_full", "the window is said to be full",
        lambda report: report["window"].update(used=report["window"]["size"])),
    with_report("WSP-03.3-05", "mark_is_use", "the mark is what is used",
        lambda report: report["window"].update(high_water=report["window"]["used"])),
    with_report("WSP-03.3-06", "one_channel", "one channel is named",
        lambda report: report.update(channels=report["channels"][:1])),
    with_report("WSP-03.3-07", "one_waiter", "one process is named",
        lambda report: report.update(waiting=report["waiting"][:1])),
    with_report("WSP-03.3-07", "channels_only", "waits for resources are left out", lambda report: report.update(
        waiting=[wait for wait in report["waiting"] if wait["reason"].startswith("CHANNEL")])),
    with_report("WSP-03.3-08", "no_tasks", "tasks that wait are left out",
        lambda report: report.update(waiting=[wait for wait in report["waiting"] if "task" not in wait])),
    with_report("WSP-03.3-08", "tasks_wait_for_reasons", "says that a task waits for its reason", lambda report: [
        wait.update({"for": wait["reason"]}) for wait in report["waiting"]
        if "task" in wait and wait["reason"] == "TASK_WAIT"]),
    answered("WSP-03.4.2-01", "no_tensors_of_errors", "has no tensors where a run ends with an error",
        lambda answer: (answer["statistics"].pop("tensors") and None) if "error" in answer else None, *RESULTS),
    with_report("WSP-03.3-09", "wrong_knob", "a larger window is suggested always", lambda report: report.update(
        mitigations=[{"knob": "task_window", "at_least": 1000, "why": "more is better"}])),
    with_report("WSP-03.4.3-04", "one_level", "the depth is 1 always",
        lambda report: report.update(scopes=[scope | {"depth": 1} for scope in report["scopes"]])),
    with_report("WSP-03.4.3-05", "held_when_holding", "a scope that holds is the reason",
        lambda report: report.update(held_by_scopes=any(scope["held"] for scope in report["scopes"]))),
    wrapped("WSP-03.4.3-07", "held_for_good", "ends of scopes free nothing", "wsp.run.Processes.end_scope",
        lambda usual, self, process: process.scopes.pop()),
    finding("WSP-03.3-09", "tried_without_symbols", "tries settings with the defaults of symbols", "wsp.run.Run._trial",
        "_inputs", lambda self: {name: value for name, value in self._inputs.items() if name != "symbols"}),
    finding("WSP-03.3-09", "tried_without_resources", "tries settings with the package's own sizes",
        "wsp.run.Run._trial", "_inputs", lambda self: self._inputs | {"resources": {}}),
]  # fmt: skip
