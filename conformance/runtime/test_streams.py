"""The lifetimes of streams and events (runtime specification, 4.3)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.calls import legal_call
from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, D2D, opened
from tessera_conformance.chapters.runtime.kit.readings import ended_while_busy, has_arrived
from tessera_conformance.marks import clause

PRIORITIES = (0, 1, -1, 5, -100, (1 << 31) - 1, -(1 << 31))


@clause("RT-04.3-11")
@pytest.mark.parametrize("priority", PRIORITIES)
def test_a_new_stream_accepts_work(impl, check, priority):
    """Copies to, on and from the device, and events, whatever its priority (AMB-RT-63)."""
    session = opened(impl, check).another_stream(priority)
    check.true(session.stream != 0, "the stream is not NULL", session.stream)
    data = elements("int32", *range(COUNT))
    source, target = session.upload(data), session.allocate(BYTES)
    session.copy(target, source, BYTES, D2D)
    session.record(session.event())
    check.equal(session.download(target, BYTES).hex(), data.hex(), "what copies on it brought")


@clause("RT-04.3-11")
@pytest.mark.parametrize(
    "function", ["tessLaunch", "tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast"]
)
def test_a_new_stream_accepts_work_of_every_kind(impl, check, function):
    """Launches and collectives, and what they were given is as they leave it."""
    session = opened(impl, check).another_stream()
    session.ask(function, **legal_call(session, function))
    session.synchronize()


@clause("RT-04.3-11")
def test_a_new_stream_runs_what_is_launched_on_it(impl, check):
    """The values that the kernel wrote are read back."""
    session = opened(impl, check).another_stream()
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    session.launch(kernel, packed(("int32", 9), ("ptr", pointer)))
    check.equal(session.integers(pointer), [9] * COUNT, "what a kernel on it wrote")


@clause("RT-04.3-11")
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_a_mesh_has_as_many_streams_as_are_asked_for(impl, check, ranks):
    """Each has a handle of its own, and takes its own work (AMB-RT-37)."""
    session = opened(impl, check, ranks=ranks)
    streams = [session.another_stream() for _ in range(16)]
    check.equal(len({stream.stream for stream in (session, *streams)}), 17, "the number of handles")
    pointers = [stream.allocate(BYTES) for stream in streams]
    for value, (queue, pointer) in enumerate(zip(streams, pointers, strict=True)):
        queue.write(pointer, elements("int32", *[value] * COUNT))
    for value, (queue, pointer) in enumerate(zip(streams, pointers, strict=True)):
        check.equal(queue.integers(pointer), [value] * COUNT, f"the work of stream {value}")


@clause("RT-04.3-11")
def test_each_of_many_streams_takes_work(impl, check):
    """A hundred on one device: the first, the last and those between run what is launched on them (AMB-RT-37)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.upload(bytes(100 * BYTES))
    streams = [session.another_stream() for _ in range(100)]
    for place, stream in enumerate(streams):
        stream.launch(kernel, packed(("int32", place), ("ptr", pointer + place * BYTES)))
    for stream in streams:
        stream.synchronize()
    actual = values_of("int32", session.download(pointer, 100 * BYTES))[::COUNT]
    check.equal(actual, list(range(100)), "what each stream's launch left")


@clause("RT-04.3-12")
@pytest.mark.parametrize("worked", [False, True], ids=["unused", "synchronized"])
def test_an_idle_stream_can_be_destroyed(impl, check, worked):
    """One that never had work, and one whose work is done; the others of the mesh go on."""
    session = opened(impl, check)
    data = elements("int32", *range(COUNT))
    pointer = session.upload(data)
    for stream in [session.another_stream() for _ in range(3)]:
        if worked:
            stream.copy(stream.allocate(BYTES), stream.upload(data), BYTES, D2D)
            stream.synchronize()
        check.equal(stream.ask("tessStreamDestroy", stream=stream.stream), {}, "no outputs")
    check.equal(session.download(pointer, BYTES).hex(), data.hex(), "what another stream copies")


@clause("RT-04.3-12")
def test_destroying_a_stream_lets_queued_work_finish(impl, check):
    """A copy on the device and one back to the host are done when tessStreamDestroy returns (AMB-RT-50)."""
    session = opened(impl, check)
    other = session.another_stream()
    data = elements("int32", *[45] * COUNT)
    target = other.round_trip(data)
    ended_while_busy(other, "tessStreamDestroy", stream=other.stream)
    has_arrived(session, target, data)


@clause("RT-04.3-13")
def test_a_new_event_can_be_recorded(impl, check):
    """Once and again, on any stream, and waited for by another (AMB-RT-49)."""
    session = opened(impl, check)
    events = [session.event() for _ in range(4)]
    check.equal(len({0, *events}), 5, "each event has a handle of its own, and none is NULL")
    other = session.another_stream()
    for event in (*events, *events):
        session.record(event)
        other.wait(event)
        other.record(event)
    session.synchronize()
    other.synchronize()


@clause("RT-04.3-13")
def test_an_event_belongs_to_no_mesh(impl, check):
    """tessEventCreate needs a context and no mesh (AMB-RT-07)."""
    check.returns(impl.runtime.tessInit())
    event = check.returns(impl.runtime.tessEventCreate(), "tessEventCreate succeeds without a mesh")["event"]
    session = opened(impl, check)
    session.record(event)
    session.synchronize()


@clause("RT-04.3-13")
def test_each_of_many_events_keeps_its_place(impl, check):
    """One stream records 200 events, each after a launch; a wait for one of them is over after its launch."""
    session = opened(impl, check)
    other, kernel, pointer = session.another_stream(), session.kernel("fill"), session.upload(bytes(200 * BYTES))
    events = [session.event() for _ in range(200)]
    check.equal(len({0, *events}), 201, "each event has a handle of its own, and none is NULL")
    for place, event in enumerate(events):
        session.launch(kernel, packed(("int32", place + 1), ("ptr", pointer + place * BYTES)))
        session.record(event)
    for place in (0, 199, 100, 1):
        other.wait(events[place])
        check.equal(other.integers(pointer + place * BYTES), [place + 1] * COUNT, f"the launch before event {place}")
    session.synchronize()


@clause("RT-04.3-14")
@pytest.mark.parametrize("life", ["unused", "recorded", "waited for"])
def test_an_event_can_be_destroyed(impl, check, life):
    """One that was never recorded, one that was, and one that another stream has waited for."""
    session = opened(impl, check)
    event = session.event()
    if life != "unused":
        session.record(event)
    if life == "waited for":
        other = session.another_stream()
        other.wait(event)
        other.synchronize()
    session.synchronize()
    check.equal(session.ask("tessEventDestroy", event=event), {}, "no outputs")


@clause("RT-04.3-14")
def test_destroying_an_event_leaves_others_alone(impl, check):
    """Another event, recorded on the same stream, still orders two streams."""
    session = opened(impl, check)
    source, pointer = session.upload(elements("int32", *[6] * COUNT)), session.allocate(BYTES)
    first, second = (session.event() for _ in range(2))
    session.copy(pointer, source, BYTES, D2D)
    session.record(first)
    session.record(second)
    session.synchronize()
    session.ask("tessEventDestroy", event=first)
    other = session.another_stream()
    other.wait(second)
    check.equal(other.integers(pointer), [6] * COUNT, "what was written before the event")
    session.ask("tessEventDestroy", event=second)
