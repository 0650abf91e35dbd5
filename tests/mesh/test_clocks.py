"""Vector clocks, and accesses that nothing orders (runtime spec 12)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from tessera_reference.mesh.clocks import Access, AccessLog, VectorClock


def test_a_clock_counts_and_joins() -> None:
    mine, other = VectorClock(), VectorClock({1: 5, 2: 1})
    assert [mine.tick(1), mine.tick(1), mine.tick(3)] == [1, 2, 1]
    copied = mine.copy()
    mine.join(other)
    assert mine == {1: 5, 2: 1, 3: 1}
    assert copied == {1: 2, 3: 1}
    other.join({1: 4})
    assert other == {1: 5, 2: 1}


def note(log: AccessLog, verb: str, stream: int, clock: dict[int, int], start: int = 0, stop: int = 8) -> Access | None:
    return log.note(1, 0, start, stop, verb == "write", stream, clock, f"{verb} {stream}")


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [("write", "write", True), ("write", "read", True), ("read", "write", True), ("read", "read", False)],
)
def test_two_streams_without_an_event(first: str, second: str, conflict: bool) -> None:
    log = AccessLog()
    assert note(log, first, 1, {1: 1}) is None
    found = note(log, second, 2, {2: 1})
    assert found == (Access(0, 8, first == "write", 1, 1, f"{first} 1") if conflict else None)


@pytest.mark.parametrize("second", ["read", "write"])
@pytest.mark.parametrize("first", ["read", "write"])
def test_an_event_orders_them(first: str, second: str) -> None:
    log = AccessLog()
    note(log, first, 1, {1: 3})
    assert note(log, second, 2, {2: 1, 1: 3}) is None
    log = AccessLog()
    note(log, first, 1, {1: 3})
    assert (note(log, second, 2, {2: 1, 1: 2}) is None) == (first == second == "read")


def test_a_stream_is_ordered_with_itself() -> None:
    log = AccessLog()
    for time, verb in enumerate(["write", "read", "write", "write", "read", "read"]):
        assert note(log, verb, 1, {1: time}) is None


def test_bytes_side_by_side_do_not_conflict() -> None:
    log = AccessLog()
    assert note(log, "write", 1, {1: 1}, 0, 4) is None
    assert note(log, "write", 2, {2: 1}, 4, 8) is None
    assert note(log, "write", 3, {3: 1}, 4, 4) is None
    found = note(log, "write", 3, {3: 2}, 3, 5)
    assert found is not None and found.stream == 1


def test_ranks_and_allocations_are_apart() -> None:
    log = AccessLog()
    for allocation in (1, 2):
        for rank in (0, 1):
            assert log.note(allocation, rank, 0, 8, True, 10 * allocation + rank, {}) is None
    log.forget(1)
    assert log.note(1, 0, 0, 8, True, 99, {99: 1}) is None
    assert log.note(2, 0, 0, 8, False, 99, {99: 2}) is None, "a stream at time 0 has done nothing"


def test_every_reader_since_the_last_write_counts() -> None:
    """Two streams read; a third one that waited for one of them writes."""
    for waited, other in [(1, 2), (2, 1)]:
        log = AccessLog()
        note(log, "read", 1, {1: 1})
        note(log, "read", 2, {2: 1})
        found = note(log, "write", 3, {3: 1, waited: 1})
        assert found is not None and found.stream == other


def test_a_read_also_of_bytes_between_those_accessed_before_counts() -> None:
    log = AccessLog()
    note(log, "write", 1, {1: 1}, 2, 3)
    note(log, "write", 1, {1: 2}, 6, 7)
    note(log, "read", 2, {2: 1, 1: 2}, 0, 9)
    for at in range(9):
        found = note(log, "write", 3, {3: 1, 1: 2}, at, at + 1)
        assert found == Access(0, 9, False, 2, 1, "read 2")


def test_an_access_in_words() -> None:
    assert str(Access(0, 8, True, 3, 7, "copy h2d")) == "copy h2d on stream 3 writes [0, 8)"
    assert str(Access(4, 6, False, 3, 7, "")) == "operation 7 on stream 3 reads [4, 6)"


@dataclass
class History:
    """All accesses ever made, each with the clock that it had: what is unordered is found by comparing every pair."""

    made: list[tuple[Access, dict[int, int]]] = field(default_factory=list)

    def conflicts(self, access: Access, clock: dict[int, int]) -> list[Access]:
        return [
            earlier
            for earlier, _ in self.made
            if earlier.start < access.stop
            and access.start < earlier.stop
            and (earlier.write or access.write)
            and earlier.stream != access.stream
            and earlier.time > clock.get(earlier.stream, 0)
        ]


@pytest.mark.parametrize("seed", range(300))
def test_the_first_conflict_is_the_one_that_comparing_all_pairs_finds(seed: int) -> None:
    """Three streams, whose events are waited for now and then; until a conflict, none must be missed or made up."""
    drawn, log, history = random.Random(seed), AccessLog(), History()
    clocks = {stream: VectorClock() for stream in (1, 2, 3)}
    eager = drawn.choice([0.3, 0.8, 0.95])
    for _ in range(40):
        stream = drawn.choice([1, 2, 3])
        clock = clocks[stream]
        for other in clocks:
            if drawn.random() < eager:
                clock.join(clocks[other])
        start = drawn.randrange(10)
        time = clock.tick(stream)
        access = Access(start, start + drawn.randrange(1, 6), drawn.random() < 0.4, stream, time, "")
        expected = history.conflicts(access, clock)
        found = log.note(1, 0, access.start, access.stop, access.write, stream, clock)
        if expected:
            assert found in expected
            return
        assert found is None
        history.made.append((access, dict(clock)))
