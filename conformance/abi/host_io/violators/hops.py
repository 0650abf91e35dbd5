"""Traces that lack hops or name others, and latencies computed from something else (D3, D5 to D7, Verification)."""

from dataclasses import replace

from tessera_reference.host_io import machine as latency
from tessera_reference.host_io.machine import CONTROL, Branch, Journey, Place
from tessera_reference.host_io.messages import KernelLaunch, MemoryRead, MemoryWrite

from ....ir.violators.changes import around, breaks, changed, wrapped
from .message_changes import LAUNCH, READ, RUN

TRACED, CODE = "adapter.host_io.traced", "host_io.launches._code"
TYPES = {
    "HIO-Verification-03": MemoryWrite,
    "HIO-Verification-04": MemoryRead,
    "HIO-Verification-05": KernelLaunch,
}


def tracing(clause, name, description, change, kind=object):
    """Return a violation that changes the traces of requests, or of those of one type."""

    def traced(usual, asked):
        trace = usual(asked.journey)
        return change(trace) if isinstance(asked.request, kind) else trace

    def get(usual, self, pair):  # an answered request whose journey includes its request
        answered = usual(self, pair)
        return None if answered is None else answered._replace(journey=answered)

    return changed(clause, name, description, (TRACED, around(traced)), ("host_io.endpoint.Journal.get", around(get)))


def timed(trace, steps):
    """Return a trace of these components one after the other, without gaps."""
    return replace(trace, path=tuple(latency._timed(((step.component, step.place, step.bytes) for step in steps), 0)))


def without_last_hop(trace):
    found = [number for number, hop in enumerate(trace.path) if hop.component == "host"]
    return timed(trace, [hop for number, hop in enumerate(trace.path) if not found or number != found[-1]])


def without_pe_cpu(trace):
    return timed(trace, [hop for hop in trace.path if hop.component != "pe_cpu"])


def in_another_order(trace):
    names = {"noc": "m_cpu", "m_cpu": "noc"}
    return timed(trace, [replace(hop, component=names.get(hop.component, hop.component)) for hop in trace.path])


def of_first_pe(hops):
    return tuple(replace(hop, place=hop.place and Place(0, 0, 0)) for hop in hops)


def undrawn(clause, kind):
    def timeline(usual, machine, answered):
        return usual(machine, [answer for answer in answered if not isinstance(answer.request, kind)])

    name, description = f"{kind.__name__}_undrawn", f"no {kind.__name__} is drawn"
    return wrapped(clause, name, description, "adapter.host_io.timeline", timeline)


@breaks("HIO-D5-26", "the latency is a picosecond more than its hops", "adapter.ReferenceAdapter.host_io_trace")
def one_picosecond_more(usual, self, **ids):
    answer = usual(self, **ids)
    return {**answer, "latency": answer["latency"] + 1}


def taking(clause, name, description, change):
    return changed(clause, name, description, ("host_io.machine.Component.takes", change))


def running(clause, name, description, change):
    """Return a violation that changes the journeys of requests, of which `change` returns other members."""

    def run(usual, self, request, pair, characters):
        pending = usual(self, request, pair, characters)
        journey = pending.answered.journey
        journey = replace(journey, **change(self, request, journey))
        return replace(pending, answered=pending.answered._replace(journey=journey))

    return wrapped(clause, name, description, RUN, run)


def longer(clause, name, description, extra):
    """Return a violation in which requests are longer messages than they should be."""
    return running(
        clause, name, description, lambda self, request, journey: {"there": journey.there + extra(self, request)}
    )


def member(name, kind=object):
    """Return the number of characters of a member as its number of bytes."""

    def extra(self, request):
        given = getattr(request, name, None)
        return 0 if given is None or not isinstance(request, kind) else len(str(given))

    return extra


def small(branches):
    return tuple(branch._replace(memory=1) for branch in branches)


def free_of_bytes(clause, name, description, kind):
    """Return a violation in which requests of a type take the time of no bytes at memory and on the way back."""

    def change(self, request, journey):
        return {"back": CONTROL, "branches": small(journey.branches)} if isinstance(request, kind) else {}

    return running(clause, name, description, change)


@breaks("HIO-D6-14", "a read that is dropped passes no bytes", READ)
def dropped_at_once(usual, self, read):
    journey, failure, sunk = usual(self, read)
    dropped = read.dst_kind == "discard" and failure is None
    return Journey(branches=small(journey.branches)) if dropped else journey, failure, sunk


