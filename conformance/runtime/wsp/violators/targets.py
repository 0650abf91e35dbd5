"""Matrices, architecture models and backends that promise or do something else (WSP 1.3, 5, 6 and 7.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp import compiler
from tessera_reference.wsp.canonical import canonical_bytes, content_hash
from tessera_reference.wsp.errors import UnsupportedDirective
from tessera_reference.wsp.executor.machine import Machine
from tessera_reference.wsp.executor.resources import Resources
from tessera_reference.wsp.executor.states import CallSite, ProcessState, WorkerState
from tessera_reference.wsp.targets import Target

from ....ir.violators.changes import changed, nothing
from .answers import Answer, answered, asked

SIMULATOR = "pto_runtime_a2a3sim"
HOST_GRAPH = "pto_runtime_a2a3sim_host_graph"

usual_compile = ReferenceAdapter.wsp_compile
usual_run = ReferenceAdapter.wsp_run
usual_state = Target.state
usual_shortage = Resources.shortage
usual_issue = Machine.issue


# The matrix


def declaring(clause: str, name: str, description: str, table: str, **states: Any) -> Violation:
    """A matrix with other entries; those that are None are left out."""

    def change(answer: Answer) -> None:
        for entry, state in states.items():
            answer[table].pop(entry.replace("__", "."), None)
            if state is not None:
                answer[table][entry.replace("__", ".")] = state

    return answered(clause, name, description, change, "capabilities")


def repackaged(change: Callable[[dict[str, Any]], Any]) -> Callable[[Answer], None]:
    """A change of the document of a package."""

    def rewrite(answer: Answer) -> None:
        document = json.loads(answer["package"])
        change(document)
        answer["package"] = canonical_bytes(document | {"hash": content_hash(document)}).decode()

    return rewrite


def all_enforced(answer: Answer) -> None:
    """Everything is enforced."""
    for table in ("directives", "csp", "predicates"):
        answer[table] = dict.fromkeys(answer[table], "enforced")


def stating(**states: str) -> Callable[[Answer], None]:
    """Other states in the matrix of a package."""
    return repackaged(lambda document: document["schedule"]["capabilities"].update(states))


def nothing_declared(answer: Answer) -> None:
    """An empty matrix."""
    answer["directives"] = {}


def policies_only(answer: Answer) -> None:
    """Nothing but policies."""
    answer["directives"] = {name: each for name, each in answer["directives"].items() if name.startswith("dispatch")}


def phase_1_enforces(answer: Answer) -> None:
    """Phase 1 claims back-pressure."""
    if answer["phase"] == 1:
        answer["directives"] |= {"task_window.mode.stall": "enforced", "task_window.unit.tasks": "enforced"}


def phase_1_pools(answer: Answer) -> None:
    """Phase 1 claims a bounded arena."""
    if answer["phase"] == 1:
        answer["directives"]["resources.heap_arena"] = "enforced"


def any_target(self: ReferenceAdapter, **given: Any) -> Answer:
    """Names of targets are compared without case."""
    name = given["target"].strip().lower()
    return usual_capabilities(self, target=name if name.startswith("cpu") and "_" in name else given["target"])


usual_capabilities: Callable[..., Answer] = ReferenceAdapter.wsp_capabilities

MATRICES = [
    answered("WSP-01.3-01", "nothing_declared", "the matrix is empty", nothing_declared, "capabilities"),
    declaring("WSP-01.3-01", "no_window_declared", "no window", "directives", task_window__mode__stall=None),
    answered("WSP-01.3-09", "partly", "a fifth state", stating(placement="partly"), "compile"),
    answered("WSP-01.3-09", "upper_case", "a state in capitals", stating(prefetch="DIAGNOSED"), "compile"),
    answered("WSP-05.2-01", "policies_only", "no resources in the matrix", policies_only, "capabilities"),
    declaring("WSP-05.2-02", "no_payload_entry", "payload channels left out", "csp", payload_channels=None),
    declaring("WSP-05.2-03", "no_conditions", "conditions left out", "predicates", cond=None),
    changed("WSP-05.2-01", "any_case", "targets in any case", (ReferenceAdapter, "wsp_capabilities", any_target)),
    answered("WSP-07-04", "all_enforced", "everything is called enforced", all_enforced, "capabilities"),
    answered("WSP-07.1-03", "phase_1_enforces", "phase 1 claims a window", phase_1_enforces, "capabilities"),
    answered("WSP-07.1-03", "phase_1_pools", "phase 1 claims an arena", phase_1_pools, "capabilities"),
    declaring("WSP-07.1-09", "no_hash", "hash is called recorded", "directives", dispatch__hash="recorded"),
]


# Directives


def without_ring(self: Resources, site: CallSite, nodes: int, worker: WorkerState) -> str | None:
    """The ring is not asked."""
    self.sizes["task_ring"] = 1 << 31
    return usual_shortage(self, site, nodes, worker)


def to_worker_0(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
    """Every task is one of the first worker."""
    self._place = first_worker
    return usual_issue(self, process, site, key, scalars)


def first_worker(number: int, key: int) -> int:
    """Of any task."""
    return 0


def directives_of(given: Answer) -> list[dict[str, Any]]:
    """The further directives of a program."""
    found: list[dict[str, Any]] = given["program"].get("schedule", {}).get("directives", [])
    return found


def rescheduled(name: str, **members: Any) -> Callable[[Answer], Answer]:
    """Programs with this directive have another schedule."""

    def change(given: Answer) -> Answer:
        if not any(each["name"] == name for each in directives_of(given)):
            return given
        return {**given, "program": {**given["program"], "schedule": given["program"]["schedule"] | members}}

    return change


def last_value(document: dict[str, Any]) -> None:
    """Of equal directives the last is kept."""
    schedule = document["schedule"]
    schedule["directives"] = list({each["name"]: each for each in schedule["directives"]}.values())


def reported_each_time(self: ReferenceAdapter, **given: Any) -> Answer:
    """A diagnostic for each mention."""
    answer = usual_compile(self, **given)
    mentions = [each for each in directives_of(given) if any(each["name"] in text for text in answer["diagnostics"])]
    return answer | {"diagnostics": [text for text in answer["diagnostics"] for _ in mentions]}


REPORTED: set[str] = set()


def reported_once_for_all(self: ReferenceAdapter, **given: Any) -> Answer:
    """A diagnostic is given once in the life of the process."""
    answer = usual_compile(self, **given)
    new = [each for each in answer["diagnostics"] if each not in REPORTED]
    REPORTED.update(new)
    return answer | {"diagnostics": new}


def silent(answer: Answer) -> None:
    """No diagnostics."""
    answer["diagnostics"] = []


def in_general(answer: Answer) -> None:
    """A diagnostic that names nothing."""
    answer["diagnostics"] = ["something is ignored"] if answer["diagnostics"] else []


def diagnosed_otherwise(self: Target, directive: str) -> str:
    """What a matrix does not have is diagnosed."""
    return self.directives.get(directive, "diagnosed")


def by_prefix(self: Target, directive: str) -> str:
    """Directives are known by how they begin."""
    for name, each in self.directives.items():
        if directive.lower().startswith(name.lower()) or name.startswith(directive):
            return each
    return "unsupported"


def modes_accepted(self: Target, directive: str) -> str:
    """Other modes and units are taken for the usual ones."""
    state = usual_state(self, directive)
    return "recorded" if state == "unsupported" and directive.startswith("task_window") else state


class Nameless(UnsupportedDirective):
    """An error that names nothing."""

    def __str__(self) -> str:
        return "unsupported"


DIRECTIVES = [
    changed("WSP-01.3-02", "no_window", "the window has no effect", (Resources, "shortage", without_ring)),
    changed("WSP-01.3-02", "no_policy", "policies have no effect", (Machine, "issue", to_worker_0)),
    asked(
        "WSP-01.3-07",
        "recorded_changes",
        "a recorded directive changes the window",
        rescheduled("placement", task_window={"size": 1}),
        "compile",
    ),
    asked(
        "WSP-01.3-08",
        "diagnosed_changes",
        "a diagnosed directive changes the policy",
        rescheduled("prefetch", policy={"id": "affinity", "parameters": {"workers": 3}}),
        "compile",
    ),
    answered(
        "WSP-01.3-03",
        "not_kept",
        "directives are not kept",
        repackaged(lambda document: document["schedule"].update(directives=[])),
        "compile",
    ),
    answered("WSP-01.3-03", "last_kept", "of equal directives one is kept", repackaged(last_value), "compile"),
    changed("WSP-01.3-04", "each_time", "reported each time", (ReferenceAdapter, "wsp_compile", reported_each_time)),
    changed("WSP-01.3-04", "once_for_all", "reported once", (ReferenceAdapter, "wsp_compile", reported_once_for_all)),
    answered("WSP-01.3-04", "silent", "not reported", silent, "compile"),
    answered("WSP-01.3-04", "in_general", "the report names nothing", in_general, "compile"),
    changed("WSP-01.3-05", "unknown_ignored", "the unknown is diagnosed", (Target, "state", diagnosed_otherwise)),
    changed("WSP-01.3-05", "by_prefix", "directives are known by prefix", (Target, "state", by_prefix)),
    changed("WSP-01.3-05", "modes_accepted", "other modes are accepted", (Target, "state", modes_accepted)),
    changed("WSP-01.3-05", "nameless", "the error names nothing", (compiler, "UnsupportedDirective", Nameless)),
]


# The architecture model


def model(clause: str, name: str, description: str, change: Callable[[Answer], Any]) -> Violation:
    """Another model; the usual one stays as it is."""

    def call(answer: Answer) -> Answer:
        copied: Answer = json.loads(json.dumps(answer))
        change(copied)
        return copied

    return answered(clause, name, description, call, "architecture")


def each_without(part: str, member: str) -> Callable[[Answer], None]:
    """A member that no entry has."""

    def change(answer: Answer) -> None:
        for each in answer[part]:
            each.pop(member, None)

    return change


def no_kind(part: str, kind: str) -> Callable[[Answer], None]:
    """Entries of this kind are left out."""

    def change(answer: Answer) -> None:
        if part == "exec_units":
            for each in answer[part]:
                each["kinds"] = [other for other in each["kinds"] if other != kind]
        else:
            answer[part] = [each for each in answer[part] if each["kind"] != kind]

    return change


def no_member(part: str, member: str) -> Callable[[Answer], None]:
    """A member that is not there."""
    return lambda answer: answer[part].pop(member)


ARCHITECTURE = [
    model("WSP-05.1-01", "no_spaces", "no address spaces", lambda answer: answer.update(memory=[])),
    model("WSP-05.1-01", "no_names", "address spaces without names", each_without("memory", "name")),
    model("WSP-05.1-06", "no_capacities", "no capacities", each_without("memory", "bytes")),
    model("WSP-05.1-07", "no_granularity", "no access granularity", each_without("memory", "access_bytes")),
    model("WSP-05.1-02", "no_dma", "no DMA units", no_kind("exec_units", "dma")),
    model("WSP-05.1-02", "no_matrix", "no matrix units", no_kind("exec_units", "matrix")),
    model("WSP-05.1-08", "no_limits", "no concurrency limits", each_without("exec_units", "concurrent_kernels")),
    model("WSP-05.1-03", "no_barriers", "no barriers", no_kind("sync", "barrier")),
    model("WSP-05.1-03", "no_flags", "no flags", no_kind("sync", "flag")),
    model("WSP-05.1-09", "no_domains", "no ordering domains", each_without("sync", "orders")),
    model("WSP-05.1-04", "no_grid", "no core grid", no_member("dispatch", "core_grid")),
    model("WSP-05.1-10", "no_waves", "no waves", no_member("dispatch", "waves")),
    model("WSP-05.1-11", "no_queues", "no queues", no_member("dispatch", "queues")),
    model("WSP-05.1-12", "no_worker_types", "no worker types", no_member("dispatch", "worker_types")),
    model("WSP-05.1-05", "no_report", "no cycle report", no_member("timing", "report")),
    model("WSP-05.1-13", "no_composition", "no composition", no_member("timing", "composition")),
]


# Phases


def all_at_once(self: Resources, site: CallSite, nodes: int, worker: WorkerState) -> str | None:
    """Orchestration runs to completion whatever the ring holds."""
    reason = usual_shortage(self, site, nodes, worker)
    return None if reason == "TASK_RING_FULL" else reason


def without_waits(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
    """Tasks do not wait for tokens."""
    return usual_issue(self, process, replace(site, waits=()), key, scalars)


def first_wait(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
    """Tasks wait for a token of their first channel."""
    return usual_issue(self, process, replace(site, waits=site.waits[:1]), key, scalars)


def other_phase(document: dict[str, Any]) -> None:
    """The package is of the other phase."""
    document["phase"] = 3 - document["phase"]


PHASES = [
    changed("WSP-07.1-05", "all_at_once", "tasks are issued at once", (Resources, "shortage", all_at_once)),
    changed("WSP-07.1-06", "no_back_pressure", "the window holds nothing back", (Resources, "shortage", all_at_once)),
    changed("WSP-07.1-07", "no_waits", "tasks do not wait for tokens", (Machine, "issue", without_waits)),
    changed("WSP-07.1-07", "first_wait", "tasks wait for one channel", (Machine, "issue", first_wait)),
    answered("WSP-07.1-03", "other_phase", "packages of the other phase", repackaged(other_phase), "compile"),
]


# Backends


def on(target: str, change: Callable[[Answer], Any]) -> Callable[..., Answer]:
    """Results of packages for a target, changed."""

    def call(self: ReferenceAdapter, **given: Any) -> Answer:
        answer: Answer = usual_run(self, **given)
        if f'"target":"{target}"' in given["package"]:
            change(answer)
        return answer

    return call


def not_here(target: str) -> Callable[..., Answer]:
    """A target that needs a toolchain."""

    def call(self: ReferenceAdapter, **given: Any) -> Answer:
        if f'"target":"{target}"' in given["package"]:
            raise Refusal("DEVICE_NEEDED", "call", f"{target} needs a toolchain")
        answer: Answer = usual_run(self, **given)
        return answer

    return call


def one_worker(answer: Answer) -> None:
    """All tasks were the first worker's."""
    found = answer["statistics"]
    found["assignments"] = [0] * len(found["assignments"])


