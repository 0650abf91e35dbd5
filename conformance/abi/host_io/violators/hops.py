"""Traces that lack hops or name others, and latencies computed from something else (D3, D5 to D7, Verification)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.host_io import endpoint as timeline
from tessera_reference.host_io import launches
from tessera_reference.host_io import machine as latency
from tessera_reference.host_io.endpoint import Answered, Endpoint, Journal
from tessera_reference.host_io.machine import CONTROL, Branch, Component, Hop, Journey, Machine, Place, Trace
from tessera_reference.host_io.messages import KernelLaunch, MemoryRead, MemoryWrite

from .message_changes import changed

_traced = latency.traced
_get = Journal.get
_run = Endpoint._run
_read = Endpoint._read
_code = launches._code
_timeline = timeline.timeline

TYPES = {
    "HIO-Verification-03": MemoryWrite,
    "HIO-Verification-04": MemoryRead,
    "HIO-Verification-05": KernelLaunch,
}


def tracing(clause: str, name: str, description: str, change: Callable[[Any, Trace], Trace]) -> Violation:
    """Return a violation that changes the trace of a request."""
    return changed(
        clause,
        name,
        description,
        ("adapter.host_io.traced", lambda asked: change(asked.request, _traced(asked.journey))),
        ("host_io.endpoint.Journal.get", lambda self, pair: _asked(_get(self, pair))),
    )


def _asked(answered: Answered | None) -> Any:
    """Return an answered request whose journey includes its request."""
    return None if answered is None else answered._replace(journey=answered)  # type: ignore[arg-type]


def timed(steps: Any) -> tuple[Hop, ...]:
    """Return the same components one after the other, without gaps."""
    return tuple(latency._timed(((step.component, step.place, step.bytes) for step in steps), 0))


def of_type(kind: Any, change: Callable[[Trace], Trace]) -> Callable[[Any, Trace], Trace]:
    """Return a change of the traces of requests of one type alone."""
    return lambda request, trace: change(trace) if isinstance(request, kind) else trace


def without(name: str, place: int = 0) -> Callable[[Trace], Trace]:
    """Return a change that removes one of the hops at a component: the first, or the last with -1."""

    def change(trace: Trace) -> Trace:
        found = [number for number, hop in enumerate(trace.path) if hop.component == name]
        left = [hop for number, hop in enumerate(trace.path) if not found or number != found[place]]
        return replace(trace, path=timed(left))

    return change


def without_all(name: str) -> Callable[[Trace], Trace]:
    """Return a change that removes a component from a trace."""
    return lambda trace: replace(trace, path=timed(hop for hop in trace.path if hop.component != name))


def reordered(trace: Trace) -> Trace:
    """Return a trace that passes m_cpu before noc."""
    names = {"noc": "m_cpu", "m_cpu": "noc"}
    path = timed(replace(hop, component=names.get(hop.component, hop.component)) for hop in trace.path)
    return replace(trace, path=path)


def shifted(trace: Trace) -> Trace:
    later = [replace(hop, start=hop.start + 1, end=hop.end + 1) for hop in trace.path[1:]]
    return replace(trace, path=(trace.path[0], *later))


TRACES = [
    *(
        violation
        for clause, kind in TYPES.items()
        for violation in (
            tracing(
                clause, f"{kind.__name__}_without_pe_cpu", "never passes pe_cpu", of_type(kind, without_all("pe_cpu"))
            ),
            tracing(
                clause, f"{kind.__name__}_without_last_hop", "lacks the last hop", of_type(kind, without("host", -1))
            ),
            tracing(clause, f"{kind.__name__}_in_another_order", "passes m_cpu before noc", of_type(kind, reordered)),
        )
    ),
    tracing("HIO-D7-34", "twice_the_endpoint", "launches pass pcie_ep twice", of_type(KernelLaunch,
        lambda trace: replace(trace, path=timed([*trace.path[:2], trace.path[1], *trace.path[2:]])))),
    tracing("HIO-D7-35", "no_branches", "tells one branch alone", lambda request, trace: replace(trace, branches=())),
    tracing("HIO-D7-35", "late_branches", "branches begin before the launch is sent",
        lambda request, trace: replace(trace,
        branches=tuple(replace(branch, start=branch.start - 1, end=branch.end - 1) for branch in trace.branches))),
    tracing("HIO-Context-06", "places_by_address", "hops name the first PE", lambda request, trace: replace(trace,
        path=tuple(replace(hop, place=hop.place and Place(0, 0, 0)) for hop in trace.path),
        branches=tuple(replace(branch, place=branch.place and Place(0, 0, 0)) for branch in trace.branches))),
]  # fmt: skip


def undrawn(clause: str, kind: Any) -> Violation:
    """Return a violation whose timeline omits requests of a type."""

    def drawn(machine: Any, answered: Any) -> Any:
        return _timeline(machine, [answer for answer in answered if not isinstance(answer.request, kind)])

    return changed(
        clause, f"{kind.__name__}_undrawn", f"no {kind.__name__} is drawn", ("adapter.host_io.timeline", drawn)
    )


UNDRAWN = [undrawn(clause, kind) for clause, kind in TYPES.items()]

# Time


def taking(clause: str, name: str, description: str, change: Callable[[Component, int], int]) -> Violation:
    """Return a violation in which components take another time than they report."""
    return changed(clause, name, description, ("host_io.machine.Component.takes", change))


def added(count: int) -> Callable[..., Any]:
    """Return a method whose latency exceeds the sum of its hops."""

    def trace(self: ReferenceAdapter, *, correlation_id: str, request_id: str) -> Any:
        answer = _trace(self, correlation_id=correlation_id, request_id=request_id)
        return {**answer, "latency": max(0, answer["latency"] + count)}

    return trace


_trace = ReferenceAdapter.host_io_trace


def longer(clause: str, name: str, description: str, extra: Callable[[Endpoint, Any], int]) -> Violation:
    """Return a violation in which requests are longer messages than they should be."""

    def run(self: Endpoint, request: Any, pair: Any, characters: int) -> Any:
        pending = _run(self, request, pair, characters)
        journey = pending.answered.journey
        other = replace(journey, there=journey.there + extra(self, request))
        return replace(pending, answered=pending.answered._replace(journey=other))

    return changed(clause, name, description, ("host_io.endpoint.Endpoint._run", run))


def member(name: str, kind: Any = object) -> Callable[[Endpoint, Any], int]:
    """Return the number of characters of a member as its number of bytes."""

    def extra(self: Endpoint, request: Any) -> int:
        given = getattr(request, name, None)
        return 0 if given is None or not isinstance(request, kind) else len(str(given))

    return extra


TIMES = [
    changed("HIO-D5-26", "one_picosecond_more", "the latency is a picosecond more than its hops",
        ("adapter.ReferenceAdapter.host_io_trace", added(1))),
    taking("HIO-Verification-06", "hardly_any_time", "a hop takes a picosecond", lambda self, count: 1),
    taking("HIO-D5-26", "rounded_down", "the time of bytes is rounded down",
        lambda self, count: self.fixed + (0 if self.bandwidth is None else count * 10**12 // self.bandwidth)),
    longer("HIO-D5-26", "contention", "each request that waits makes the next longer",
        lambda self, request: len(self.waiting)),
    longer("HIO-Verification-06", "queue_in_latency", "requests take longer while others wait",
        lambda self, request: 64 * len(self.waiting)),
    longer("HIO-D3-09", "tag_takes_time", "a timestamp_tag takes time", member("timestamp_tag")),
    longer("HIO-D5-24", "label_of_write_takes_time", "the label of a write takes time",
        member("debug_label", MemoryWrite)),
    longer("HIO-D6-10", "label_of_read_takes_time", "the label of a read takes time",
        member("debug_label", MemoryRead)),
    longer("HIO-D7-32", "label_of_launch_takes_time", "the label of a launch takes time",
        member("debug_label", KernelLaunch)),
    longer("HIO-D7-28", "grid_takes_time", "a grid takes time", member("grid")),
    longer("HIO-D7-29", "meta_takes_time", "a meta takes time", member("meta")),
]  # fmt: skip


def free_of_bytes(kind: Any) -> Callable[..., Any]:
    """Return a run in which requests of a type take the time of no bytes at memory and on the way back."""

    def run(self: Endpoint, request: Any, pair: Any, characters: int) -> Any:
        pending = _run(self, request, pair, characters)
        if not isinstance(request, kind):
            return pending
        journey = pending.answered.journey
        other = replace(journey, back=CONTROL, branches=tuple(branch._replace(memory=1) for branch in journey.branches))
        return replace(pending, answered=pending.answered._replace(journey=other))

    return run


def dropped_at_once(self: Endpoint, read: MemoryRead) -> Any:
    journey, failure, sunk = _read(self, read)
    if read.dst_kind == "discard" and failure is None:
        journey = Journey(branches=tuple(branch._replace(memory=1) for branch in journey.branches))
    return journey, failure, sunk


def first_to_end(journey: Journey) -> Trace:
    if len(journey.branches) < 2:
        return _traced(journey)
    ordered = sorted(journey.branches, key=lambda branch: branch.memory or 0)
    return _traced(replace(journey, branches=tuple(ordered[:1])))


def only_those_that_work(machine: Machine, request: KernelLaunch) -> Any:
    journey, failure = _launch(machine, request)
    return replace(
        journey, branches=tuple(branch for branch in journey.branches if branch.place not in machine.failing)
    ), failure


_launch = launches.launch
BYTES = [
    changed("HIO-D5-07", "bytes_of_writes_free", "the bytes of a write take no time",
        ("host_io.endpoint.Endpoint._run", free_of_bytes(MemoryWrite))),
    changed("HIO-D6-07", "bytes_of_reads_free", "the bytes of a read take no time",
        ("host_io.endpoint.Endpoint._run", free_of_bytes(MemoryRead))),
    changed("HIO-D7-23", "bytes_of_shards_free", "the bytes of shards take no time",
        ("host_io.endpoint.Endpoint._run", free_of_bytes(KernelLaunch))),
    changed("HIO-D6-14", "dropped_at_once", "a read that is dropped passes no bytes",
        ("host_io.endpoint.Endpoint._read", dropped_at_once)),
    changed("HIO-D7-45", "binary_of_64_bytes", "every binary takes the time of 64 bytes",
        ("host_io.launches._code", lambda reference: (found := _code(reference)) and found._replace(memory=64))),
    changed("HIO-D7-45", "builtin_fetched", "a built-in kernel has a binary that takes time",
        ("host_io.launches._code", lambda reference: Branch(Place(0, 0, 0), reference.nbytes_code))),
    changed("HIO-D7-12", "size_in_kibibytes", "of nbytes_code whole KiB count", ("host_io.launches._code",
        lambda reference: (found := _code(reference)) and found._replace(memory=min(4096, reference.nbytes_code)))),
    changed("HIO-D7-35", "fastest_shard", "the answer does not wait for the slowest shard",
        ("adapter.host_io.traced", first_to_end)),
    changed("HIO-D7-44", "no_hops_of_failures", "shards that fail have no hops",
        ("host_io.endpoint.launch", only_those_that_work)),
    changed("HIO-D5-30", "buffer_free", "the bytes of a buffer take no time", ("host_io.endpoint.Endpoint._run",
        lambda self, request, pair, characters: _without_buffer(_run(self, request, pair, characters)))),
]  # fmt: skip


def _without_buffer(pending: Any) -> Any:
    return replace(
        pending, answered=pending.answered._replace(journey=replace(pending.answered.journey, there=CONTROL))
    )
