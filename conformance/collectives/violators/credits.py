"""Limiters that exceed the credits of links, lose them, or issue nothing although a chunk could be issued.

Collectives specification, 4.2.
"""

from tessera_reference.collectives.links import CreditLimiter, ReadyChunk

from ...ir.violators.changes import changed


class OneMore(CreditLimiter):
    """A limiter with one credit more than each link has."""

    def __init__(self, credits):
        super().__init__({link: count + 1 for link, count in credits.items()})


class OneForAll(CreditLimiter):
    """A limiter whose links share the credits of the first."""

    def __init__(self, credits):
        self._shared = next(iter(credits))
        super().__init__(credits)

    def acquire(self, ready):
        """Take one credit for a chunk, wherever it goes."""
        return super().acquire([ReadyChunk(chunk.id, (self._shared,)) for chunk in ready])


class FirstInLine(CreditLimiter):
    """A limiter in which a chunk that waits for a credit blocks the chunks after it."""

    def acquire(self, ready):
        """Issue the first ready chunk or none."""
        return super().acquire(ready[:1])


class LastInLine(CreditLimiter):
    """A limiter that does not consider chunks before the last ready one."""

    def acquire(self, ready):
        """Issue the last ready chunk or none."""
        return super().acquire(ready[-1:])


class TakesBeforeItLooks(CreditLimiter):
    """A limiter in which a chunk that cannot be issued keeps the credits that it has taken."""

    def acquire(self, ready):
        """Take credits link by link."""
        issued = super().acquire(ready)
        if issued is None:
            for link in ready[0].links:
                self._left[link] = max(self._left[link] - 1, 0)
        return issued


class ReturnsTwice(CreditLimiter):
    """A limiter that gains a credit with a second release of a chunk."""

    def release(self, chunk):
        """Release without forgetting the chunk."""
        links = self._in_flight.get(chunk) or self._before.get(chunk, ())
        self._before[chunk] = links
        self._in_flight[chunk] = links
        super().release(chunk)

    @property
    def _before(self):
        return self.__dict__.setdefault("released", {})


def limiter(clause, name, description, other):
    """Return a violation with another limiter."""
    return changed(clause, name, description, ("adapter.collectives.CreditLimiter", other))


VIOLATIONS = [
    limiter("COLL-04.2-01", "shared_credits", "has one number of credits for all links", OneForAll),
    limiter("COLL-04.2-02", "limiter_one_more", "lets one more chunk go than a link has credits", OneMore),
    limiter("COLL-04.2-03", "takes_before_it_looks", "keeps credits for what it does not issue", TakesBeforeItLooks),
    limiter("COLL-04.2-03", "returns_twice", "returns credits as often as it is told", ReturnsTwice),
    limiter("COLL-04.2-04", "first_in_line", "tries the first ready chunk alone", FirstInLine),
    limiter("COLL-04.2-04", "last_in_line", "tries the last ready chunk alone", LastInLine),
]
