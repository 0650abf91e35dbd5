"""Memory errors that are not reported, or reported without cause (runtime specification, 4.4; AMB-RT-83)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import replaced

from .changes import BuildsOnce, Call, Given, answering

KINDS = {
    "uninitialised_read": "RT-04.4-14",
    "overrun": "RT-04.4-18",
    "use_after_free": "RT-04.4-19",
    "double_free": "RT-04.4-14",
    "host_device_mixup": "RT-04.4-20",
    "unordered_access": "RT-04.4-18",
}


def without(kind: str) -> Any:
    """Return a call that omits the findings of one kind."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        return {"findings": [finding for finding in call(**given)["findings"] if finding["kind"] != kind]}

    return answer


def told_once(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    adapter.runtime.machine.memory.findings._found.clear()
    return answer


FOUND = [
    *(
        answering(clause, f"no_{kind}", f"finds no {kind.replace('_', ' ')}", "tessxFindings", without(kind))
        for kind, clause in KINDS.items()
    ),
    answering("RT-04.4-14", "told_once", "tells findings once", "tessxFindings", told_once),
    replaced("RT-04.4-18", "finds accesses unordered that an event orders", BuildsOnce,
        ("runtime.machine.Order.wait", lambda order, recorded, stream: None), name="events_unseen"),
    replaced("RT-04.4-18", "finds accesses unordered that a synchronization orders", BuildsOnce,
        ("runtime.machine.Order.synchronize", lambda order, stream: None), name="synchronizations_unseen"),
    replaced("RT-04.4-18", "sees the accesses of a replay's first node alone", BuildsOnce,
        ("runtime.streams.GraphWork.accesses", lambda work: work.works[0].accesses()), name="first_node_of_a_replay"),
]  # fmt: skip
