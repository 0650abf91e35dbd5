"""The contents of a profiler's trace (runtime specification, 17; AMB-RT-164)."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    D2D,
    D2H,
    H2D,
    devices,
    meshed,
    opened,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.traces import PHASES, number, overlapping, slices, started, stopped
from tessera_conformance.marks import clause

TIMES = [
    pytest.param("enqueue", marks=clause("RT-17-01")),
    pytest.param("start", marks=clause("RT-17-04")),
    pytest.param("stop", marks=clause("RT-17-05")),
]
NANOSECOND = 1.0
"""By which a time in nanoseconds may differ from one in microseconds, which is rounded."""


def traced_work(impl, check, path, ranks=1):
    """The trace of copies, launches and collectives on two streams, which an event joins."""
    session = opened(impl, check, ranks)
    other = session.another_stream()
    kernel, quiet = session.kernel("fill"), session.kernel("nothing")
    first, second = session.allocate(BYTES), session.allocate(BYTES)
    profiler = started(session)
    source, target = session.host(bytes(BYTES)), session.host(bytes(BYTES))
    for on, pointer in ((session, first), (other, second)):
        on.copy(pointer, source, BYTES, H2D)
        for value in (1, 2, 3):
            on.launch(kernel, packed(("int32", value), ("ptr", pointer)))
        on.launch(quiet)
    other.wait_stream(session)
    other.copy(second, first, BYTES, D2D)
    other.all_reduce(second)
    other.copy(target, second, BYTES, D2H)
    other.synchronize()
    return stopped(session, profiler, path)


@clause("RT-17-02")
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_trace_has_the_form_of_the_chrome_format(impl, check, tmp_path, ranks):
    """Every event has a known phase; a slice has a name, a process, a thread, and numbers for time and duration."""
    events = traced_work(impl, check, tmp_path / "trace.json", ranks)
    check.equal([event for event in events if event.get("ph") not in PHASES], [], "events of an unknown phase")
    actual = slices(events)
    check.true(len(actual) >= 8, "there is a slice for each of the launches", len(actual))
    for entry in actual:
        check.true(isinstance(entry.get("name"), str), "a slice has a name", entry)
        for name in ("pid", "tid"):
            check.true(isinstance(entry.get(name), int | str), f"a slice has a {name}", entry)
        for name in ("ts", "dur"):
            value = entry.get(name)
            finite = isinstance(value, int | float) and math.isfinite(value) and value >= 0
            check.true(finite, f"{name} is a number from 0", entry)


@clause("RT-17-02")
@pytest.mark.parametrize("ranks", [1, 4])
def test_slices_of_one_track_do_not_overlap(impl, check, tmp_path, ranks):
    """One of two slices of a thread that share time is within the other: viewers cannot draw others."""
    events = traced_work(impl, check, tmp_path / "trace.json", ranks)
    check.equal(overlapping(check, events), [], "the slices that overlap")


@clause("RT-17-02")
def test_flows_have_both_ends(impl, check, tmp_path):
    """Each end of a flow has a beginning with its id, not later than the end, and a slice."""
    events = traced_work(impl, check, tmp_path / "trace.json")
    begun = {event.get("id"): event for event in events if event.get("ph") == "s"}
    ended = [event for event in events if event.get("ph") == "f"]
    check.true(len(ended) >= len(begun), "no flow has a beginning alone", (len(begun), len(ended)))
    for flow in ended:
        check.true(flow.get("id") in begun, "the flow has a beginning", flow)
        check.true(begun[flow["id"]]["ts"] <= flow["ts"], "the flow begins before it ends", flow)
    for flow in (*begun.values(), *ended):
        around = [
            one
            for one in slices(events)
            if (one["pid"], one["tid"]) == (flow["pid"], flow["tid"])
            and one["ts"] - 0.001 <= flow["ts"] <= one["ts"] + one["dur"] + 0.001
        ]
        check.true(bool(around), "an end of a flow lies on a slice", flow)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("what", ["fill", "nothing", "h2d", "all_reduce"])
def test_work_was_enqueued_before_it_started_and_stopped(impl, check, tmp_path, time, what):
    """Three times in nanoseconds, in that order; those of the slice agree with them."""
    events = traced_work(impl, check, tmp_path / "trace.json")
    kinds = {"h2d": "copy", "all_reduce": "collective"}
    actual = slices(events, kinds.get(what, what))
    check.true(
        len(actual) >= {"fill": 6, "nothing": 2, "h2d": 4, "all_reduce": 1}[what], f"the slices of {what}", len(actual)
    )
    for event in actual:
        enqueue, start, stop = (number(check, event.get("args", {}), name) for name in ("enqueue", "start", "stop"))
        if time == "enqueue":
            check.true(0 <= enqueue <= start, "enqueued before it started", (enqueue, start))
        elif time == "start":
            check.true(start <= stop, "started before it stopped", (start, stop))
            check.true(
                abs(start - 1000 * event["ts"]) <= NANOSECOND, "start is that of the slice", (start, event["ts"])
            )
        else:
            end = 1000 * (event["ts"] + event["dur"])
            check.true(abs(stop - end) <= NANOSECOND, "stop is that of the slice", (stop, end))


@pytest.mark.parametrize("time", TIMES)
def test_the_times_of_a_stream_keep_its_order(impl, check, tmp_path, time):
    """Launches of five kernels on one stream: each is enqueued after, and starts when the one before has stopped."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    profiler = started(session)
    for value in range(5):
        session.launch(kernel, packed(("int32", value), ("ptr", pointer)))
    session.synchronize()
    actual = slices(stopped(session, profiler, tmp_path / "trace.json"), "fill")
    check.equal(len(actual), 5, "the number of slices of five launches on one rank")
    times = [{name: number(check, event["args"], name) for name in ("enqueue", "start", "stop")} for event in actual]
    for first, second in pairwise(times):
        if time == "enqueue":
            check.true(first["enqueue"] <= second["enqueue"], "enqueued in order", (first, second))
        elif time == "start":
            check.true(first["start"] < second["start"], "started in order", (first, second))
        else:
            check.true(first["stop"] <= second["start"], "stopped before the next started", (first, second))


