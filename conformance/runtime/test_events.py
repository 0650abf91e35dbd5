"""Events order the work of two streams, and nothing more (runtime specification, 2 and 12)."""

from __future__ import annotations

import pytest
from tessera_conformance.chapters.runtime.kit.arguments import elements
from tessera_conformance.chapters.runtime.kit.programs import D2D, D2H, H2D
from tessera_conformance.chapters.runtime.kit.schedules import Desk, seeded, under_every_schedule, under_seeds, workshop

from tessera_conformance.marks import clause, feature

# Programs: two streams, and what has been found when both are done


def handed_over(desk: Desk) -> int:
    """One stream makes 12; another waits and takes it."""
    x, y, other, event = desk.zeros(), desk.zeros(), desk.another(), desk.event()
    desk.digit(1, x)
    desk.digit(2, x)
    desk.record(event)
    other.wait(event)
    other.move(x, y)
    return other.number(y)


def taken_at_once(desk: Desk) -> int:
    """One launch, an event, one launch of the other stream."""
    x, y, other, event = desk.zeros(), desk.zeros(), desk.another(), desk.event()
    desk.digit(1, x)
    desk.record(event)
    other.wait(event)
    other.move(x, y)
    return other.number(y)


def copied_on(desk: Desk) -> int:
    """More copies than are done meanwhile, an event, a copy of the other stream of what the last of them made."""
    x, y, z, taken = desk.holding(7), desk.zeros(), desk.zeros(), desk.zeros()
    other, event = desk.another(), desk.event()
    for _ in range(8):
        desk.copy(y, x, D2D)
    desk.copy(z, y, D2D)
    desk.record(event)
    other.wait(event)
    other.copy(taken, z, D2D)
    return other.number(taken)


def there_and_back(desk: Desk) -> int:
    """Two streams append digits to one tensor in turn, each waiting for the other."""
    x, other, events = desk.zeros(), desk.another(), [desk.event() for _ in range(3)]
    desk.digit(1, x)
    desk.record(events[0])
    other.wait(events[0])
    other.digit(2, x)
    other.record(events[1])
    desk.wait(events[1])
    desk.digit(3, x)
    desk.record(events[2])
    other.wait(events[2])
    other.digit(4, x)
    return other.number(x)


def there_and_back_once(desk: Desk) -> int:
    """One stream, the other, the one again."""
    x, other, events = desk.zeros(), desk.another(), [desk.event() for _ in range(2)]
    desk.digit(1, x)
    desk.record(events[0])
    other.wait(events[0])
    other.digit(2, x)
    other.record(events[1])
    desk.wait(events[1])
    desk.digit(3, x)
    return desk.number(x)


def copies_too(desk: Desk) -> list[int]:
    """A copy from the host, an event, a copy on the device, an event, a copy to the host."""
    x, y, source, target = desk.zeros(), desk.zeros(), desk.host(), desk.host()
    desk.session.ask("tessxHostWrite", hostPtr=source, data=elements("int32", 8, 8).hex())
    second, third = desk.another(), desk.another()
    events = [desk.event() for _ in range(2)]
    desk.copy(x, source, H2D)
    desk.record(events[0])
    second.wait(events[0])
    second.copy(y, x, D2D)
    second.record(events[1])
    third.wait(events[1])
    third.copy(target, y, D2H)
    third.synchronize()
    return [third.host_number(target), second.number(y)]


def forked_and_joined(desk: Desk) -> int:
    """Two streams wait for one, which then waits for both."""
    x, parts = desk.zeros(), [desk.zeros() for _ in range(2)]
    others, begun = [desk.another() for _ in range(2)], desk.event()
    ended = [desk.event() for _ in others]
    desk.digit(4, x)
    desk.record(begun)
    for value, (other, part, event) in enumerate(zip(others, parts, ended, strict=True)):
        other.wait(begun)
        other.move(x, part)
        other.digit(value, part)
        other.record(event)
    for event in ended:
        desk.wait(event)
    desk.move(parts[0], x)
    desk.copy(parts[0], parts[1], D2D)
    desk.digit(7, x)
    return desk.number(x) * 100 + desk.number(parts[0])


def recorded_again(desk: Desk) -> int:
    """The last recording before the wait is the one that counts (AMB-RT-49)."""
    x, y, other, event = desk.zeros(), desk.zeros(), desk.another(), desk.event()
    desk.record(event)
    desk.digit(1, x)
    desk.record(event)
    desk.digit(2, x)
    desk.record(event)
    other.wait(event)
    other.move(x, y)
    return other.number(y)


def recorded_again_later(desk: Desk) -> int:
    """A recording after the wait changes nothing for it: the streams would wait for each other (AMB-RT-49)."""
    x, other, event, back = desk.zeros(), desk.another(), desk.event(), desk.event()
    desk.digit(1, x)
    desk.record(event)
    other.wait(event)
    other.digit(2, x)
    other.record(back)
    desk.wait(back)
    desk.digit(3, x)
    desk.record(event)
    return desk.number(x)


def recorded_on_another(desk: Desk) -> int:
    """An event recorded on one stream and then on another stands for the other (AMB-RT-49)."""
    x, y, second, third, event = desk.zeros(), desk.zeros(), desk.another(), desk.another(), desk.event()
    desk.record(event)
    second.digit(5, x)
    second.record(event)
    third.wait(event)
    third.move(x, y)
    return third.number(y)


