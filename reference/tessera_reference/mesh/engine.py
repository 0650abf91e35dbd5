"""The virtual-time engine, and vector clocks of the operations it orders (design, section 6; runtime spec 12)."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter
from types import coroutine
from typing import Any, NamedTuple

# Policies of choices: which of several ready candidates goes first, in order of arrival, at random, or replayed.


class Choices(ABC):
    """A policy that makes every choice of a run; `taken` of `widths` is the record that replays it."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """Return one of `count` candidates, at least two; the choice is recorded."""
        chosen = self.choose(count)
        self.taken.append(chosen)
        self.widths.append(count)
        return chosen

    @abstractmethod
    def choose(self, count: int) -> int:
        """Return one of `count` candidates."""


class FirstCome(Choices):
    """The policy that chooses the longest waiting candidate. It records nothing, since there is nothing to replay."""

    def pick(self, count: int) -> int:
        return 0

    choose = pick


class Seeded(Choices):
    """The policy that chooses at random: the seed determines the whole schedule."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def choose(self, count: int) -> int:
        return self._random.randrange(count)


class Replayed(Choices):
    """The policy that repeats a record; it chooses the first where the record has ended or names no candidate."""

    def __init__(self, record: Sequence[int]) -> None:
        super().__init__()
        self._record = tuple(record)

    def choose(self, count: int) -> int:
        place = len(self.taken)
        recorded = self._record[place] if place < len(self._record) else 0
        return recorded if 0 <= recorded < count else 0


# Processes of the virtual-time engine, and the events that they wait for.


class Wait(ABC):
    """The event that a process waits for."""

    __slots__ = ()

    @abstractmethod
    def suspend(self, process: Process) -> None:
        """Keep the process until it may continue."""

    def wakers(self) -> Iterable[Process]:
        """Return the processes known to be able to wake it."""
        return ()

    @abstractmethod
    def describe(self) -> str:
        """Return the event in words."""


class Process:
    """A coroutine that the engine drives."""

    __slots__ = ("coroutine", "done", "name", "send", "waits_for")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self.coroutine = coroutine
        self.send = coroutine.send
        self.waits_for: Wait | None = None
        self.done = False


# Deadlock reports: what each process waits for, and the cycle of processes that wait for each other.


MOST_NAMED = 8
"""The number of processes that the text names."""


@dataclass(frozen=True)
class DeadlockReport:
    """The time of a deadlock, what each process waits for, and the cycle; empty where no process could end a wait."""

    time: int
    waiting: tuple[tuple[str, str], ...]
    cycle: tuple[str, ...]

    def __str__(self) -> str:
        named = [f"{name} waits for {what}" for name, what in self.waiting[:MOST_NAMED]]
        more = f" and {len(self.waiting) - MOST_NAMED} more" if len(self.waiting) > MOST_NAMED else ""
        circle = "; in a circle: " + " -> ".join((*self.cycle, self.cycle[0])) if self.cycle else ""
        return f"deadlock at {self.time} ps: {'; '.join(named) or 'nothing is left to do'}{more}{circle}"


class Deadlock(Exception):
    """Raised when no event is due and processes still wait."""

    def __init__(self, report: DeadlockReport) -> None:
        super().__init__(str(report))
        self.report = report


def held_up_by(processes: Sequence[Process]) -> list[Wait]:
    """Return the waits of processes and, transitively, those of the processes that could wake them."""
    waits: list[Wait] = []
    visited: dict[Process, None] = {}
    remaining = list(processes)
    while remaining:
        process = remaining.pop()
        if process in visited or process.done or process.waits_for is None:
            continue
        visited[process] = None
        waits.append(process.waits_for)
        remaining += process.waits_for.wakers()
    return waits


def report(time: int, waiting: Sequence[Process]) -> DeadlockReport:
    """Return the report on processes that wait."""
    described = tuple((process.name, process.waits_for.describe() if process.waits_for else "") for process in waiting)
    return DeadlockReport(time, described, tuple(process.name for process in _cycle(waiting)))


def _cycle(waiting: Sequence[Process]) -> list[Process]:
    """Return the first cycle on the way from each process to the first of those it waits for."""
    settled: set[int] = set()
    for start in waiting:
        path: list[Process] = []
        here: Process | None = start
        while here is not None and here not in path and id(here) not in settled:
            path.append(here)
            here = _first_waker(here)
        if here is not None and here in path:
            return path[path.index(here) :]
        settled.update(id(process) for process in path)
    return []


