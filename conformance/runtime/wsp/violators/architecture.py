"""Architecture models that omit a part (WSP 5.1)."""

from __future__ import annotations

import json

from .answers import answered


def model(clause, name, description, change):
    """Return a violation with another model; the usual one is not modified."""

    def call(answer):
        copied = json.loads(json.dumps(answer))
        change(copied)
        return copied

    return answered(clause, name, description, call, "architecture")


def each_without(part, member):
    """Return a change that removes a member from every entry."""

    def change(answer):
        for entry in answer[part]:
            entry.pop(member, None)

    return change


def no_kind(part, kind):
    """Return a change that removes entries of this kind."""

    def change(answer):
        if part == "exec_units":
            for entry in answer[part]:
                entry["kinds"] = [other for other in entry["kinds"] if other != kind]
        else:
            answer[part] = [other for other in answer[part] if other["kind"] != kind]

    return change


def no_member(part, member):
    """Return a change that removes a member."""
    return lambda answer: answer[part].pop(member)


ARCHITECTURE = [
    model("WSP-05.1-01", "no_spaces", "no address spaces", lambda answer: answer.update(memory=[])),
    model("WSP-05.1-06", "no_capacities", "no capacities", each_without("memory", "bytes")),
    model("WSP-05.1-07", "no_granularity", "no access granularity", each_without("memory", "access_bytes")),
    model("WSP-05.1-02", "no_dma", "no DMA units", no_kind("exec_units", "dma")),
    model("WSP-05.1-08", "no_limits", "no concurrency limits", each_without("exec_units", "concurrent_kernels")),
    model("WSP-05.1-03", "no_flags", "no flags", no_kind("sync", "flag")),
    model("WSP-05.1-09", "no_domains", "no ordering domains", each_without("sync", "orders")),
    model("WSP-05.1-04", "no_grid", "no core grid", no_member("dispatch", "core_grid")),
    model("WSP-05.1-10", "no_waves", "no waves", no_member("dispatch", "waves")),
    model("WSP-05.1-11", "no_queues", "no queues", no_member("dispatch", "queues")),
    model("WSP-05.1-12", "no_worker_types", "no worker types", no_member("dispatch", "worker_types")),
    model("WSP-05.1-05", "no_report", "no cycle report", no_member("timing", "report")),
    model("WSP-05.1-13", "no_composition", "no composition", no_member("timing", "composition")),
]
