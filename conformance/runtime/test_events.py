"""Events order the work of two streams, and nothing more (runtime specification, 2 and 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, D2D, D2H, H2D, opened
from tessera_conformance.chapters.runtime.kit.readings import hung, rejected
from tessera_conformance.chapters.runtime.kit.schedules import seeded, under_every_schedule, under_seeds
from tessera_conformance.chapters.runtime.kit.stream_fixture import Program, StreamFixture, by_copies, by_launches
from tessera_conformance.marks import clause, feature

ONES = elements("int32", *[1] * COUNT)

# Programs: two streams, and what has been found when both are done


def handed_over(stream: StreamFixture) -> int:
    """One stream makes 12; another waits and takes it."""
    x, y, other = stream.zeros(), stream.zeros(), stream.another_stream()
    stream.hold_up()
    stream.digit(1, x)
    stream.digit(2, x)
    other.wait_stream(stream)
    other.move(x, y)
    return other.number(y)


def taken_at_once(stream: StreamFixture) -> int:
    """One launch, an event, one launch of the other stream."""
    x, y, other = stream.zeros(), stream.zeros(), stream.another_stream()
    stream.digit(1, x)
    other.wait_stream(stream)
    other.move(x, y)
    return other.number(y)


def taken_before_a_change(stream: StreamFixture) -> list[int]:
    """One stream takes a tensor away; another waits and changes it."""
    x, y, other = stream.full(6), stream.zeros(), stream.another_stream()
    stream.hold_up()
    stream.move(x, y)
    other.wait_stream(stream)
    other.digit(3, x)
    return [other.number(x), other.number(y)]


def copied_on(stream: StreamFixture) -> int:
    """More copies than are done meanwhile, an event, a copy of the other stream of what the last of them made."""
    x, y, z, taken = stream.full(7), stream.zeros(), stream.zeros(), stream.zeros()
    other = stream.another_stream()
    stream.hold_up()
    for _ in range(8):
        stream.copy_tensor(y, x, D2D)
    stream.copy_tensor(z, y, D2D)
    other.wait_stream(stream)
    other.copy_tensor(taken, z, D2D)
    return other.number(taken)


def in_turns(stream: StreamFixture, turns: int) -> int:
    """Two streams append digits to one tensor by turns, each waiting for the other."""
    x, streams = stream.zeros(), (stream, stream.another_stream())
    for turn in range(turns):
        if turn:
            streams[turn % 2].wait_stream(streams[(turn - 1) % 2])
        streams[turn % 2].hold_up()
        streams[turn % 2].digit(turn + 1, x)
    return streams[(turns - 1) % 2].number(x)


def there_and_back(stream: StreamFixture) -> int:
    """Each stream twice."""
    return in_turns(stream, 4)


def there_and_back_once(stream: StreamFixture) -> int:
    """One stream, the other, the one again."""
    return in_turns(stream, 3)


def copies_too(stream: StreamFixture) -> list[int]:
    """A copy from the host, an event, a copy on the device, an event, a copy to the host."""
    x, y, source, target = stream.zeros(), stream.zeros(), stream.host_tensor(8), stream.host_tensor()
    second, third = stream.another_stream(), stream.another_stream()
    stream.hold_up()
    stream.copy_tensor(x, source, H2D)
    second.wait_stream(stream)
    second.hold_up()
    second.copy_tensor(y, x, D2D)
    third.wait_stream(second)
    third.copy_tensor(target, y, D2H)
    third.synchronize()
    return [third.host_number(target), second.number(y)]


def forked_and_joined(stream: StreamFixture) -> int:
    """Two streams wait for one, which then waits for both."""
    x, parts = stream.zeros(), [stream.zeros() for _ in range(2)]
    others, begun = [stream.another_stream() for _ in range(2)], stream.event()
    ended = [stream.event() for _ in others]
    stream.hold_up()
    stream.digit(4, x)
    stream.record(begun)
    for value, (other, part, event) in enumerate(zip(others, parts, ended, strict=True)):
        other.wait(begun)
        other.hold_up()
        other.move(x, part)
        other.digit(value, part)
        other.record(event)
    for event in ended:
        stream.wait(event)
    stream.move(parts[0], x)
    stream.copy_tensor(parts[0], parts[1], D2D)
    stream.digit(7, x)
    return stream.number(x) * 100 + stream.number(parts[0])


WAITS = 3
"""The number of streams that another one waits for."""


def joining(slowest: int, between: Between | None) -> Program:
    """Return a program in which a stream waits for several, one of them slow; `between` follows each wait."""

    def program(stream: StreamFixture) -> list[int]:
        parts, taken = [[stream.zeros() for _ in range(WAITS)] for _ in range(2)]
        others, events = [stream.another_stream() for _ in range(WAITS)], [stream.event() for _ in range(WAITS)]
        for place, (other, part, event) in enumerate(zip(others, parts, events, strict=True)):
            if place == slowest:
                other.hold_up()
            for _ in range(5 if place == slowest else 1):
                other.digit(place + 1, part)
            other.record(event)
        for place, event in enumerate(events):
            stream.wait(event)
            if between is not None:
                between(Joined(stream, others, events, place, slowest))
        for part, target in zip(parts, taken, strict=True):
            stream.move(part, target)
        return [stream.number(target) for target in taken]

    return program


@dataclass(frozen=True)
class Joined:
    """A stream that has waited for the event of one of several others, and the slowest of these."""

    stream: StreamFixture
    others: list[StreamFixture]
    events: list[int]
    place: int
    slowest: int


Between: TypeAlias = Callable[[Joined], None]


def work_of_its_own(joined: Joined) -> None:
    """A step on a tensor that nothing else uses."""
    joined.stream.digit(9, joined.stream.upload(joined.stream.tensor(0)))


def another_synchronized(joined: Joined) -> None:
    """The host waits for a stream that is not the slowest."""
    joined.others[(joined.slowest + 1) % WAITS].synchronize()


def event_destroyed(joined: Joined) -> None:
    """The event that was waited for is destroyed."""
    joined.stream.ask("tessEventDestroy", event=joined.events[joined.place])


def event_recorded_again(joined: Joined) -> None:
    """The event that was waited for is recorded on a stream without work."""
    joined.stream.another_stream().record(joined.events[joined.place])


def a_further_event(joined: Joined) -> None:
    """The joining stream records an event, which a further stream waits for."""
    joined.stream.another_stream().wait_stream(joined.stream)


BETWEEN: dict[str, Between | None] = {
    "nothing": None,
    "work of its own": work_of_its_own,
    "another stream is synchronized": another_synchronized,
    "the event is destroyed": event_destroyed,
    "the event is recorded again": event_recorded_again,
    "a further event": a_further_event,
}


def recorded_again(stream: StreamFixture) -> int:
    """The last recording before the wait is the one that counts (AMB-RT-49)."""
    x, y, other, event = stream.zeros(), stream.zeros(), stream.another_stream(), stream.event()
    stream.record(event)
    stream.digit(1, x)
    stream.record(event)
    stream.hold_up()
    stream.digit(2, x)
    stream.record(event)
    other.wait(event)
    other.move(x, y)
    return other.number(y)


def recorded_again_later(stream: StreamFixture) -> int:
    """A recording after the wait changes nothing for it: the streams would wait for each other (AMB-RT-49)."""
    x, other, event, back = stream.zeros(), stream.another_stream(), stream.event(), stream.event()
    stream.hold_up()
    stream.digit(1, x)
    stream.record(event)
    other.wait(event)
    other.digit(2, x)
    other.record(back)
    stream.wait(back)
    stream.digit(3, x)
    stream.record(event)
    return stream.number(x)


def recorded_on_another(stream: StreamFixture) -> int:
    """An event recorded on one stream and then on another stands for the other (AMB-RT-49)."""
    x, y, event = stream.zeros(), stream.zeros(), stream.event()
    second, third = stream.another_stream(), stream.another_stream()
    stream.record(event)
    second.hold_up()
    second.digit(5, x)
    second.record(event)
    third.wait(event)
    third.move(x, y)
    return third.number(y)


def waited_for_by_many(stream: StreamFixture) -> list[int]:
    """Four streams wait for one recording, one of them twice."""
    x, event, others = stream.zeros(), stream.event(), [stream.another_stream() for _ in range(4)]
    targets = [stream.zeros() for _ in others]
    stream.hold_up()
    stream.digit(3, x)
    stream.digit(4, x)
    stream.record(event)
    others[0].wait(event)
    for other, target in zip(others, targets, strict=True):
        other.wait(event)
        other.move(x, target)
    return [other.number(target) for other, target in zip(others, targets, strict=True)]


def destroyed_after_the_wait(stream: StreamFixture) -> int:
    """An event may be destroyed when its wait is queued; the order stays (AMB-RT-141)."""
    x, y, other, event = stream.zeros(), stream.zeros(), stream.another_stream(), stream.event()
    stream.hold_up()
    stream.digit(1, x)
    stream.digit(2, x)
    stream.record(event)
    other.wait(event)
    answer = stream.attempt("tessEventDestroy", event=event)
    refusal = rejected(answer, "TESS_ERR_INVALID_VALUE")
    stream.check.reading("AMB-RT-141", "TESS_ERR_INVALID_VALUE", refusal)
    stream.check.returns(answer, "tessEventDestroy succeeds")
    other.move(x, y)
    return other.number(y)


def a_chain_of_streams(stream: StreamFixture) -> int:
    """Six streams hand one tensor on."""
    x, event, current = stream.zeros(), stream.event(), stream
    for value in range(1, 7):
        current.hold_up()
        current.digit(value, x)
        current.record(event)
        following = current.another_stream()
        following.wait(event)
        current = following
    return current.number(x)


def on_one_stream(stream: StreamFixture) -> int:
    """A stream waits for its own event, between launches and several times."""
    x, event, another = stream.zeros(), stream.event(), stream.event()
    stream.digit(1, x)
    stream.record(event)
    stream.wait(event)
    stream.digit(2, x)
    stream.record(event)
    stream.record(another)
    stream.wait(another)
    stream.wait(event)
    stream.wait(event)
    stream.digit(3, x)
    return stream.number(x)


def on_one_stream_beside_another(stream: StreamFixture) -> int:
    """The same while another stream waits for the event too."""
    x, y, event, other = stream.zeros(), stream.zeros(), stream.event(), stream.another_stream()
    stream.digit(1, x)
    stream.record(event)
    stream.wait(event)
    other.wait(event)
    other.move(x, y)
    stream.digit(2, x)
    stream.digit(3, x)
    return stream.number(x)


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
    "taken before a change": (taken_before_a_change, [63, 6]),
}
SAME_STREAM = {
    "one stream": (on_one_stream, 123),
    "beside another": (on_one_stream_beside_another, 123),
}
TINY = {
    "taken at once": (taken_at_once, 1),
    "there and back once": (there_and_back_once, 123),
    "one stream": (on_one_stream_beside_another, 123),
}


@clause("RT-02-06", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), ORDERING.values(), ids=ORDERING)
def test_an_event_orders_two_streams_of_a_device(impl, check, program, wanted):
    """By copies alone: what is queued behind the wait sees what was queued before the recording."""
    check.equal(by_copies(impl, check).run(program), wanted, "what is found behind the wait")


@clause("RT-02-06", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), ORDERING.values(), ids=ORDERING)
def test_an_event_orders_launches_of_two_streams(impl, check, program, wanted):
    """The same with a launch for each step."""
    check.equal(by_launches(impl, check).run(program), wanted, "what is found behind the wait")


@clause("RT-12-03", "RT-02-06")
@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("make", [by_copies, by_launches], ids=["copies", "launches"])
def test_a_stream_that_waits_for_several_waits_for_each(impl, check, make, between):
    """The slowest of three streams is waited for, whichever it is, and whatever is called between (AMB-RT-49)."""
    runner = make(impl, check)
    for slowest in range(WAITS):
        expected = [int(str(place + 1) * (5 if place == slowest else 1)) for place in range(WAITS)]
        check.equal(runner.run(joining(slowest, between)), expected, f"what is taken, stream {slowest} the slowest")


@seeded
@clause("RT-02-06", "RT-12-03")
def test_an_event_orders_two_streams_under_seeded_schedules(impl, check, block, untimed):
    """The programs of the case above run under seeded schedules."""
    runner = by_launches(impl, check)
    programs = list(ORDERING.values())
    for program, expected in (programs[0], programs[1], programs[2 + block % (len(programs) - 2)]):
        under_seeds(runner, program, expected, block, untimed)


@feature("schedule-control")
@clause("RT-02-06", "RT-12-03", "RT-02-13")
@pytest.mark.parametrize(("program", "wanted"), TINY.values(), ids=TINY)
def test_an_event_orders_two_streams_under_every_schedule(impl, check, program, wanted):
    """Every order of two streams with two or three operations each."""
    under_every_schedule(by_launches(impl, check), program, wanted)


@clause("RT-02-13", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), SAME_STREAM.values(), ids=SAME_STREAM)
def test_a_stream_does_not_block_itself(impl, check, program, wanted):
    """It may wait for its own recording; the work around it is copies."""
    check.equal(by_copies(impl, check).run(program), wanted, "what the stream did")


@clause("RT-02-13", "RT-12-03")
@pytest.mark.parametrize(("program", "wanted"), SAME_STREAM.values(), ids=SAME_STREAM)
def test_a_stream_of_launches_does_not_block_itself(impl, check, program, wanted):
    """A stream of launches that waits for an event of its own goes on."""
    check.equal(by_launches(impl, check).run(program), wanted, "what the stream did")


@clause("RT-12-03")
def test_an_event_that_nothing_recorded_holds_nothing_up(impl, check):
    """A stream that waits for it goes on (AMB-RT-49)."""
    session = opened(impl, check)
    source, target, event = session.upload(ONES), session.host(bytes(BYTES)), session.event()
    session.synchronize()
    answers = [session.attempt("tessStreamWaitEvent", stream=session.stream, event=event)]
    refusal = rejected(answers[0], "TESS_ERR_INVALID_VALUE")
    check.reading("AMB-RT-49", "waiting for an unrecorded event is TESS_ERR_INVALID_VALUE", refusal)
    if not hung(*answers):
        whole = {"dst": target, "src": source, "bytes": BYTES, "kind": D2H, "stream": session.stream}
        answers.append(session.attempt("tessMemcpyAsync", **whole))
    if not hung(*answers):
        answers.append(session.attempt("tessStreamSynchronize", stream=session.stream))
    check.reading("AMB-RT-49", "unrecorded events block", hung(*answers))
    for answer in answers:
        check.returns(answer, "the call succeeds")
    check.equal(session.host_bytes(target, BYTES).hex(), ONES.hex(), "what was copied behind the wait")


@seeded
@clause("RT-02-13")
def test_a_stream_does_not_block_itself_under_seeded_schedules(impl, check, block, untimed):
    """Under seeds, beside another stream that waits for the same recording."""
    under_seeds(by_launches(impl, check), on_one_stream_beside_another, 123, block, untimed)