def _first_waker(process: Process) -> Process | None:
    wakers = process.waits_for.wakers() if process.waits_for is not None else ()
    return next((waker for waker in wakers if not waker.done), None)


# The virtual-time engine: processes are `async def`, time is a whole number of picoseconds (design, section 6).
#
# All events of one instant become ready together; which ready process runs first is the only choice, and a `Choices`
# makes it. A process waits for a time, a signal or a place in a resource. When nothing is due and a process still
# waits, that is a deadlock, and the report names which process waits for which.


class Engine:
    """Virtual time, the processes that run in it, and one policy for every choice."""

    def __init__(self, choices: Choices | None = None) -> None:
        self.now = 0
        self._living: dict[Process, None] = {}
        self.choose_by(choices or FirstCome())
        self._instants: list[int] = []
        self._due: dict[int, list[tuple[Any, Any]]] = {}
        """The events due at each instant: a process with the value to send it, or a function without one."""
        self._ready: deque[tuple[Process, Any]] = deque()

    def choose_by(self, choices: Choices) -> None:
        """Use a policy for the choices from now on."""
        self.choices = choices
        self._first_come = type(choices) is FirstCome

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> Process:
        """Start a process, which is ready at once."""
        process = Process(name, coroutine)
        self._living[process] = None
        self._ready.append((process, None))
        return process

    def end(self, process: Process) -> None:
        """End a process that is idle or has not started."""
        if not process.done:
            del self._living[process]
            _close(process)
            waiting = [entry for entry in self._ready if entry[0] is not process]
            self._ready.clear()
            self._ready.extend(waiting)

    def close(self) -> None:
        """End every process, and drop all due events. Processes and the events they wait for refer to each other."""
        self.choose_by(FirstCome())  # the policy makes none of the choices that ending processes causes
        living, self._living = self._living, {}
        self._ready.clear()
        self._instants.clear()
        self._due.clear()
        for process in living:
            _close(process)

    @coroutine
    def sleep(self, duration: int) -> Generator[int, None, None]:
        """Return an awaitable that resumes after this many picoseconds."""
        yield self.now + duration

    @coroutine
    def sleep_until(self, time: int) -> Generator[int, None, None]:
        """Return an awaitable that resumes at a time, or at once where it has passed."""
        yield max(time, self.now)

    def turn(self) -> Turn:
        """Return an awaitable that yields; the process stays ready, and is chosen among the ready ones."""
        return Turn(self)

    def call_at(self, time: int, function: Callable[[], None]) -> None:
        """Call a function at a time, or now where it has passed."""
        time, entry = max(time, self.now), (None, function)
        if time in self._due:
            self._due[time].append(entry)
        else:
            self._due[time] = [entry]
            heappush(self._instants, time)

    def wake(self, process: Process, value: Any = None) -> None:
        """Make a waiting process ready with a value."""
        process.waits_for = None
        self._ready.append((process, value))

    def choose(self, count: int) -> int:
        """Return the index of one of `count` candidates in order of preference; every choice of a run is made here."""
        return self.choices.pick(count) if count > 1 else 0

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Run until a condition holds, or until nothing is left to do.

        Raises `Deadlock` where processes wait and nothing is due, and any exception of a process.
        """
        while until is None or not until():
            if self._ready or self._instants:
                self._advance(until is None)
            else:
                waiting = [process for process in self._living if not isinstance(process.waits_for, Mailbox)]
                if waiting or until is not None:
                    raise Deadlock(report(self.now, waiting))
                return

    def _advance(self, to_the_end: bool) -> None:
        """Resume a ready process until it waits for a time or a `Wait`; where none is ready, advance the time.

        With `to_the_end`, repeat this until nothing is ready or due.
        """
        ready, due, instants = self._ready, self._due, self._instants
        while ready or instants:
            if not ready:
                self.now = instants[0]
                entries = due[self.now]
                for place, entry in enumerate(entries):
                    if entry[0] is not None:
                        ready.append(entry)
                        continue
                    try:
                        entry[1]()  # the function may add entries
                    except BaseException:
                        del entries[: place + 1]
                        raise
                del due[heappop(instants)]
                if to_the_end:
                    continue
                return
            if self._first_come or len(ready) == 1:
                entry = ready.popleft()
            else:
                chosen = self.choices.pick(len(ready))
                entry = ready[chosen]
                del ready[chosen]
            process, value = entry
            try:
                wait = process.send(value)
            except StopIteration:
                process.done = True
                del self._living[process]
            else:
                if type(wait) is not int:
                    process.waits_for = wait
                    wait.suspend(process)
                else:  # as `call_at` does, without a call for each event, and with the same entry again
                    if value is not None:
                        entry = (process, None)
                    if wait in due:
                        due[wait].append(entry)
                    else:
                        due[wait] = [entry]
                        heappush(instants, wait)
            if not to_the_end:
                return


def _close(process: Process) -> None:
    process.done = True
    process.waits_for = None
    process.coroutine.close()


class Turn(Wait):
    """A wait that ends at once: the process is ready again, after the others."""

    __slots__ = ("engine",)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __await__(self) -> Generator[Turn, Any, None]:
        yield self

    def suspend(self, process: Process) -> None:
        """Make the process ready, after those that are."""
        self.engine.wake(process)

    def describe(self) -> str:
        return "its turn"


class Signal(Wait):
    """A one-shot event, set or failed once: waiting processes then resume, and later ones do not wait."""

    __slots__ = ("engine", "error", "is_set", "name", "setters", "waiting")

    def __init__(self, engine: Engine, name: str, setters: Iterable[Process] = ()) -> None:
        self.engine = engine
        self.name = name
        self.setters = tuple(setters)
        self.is_set = False
        self.error: Exception | None = None
        self.waiting: list[Process] = []

    def __await__(self) -> Generator[Wait, Any, None]:
        if not self.is_set:
            yield self
        if self.error is not None:
            raise self.error

    def set(self) -> None:
        """Resume all waiting processes."""
        if not self.is_set:
            self.is_set = True
            waiting, self.waiting = self.waiting, []
            for process in waiting:
                self.engine.wake(process)

    def fail(self, error: Exception) -> None:
        """Resume all waiting processes with an error; without effect on a signal that is set."""
        if not self.is_set:
            self.error = error
            self.set()

    def suspend(self, process: Process) -> None:
        self.waiting.append(process)

    def wakers(self) -> Iterable[Process]:
        """Return the processes that may set it."""
        return self.setters

    def describe(self) -> str:
        return self.name


class Mailbox(Wait):
    """A queue of work for one process. A process that waits for it is idle, which is no deadlock."""

    __slots__ = ("engine", "name", "reader", "work")

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self.work: deque[Any] = deque()
        self.reader: Process | None = None

    def __await__(self) -> Generator[Wait, Any, Any]:
        if self.work:
            return self.work.popleft()
        return (yield self)

    def put(self, item: Any) -> None:
        """Add an item to the work."""
        if self.reader is None:
            self.work.append(item)
        else:
            reader, self.reader = self.reader, None
            self.engine.wake(reader, item)

    def suspend(self, process: Process) -> None:
        self.reader = process

    def describe(self) -> str:
        return f"work in {self.name}"


class Resource:
    """A counting semaphore whose places go to the highest priority first, and then in order of arrival.

    Priority is a hint (runtime spec 12): a policy may choose otherwise.
    """

    __slots__ = ("_numbered", "engine", "free", "name", "queue")

    def __init__(self, engine: Engine, name: str, places: int) -> None:
        self.engine = engine
        self.name = name
        self.free = places
        self.queue: list[tuple[int, int, Process]] = []
        self._numbered = 0

    def acquire(self, priority: int = 0) -> Place:
        """Return an awaitable that holds a place."""
        return Place(self, priority)

    def release(self) -> None:
        """Pass a place to the next process that waits, or free it."""
        if not self.queue:
            self.free += 1
            return
        _, _, process = self.queue.pop(self.engine.choose(len(self.queue)))
        self.engine.wake(process)

    def enqueue(self, priority: int, process: Process) -> None:
        """Queue a process: before those of lower priority, after those of the same."""
        self._numbered += 1
        insort(self.queue, (-priority, self._numbered, process), key=itemgetter(0, 1))


class Place(Wait):
    """A wait for a place in a resource."""

    __slots__ = ("priority", "resource")

    def __init__(self, resource: Resource, priority: int) -> None:
        self.resource = resource
        self.priority = priority

    def __await__(self) -> Generator[Wait, Any, None]:
        if self.resource.free:
            self.resource.free -= 1
        else:
            yield self

    def suspend(self, process: Process) -> None:
        self.resource.enqueue(self.priority, process)

    def describe(self) -> str:
        return f"a place in {self.resource.name}"


# Vector clocks, and a log of accesses that finds unordered pairs (runtime spec 12; design, section 6).
#
# The n-th operation of a stream has the stream's time n. An operation comes after another if its clock includes the
# other's time. It gets that time through its own stream, an event that it waited for, or the host. Times count
# operations, not picoseconds: unordered accesses are found on every run and under every schedule.


class VectorClock(dict[int, int]):
    """The last operation of each stream that is known to be over; a missing stream is at 0."""

    def tick(self, stream: int) -> int:
        """Advance a stream to its next time, and return it."""
        time = self[stream] = self.get(stream, 0) + 1
        return time

    def join(self, other: Mapping[int, int]) -> None:
        """Take the later time of each stream from another clock."""
        for stream, time in other.items():
            if time > self.get(stream, 0):
                self[stream] = time

    def copy(self) -> VectorClock:
        """Return a clock with the same times."""
        return VectorClock(self)


class Access(NamedTuple):
    """Bytes from start to before stop, read or written by an operation: its stream, the time there, its name.

    A named tuple, because every queued operation creates one.
    """

    start: int
    stop: int
    write: bool
    stream: int
    time: int
    name: str

    def __str__(self) -> str:
        verb = "writes" if self.write else "reads"
        return f"{self.name or f'operation {self.time}'} on stream {self.stream} {verb} [{self.start}, {self.stop})"


class _Segment:
    """Bytes with the same last writer and the same readers since."""

    __slots__ = ("readers", "start", "stop", "writer")

    def __init__(self, start: int, stop: int, writer: Access | None, readers: dict[int, Access]) -> None:
        self.start = start
        self.stop = stop
        self.writer = writer
        self.readers = readers
        """The last reader of each stream."""

    def unordered_with(self, access: Access, clock: Mapping[int, int]) -> Access | None:
        """Return an earlier access that this access's clock does not include; two reads need no order."""
        writer = self.writer
        if writer is not None and writer.time > clock.get(writer.stream, 0):
            return writer
        if access.write:
            for stream, reader in self.readers.items():
                if reader.time > clock.get(stream, 0):
                    return reader
        return None


