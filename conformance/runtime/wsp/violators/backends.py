"""Phases and backends that break their promises (WSP 6 and 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.machine import Machine, ProcessState, Resources, WorkerState
from tessera_reference.wsp.package import CallSite

from ....ir.violators.changes import changed
from .answers import Answer, answered, repackaged

SIMULATOR = "pto_runtime_a2a3sim"

usual_compile = ReferenceAdapter.wsp_compile
usual_run = ReferenceAdapter.wsp_run
usual_shortage = Resources.shortage
usual_issue = Machine.issue


def all_at_once(self: Resources, amounts: Mapping[str, int], worker: WorkerState) -> str | None:
    """Run the orchestration to completion whatever the ring holds."""
    reason = usual_shortage(self, amounts, worker)
    return None if reason == "TASK_RING_FULL" else reason


def two_signals(self: Machine, process: ProcessState, site: CallSite, key: int, scalars: Sequence[int]) -> str | None:
    return usual_issue(self, process, replace(site, signals=site.signals[:2]), key, scalars)


PHASES = [
    changed("WSP-07.1-05", "all_at_once", "tasks are issued at once", ("wsp.machine.Resources.shortage", all_at_once)),
    changed("WSP-07.1-06", "no_back_pressure", "the window holds nothing back",
        ("wsp.machine.Resources.shortage", all_at_once)),
    changed("WSP-07.1-07", "two_signals", "tasks signal two channels at most",
        ("wsp.machine.Machine.issue", two_signals)),
]  # fmt: skip


# Backends


def on(target: str, change: Callable[[Answer], Any]) -> Callable[..., Answer]:
    """Return a run that changes results of packages for a target."""

    def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
        answer: Answer = usual_run(self, **arguments)
        if f'"target":"{target}"' in arguments["package"]:
            change(answer)
        return answer

    return call


def not_here(target: str) -> Callable[..., Answer]:
    """Return a run that requires a toolchain for a target."""

    def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
        if f'"target":"{target}"' in arguments["package"]:
            raise Refusal("DEVICE_NEEDED", "call", f"{target} needs a toolchain")
        answer: Answer = usual_run(self, **arguments)
        return answer

    return call


def one_worker(answer: Answer) -> None:
    found = answer["statistics"]
    found["assignments"] = [0] * len(found["assignments"])


def no_stalls(answer: Answer) -> None:
    for stall in answer["statistics"]["stalls"].values():
        stall.update(count=0, cycles=0)


def doubled_tokens(answer: Answer) -> None:
    for channel in answer["statistics"]["channels"].values():
        channel.update({name: 8 * value for name, value in channel.items()})


def aie(change: Callable[[dict[str, Any]], Any]) -> Callable[[Answer], None]:
    """Return a change of packages for aie."""

    def rewrite(document: dict[str, Any]) -> None:
        if document["target"] == "aie":
            change(document)

    return repackaged(rewrite)


def as_text(document: dict[str, Any]) -> None:
    document["stream_graph"] = str(document["stream_graph"])


def one_edge_less(document: dict[str, Any]) -> None:
    document["stream_graph"]["edges"].pop()


def turned_edge(document: dict[str, Any]) -> None:
    for edge in document["stream_graph"]["edges"]:
        if edge["channel"] == "down":
            edge["to"] = "source"


def runs_anyway(self: ReferenceAdapter, **arguments: Any) -> Answer:
    try:
        answer: Answer = usual_run(self, **arguments)
    except Refusal as refusal:
        if refusal.outcome.code != "DEVICE_NEEDED":
            raise
        raise Refusal("TESS_ERR_INTERNAL", "call", "failed") from None
    return answer


def unclear(self: ReferenceAdapter, **arguments: Any) -> Answer:
    try:
        answer: Answer = usual_compile(self, **arguments)
    except Refusal as refusal:
        raise Refusal(refusal.outcome.code, refusal.outcome.phase, "error 17") from None
    return answer


def zeros(answer: Answer) -> None:
    tensors = answer["statistics"]["tensors"]
    tensors.update({name: "00" * (len(tensor) // 2) for name, tensor in tensors.items()})


BACKENDS = [
    changed("WSP-06.1-01", "not_here", "cpu_sim does not run",
        ("adapter.ReferenceAdapter.wsp_run", not_here("cpu_sim"))),
    changed("WSP-06.1-03", "toolchain", "needs a toolchain", ("adapter.ReferenceAdapter.wsp_run", not_here("cpu_sim"))),
    changed("WSP-06.2-01", "no_sim", "a2a3sim does not run", ("adapter.ReferenceAdapter.wsp_run", not_here(SIMULATOR))),
    changed("WSP-07-02", "zeros", "a2a3sim computes nothing",
        ("adapter.ReferenceAdapter.wsp_run", on(SIMULATOR, zeros))),
    changed("WSP-06.2-02", "bytes", "tokens in bytes",
        ("adapter.ReferenceAdapter.wsp_run", on(SIMULATOR, doubled_tokens))),
    changed("WSP-06.2-03", "one_worker", "one worker", ("adapter.ReferenceAdapter.wsp_run", on(SIMULATOR, one_worker))),
    answered("WSP-06.4-05", "one_edge_less", "an edge is left out", aie(one_edge_less), "compile"),
    answered("WSP-06.4-04", "as_text", "the stream graph is a text", aie(as_text), "compile"),
    answered("WSP-06.4-06", "turned_edge", "an edge leads back", aie(turned_edge), "compile"),
    changed("WSP-06.4-07", "unclear", "an unclear error", ("adapter.ReferenceAdapter.wsp_compile", unclear)),
    changed("WSP-06.4-03", "runs_anyway", "aie runs where it cannot",
        ("adapter.ReferenceAdapter.wsp_run", runs_anyway)),
]  # fmt: skip
