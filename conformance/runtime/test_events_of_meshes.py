"""Events order the streams of a mesh on every rank, and streams of meshes that share a device (runtime spec, 12)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import D2D, D2H, H2D, MeshSession, meshed, opened
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.chapters.runtime.kit.schedules import seeded, under_seeds
from tessera_conformance.chapters.runtime.kit.stream_fixture import Program, StreamFixture, by_copies, by_launches
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned


def on_every_rank(stream: StreamFixture) -> list[int]:
    """Each rank of the one stream makes a number of its own, which the same rank of the other takes."""
    x, y, other = stream.zeros(), stream.zeros(), stream.another_stream()
    for rank in range(stream.ranks):
        stream.poke(rank, x, stream.tensor(rank))
    stream.digit(1, x)
    stream.digit(2, x)
    other.wait_stream(stream)
    other.move(x, y)
    other.synchronize()
    return other.numbers(y)


def handed_over(stream: StreamFixture) -> int:
    """One stream makes 12; another waits, takes it and appends a digit."""
    x, y, other = stream.zeros(), stream.zeros(), stream.another_stream()
    stream.hold_up()
    stream.digit(1, x)
    stream.digit(2, x)
    other.wait_stream(stream)
    other.move(x, y)
    other.digit(3, y)
    return other.number(y)


def over_a_collective(stream: StreamFixture) -> int:
    """A sum over the ranks, an event, and its use on another stream."""
    x, y, other = stream.full(2), stream.zeros(), stream.another_stream()
    stream.hold_up()
    stream.sum_of_ranks(x)
    other.wait_stream(stream)
    other.move(x, y)
    other.digit(1, y)
    return other.number(y)


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_an_event_orders_two_streams_of_a_mesh(impl, check, ranks):
    """Copies of one stream are done when those of another, behind the event, take what they made."""
    check.equal(by_copies(impl, check).run(handed_over, ranks), 123, "what is found behind the wait")


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_an_event_stands_for_a_collective(impl, check, ranks):
    """A collective of one stream is done when another, behind the event, uses its result."""
    check.equal(by_copies(impl, check).run(over_a_collective, ranks), 20 * ranks + 1, "the sum, and a digit")


@seeded
@clause("RT-12-04", "RT-02-06")
def test_an_event_orders_two_streams_of_a_mesh_under_seeded_schedules(impl, check, block, untimed):
    """An event orders two streams on two ranks under every seed."""
    under_seeds(by_launches(impl, check), over_a_collective, 41, block, untimed, ranks=2)


@feature("rank-memory")
@clause("RT-12-04")
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_an_event_orders_two_streams_on_every_rank(impl, check, ranks):
    """Each rank finds its own number."""
    expected = [100 * rank + 12 for rank in range(ranks)]
    check.equal(by_copies(impl, check).run(on_every_rank, ranks), expected, "what each rank finds behind the wait")


@seeded
@feature("rank-memory")
@clause("RT-12-04")
def test_an_event_orders_two_streams_on_every_rank_under_seeded_schedules(impl, check, block, untimed):
    """On three ranks, whose work is not ordered among each other."""
    under_seeds(by_launches(impl, check), on_every_rank, [12, 112, 212], block, untimed, ranks=3)


def between_meshes(own: int, others: int) -> Program:
    """The event of a stream on a mesh of some devices is waited for on another mesh that shares device 0."""

    def program(stream: StreamFixture) -> list[int]:
        ids = devices_of(stream.impl, stream.check, max(own, others))
        meshes = [meshed(stream.impl, stream.check, stream.context, ids[:count]) for count in (own, others)]
        one, two = (stream.beside(mesh) for mesh in meshes)
        x, y = one.zeros(), one.zeros()
        one.digit(1, x)
        one.digit(2, x)
        two.wait_stream(one)
        if others <= own:
            two.digit(3, x)
        one.wait_stream(two)
        one.move(x, y)
        actual = one.number(y)
        two.synchronize()
        two.close_mesh()
        one.close_mesh()
        return [actual, 0]

    return program


def judge_foreign_memory(session: MeshSession, ids: list[int]) -> None:
    """End the case where a stream of another mesh, of these devices, copies no memory of a session's mesh."""
    source, target = session.upload(bytes(8)), session.allocate(8)
    session.synchronize()
    other = meshed(session.impl, session.check, session.context, ids)
    whole = {"dst": target, "src": source, "bytes": 8, "kind": D2D, "stream": other.stream}
    refusal = rejected(other.attempt("tessMemcpyAsync", **whole), "TESS_ERR_INVALID_VALUE")
    session.check.reading("AMB-RT-185", "TESS_ERR_INVALID_VALUE", refusal)
    other.close_mesh()
    session.close()


MESHES = {"the same": (1, 1, 123), "a part": (2, 1, 123), "a larger one": (1, 2, 12)}


@clause("RT-12-03")
@pytest.mark.parametrize(("own", "others", "wanted"), MESHES.values(), ids=MESHES)
def test_an_event_orders_streams_of_meshes_that_share_a_device(impl, check, own, others, wanted):
    """The same device is enough (AMB-RT-49, AMB-RT-185); the work behind the wait is on the device that they share."""
    ids = devices_of(impl, check, max(own, others))
    if others <= own:
        judge_foreign_memory(opened(impl, check, own), ids[:others])
    check.equal(by_copies(impl, check).run(between_meshes(own, others)), [wanted, 0], "what is found behind both waits")


@seeded
@clause("RT-12-03")
def test_an_event_orders_streams_of_two_meshes_under_seeded_schedules(impl, check, block, untimed):
    """An event orders the streams of two meshes over one device under every seed."""
    under_seeds(by_launches(impl, check), between_meshes(1, 1), [123, 0], block, untimed)


@clause("RT-12-03", "RT-12-04")
def test_a_wait_on_a_mesh_without_common_devices_is_refused(impl, check):
    """TESS_ERR_INVALID_VALUE (AMB-RT-49); the stream still takes work, and so does a mesh that has the device too.

    Where the wait is accepted, what the first stream leaves in host memory is there behind it.
    """
    runner = by_copies(impl, check)
    first, second = devices_of(impl, check, 2)
    one, two, both = (meshed(impl, check, runner.context, ids) for ids in ([first], [second], [first, second]))
    source, sink, event = runner.on(one), runner.on(two), one.event()
    number, taken, host = source.full(7), sink.zeros(), source.host_tensor()
    source.hold_up()
    source.copy_tensor(host, number, D2H)
    one.record(event)
    answer = two.attempt("tessStreamWaitEvent", stream=two.stream, event=event)
    if isinstance(answer, Returned):
        sink.copy_tensor(taken, host, H2D)
        check.equal(sink.number(taken), 7, "what a copy finds behind the wait that was accepted")
        check.reading("AMB-RT-49", "a wait on a mesh that shares no device orders the two", condition=True)
    check.status(answer, "TESS_ERR_INVALID_VALUE")
    both.wait(event)
    both.synchronize()
    sink.digit(4, taken)
    check.equal(sink.number(taken), 4, "what the stream did after its wait was refused")