class AccessLog:
    """The last accesses to the bytes of each rank's copy of each allocation; a whole buffer is one step."""

    def __init__(self) -> None:
        self._logs: dict[int, dict[int, list[_Segment]]] = {}

    def note(
        self,
        allocation: int,
        rank: int,
        start: int,
        stop: int,
        write: bool,
        stream: int,
        clock: Mapping[int, int],
        name: str = "",
    ) -> Access | None:
        """Log an access of an operation whose clock includes its own stream's time.

        Return an earlier access to some of the same bytes that nothing orders before it, if at least one of the two is
        a write; of several, the one at the lowest bytes. Return None where there is none.
        """
        if start >= stop:
            return None
        access = Access(start, stop, write, stream, clock.get(stream, 0), name)
        segments = self._logs.setdefault(allocation, {}).setdefault(rank, [])
        first, last = _cut(segments, start, stop)
        within = segments[first:last]
        conflicts = (segment.unordered_with(access, clock) for segment in within)
        conflict = next((earlier for earlier in conflicts if earlier is not None), None)
        segments[first:last] = [_Segment(start, stop, access, {})] if write else _read(within, access)
        return conflict

    def forget(self, allocation: int) -> None:
        """Remove the accesses to a freed allocation."""
        self._logs.pop(allocation, None)


