"""Messages that exceed credits or keep them, wait for nothing or for too much, and are not traced.

Collectives specification, 4 and 6.
"""

import json
from dataclasses import replace

from tessera_reference.adapter import collectives
from tessera_reference.collectives import travel as progress

from ...ir.violators.changes import changed

TRAVEL, TRACE, WAY, LANE = (
    collectives.travel,
    collectives.chunk_trace,
    progress.preferred_route,
    progress._Lane,
)


def travelling(clause, name, description, change):
    """Return a violation that reports other transfers than those that took place."""

    def others(*arguments, **options):
        return change(TRAVEL(*arguments, **options))

    return changed(clause, name, description, ("adapter.collectives.travel", others))


def credits(clause, name, description, of):
    """Return a violation with another number of credits than the topology's."""

    def lane(count):
        return LANE(of(count))

    return changed(clause, name, description, ("collectives.travel._Lane", lane))


def routing(clause, name, description, route):
    """Return a violation with other routes between devices."""
    return changed(clause, name, description, ("collectives.travel.preferred_route", route))


def all_at_once(topology, devices, sent, *arguments, **options):
    usual = TRAVEL(topology, devices, [message._replace(step=0) for message in sent], *arguments, **options)
    steps = {message._replace(step=0): message.step for message in sent}
    return [replace(message, sent=message.sent._replace(step=steps[message.sent])) for message in usual]


def in_order(self, units, now):
    held = set()
    for unit in sorted(set(units)):
        waiting = (message for lane in self._lanes.values() for message in lane.waiting)
        before = any(waiter.sent.source == unit.sent.source and waiter < unit for waiter in waiting)
        if before or unit.sent.source in held:
            self._enqueue(unit)
            continue
        DISPATCH(self, [unit], now)
        if unit.waits:
            held.add(unit.sent.source)


DISPATCH = progress.Progress._dispatch


def with_links(**change):
    """Return a route function with changed links."""

    def way(*arguments):
        usual = WAY(*arguments)
        return replace(usual, links=tuple(replace(link, **change) for link in usual.links))

    return way


def ignoring_down(*arguments, cuts=(), **options):
    return TRAVEL(*arguments, cuts=[cut for cut in cuts if cut.at], **options)


def by_host(topology, source, target, path, down):
    """Return routes that avoid NVLink and RDMA."""
    other = frozenset(link.name for link in topology.links if link.kind in ("nvlink", "rdma"))
    return WAY(topology, source, target, path, down | other)


def traced(change):
    """Return a function that changes the trace."""

    def made(*arguments):
        trace = json.loads(TRACE(*arguments))
        return json.dumps({**trace, "traceEvents": change(trace["traceEvents"])})

    return made


def first_chunk(events):
    """Return the events of the first chunk alone."""
    return [event for event in events if event["ph"] != "X" or "elements 0 to" in event["name"]]


def shifted(events):
    """Return slices that begin a microsecond late."""
    return [{**event, "ts": event["ts"] + 1} if event["ph"] == "X" else event for event in events]


def in_nanoseconds(events):
    """Return times a thousand times too short."""
    return [{**event, **{name: event[name] / 1000 for name in ("ts", "dur") if name in event}} for event in events]


def without_flows(events):
    """Return the events without ends of flows."""
    return [event for event in events if event["ph"] != "f"]


def flows_backwards(events):
    """Return flows that begin where they end."""
    turned = {"s": "f", "f": "s"}
    return [{**event, "ph": turned.get(event["ph"], event["ph"])} for event in events]


def held_too_long(events):
    """Return counters of links that never return to 0."""
    return [event for event in events if event["ph"] != "C" or all(event["args"].values())]


def counts_elements(events):
    """Return counters of bytes that count elements."""
    return [
        {**event, "args": {"in_flight": event["args"]["in_flight"] // 4}}
        if "in_flight" in event.get("args", {})
        else event
        for event in events
    ]


VIOLATIONS = [
    credits("COLL-04.2-01", "one_more_on_nvlink", "has one credit more than a link has", lambda count: count + 1),
    credits("COLL-04.2-02", "twice_as_many", "has twice the credits of a NIC's queue", lambda count: 2 * count),
    credits("COLL-04.2-01", "always_one", "uses one credit of many", lambda count: 1),
    changed("COLL-04.2-04", "head_of_line", "lets what waits hold up what comes after it",
        ("collectives.travel.Progress._dispatch", in_order)),
    changed("COLL-04.3-01", "no_order", "sends before what is to be sent has come",
        ("adapter.collectives.travel", all_at_once)),
    travelling("COLL-04.3-02", "ends_early", "tells the end of all but the last message",
        lambda found: [*found[:-1], replace(found[-1], end=found[-1].start)]),
    changed("COLL-02.3-04", "no_pipeline", "passes nothing on before all chunks are there",
        ("adapter.collectives.travel",
        lambda *arguments, chunk=None, **options: TRAVEL(*arguments, chunk=None, **options))),
    routing("COLL-03.3-06", "no_latency", "has links without latency", with_links(latency=0)),
    routing("COLL-03.3-03", "no_bandwidth", "has links of any bandwidth", with_links(bandwidth=10**15)),
    changed("COLL-04.2-03", "takes_what_is_down", "takes links that are down",
        ("adapter.collectives.travel", ignoring_down)),
    routing("COLL-04.4-02", "through_the_host", "goes through hosts within a node", by_host),
    routing("COLL-04.4-03", "over_the_network", "goes over the hosts' network between nodes", by_host),
    routing("COLL-03.1-03", "no_nvlink", "uses neither NVLink nor RDMA", by_host),
    *(
        changed(clause, name, description, ("adapter.collectives.chunk_trace", traced(change)))
        for clause, name, description, change in [
            ("COLL-06-01", "first_chunk_alone", "records the first chunk alone", first_chunk),
            ("COLL-06-02", "short_times", "records times a thousand times too short", in_nanoseconds),
            ("COLL-06-08", "late_slices", "records slices a microsecond late", shifted),
            ("COLL-06-01", "flows_backwards", "draws flows from the receiver to the sender", flows_backwards),
            ("COLL-06-08", "flows_without_end", "writes flows without their ends", without_flows),
            ("COLL-06-01", "held_too_long", "counts what a link carried last for ever", held_too_long),
            ("COLL-06-08", "counts_elements", "counts elements in flight for bytes", counts_elements),
            ("COLL-08-19", "no_records", "records nothing", lambda events: []),
        ]
    ),
]  # fmt: skip