def no_stalls(answer: Answer) -> None:
    """Nothing stalled."""
    for each in answer["statistics"]["stalls"].values():
        each.update(count=0, cycles=0)


def doubled_tokens(answer: Answer) -> None:
    """Channels counted in bytes."""
    for each in answer["statistics"]["channels"].values():
        each.update({name: 8 * value for name, value in each.items()})


def aie(change: Callable[[dict[str, Any]], Any]) -> Callable[[Answer], None]:
    """A change of packages for aie."""

    def rewrite(document: dict[str, Any]) -> None:
        if document["target"] == "aie":
            change(document)

    return repackaged(rewrite)


def no_ends(document: dict[str, Any]) -> None:
    """Edges without their ends."""
    for each in document["stream_graph"]["edges"]:
        each.pop("from")
        each.pop("to")


def as_text(document: dict[str, Any]) -> None:
    """The graph is a text."""
    document["stream_graph"] = str(document["stream_graph"])


def one_edge_less(document: dict[str, Any]) -> None:
    """An edge is left out."""
    document["stream_graph"]["edges"].pop()


def turned_edge(document: dict[str, Any]) -> None:
    """An edge leads back."""
    for each in document["stream_graph"]["edges"]:
        if each["channel"] == "down":
            each["to"] = "source"


