"""Capability matrices and directives with other promises or effects (WSP 1.3, 5.2, 7 and 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.machine import Machine, ProcessState, Resources, WorkerState
from tessera_reference.wsp.package import CallSite
from tessera_reference.wsp.targets import Target

from ....ir.violators.changes import changed
from .answers import Answer, answered, asked, repackaged

usual_compile = ReferenceAdapter.wsp_compile
usual_state = Target.state
usual_shortage = Resources.shortage
usual_issue = Machine.issue


# The matrix


def declaring(clause: str, name: str, description: str, table: str, **states: Any) -> Violation:
    """Return a violation with other entries of a matrix; those that are None are left out."""

    def change(answer: Answer) -> None:
        for entry, state in states.items():
            answer[table].pop(entry.replace("__", "."), None)
            if state is not None:
                answer[table][entry.replace("__", ".")] = state

    return answered(clause, name, description, change, "capabilities")


def with_bytes(self: ReferenceAdapter, **arguments: Any) -> Answer:
    answer = usual_capabilities(self, **arguments)
    return answer | {"directives": answer["directives"] | {"task_window.unit.bytes": "enforced"}}


def bytes_accepted(self: ReferenceAdapter, *, program: Answer, **arguments: Any) -> Answer:
    schedule = program.get("schedule", {})
    if schedule.get("task_window", {}).get("unit") == "bytes":
        program = {**program, "schedule": schedule | {"task_window": {"size": 64}}}
    return usual_compile(self, program=program, **arguments)


def all_enforced(answer: Answer) -> None:
    for table in ("directives", "csp", "predicates"):
        answer[table] = dict.fromkeys(answer[table], "enforced")


def stating(**states: str) -> Callable[[Answer], None]:
    return repackaged(lambda document: document["schedule"]["capabilities"].update(states))


def policies_only(answer: Answer) -> None:
    answer["directives"] = {
        name: directive for name, directive in answer["directives"].items() if name.startswith("dispatch")
    }


def phase_1_enforces(answer: Answer) -> None:
    if answer["phase"] == 1:
        answer["directives"] |= {"task_window.mode.stall": "enforced", "task_window.unit.tasks": "enforced"}


def any_target(self: ReferenceAdapter, **arguments: Any) -> Answer:
    name = arguments["target"].strip().lower()
    return usual_capabilities(self, target=name if name.startswith("cpu") and "_" in name else arguments["target"])


usual_capabilities: Callable[..., Answer] = ReferenceAdapter.wsp_capabilities

NO_CHANNELS = {"sync_only_channels": None, "payload_channels": None}
NO_MECHANISMS = {"cond": None, "dispatch_key": None, "tensor_to_slot": None}
MATRICES = [
    declaring("WSP-01.3-01", "no_window_declared", "no window", "directives", task_window__mode__stall=None),
    answered("WSP-01.3-09", "upper_case", "a state in capitals", stating(prefetch="DIAGNOSED"), "compile"),
    answered("WSP-05.2-01", "policies_only", "no resources in the matrix", policies_only, "capabilities"),
    declaring("WSP-05.2-02", "no_channels", "both kinds of channels left out", "csp", **NO_CHANNELS),
    declaring("WSP-05.2-03", "no_mechanisms", "every mechanism left out", "predicates", **NO_MECHANISMS),
    changed("WSP-05.2-01", "any_case", "targets in any case",
        ("adapter.ReferenceAdapter.wsp_capabilities", any_target)),
    answered("WSP-07-04", "all_enforced", "everything is called enforced", all_enforced, "capabilities"),
    changed("WSP-07-04", "bytes_enforced", "windows of bytes are called enforced and taken for 64 tasks",
        ("adapter.ReferenceAdapter.wsp_capabilities", with_bytes),
        ("adapter.ReferenceAdapter.wsp_compile", bytes_accepted)),
    declaring("WSP-07-04", "cond_recorded", "conditions are called recorded", "predicates", cond="recorded"),
    declaring("WSP-07-04", "tokens_recorded", "channels are called recorded", "csp", sync_only_channels="recorded"),
    answered("WSP-07.1-03", "phase_1_enforces", "phase 1 claims a window", phase_1_enforces, "capabilities"),
    declaring("WSP-07.1-09", "no_hash", "hash is called recorded", "directives", dispatch__hash="recorded"),
]  # fmt: skip


# Directives


def without_ring(self: Resources, amounts: Mapping[str, int], worker: WorkerState) -> str | None:
    self.sizes["task_ring"] = 1 << 31
    return usual_shortage(self, amounts, worker)


def to_worker_0(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
    self._place = first_worker
    return usual_issue(self, process, site, key, scalars)


def first_worker(number: int, key: int) -> int:
    """Return the first worker for any task."""
    return 0


def directives_of(given: Answer) -> list[dict[str, Any]]:
    """Return the further directives of a program."""
    found: list[dict[str, Any]] = given["program"].get("schedule", {}).get("directives", [])
    return found


def rescheduled(name: str, **members: Any) -> Callable[[Answer], Answer]:
    """Return a change that gives programs with this directive another schedule."""

    def change(given: Answer) -> Answer:
        if not any(directive["name"] == name for directive in directives_of(given)):
            return given
        return {**given, "program": {**given["program"], "schedule": given["program"]["schedule"] | members}}

    return change


def last_value(document: dict[str, Any]) -> None:
    schedule = document["schedule"]
    schedule["directives"] = list({directive["name"]: directive for directive in schedule["directives"]}.values())


def reported_each_time(self: ReferenceAdapter, **arguments: Any) -> Answer:
    answer = usual_compile(self, **arguments)
    mentions = [
        directive
        for directive in directives_of(arguments)
        if any(directive["name"] in text for text in answer["diagnostics"])
    ]
    return answer | {"diagnostics": [text for text in answer["diagnostics"] for _ in mentions]}


def silent(answer: Answer) -> None:
    answer["diagnostics"] = []


def by_prefix(self: Target, directive: str) -> str:
    for name, state in self.directives.items():
        if directive.lower().startswith(name.lower()) or name.startswith(directive):
            return state
    return "unsupported"


def modes_accepted(self: Target, directive: str) -> str:
    state = usual_state(self, directive)
    return "recorded" if state == "unsupported" and directive.startswith("task_window") else state


DIRECTIVES = [
    changed("WSP-01.3-02", "no_window", "the window has no effect", ("wsp.machine.Resources.shortage", without_ring)),
    changed("WSP-01.3-02", "no_policy", "policies have no effect", ("wsp.machine.Machine.issue", to_worker_0)),
    asked("WSP-01.3-07", "recorded_changes", "a recorded directive changes the window",
        rescheduled("placement", task_window={"size": 1}), "compile"),
    asked("WSP-01.3-08", "diagnosed_changes", "a diagnosed directive changes the policy",
        rescheduled("prefetch", policy={"id": "affinity", "parameters": {"workers": 3}}), "compile"),
    answered("WSP-01.3-03", "last_kept", "of equal directives one is kept", repackaged(last_value), "compile"),
    changed("WSP-01.3-04", "each_time", "reported each time",
        ("adapter.ReferenceAdapter.wsp_compile", reported_each_time)),
    changed("WSP-01.3-05", "by_prefix", "directives are known by prefix", ("wsp.targets.Target.state", by_prefix)),
    changed("WSP-01.3-05", "modes_accepted", "other modes are accepted", ("wsp.targets.Target.state", modes_accepted)),
]  # fmt: skip