def _cut(segments: list[_Segment], start: int, stop: int) -> tuple[int, int]:
    """Cut segments at the range's ends; return the first index and the end index of those within it."""
    if len(segments) == 1 and segments[0].start == start and segments[0].stop == stop:  # mostly whole buffers
        return 0, 1
    _split(segments, start)
    _split(segments, stop)
    return _first_from(segments, start), _first_from(segments, stop)


def _first_from(segments: list[_Segment], at: int) -> int:
    """Return the position of the first segment that starts at `at` or later."""
    return bisect_left(segments, at, key=lambda segment: segment.start)


def _split(segments: list[_Segment], at: int) -> None:
    """Cut the segment that contains a position in its interior, if one does."""
    position = _first_from(segments, at) - 1  # the last segment that starts before it
    if position >= 0 and segments[position].stop > at:
        whole = segments[position]
        segments.insert(position + 1, _Segment(at, whole.stop, whole.writer, dict(whole.readers)))
        whole.stop = at


def _read(within: list[_Segment], access: Access) -> Iterator[_Segment]:
    """Yield the segments with an added reader, and new ones for the bytes between them."""
    reached = access.start
    for segment in within:
        if reached < segment.start:
            yield _Segment(reached, segment.start, None, {access.stream: access})
        segment.readers[access.stream] = access
        yield segment
        reached = segment.stop
    if reached < access.stop:
        yield _Segment(reached, access.stop, None, {access.stream: access})
