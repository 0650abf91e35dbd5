"""Work of one stream keeps its order, whatever it is and whatever other streams do (runtime spec, 2, 6, 12)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import wrapped
from tessera_conformance.chapters.runtime.kit.mesh_session import D2D, D2H, H2D
from tessera_conformance.chapters.runtime.kit.schedules import (
    explored,
    seeded,
    seeds_in,
    under_every_schedule,
    under_seeds,
)
from tessera_conformance.chapters.runtime.kit.stream_fixture import Program, StreamFixture, by_copies, by_launches
from tessera_conformance.marks import clause, feature

ORDERS = [(1, 2), (2, 1), (3, 1, 2), (9, 8, 7, 6, 5, 4, 3, 2), (1, 1, 2, 1, 1), (4,)]


def number_of(digits: tuple[int, ...]) -> int:
    """The number that a tensor of zeros becomes when these digits are appended."""
    return int("".join(map(str, digits)))


def background_work(stream: StreamFixture, digits: int = 2) -> StreamFixture:
    """Another stream with work of its own."""
    other = stream.another_stream()
    pointer = other.zeros()
    for _ in range(digits):
        other.digit(5, pointer)
    return other


def steps(*digits: int, beside: int = 2) -> Program:
    """Steps that append these digits, beside some of another stream."""

    def program(stream: StreamFixture) -> int:
        pointer = stream.zeros()
        other = background_work(stream, beside)
        stream.hold_up()
        for value in digits:
            stream.digit(value, pointer)
        actual = stream.number(pointer)
        other.synchronize()
        return actual

    return program


def of_every_kind(sums: bool) -> Program:
    """Each step needs the one before: copies, steps of the fixture, an event, and where asked sums over the ranks.

    A step makes 7 of 0, the ranks add up, a digit follows, a copy takes that away, another digit follows; then a copy
    brings 5, which is appended to what was taken away, before the ranks add up and after.
    """

    def program(stream: StreamFixture) -> list[int]:
        pointer, spare, source = stream.zeros(), stream.zeros(), stream.host_tensor(5)
        targets = [stream.host_tensor() for _ in range(2)]
        other = background_work(stream)
        event = stream.event()
        stream.hold_up()
        stream.digit(7, pointer)
        if sums:
            stream.sum_of_ranks(pointer)
        stream.digit(1, pointer)
        stream.copy_tensor(spare, pointer, D2D)
        stream.record(event)
        stream.digit(2, pointer)
        stream.wait(event)
        stream.copy_tensor(targets[0], pointer, D2H)
        stream.copy_tensor(pointer, source, H2D)
        stream.follow(pointer, spare)
        if sums:
            stream.sum_of_ranks(pointer)
        stream.follow(pointer, spare)
        stream.digit(3, spare)
        stream.copy_tensor(targets[1], spare, D2H)
        stream.synchronize()
        other.synchronize()
        return [stream.host_number(target) for target in targets]

    return program


def left_on_the_host(ranks: int) -> list[int]:
    """Return the values that work of every kind leaves there, where so many ranks add up."""
    taken = 70 * ranks + 1
    return [10 * taken + 2, ((taken * 10 + 5) * 10 + 5 * ranks) * 10 + 3]


# Copies


@clause("RT-02-05", "RT-12-01")
@pytest.mark.parametrize("digits", ORDERS, ids=lambda digits: "".join(map(str, digits)))
def test_copies_of_a_stream_run_in_the_order_of_their_calls(impl, check, digits):
    """Each digit is appended by copies, to what the copies before left."""
    check.equal(by_copies(impl, check).run(steps(*digits)), number_of(digits), "what the copies left")


@clause("RT-02-05", "RT-12-01", "RT-04.4-11")
def test_copies_of_every_kind_keep_their_order(impl, check):
    """Copies to, on and from the device, and an event of the same stream."""
    check.equal(by_copies(impl, check).run(of_every_kind(False)), left_on_the_host(1), "what was copied to the host")


# Launches


@clause("RT-06-01", "RT-02-05", "RT-12-01")
@pytest.mark.parametrize("digits", ORDERS, ids=lambda digits: "".join(map(str, digits)))
def test_launches_of_a_stream_run_in_the_order_of_their_calls(impl, check, digits):
    """Each appends a digit to what those before it left."""
    check.equal(by_launches(impl, check).run(steps(*digits)), number_of(digits), "what the launches left")


URGENCIES = (0, 1, -1, 7, (1 << 31) - 1, -(1 << 31))
LONG = (1, 2, 3, 4, 5, 6, 7, 8, 9)


def by_priority(stream: StreamFixture) -> list[int]:
    """Streams of several priorities append nine digits each, by turns."""
    streams = [stream.another_stream(priority) for priority in URGENCIES]
    pointers = [owner.zeros() for owner in streams]
    stream.hold_up()
    for value in LONG:
        for owner, pointer in zip(streams, pointers, strict=True):
            owner.digit(value, pointer)
    return [owner.number(pointer) for owner, pointer in zip(streams, pointers, strict=True)]


@clause("RT-12-01", "RT-02-05", "RT-06-01")
@pytest.mark.parametrize("make", [by_copies, by_launches], ids=["copies", "launches"])
def test_a_stream_of_any_priority_keeps_its_order(impl, check, make):
    """A priority is a hint between streams: within each, all of a long queue runs in the order of its calls."""
    expected = [number_of(LONG)] * len(URGENCIES)
    check.equal(make(impl, check).run(by_priority), expected, "what each stream left")


@seeded
@clause("RT-06-01", "RT-02-05", "RT-12-01")
def test_launches_keep_their_order_under_seeded_schedules(impl, check, block, untimed):
    """Twenty-five seeds a case, with background work on another stream."""
    under_seeds(by_launches(impl, check), steps(3, 1, 4, 2), 3142, block, untimed)


@feature("schedule-control")
@clause("RT-06-01", "RT-02-05", "RT-12-01")
@pytest.mark.parametrize("digits", [(1, 2), (2, 1)], ids=["12", "21"])
def test_two_launches_keep_their_order_under_every_schedule(impl, check, digits):
    """Beside a launch of another stream, every possible order is tried in turn."""
    under_every_schedule(by_launches(impl, check), steps(*digits, beside=1), number_of(digits))


@clause("RT-06-01", "RT-12-01")
def test_many_launches_keep_their_order(impl, check):
    """Three hundred launches on four streams in turn; the last nine digits of each stream show their order."""

    def program(stream: StreamFixture) -> list[int]:
        streams = [stream, *(stream.another_stream() for _ in range(3))]
        pointers = [stream.zeros() for _ in streams]
        for turn in range(75):
            for place, (queue, pointer) in enumerate(zip(streams, pointers, strict=True)):
                queue.digit((turn + place) % 10, pointer)
        return [lane.number(pointer) for lane, pointer in zip(streams, pointers, strict=True)]

    expected = [0] * 4
    for turn in range(75):
        expected = [wrapped(10 * number + (turn + place) % 10) for place, number in enumerate(expected)]
    check.equal(by_launches(impl, check).run(program), expected, "what the launches of each stream left")


# Work of every kind


@clause("RT-12-01", "RT-02-05", "RT-04.4-11")
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("ranks", [1, 2])
def test_work_of_every_kind_keeps_its_order(impl, check, ranks, times):
    """Copies, launches, collectives and events of one stream each see what those before them did (AMB-RT-58)."""
    runner = by_launches(impl, check)
    for _ in range(times):
        actual = runner.run(of_every_kind(True), ranks)
        check.equal(actual, left_on_the_host(ranks), "what was copied to the host")


@seeded
@clause("RT-12-01", "RT-02-05", "RT-04.4-11")
def test_work_of_every_kind_keeps_its_order_under_seeded_schedules(impl, check, block, untimed):
    """On two ranks, ordered among each other by the collectives alone."""
    under_seeds(by_launches(impl, check), of_every_kind(True), left_on_the_host(2), block, untimed, ranks=2)


def in_pairs(first: str, second: str) -> Program:
    """Two operations, the second on the result of the first, with background work on another stream."""

    def program(stream: StreamFixture) -> int:
        pointer, other, host, target = stream.full(4), stream.full(6), stream.host_tensor(8), stream.host_tensor()
        background_work(stream)
        steps = {
            "launch": lambda: stream.digit(1, pointer),
            "H2D": lambda: stream.copy_tensor(pointer, host, H2D),
            "D2D": lambda: stream.copy_tensor(pointer, other, D2D),
            "D2H": lambda: stream.copy_tensor(target, pointer, D2H),
            "collective": lambda: stream.sum_of_ranks(pointer),
        }
        for step in (first, second):
            steps[step]()
        stream.copy_tensor(other, pointer, D2D)
        actual = stream.number(other)
        return actual * 100 + stream.host_number(target)

    return program


EFFECTS = {
    "launch": lambda held, host: (held * 10 + 1, host),
    "H2D": lambda held, host: (8, host),
    "D2D": lambda held, host: (6, host),
    "D2H": lambda held, host: (held, held),
    "collective": lambda held, host: (held, host),
}
"""The contents of device and host memory after each, on one rank."""


@feature("schedule-control")
@clause("RT-12-01", "RT-02-05")
@pytest.mark.parametrize("second", EFFECTS)
@pytest.mark.parametrize("first", EFFECTS)
def test_two_operations_keep_their_order(impl, check, first, second):
    """Any two kinds of work, in both orders, each under eight schedules: two hundred in all."""
    device, host = EFFECTS[second](*EFFECTS[first](4, 0))
    runner = by_launches(impl, check)
    for seed in seeds_in(impl, check, range(8)):
        actual = runner.run(in_pairs(first, second))
        check.equal(actual, device * 100 + host, f"what device and host hold under seed {seed}")


@feature("schedule-control")
@clause("RT-06-02")
def test_streams_that_nothing_orders_are_seen_in_either_order(impl, check):
    """Each of two launches on two streams comes first under some schedule; the cases of order rely on it."""

    def racing(stream: StreamFixture) -> int:
        pointer, other = stream.zeros(), stream.another_stream()
        stream.digit(1, pointer)
        other.digit(2, pointer)
        stream.synchronize()
        return other.number(pointer)

    runner = by_launches(impl, check)
    actual = {outcome for _, outcome in explored(impl, check, lambda: runner.run(racing))}
    check.true({12, 21} <= actual, "both orders are found among the schedules", sorted(actual))


# Ranks


@feature("rank-memory")
@clause("RT-12-01", "RT-06-01")
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_work_keeps_its_order_on_every_rank(impl, check, ranks):
    """A stream spans its mesh (AMB-RT-37); each rank begins with a number of its own."""
    expected = [rank * 1000 + 123 for rank in range(ranks)]
    check.equal(by_launches(impl, check).run(on_every_rank, ranks), expected, "what each rank holds")


@seeded
@feature("rank-memory")
@clause("RT-12-01", "RT-06-01")
def test_work_keeps_its_order_on_every_rank_under_seeded_schedules(impl, check, block, untimed):
    """Three ranks, whose work is not ordered among each other."""
    under_seeds(by_launches(impl, check), on_every_rank, [123, 1123, 2123], block, untimed, ranks=3)


def on_every_rank(stream: StreamFixture) -> list[int]:
    """Three launches and a copy between them, where each rank holds its number."""
    pointer, spare = stream.zeros(), stream.zeros()
    for rank in range(stream.ranks):
        stream.poke(rank, pointer, stream.tensor(rank))
    stream.digit(1, pointer)
    stream.digit(2, pointer)
    stream.copy_tensor(spare, pointer, D2D)
    stream.digit(3, spare)
    return stream.numbers(spare)


# Priorities


PRIORITIES = [(0, 1), (1, 0), (-5, 5), (5, -5), ((1 << 31) - 1, -(1 << 31)), (7, 7)]


def of_priorities(first: int, second: int) -> Program:
    """Two streams of some priorities and an event between them."""

    def program(stream: StreamFixture) -> list[int]:
        one, two, x, y = stream.another_stream(first), stream.another_stream(second), stream.zeros(), stream.zeros()
        one.hold_up()
        one.digit(2, x)
        for value in (1, 2):
            two.digit(value, y)
        two.wait_stream(one)
        two.follow(x, y)
        one.synchronize()
        two.synchronize()
        return [one.number(x), two.number(y)]

    return program


@clause("RT-12-02", "RT-12-03")
@pytest.mark.parametrize("priorities", PRIORITIES, ids=lambda both: f"{both[0]} and {both[1]}")
def test_no_result_depends_on_a_priority(impl, check, priorities):
    """Order within streams and by events is kept, whatever is more urgent (AMB-RT-63)."""
    check.equal(by_copies(impl, check).run(of_priorities(*priorities)), [2, 122], "what both streams left")


@seeded
@clause("RT-12-02")
def test_no_result_depends_on_a_priority_under_seeded_schedules(impl, check, block, untimed):
    """Priorities go round through the blocks."""
    first, second = PRIORITIES[block % len(PRIORITIES)]
    under_seeds(by_launches(impl, check), of_priorities(first, second), [2, 122], block, untimed)
