"""Phases and backends that break their promises (WSP 6 and 7.1)."""

from dataclasses import replace

from tessera_conformance.adapter import Refusal

from ....ir.violators.changes import breaks, wrapped
from .answers import answered, repackaged

SIMULATOR = "pto_runtime_a2a3sim"
RUN, SHORTAGE = "adapter.ReferenceAdapter.wsp_run", "wsp.machine.Resources.shortage"


def all_at_once(usual, *given):
    return None if (reason := usual(*given)) == "TASK_RING_FULL" else reason


def on_simulator(clause, name, description, change):
    def run(usual, self, **arguments):
        answer = usual(self, **arguments)
        if f'"target":"{SIMULATOR}"' in arguments["package"]:
            change(answer["statistics"])
        return answer

    return wrapped(clause, name, description, RUN, run)


def not_here(clause, name, description, target):
    def run(usual, self, **arguments):
        if f'"target":"{target}"' in arguments["package"]:
            raise Refusal("DEVICE_NEEDED", "call", f"{target} needs a toolchain")
        return usual(self, **arguments)

    return wrapped(clause, name, description, RUN, run)


def other_graph(clause, name, description, change):
    rewrite = repackaged(lambda document: document["target"] == "aie" and change(document))
    return answered(clause, name, description, rewrite, "compile")


@breaks("WSP-06.2-02", "tokens in bytes", on_simulator)
def bytes(statistics):
    for channel in statistics["channels"].values():
        channel.update({name: 8 * value for name, value in channel.items()})


@breaks("WSP-07-02", "a2a3sim computes nothing", on_simulator)
def zeros(statistics):
    tensors = statistics["tensors"]
    tensors.update({name: "00" * (len(tensor) // 2) for name, tensor in tensors.items()})


@breaks("WSP-06.4-06", "an edge leads back", other_graph)
def turned_edge(document):
    for edge in document["stream_graph"]["edges"]:
        if edge["channel"] == "down":
            edge["to"] = "source"


@breaks("WSP-06.4-03", "aie runs where it cannot", RUN)
def runs_anyway(usual, self, **arguments):
    try:
        return usual(self, **arguments)
    except Refusal as refusal:
        if refusal.outcome.code != "DEVICE_NEEDED":
            raise
        raise Refusal("TESS_ERR_INTERNAL", "call", "failed") from None


@breaks("WSP-06.4-07", "an unclear error", "adapter.ReferenceAdapter.wsp_compile")
def unclear(usual, self, **arguments):
    try:
        return usual(self, **arguments)
    except Refusal as refusal:
        raise Refusal(refusal.outcome.code, refusal.outcome.phase, "error 17") from None


VIOLATORS = [
    wrapped("WSP-07.1-05", "all_at_once", "tasks are issued at once", SHORTAGE, all_at_once),
    wrapped("WSP-07.1-06", "no_back_pressure", "the window holds nothing back", SHORTAGE, all_at_once),
    not_here("WSP-06.1-01", "not_here", "cpu_sim does not run", "cpu_sim"),
    not_here("WSP-06.1-03", "toolchain", "needs a toolchain", "cpu_sim"),
    not_here("WSP-06.2-01", "no_sim", "a2a3sim does not run", SIMULATOR),
    on_simulator("WSP-06.2-03", "one_worker", "one worker",
        lambda statistics: statistics.update(assignments=[0] * len(statistics["assignments"]))),
    other_graph("WSP-06.4-05", "one_edge_less", "an edge is left out",
        lambda document: document["stream_graph"]["edges"].pop()),
    other_graph("WSP-06.4-04", "as_text", "the stream graph is a text",
        lambda document: document.update(stream_graph=str(document["stream_graph"]))),
    wrapped("WSP-07.1-07", "two_signals", "tasks signal two channels at most", "wsp.machine.Machine.issue",
        lambda usual, self, process, site, *given:
            usual(self, process, replace(site, signals=site.signals[:2]), *given)),
]  # fmt: skip