@clause("RT-17-01", "RT-17-04", "RT-17-05")
def test_a_profile_holds_what_was_done_meanwhile(impl, check, tmp_path):
    """It has no launches before tessProfilerStart and none of another context."""
    session, other = two_contexts(impl, check)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    arguments = packed(("int32", 1), ("ptr", pointer))
    session.launch(kernel, arguments)
    session.synchronize()
    profiler = started(session)
    session.launch(kernel, arguments)
    other.launch(other.kernel("nothing"))
    other.synchronize()
    events = stopped(session, profiler, tmp_path / "trace.json")
    check.equal(len(slices(events, "fill")), 1, "the launches since the start")
    check.equal(len(slices(events, "nothing")), 0, "the launches of another context")


@clause("RT-17-01", "RT-17-04", "RT-04.8-05")
@pytest.mark.parametrize("before", [False, True], ids=["made afterwards", "made before"])
def test_a_profile_holds_the_work_of_every_mesh_and_stream(impl, check, tmp_path, before):
    """Two meshes of the context with two streams each, made before the profiler was started or afterwards."""
    session = opened(impl, check)
    names = [("fill", "nothing"), ("divide", "digit")]
    meshes = []
    profiler = None if before else started(session)
    for _ in names:
        mesh = meshed(impl, check, session.context, devices(impl, check, 1))
        meshes.append((mesh, mesh.another_stream()))
    profiler = started(session) if profiler is None else profiler
    for pair, streams in zip(names, meshes, strict=True):
        for name, stream in zip(pair, streams, strict=True):
            arguments = () if name == "nothing" else (("int32", 3), ("ptr", stream.upload(bytes(BYTES))))
            stream.launch(stream.kernel(name), packed(*arguments))
            stream.synchronize()
    events = stopped(session, profiler, tmp_path / "trace.json")
    for name in (name for pair in names for name in pair):
        check.true(len(slices(events, name)) > 0, f"there is a slice of {name}", len(events))


