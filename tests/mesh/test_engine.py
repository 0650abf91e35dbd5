"""The virtual-time engine, and vector clocks against a comparison of every pair of accesses (runtime spec 12)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from tessera_reference.mesh.engine import (
    Access,
    AccessLog,
    Choices,
    Deadlock,
    Engine,
    Mailbox,
    Process,
    Replayed,
    Resource,
    Seeded,
    Signal,
    VectorClock,
)


def three(choices: Choices | None = None) -> list[str]:
    """The order in which three processes come that are ready at the same time."""
    engine, order = Engine(choices), []

    async def come(name: str) -> None:
        await engine.sleep(5)
        order.append(name)

    for name in "abc":
        engine.spawn(name, come(name))
    engine.run()
    assert engine.now == 5
    return order


def test_time_passes_in_order_of_what_is_due() -> None:
    engine, seen = Engine(), []

    async def wake(at: int) -> None:
        await engine.sleep(at)
        seen.append((at, engine.now))
        await engine.sleep_until(at + 1)
        seen.append((at, engine.now))

    for at in (30, 10, 20):
        engine.spawn(f"at {at}", wake(at))
    engine.call_at(15, lambda: seen.append((0, engine.now)))
    engine.run()
    assert seen == [(10, 10), (10, 11), (0, 15), (20, 20), (20, 21), (30, 30), (30, 31)]


@pytest.mark.parametrize("seed", range(20))
def test_a_record_replays_the_schedule(seed: int) -> None:
    seeded = Seeded(seed)
    order = three(seeded)
    replayed = Replayed(seeded.taken)
    assert three(replayed) == order
    assert (replayed.taken, replayed.widths) == (seeded.taken, seeded.widths)


def test_all_schedules_are_found_by_varying_the_record() -> None:
    actual, stack = [], [[]]  # type: ignore[var-annotated]
    while stack:
        record = stack.pop()
        replayed = Replayed(record)
        actual.append("".join(three(replayed)))
        for place in range(len(record), len(replayed.widths)):
            stack += [[*replayed.taken[:place], other] for other in range(1, replayed.widths[place])]
    assert set(actual) == {"".join(permutation) for permutation in permutations("abc")}


def circle(engine: Engine, names: str) -> None:
    """Processes each of which waits for a signal that the next one would set."""
    signals: dict[str, Signal] = {name: Signal(engine, f"word of {name}") for name in names}
    processes: dict[str, Process] = {}

    async def wait(after: str, mine: str) -> None:
        await signals[after]
        signals[mine].set()

    for name, after in zip(names, names[1:] + names[0], strict=True):
        processes[name] = engine.spawn(name, wait(after, name))
    for name in names:
        signals[name].setters = (processes[name],)


@pytest.mark.parametrize("names", ["ab", "abcde"])
def test_a_deadlock_names_the_circle(names: str) -> None:
    engine = Engine()
    circle(engine, names)
    engine.call_at(12, lambda: None)
    with pytest.raises(Deadlock) as caught:
        engine.run()
    report = caught.value.report
    assert report.time == 12
    assert report.cycle == tuple(names)
    assert report.waiting[0] == ("a", "word of b")
    assert " -> ".join([*names, "a"]) in str(caught.value)


def test_a_process_that_is_let_go_is_no_choice_for_others() -> None:
    engine = Engine(Seeded(1))
    mailbox, seen = Mailbox(engine, "work"), []

    async def work() -> None:
        seen.append(await mailbox)

    async def end() -> None:
        await engine.sleep(1)
        seen.append("end")

    idle, unbegun = engine.spawn("idle", work()), engine.spawn("unbegun", work())
    engine.run(lambda: idle.waits_for is mailbox or unbegun.waits_for is mailbox)
    taken = len(engine.choices.taken)
    for process in (idle, unbegun, idle):
        engine.end(process)
    engine.spawn("end", end())
    engine.run()
    assert (seen, len(engine.choices.taken)) == (["end"], taken)
    assert idle.done
    assert unbegun.done


def test_an_engine_that_is_closed_ends_its_processes_without_a_choice() -> None:
    """A place that a process frees at its end is nobody's by choice: the record of the policy is that of the run."""
    engine, seen = Engine(Seeded(1)), []
    places, mailbox = Resource(engine, "places", 1), Mailbox(engine, "work")
    choices = engine.choices

    async def hold(name: str) -> None:
        await places.acquire()
        try:
            await mailbox
        finally:
            places.release()
            seen.append(name)

    processes = [engine.spawn(name, hold(name)) for name in "abc"]
    engine.run(lambda: len(places.queue) == 2)
    taken = list(choices.taken)
    engine.close()
    assert len(seen) == 1  # the others had no place to give back
    assert [(process.done, process.waits_for) for process in processes] == [(True, None)] * 3
    assert choices.taken == taken


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
        actual = log.note(1, 0, access.start, access.stop, access.write, stream, clock)
        if expected:
            assert actual in expected
            return
        assert actual is None
        history.made.append((access, dict(clock)))
