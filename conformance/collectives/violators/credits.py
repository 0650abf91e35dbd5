"""Limiters that exceed the credits of links, lose them, or issue nothing where something could be.

Collectives specification, 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.adapter import collectives as adapter
from tessera_reference.collectives.links import CreditLimiter, ReadyChunk

from ...ir.violators.changes import changed


class OneMore(CreditLimiter):
    """A credit more than each link has."""

    def __init__(self, credits: Mapping[str, int]) -> None:
        super().__init__({link: count + 1 for link, count in credits.items()})


class OneForAll(CreditLimiter):
    """All links share the credits of the first."""

    def __init__(self, credits: Mapping[str, int]) -> None:
        self._shared = next(iter(credits))
        super().__init__(credits)

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """A chunk takes one credit, wherever it goes."""
        return super().acquire([ReadyChunk(chunk.id, (self._shared,)) for chunk in ready])


class FirstLink(CreditLimiter):
    """A chunk takes a credit of the first link on its way alone."""

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """The others are not counted."""
        return super().acquire([ReadyChunk(chunk.id, chunk.links[:1]) for chunk in ready])


class FirstInLine(CreditLimiter):
    """A chunk that waits for a credit holds up the chunks after it."""

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """The first ready chunk or none."""
        return super().acquire(ready[:1])


class LastInLine(CreditLimiter):
    """Chunks before the one that is issued are not looked at again."""

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """The last ready chunk or none."""
        return super().acquire(ready[-1:])


class TakesBeforeItLooks(CreditLimiter):
    """A chunk that cannot be issued keeps the credits that it has got."""

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """Credits are taken link by link."""
        issued = super().acquire(ready)
        if issued is None:
            for link in ready[0].links:
                self._left[link] = max(self._left[link] - 1, 0)
        return issued


class KeepsOthers(CreditLimiter):
    """A chunk that arrives returns the credit of its first link alone."""

    def release(self, chunk: str) -> None:
        """The other credits are lost."""
        self._in_flight[chunk] = self._in_flight[chunk][:1]
        super().release(chunk)


class ReturnsTwice(CreditLimiter):
    """A second release of a chunk gains a credit."""

    def release(self, chunk: str) -> None:
        """The chunk is not forgotten."""
        links = self._in_flight.get(chunk) or self._before.get(chunk, ())
        self._before[chunk] = links
        self._in_flight[chunk] = links
        super().release(chunk)

    @property
    def _before(self) -> dict[str, tuple[str, ...]]:
        return self.__dict__.setdefault("released", {})  # type: ignore[no-any-return]


def limiter(clause: str, name: str, description: str, other: type[Any]) -> Violation:
    """Another limiter."""
    return changed(clause, name, description, (adapter, "CreditLimiter", other))


VIOLATIONS: list[Violation] = [
    limiter("COLL-04.2-01", "shared_credits", "has one number of credits for all links", OneForAll),
    limiter("COLL-04.2-02", "limiter_one_more", "lets one more chunk go than a link has credits", OneMore),
    limiter("COLL-04.2-03", "first_link_counts", "counts the first link of a way alone", FirstLink),
    limiter("COLL-04.2-03", "takes_before_it_looks", "keeps credits for what it does not issue", TakesBeforeItLooks),
    limiter("COLL-04.2-03", "keeps_others", "returns the credit of the first link alone", KeepsOthers),
    limiter("COLL-04.2-03", "returns_twice", "returns credits as often as it is told", ReturnsTwice),
    limiter("COLL-04.2-04", "first_in_line", "tries the first ready chunk alone", FirstInLine),
    limiter("COLL-04.2-04", "last_in_line", "tries the last ready chunk alone", LastInLine),
]
