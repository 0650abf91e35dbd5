"""Several streams whose work fails: each reports its own error, and no other stream does (runtime spec, 6 and 7).

What is reported of a stream is the first error of its own work, once, by its next synchronization (AMB-RT-14).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from tempfile import TemporaryDirectory

import pytest

from tessera_conformance.chapters.runtime.kit.collectives import done
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    D2D,
    DTYPE_IDS,
    SUM,
    MeshSession,
    meshed,
    opened,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.chapters.runtime.kit.readings import ended_with_contents
from tessera_conformance.marks import clause, feature

LAUNCH_FAILED = "TESS_ERR_LAUNCH_FAILED"

FAILING = {"divide": 0, "index": COUNT, "steps": 0}
"""Kernels and the number that they fail with."""


def queue(session: MeshSession, module: int, *kernels: str) -> int:
    """Queue launches on one tensor, of `fill` with 5 or of a kernel that fails; gives the tensor."""
    pointer = session.upload(bytes(BYTES))
    for name in kernels:
        value = FAILING.get(name, 5)
        session.launch(session.kernel_of(module, name), packed(("int32", value), ("ptr", pointer)))
    return pointer


STREAMS = {"divided": ("divide",), "indexed": ("fill", "index", "index"), "good": ("fill", "fill")}
"""The work of three streams of a mesh."""


@clause("RT-07-07", "RT-06-06")
@pytest.mark.parametrize("order", list(permutations(STREAMS)), ids="-".join)
def test_each_stream_reports_its_own_error(impl, check, order):
    """Two of three streams fail, all are synchronized in some order: two errors, each once, one success (AMB-RT-14)."""
    session = opened(impl, check)
    module = session.load()
    streams = {name: session.another_stream() for name in STREAMS}
    pointers = {name: queue(streams[name], module, *kernels) for name, kernels in STREAMS.items()}
    for name in order:
        if name == "good":
            check.equal(streams[name].integers(pointers[name]), [5] * COUNT, "what the stream without errors left")
        else:
            streams[name].reports(LAUNCH_FAILED)
    for name in reversed(order):
        streams[name].synchronize()


@clause("RT-07-07", "RT-06-06")
@pytest.mark.parametrize("reports_first", [0, 1, 2])
def test_an_error_that_was_reported_leaves_those_of_other_streams(impl, check, reports_first):
    """Three streams fail; one reports and fails again, and every other error is still there, once (AMB-RT-14)."""
    session = opened(impl, check)
    module = session.load()
    streams = [session.another_stream() for _ in FAILING]
    for stream, kernel in zip(streams, FAILING, strict=True):
        queue(stream, module, kernel)
    first = streams[reports_first]
    first.reports(LAUNCH_FAILED)
    first.synchronize()
    queue(first, module, "divide")
    others = [other for other in streams if other is not first]
    for stream in (*others, first):
        stream.reports(LAUNCH_FAILED)
    for stream in streams:
        stream.synchronize()


@clause("RT-07-07")
@pytest.mark.parametrize("first", [0, 1])
def test_streams_of_several_meshes_report_their_own_errors(impl, check, first):
    """Two meshes of one context over one device, and one of another context: two fail, one does not (AMB-RT-14)."""
    session = opened(impl, check)
    ids = devices_of(impl, check, 1)
    beside, apart = meshed(impl, check, session.context, ids), opened(impl, check)
    for owner in (session, beside):
        queue(owner, owner.load(), "fill", "divide")
    pointer = queue(apart, apart.load(), "fill")
    check.equal(apart.integers(pointer), [5] * COUNT, "what the other context's stream left")
    for owner in ((session, beside), (beside, session))[first]:
        owner.reports(LAUNCH_FAILED)
    for owner in (session, beside, apart):
        owner.synchronize()


@clause("RT-07-07")
@pytest.mark.parametrize("waits", [1, 2])
def test_an_error_does_not_travel_along_an_event(impl, check, waits):
    """A stream that waits for one that failed has no error of its own to report, nor has the next (AMB-RT-14)."""
    session = opened(impl, check)
    module = session.load()
    queue(session, module, "divide")
    last = session
    for _ in range(waits):
        other = session.another_stream()
        other.wait_stream(last)
        last = other
    pointer = queue(last, module, "fill")
    check.equal(last.integers(pointer), [5] * COUNT, "what the stream behind the event left")
    session.reports(LAUNCH_FAILED)
    session.synchronize()
    last.synchronize()


MEANWHILE = {
    "nothing": (),
    "another stream waits for it": ("another",),
    "more work": ("fill", "fill"),
    "another stream, then more work": ("another", "fill", "fill"),
    "another stream, then a copy": ("another", "copy"),
    "another stream, then an event": ("another", "event"),
}
"""The calls between a failure and the synchronization of its stream."""


@clause("RT-07-07", "RT-06-06")
@pytest.mark.parametrize("steps", MEANWHILE.values(), ids=MEANWHILE)
def test_an_error_is_kept_until_its_stream_is_synchronized(impl, check, steps):
    """Another stream may have waited for the work that failed, and more may follow on its own (AMB-RT-14).

    The calls that follow succeed, or are refused where errors stay.
    """
    session = opened(impl, check)
    module = session.load()
    fill, pointer, spare = session.kernel_of(module, "fill"), queue(session, module, "divide"), session.allocate(BYTES)
    copied = {"dst": spare, "src": pointer, "bytes": BYTES, "kind": D2D, "stream": session.stream}
    for step in steps:
        if step == "another":
            other = session.another_stream()
            other.wait_stream(session)
            other.synchronize()
        elif step == "fill":
            session.launching(fill, packed(("int32", 5), ("ptr", spare)))
        elif step == "copy":
            session.attempt("tessMemcpyAsync", **copied)
        else:
            session.attempt("tessEventRecord", event=session.event(), stream=session.stream)
    session.reports(LAUNCH_FAILED)
    session.synchronize()


QUOTIENT = "module m { kernel quotient(v: int32, x: tensor<8xint32>, y: tensor<8xint32>) { y = 12 / (x - v); } }"
OWN = 8
"""The elements of the tensors of `quotient`."""


@clause("RT-07-07", "RT-06-06", "RT-12-04")
@pytest.mark.parametrize("ranks", [2, 4])
def test_an_error_of_one_rank_is_an_error_of_the_stream(impl, check, ranks):
    """Each rank by turns: a kernel divides by zero where a reduce-scatter has left that rank's share (AMB-RT-04).

    What the other ranks have there is not asserted, so that they may fail too.
    """
    session = opened(impl, check, ranks=ranks)
    kernel, share = session.kernel("quotient", QUOTIENT), OWN // ranks
    for failing in range(ranks):
        stream = session.another_stream()
        x, y = stream.upload(elements("int32", *(3 + place // share for place in range(OWN)))), stream.allocate(4 * OWN)
        done(stream, "reduce_scatter", x, OWN, "int32", op=SUM, axis="dp")
        stream.launch(kernel, packed(("int32", ranks * (3 + failing)), ("ptr", x), ("ptr", y)))
        stream.reports(LAUNCH_FAILED)
        stream.synchronize()


@clause("RT-07-07")
def test_a_stream_that_is_destroyed_leaves_the_errors_of_others(impl, check):
    """One of two failed streams is destroyed without a synchronization; the other one still reports (AMB-RT-14)."""
    session = opened(impl, check)
    module = session.load()
    gone, good = session.another_stream(), session.another_stream()
    for stream in (session, gone):
        queue(stream, module, "divide")
    gone.ask("tessStreamDestroy", stream=gone.stream)
    good.synchronize()
    session.reports(LAUNCH_FAILED)
    session.synchronize()
    session.another_stream().synchronize()


def profiled(session: MeshSession) -> None:
    """Start a profiler of the context, and stop it."""
    profiler = session.ask("tessProfilerStart", context=session.context)["profiler"]
    with TemporaryDirectory() as folder:
        session.ask("tessProfilerStop", profiler=profiler, outJsonPath=f"{folder}/trace.json")


ENDED: dict[str, Callable[[MeshSession, MeshSession, MeshSession], object]] = {
    "a mesh": lambda session, beside, apart: ended_with_contents(beside, "tessMeshDestroy", mesh=beside.mesh),
    "a context": lambda session, beside, apart: ended_with_contents(apart, "tessShutdown", context=apart.context),
    "an event": lambda session, beside, apart: session.ask("tessEventDestroy", event=session.event()),
    "a profile": lambda session, beside, apart: profiled(session),
}
"""The ends of other objects, by the session that fails, one of another mesh, and one of another context."""


@clause("RT-07-07")
@pytest.mark.parametrize("end", ENDED.values(), ids=ENDED)
def test_the_end_of_something_else_leaves_an_error(impl, check, end):
    """A mesh, a context, an event or a profile ends before the failed stream reports (AMB-RT-14)."""
    session, apart = two_contexts(impl, check)
    beside = meshed(impl, check, session.context, devices_of(impl, check, 1))
    for owner in (beside, apart, session):
        queue(owner, owner.load(), "divide" if owner is session else "fill")
    beside.synchronize()
    apart.synchronize()
    end(session, beside, apart)
    session.reports(LAUNCH_FAILED)
    session.synchronize()


# Different errors


@feature("per-rank-issue")
@clause("RT-07-07", "RT-07-08", "RT-07-09")
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=lambda order: "".join(map(str, order)))
def test_streams_report_errors_of_different_kinds(impl, check, order):
    """A failed launch, ranks that issue other counts, and other seeds: each status on its own stream (AMB-RT-14)."""
    session = opened(impl, check, ranks=2)
    module = session.load()
    streams = [session, session.another_stream(), session.another_stream()]
    pointer = session.upload(bytes(BYTES))
    session.synchronize()
    queue(streams[0], module, "divide")
    for rank in range(2):
        issue(streams[1], rank, pointer, count=4 + rank)
        issue(streams[2], rank, pointer, count=4, descriptor={"seed": rank})
    statuses = [LAUNCH_FAILED, "TESS_ERR_COLLECTIVE_MISMATCH", "TESS_ERR_DETERMINISM_VIOLATION"]
    for number in order:
        streams[number].reports(statuses[number])
    for stream in streams:
        stream.synchronize()


def issue(session: MeshSession, rank: int, buffer: int, **arguments: object) -> None:
    """A sum of one rank."""
    whole = {"collective": "all_reduce", "dtype": DTYPE_IDS["int32"], "op": SUM, "axis": "dp", "buffer": buffer}
    session.ask("tessxIssue", mesh=session.mesh, rank=rank, stream=session.stream, **whole, **arguments)