@clause("RT-17-04", "RT-04.8-05")
def test_a_later_profiler_of_a_context_profiles_too(impl, check, tmp_path):
    """It records the work between its start and its stop, and nothing of the first profile."""
    session = opened(impl, check)
    for name in ("nothing", "fill"):
        arguments = packed(("int32", 1), ("ptr", session.allocate(BYTES))) if name == "fill" else b""
        kernel, profiler = session.kernel(name), started(session)
        session.launch(kernel, arguments)
        session.synchronize()
        events = stopped(session, profiler, tmp_path / f"{name}.json")
        actual = [len(slices(events, kind)) for kind in ("nothing", "fill")]
        check.equal(actual, [int(name == kernel) for kernel in ("nothing", "fill")], "the launches of each kernel")


@clause("RT-17-06")
@pytest.mark.parametrize("kind", ["h2d", "d2h", "d2d"])
@pytest.mark.parametrize("size", [BYTES, 1 << 20])
def test_a_copy_has_its_bandwidth(impl, check, tmp_path, kind, size):
    """Bytes a second: what was copied, over the time from start to stop."""
    session = opened(impl, check)
    device, other = session.upload(bytes(size)), session.upload(bytes(size))
    host = session.host(bytes(size))
    session.synchronize()
    profiler = started(session)
    dst, src, number_of = {"h2d": (device, host, H2D), "d2h": (host, device, D2H), "d2d": (other, device, D2D)}[kind]
    session.copy(dst, src, size, number_of)
    session.synchronize()
    actual = slices(stopped(session, profiler, tmp_path / "trace.json"), "copy")
    check.true(bool(actual), "the copy has a slice")
    for event in actual:
        names = ("bandwidth_bytes_per_second", "start", "stop")
        bandwidth, start, stop = (number(check, event["args"], name) for name in names)
        check.true(bandwidth > 0, "the bandwidth is positive", bandwidth)
        moved = bandwidth * (stop - start) / 1e9
        slack = bandwidth * NANOSECOND / 1e9 + 1e-6 * size
        check.true(abs(moved - size) <= slack, "bandwidth times duration is the size of the copy", (moved, size))


@clause("RT-17-07")
@pytest.mark.parametrize("grid", [[1, 1, 1], [16, 4, 1], [4096, 64, 1]])
def test_a_kernel_has_its_occupancy(impl, check, tmp_path, grid):
    """Above 0 and at most 1 for every launch."""
    session = opened(impl, check)
    kernel = session.kernel("nothing")
    profiler = started(session)
    session.launch(kernel, grid=grid)
    session.synchronize()
    actual = slices(stopped(session, profiler, tmp_path / "trace.json"), "nothing")
    check.equal(len(actual), 1, "the slices of one launch on one rank")
    occupancy = number(check, actual[0]["args"], "occupancy")
    check.true(0 < occupancy <= 1, "the occupancy is above 0 and at most 1", occupancy)


@clause("RT-17-07")
def test_a_kernel_has_its_occupancy_on_every_rank(impl, check, tmp_path):
    """Each slice of a launch on two ranks has one, above 0 and at most 1."""
    session = opened(impl, check, 2)
    kernel = session.kernel("nothing")
    profiler = started(session)
    session.launch(kernel)
    session.synchronize()
    actual = slices(stopped(session, profiler, tmp_path / "trace.json"), "nothing")
    occupancies = [number(check, event["args"], "occupancy") for event in actual]
    check.true(bool(actual) and all(0 < occupancy <= 1 for occupancy in occupancies), "the occupancies", occupancies)


@clause("RT-17-07")
def test_more_blocks_never_occupy_less(impl, check, tmp_path):
    """The same kernel over 1, 8, 64 and 4,096 blocks of 128 threads."""
    session = opened(impl, check)
    kernel = session.kernel("nothing")
    profiler = started(session)
    for blocks in (1, 8, 64, 4096):
        session.launch(kernel, grid=[blocks, 1, 1], block=[128, 1, 1])
    session.synchronize()
    actual = slices(stopped(session, profiler, tmp_path / "trace.json"), "nothing")
    occupancies = [number(check, event["args"], "occupancy") for event in actual]
    check.equal(occupancies, sorted(occupancies), "the occupancies, by number of blocks")
    check.true(len(occupancies) == 4 and occupancies[0] < occupancies[-1], "they are not all the same", occupancies)
