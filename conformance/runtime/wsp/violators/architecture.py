"""Architecture models that omit a part (WSP 5.1)."""

import json

from ....ir.violators.changes import breaks
from .answers import answered


def model(clause, name, description, change):
    """Return a violation with another model; the usual one is not modified."""

    def call(answer):
        copied = json.loads(json.dumps(answer))
        change(copied)
        return copied

    return answered(clause, name, description, call, "architecture")


def lacking(clause, name, description, part, member):
    """Return a violation whose model lacks a member of a part, or of every entry of a list."""

    def change(answer):
        for entry in answer[part] if isinstance(answer[part], list) else [answer[part]]:
            entry.pop(member, None)

    return model(clause, name, description, change)


@breaks("WSP-05.1-02", "no DMA units", model)
def no_dma(answer):
    for entry in answer["exec_units"]:
        entry["kinds"] = [kind for kind in entry["kinds"] if kind != "dma"]


ARCHITECTURE = [
    model("WSP-05.1-01", "no_spaces", "no address spaces", lambda answer: answer.update(memory=[])),
    model("WSP-05.1-03", "no_flags", "no flags",
        lambda answer: answer.update(sync=[entry for entry in answer["sync"] if entry["kind"] != "flag"])),
    lacking("WSP-05.1-06", "no_capacities", "no capacities", "memory", "bytes"),
    lacking("WSP-05.1-07", "no_granularity", "no access granularity", "memory", "access_bytes"),
    lacking("WSP-05.1-08", "no_limits", "no concurrency limits", "exec_units", "concurrent_kernels"),
    lacking("WSP-05.1-09", "no_domains", "no ordering domains", "sync", "orders"),
    lacking("WSP-05.1-04", "no_grid", "no core grid", "dispatch", "core_grid"),
    lacking("WSP-05.1-10", "no_waves", "no waves", "dispatch", "waves"),
    lacking("WSP-05.1-11", "no_queues", "no queues", "dispatch", "queues"),
    lacking("WSP-05.1-12", "no_worker_types", "no worker types", "dispatch", "worker_types"),
    lacking("WSP-05.1-05", "no_report", "no cycle report", "timing", "report"),
    lacking("WSP-05.1-13", "no_composition", "no composition", "timing", "composition"),
]  # fmt: skip