@breaks("HIO-D7-35", "the answer does not wait for the slowest shard", TRACED)
def fastest_shard(usual, journey):
    ordered = sorted(journey.branches, key=lambda branch: branch.memory or 0)
    return usual(replace(journey, branches=tuple(ordered[:1])) if len(ordered) > 1 else journey)


@breaks("HIO-D7-44", "shards that fail have no hops", LAUNCH)
def no_hops_of_failures(usual, machine, request):
    journey, failure = usual(machine, request)
    working = tuple(branch for branch in journey.branches if branch.place not in machine.failing)
    return replace(journey, branches=working), failure


VIOLATORS = [
    *(tracing(clause, f"{kind.__name__}_{change.__name__}", description, change, kind)
        for clause, kind in TYPES.items()
        for description, change in (
            ("never passes pe_cpu", without_pe_cpu),
            ("lacks the last hop", without_last_hop),
            ("passes m_cpu before noc", in_another_order),
        )),
    tracing("HIO-D7-34", "twice_the_endpoint", "launches pass pcie_ep twice",
        lambda trace: timed(trace, [*trace.path[:2], trace.path[1], *trace.path[2:]]), KernelLaunch),
    tracing("HIO-D7-35", "no_branches", "tells one branch alone", lambda trace: replace(trace, branches=())),
    tracing("HIO-D7-35", "late_branches", "branches begin before the launch is sent", lambda trace: replace(trace,
        branches=tuple(replace(branch, start=branch.start - 1, end=branch.end - 1) for branch in trace.branches))),
    tracing("HIO-Context-06", "places_by_address", "hops name the first PE",
        lambda trace: replace(trace, path=of_first_pe(trace.path), branches=of_first_pe(trace.branches))),
    *(undrawn(clause, kind) for clause, kind in TYPES.items()),
    taking("HIO-Verification-06", "hardly_any_time", "a hop takes a picosecond", lambda self, count: 1),
    taking("HIO-D5-26", "rounded_down", "the time of bytes is rounded down",
        lambda self, count: self.fixed + (0 if self.bandwidth is None else count * 10**12 // self.bandwidth)),
    longer("HIO-D5-26", "contention", "each request that waits makes the next longer",
        lambda self, request: len(self.waiting)),
    longer("HIO-Verification-06", "queue_in_latency", "requests take longer while others wait",
        lambda self, request: 64 * len(self.waiting)),
    *(longer(clause, f"label_of_{what}_takes_time", f"the label of a {what} takes time", member("debug_label", kind))
        for clause, what, kind in (
        ("HIO-D5-24", "write", MemoryWrite), ("HIO-D6-10", "read", MemoryRead), ("HIO-D7-32", "launch", KernelLaunch))),
    longer("HIO-D3-09", "tag_takes_time", "a timestamp_tag takes time", member("timestamp_tag")),
    longer("HIO-D7-28", "grid_takes_time", "a grid takes time", member("grid")),
    longer("HIO-D7-29", "meta_takes_time", "a meta takes time", member("meta")),
    running("HIO-D5-30", "buffer_free", "the bytes of a buffer take no time",
        lambda self, request, journey: {"there": CONTROL}),
    free_of_bytes("HIO-D5-07", "bytes_of_writes_free", "the bytes of a write take no time", MemoryWrite),
    free_of_bytes("HIO-D6-07", "bytes_of_reads_free", "the bytes of a read take no time", MemoryRead),
    free_of_bytes("HIO-D7-23", "bytes_of_shards_free", "the bytes of shards take no time", KernelLaunch),
    wrapped("HIO-D7-45", "binary_of_64_bytes", "every binary takes the time of 64 bytes", CODE,
        lambda usual, reference: (found := usual(reference)) and found._replace(memory=64)),
    changed("HIO-D7-45", "builtin_fetched", "a built-in kernel has a binary that takes time",
        (CODE, lambda reference: Branch(Place(0, 0, 0), reference.nbytes_code))),
    wrapped("HIO-D7-12", "size_in_kibibytes", "of nbytes_code whole KiB count", CODE, lambda usual, reference:
        (found := usual(reference)) and found._replace(memory=min(4096, reference.nbytes_code))),
]  # fmt: skip
