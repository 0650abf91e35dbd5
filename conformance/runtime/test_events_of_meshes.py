"""Events order the streams of a mesh on every rank, and streams of meshes that share a device (runtime spec, 12)."""

from __future__ import annotations

import pytest
from tessera_conformance.chapters.runtime.kit.arguments import elements
from tessera_conformance.chapters.runtime.kit.programs import devices as devices_of
from tessera_conformance.chapters.runtime.kit.programs import meshed
from tessera_conformance.chapters.runtime.kit.schedules import Desk, Program, seeded, under_seeds, workshop

from tessera_conformance.marks import clause, feature


def on_every_rank(desk: Desk) -> list[int]:
    """Each rank of the one stream makes a number of its own, which the same rank of the other takes."""
    x, y, other, event = desk.zeros(), desk.zeros(), desk.another(), desk.event()
    for rank in range(desk.session.ranks):
        desk.session.poke(rank, x, elements("int32", rank, rank))
    desk.digit(1, x)
    desk.digit(2, x)
    desk.record(event)
    other.wait(event)
    other.move(x, y)
    other.synchronize()
    return other.numbers(y)


def over_a_collective(desk: Desk) -> int:
    """A sum over the ranks, an event, and its use on another stream."""
    x, y, other, event = desk.holding(2), desk.zeros(), desk.another(), desk.event()
    desk.sum_of_ranks(x)
    desk.record(event)
    other.wait(event)
    other.move(x, y)
    other.digit(1, y)
    return other.number(y)


@clause("RT-12-04", "RT-02-06")
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_an_event_orders_two_streams_of_a_mesh(impl, check, ranks):
    """A collective of one stream is done when another, behind the event, uses its result."""
    check.equal(workshop(impl, check).run(over_a_collective, ranks), 20 * ranks + 1, "the sum, and a digit")


@seeded
@clause("RT-12-04", "RT-02-06")
def test_an_event_orders_two_streams_of_a_mesh_under_seeded_schedules(impl, check, block, untimed):
    """On two ranks."""
    under_seeds(workshop(impl, check), over_a_collective, 41, block, untimed, ranks=2)


@feature("rank-memory")
@clause("RT-12-04")
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_an_event_orders_two_streams_on_every_rank(impl, check, ranks):
    """Each rank finds its own number."""
    wanted = [100 * rank + 12 for rank in range(ranks)]
    check.equal(workshop(impl, check).run(on_every_rank, ranks), wanted, "what each rank finds behind the wait")


@seeded
@feature("rank-memory")
@clause("RT-12-04")
def test_an_event_orders_two_streams_on_every_rank_under_seeded_schedules(impl, check, block, untimed):
    """On three ranks, each of which goes on by itself."""
    under_seeds(workshop(impl, check), on_every_rank, [12, 112, 212], block, untimed, ranks=3)


def between_meshes(own: int, others: int) -> Program:
    """The event of a stream on a mesh of some devices is waited for on another mesh that shares device 0."""

    def program(desk: Desk) -> list[int]:
        session = desk.session
        first = meshed(session.impl, session.check, session.context, devices_of(session.impl, session.check, own))
        second = meshed(session.impl, session.check, session.context, devices_of(session.impl, session.check, others))
        one, two = Desk(first, desk.kernels), Desk(second, desk.kernels)
        x, y, event, back = one.zeros(), one.zeros(), one.event(), one.event()
        one.digit(1, x)
        one.digit(2, x)
        one.record(event)
        two.wait(event)
        if others <= own:
            two.digit(3, x)
        two.record(back)
        one.wait(back)
        one.move(x, y)
        found = one.number(y)
        two.synchronize()
        session.ask("tessMeshDestroy", mesh=second.mesh)
        session.ask("tessMeshDestroy", mesh=first.mesh)
        return [found, 0]

    return program


MESHES = {"the same": (1, 1, 123), "a part": (2, 1, 123), "a larger one": (1, 2, 12)}


@clause("RT-12-03")
@pytest.mark.parametrize(("own", "others", "wanted"), MESHES.values(), ids=MESHES)
def test_an_event_orders_streams_of_meshes_that_share_a_device(impl, check, own, others, wanted):
    """The same device is enough (AMB-RT-49); the work behind the wait is on the device that they share."""
    check.equal(workshop(impl, check).run(between_meshes(own, others)), [wanted, 0], "what is found behind both waits")


@seeded
@clause("RT-12-03")
def test_an_event_orders_streams_of_two_meshes_under_seeded_schedules(impl, check, block, untimed):
    """Two meshes over one device."""
    under_seeds(workshop(impl, check), between_meshes(1, 1), [123, 0], block, untimed)


@clause("RT-12-03", "RT-12-04")
def test_a_wait_on_a_mesh_without_common_devices_is_refused(impl, check):
    """TESS_ERR_INVALID_VALUE (AMB-RT-49); the stream still takes work, and so does a mesh that has the device too."""
    shop = workshop(impl, check)
    first, second = devices_of(impl, check, 2)
    one, two, both = (meshed(impl, check, shop.context, ids) for ids in ([first], [second], [first, second]))
    event = one.ask("tessEventCreate")["event"]
    one.ask("tessEventRecord", event=event, stream=one.stream)
    check.status(
        two.attempt("tessStreamWaitEvent", stream=two.stream, event=event),
        "TESS_ERR_INVALID_VALUE",
    )
    both.ask("tessStreamWaitEvent", stream=both.stream, event=event)
    both.synchronize()
    desk = Desk(two, shop.kernels)
    pointer = desk.zeros()
    desk.digit(4, pointer)
    check.equal(desk.number(pointer), 4, "what the stream did after its wait was refused")