def runs_anyway(self: ReferenceAdapter, **given: Any) -> Answer:
    """A package for aie runs on cpu_sim, and fails there."""
    try:
        answer: Answer = usual_run(self, **given)
    except Refusal as refusal:
        if refusal.outcome.code != "DEVICE_NEEDED":
            raise
        raise Refusal("TESS_ERR_INTERNAL", "call", "failed") from None
    return answer


def unclear(self: ReferenceAdapter, **given: Any) -> Answer:
    """An error that does not speak of the cycle."""
    try:
        answer: Answer = usual_compile(self, **given)
    except Refusal as refusal:
        raise Refusal(refusal.outcome.code, refusal.outcome.phase, "error 17") from None
    return answer


def zeros(answer: Answer) -> None:
    """Tensors of zeros."""
    tensors = answer["statistics"]["tensors"]
    tensors.update({name: "00" * (len(each) // 2) for name, each in tensors.items()})


BACKENDS = [
    changed("WSP-06.1-01", "not_here", "cpu_sim does not run", (ReferenceAdapter, "wsp_run", not_here("cpu_sim"))),
    changed("WSP-06.1-03", "toolchain", "needs a toolchain", (ReferenceAdapter, "wsp_run", not_here("cpu_sim"))),
    changed("WSP-06.2-01", "no_sim", "a2a3sim does not run", (ReferenceAdapter, "wsp_run", not_here(SIMULATOR))),
    changed("WSP-07-02", "zeros", "a2a3sim computes nothing", (ReferenceAdapter, "wsp_run", on(SIMULATOR, zeros))),
    changed("WSP-06.2-02", "bytes", "tokens in bytes", (ReferenceAdapter, "wsp_run", on(SIMULATOR, doubled_tokens))),
    changed("WSP-06.2-03", "one_worker", "one worker", (ReferenceAdapter, "wsp_run", on(SIMULATOR, one_worker))),
    changed("WSP-06.2-03", "no_stalls", "no stalls", (ReferenceAdapter, "wsp_run", on(SIMULATOR, no_stalls))),
    answered("WSP-06.4-05", "no_ends", "edges without ends", aie(no_ends), "compile"),
    answered("WSP-06.4-05", "one_edge_less", "an edge is left out", aie(one_edge_less), "compile"),
    answered("WSP-06.4-04", "as_text", "the stream graph is a text", aie(as_text), "compile"),
    answered("WSP-06.4-06", "turned_edge", "an edge leads back", aie(turned_edge), "compile"),
    changed("WSP-06.4-07", "cycles_accepted", "cycles are accepted", (compiler, "check_acyclic", nothing)),
    changed("WSP-06.4-07", "unclear", "an unclear error", (ReferenceAdapter, "wsp_compile", unclear)),
    changed("WSP-06.4-03", "runs_anyway", "aie runs where it cannot", (ReferenceAdapter, "wsp_run", runs_anyway)),
]
