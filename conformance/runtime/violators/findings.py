"""Memory errors that are not reported, or reported without cause (runtime specification, 4.4; AMB-RT-83)."""

from .changes import afterwards, answering, broken

KINDS = {
    "uninitialised_read": "RT-04.4-14",
    "overrun": "RT-04.4-18",
    "use_after_free": "RT-04.4-19",
    "double_free": "RT-04.4-14",
    "host_device_mixup": "RT-04.4-20",
    "unordered_access": "RT-04.4-18",
}

FOUND = [
    *(answering(clause, f"no_{kind}", f"finds no {kind.replace('_', ' ')}", "tessxFindings",
        lambda adapter, call, given, kind=kind: {
            "findings": [finding for finding in call(**given)["findings"] if finding["kind"] != kind]})
        for kind, clause in KINDS.items()),
    answering("RT-04.4-14", "told_once", "tells findings once", "tessxFindings",
        afterwards(lambda adapter, call, given: adapter.runtime.machine.memory.findings._found.clear())),
    broken("RT-04.4-18", "events_unseen", "finds accesses unordered that an event orders",
        "runtime.machine.Order.wait", lambda order, recorded, stream: None),
    broken("RT-04.4-18", "synchronizations_unseen", "finds accesses unordered that a synchronization orders",
        "runtime.machine.Order.synchronize", lambda order, stream: None),
    broken("RT-04.4-18", "first_node_of_a_replay", "sees the accesses of a replay's first node alone",
        "runtime.streams.GraphWork.accesses", lambda work: work.works[0].accesses()),
]  # fmt: skip