def waited_for_by_many(desk: Desk) -> list[int]:
    """Four streams wait for one recording, one of them twice."""
    x, event, others = desk.zeros(), desk.event(), [desk.another() for _ in range(4)]
    targets = [desk.zeros() for _ in others]
    desk.digit(3, x)
    desk.digit(4, x)
    desk.record(event)
    others[0].wait(event)
    for other, target in zip(others, targets, strict=True):
        other.wait(event)
        other.move(x, target)
    return [other.number(target) for other, target in zip(others, targets, strict=True)]


def destroyed_after_the_wait(desk: Desk) -> int:
    """An event may be destroyed when its wait is queued; the order stays (AMB-RT-141)."""
    x, y, other, event = desk.zeros(), desk.zeros(), desk.another(), desk.event()
    desk.digit(1, x)
    desk.digit(2, x)
    desk.record(event)
    other.wait(event)
    desk.session.ask("tessEventDestroy", event=event)
    other.move(x, y)
    return other.number(y)


def a_chain_of_streams(desk: Desk) -> int:
    """Six streams hand one tensor on."""
    x, event, current = desk.zeros(), desk.event(), desk
    for value in range(1, 7):
        current.digit(value, x)
        current.record(event)
        following = current.another()
        following.wait(event)
        current = following
    return current.number(x)


def on_one_stream(desk: Desk) -> int:
    """A stream waits for its own event, between launches and several times."""
    x, event, another = desk.zeros(), desk.event(), desk.event()
    desk.digit(1, x)
    desk.record(event)
    desk.wait(event)
    desk.digit(2, x)
    desk.record(event)
    desk.record(another)
    desk.wait(another)
    desk.wait(event)
    desk.wait(event)
    desk.digit(3, x)
    return desk.number(x)


def on_one_stream_beside_another(desk: Desk) -> int:
    """The same while another stream waits for the event too."""
    x, y, event, other = desk.zeros(), desk.zeros(), desk.event(), desk.another()
    desk.digit(1, x)
    desk.record(event)
    desk.wait(event)
    other.wait(event)
    other.move(x, y)
    desk.digit(2, x)
    desk.digit(3, x)
    return desk.number(x)


def of_nothing_recorded(desk: Desk) -> int:
    """A wait for an event that nothing has recorded lets the stream go on (AMB-RT-49)."""
    x, event = desk.zeros(), desk.event()
    desk.wait(event)
    desk.digit(6, x)
    return desk.number(x)


ORDERING = {
    "handed over": (handed_over, 12),
    "there and back": (there_and_back, 1234),
    "copies": (copies_too, [8, 8]),
    "copied on": (copied_on, 7),
    "forked and joined": (forked_and_joined, 407 * 100 + 41),
    "recorded again": (recorded_again, 12),
    "recorded again later": (recorded_again_later, 123),
    "recorded on another stream": (recorded_on_another, 5),
    "waited for by many": (waited_for_by_many, [34] * 4),
    "destroyed after the wait": (destroyed_after_the_wait, 12),
    "a chain of streams": (a_chain_of_streams, 123456),
}
SAME_STREAM = {
    "one stream": (on_one_stream, 123),
    "beside another": (on_one_stream_beside_another, 123),
    "nothing recorded": (of_nothing_recorded, 6),
}
TINY = {
    "taken at once": (taken_at_once, 1),
    "there and back once": (there_and_back_once, 123),
    "one stream": (on_one_stream_beside_another, 123),
}


@clause("RT-02-06", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), ORDERING.values(), ids=ORDERING)
def test_an_event_orders_two_streams_of_a_device(impl, check, program, wanted):
    """What is queued behind the wait sees what was queued before the recording."""
    check.equal(workshop(impl, check).run(program), wanted, "what is found behind the wait")


@seeded
@clause("RT-02-06", "RT-12-03")
def test_an_event_orders_two_streams_under_seeded_schedules(impl, check, block, untimed):
    """All programs of the case above, in turn."""
    shop = workshop(impl, check)
    programs = list(ORDERING.values())
    for program, wanted in (programs[0], programs[1], programs[2 + block % (len(programs) - 2)]):
        under_seeds(shop, program, wanted, block, untimed)


@feature("schedule-control")
@clause("RT-02-06", "RT-12-03", "RT-02-13")
@pytest.mark.parametrize(("program", "wanted"), TINY.values(), ids=TINY)
def test_an_event_orders_two_streams_under_every_schedule(impl, check, program, wanted):
    """Every order of two streams with two or three operations each."""
    under_every_schedule(workshop(impl, check), program, wanted)


@clause("RT-02-13", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), SAME_STREAM.values(), ids=SAME_STREAM)
def test_a_stream_does_not_block_itself(impl, check, program, wanted):
    """It may wait for its own recording, and for an event that nothing recorded."""
    check.equal(workshop(impl, check).run(program), wanted, "what the stream did")


@seeded
@clause("RT-02-13")
def test_a_stream_does_not_block_itself_under_seeded_schedules(impl, check, block, untimed):
    """Under seeds, beside another stream that waits for the same recording."""
    under_seeds(workshop(impl, check), on_one_stream_beside_another, 123, block, untimed)
