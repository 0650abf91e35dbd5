"""Which accesses to memory are ordered: by stream, by event, by the host (runtime spec 12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .memory import Block, Place

__all__ = ["Clock", "Order", "Use"]

Clock = dict[int, int]
"""Of each stream, the last operation that is known to be over."""


@dataclass(frozen=True, eq=False)
class Use:
    """An access, on one rank of a mesh or, where that is None, on all."""

    place: Place
    write: bool
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class Noted:
    use: Use
    devices: frozenset[int]
    stream: int
    time: int


@dataclass
class Order:
    """The clocks of the streams and of the host, and the accesses that the host does not know to be over."""

    clocks: dict[int, Clock] = field(default_factory=dict)
    host: Clock = field(default_factory=dict)
    noted: list[Noted] = field(default_factory=list)
    races: int = 0
    """Unordered pairs that the runtime has to find."""
    possible_races: int = 0

    def clock(self, stream: int) -> Clock:
        """A stream knows what the host knows."""
        return join(self.clocks.setdefault(stream, {}), self.host)

    def note(self, stream: int, ranks: Sequence[int], uses: Iterable[Use]) -> bool:
        """An operation with these accesses is queued, on a mesh with these devices as its ranks; whether one is
        unordered with an earlier one."""
        uses = list(uses)
        clock = self.clock(stream)
        if not uses:
            return False
        clock[stream] = clock.get(stream, 0) + 1
        raced = False
        on = [frozenset(ranks if use.rank is None else (ranks[use.rank],)) for use in uses]
        for use, devices in zip(uses, on, strict=True):
            for earlier in self.noted:
                if conflicting(use, earlier.use) and earlier.time > clock.get(earlier.stream, 0):
                    raced = True
                    if devices & earlier.devices or not use.place.block.of_device:
                        self.races += 1
                    self.possible_races += 1
        self.noted += [Noted(*each, stream, clock[stream]) for each in zip(uses, on, strict=True)]
        return raced

    def record(self, stream: int) -> Clock:
        """What a recording on a stream knows."""
        return dict(self.clock(stream))

    def wait(self, stream: int, recorded: Clock) -> None:
        """A stream learns what a recording knew."""
        join(self.clock(stream), recorded)

    def synchronize(self, stream: int) -> None:
        """The host learns what a stream knows."""
        join(self.host, self.clock(stream))
        self.noted = [each for each in self.noted if each.time > self.host.get(each.stream, 0)]

    def is_quiet(self, block: Block, writes_only: bool = False) -> bool:
        """No queued work uses a block, or writes it."""
        return not any(each.use.place.block is block and (each.use.write or not writes_only) for each in self.noted)


def join(clock: Clock, other: Clock) -> Clock:
    for stream, time in other.items():
        clock[stream] = max(time, clock.get(stream, 0))
    return clock


def conflicting(one: Use, other: Use) -> bool:
    """Both touch some byte, and one of them writes it."""
    a, b = one.place, other.place
    if a.block is not b.block or not (one.write or other.write):
        return False
    return a.start < b.start + b.size and b.start < a.start + a.size
