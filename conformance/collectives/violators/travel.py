"""Messages that exceed credits or keep them, wait for nothing or for too much, and are not traced.

Collectives specification, 4 and 6.
"""

import json
from dataclasses import replace

from .changes import at, result_of


def all_at_once(usual, topology, devices, sent, *given, **options):
    found = usual(topology, devices, [message._replace(step=0) for message in sent], *given, **options)
    steps = {message._replace(step=0): message.step for message in sent}
    return [replace(message, sent=message.sent._replace(step=steps[message.sent])) for message in found]


def in_order(usual, self, units, now):
    held = set()
    for unit in sorted(set(units)):
        waiting = (message for lane in self._lanes.values() for message in lane.waiting)
        before = any(waiter.sent.source == unit.sent.source and waiter < unit for waiter in waiting)
        if before or unit.sent.source in held:
            self._enqueue(unit)
            continue
        usual(self, [unit], now)
        if unit.waits:
            held.add(unit.sent.source)


def with_links(**change):
    """Return a change of the links of a route."""
    return lambda usual, *given: replace(
        found := usual(*given), links=tuple(replace(link, **change) for link in found.links)
    )


def by_host(usual, topology, source, target, path, down):
    """Return routes that avoid NVLink and RDMA."""
    other = frozenset(link.name for link in topology.links if link.kind in ("nvlink", "rdma"))
    return usual(topology, source, target, path, down | other)


def tracing(clause, name, description, change):
    """Return a violation with another trace: `change` gets an event and returns those in its place."""

    def traced(text):
        trace = json.loads(text)
        return json.dumps(trace | {"traceEvents": [other for event in trace["traceEvents"] for other in change(event)]})

    return result_of("adapter.collectives.chunk_trace")(clause, name, description, traced)


credits, routing = at("collectives.travel._Lane"), at("collectives.travel.preferred_route")
travelling = at("adapter.collectives.travel")

VIOLATIONS = [
    credits("COLL-04.2-01", "one_more_on_nvlink", "has one credit more than a link has",
        lambda usual, count: usual(count + 1)),
    credits("COLL-04.2-02", "twice_as_many", "has twice the credits of a NIC's queue",
        lambda usual, count: usual(2 * count)),
    credits("COLL-04.2-01", "always_one", "uses one credit of many", lambda usual, count: usual(1)),
    at("collectives.travel.Progress._dispatch")("COLL-04.2-04", "head_of_line",
        "lets what waits hold up what comes after it", in_order),
    travelling("COLL-04.3-01", "no_order", "sends before what is to be sent has come", all_at_once),
    result_of("adapter.collectives.travel")("COLL-04.3-02", "ends_early", "tells the end of all but the last message",
        lambda found: [*found[:-1], replace(found[-1], end=found[-1].start)]),
    travelling("COLL-02.3-04", "no_pipeline", "passes nothing on before all chunks are there",
        lambda usual, *given, **options: usual(*given, **options | {"chunk": None})),
    routing("COLL-03.3-06", "no_latency", "has links without latency", with_links(latency=0)),
    routing("COLL-03.3-03", "no_bandwidth", "has links of any bandwidth", with_links(bandwidth=10**15)),
    travelling("COLL-04.2-03", "takes_what_is_down", "takes links that are down",
        lambda usual, *given, cuts=(), **options: usual(*given, cuts=[cut for cut in cuts if cut.at], **options)),
    routing("COLL-04.4-02", "through_the_host", "goes through hosts within a node", by_host),
    routing("COLL-04.4-03", "over_the_network", "goes over the hosts' network between nodes", by_host),
    routing("COLL-03.1-03", "no_nvlink", "uses neither NVLink nor RDMA", by_host),
    tracing("COLL-06-02", "short_times", "records times a thousand times too short",
        lambda event: [event | {name: event[name] / 1000 for name in event.keys() & {"ts", "dur"}}]),
    tracing("COLL-06-01", "flows_backwards", "draws flows from the receiver to the sender",
        lambda event: [event | {"ph": {"s": "f", "f": "s"}.get(event["ph"], event["ph"])}]),
    tracing("COLL-06-08", "flows_without_end", "writes flows without their ends",
        lambda event: [event] if event["ph"] != "f" else []),
    tracing("COLL-06-01", "held_too_long", "counts what a link carried last for ever",
        lambda event: [event] if event["ph"] != "C" or all(event["args"].values()) else []),
    tracing("COLL-06-08", "counts_elements", "counts elements in flight for bytes",
        lambda event: [event | {"args": {"in_flight": event["args"]["in_flight"] // 4}}
                       if "in_flight" in event.get("args", {}) else event]),
]  # fmt: skip
