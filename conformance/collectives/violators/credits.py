"""Limiters that exceed the credits of links, lose them, or issue nothing although a chunk could be issued.

Collectives specification, 4.2.
"""

from tessera_reference.collectives.links import CreditLimiter, ReadyChunk

from ...ir.violators.changes import changed
from .changes import at


def takes_before_it_looks(usual, self, ready):
    issued = usual(self, ready)
    if issued is None:
        for link in ready[0].links:
            self._left[link] = max(self._left[link] - 1, 0)
    return issued


def returns_twice(usual, self, chunk):
    links = self._in_flight.get(chunk) or self.__dict__.get("released", {}).get(chunk, ())
    self.__dict__.setdefault("released", {})[chunk] = self._in_flight[chunk] = links
    usual(self, chunk)


issuing = at("collectives.links.CreditLimiter.acquire")

VIOLATIONS = [
    issuing("COLL-04.2-01", "shared_credits", "has one number of credits for all links", lambda usual, self, ready:
        usual(self, [ReadyChunk(chunk.id, (next(iter(self._left)),)) for chunk in ready])),
    changed("COLL-04.2-02", "limiter_one_more", "lets one more chunk go than a link has credits",
        ("adapter.collectives.CreditLimiter",
         lambda credits: CreditLimiter({link: count + 1 for link, count in credits.items()}))),
    issuing("COLL-04.2-03", "takes_before_it_looks", "keeps credits for what it does not issue", takes_before_it_looks),
    at("collectives.links.CreditLimiter.release")("COLL-04.2-03", "returns_twice",
        "returns credits as often as it is told", returns_twice),
    issuing("COLL-04.2-04", "first_in_line", "tries the first ready chunk alone",
        lambda usual, self, ready: usual(self, ready[:1])),
    issuing("COLL-04.2-04", "last_in_line", "tries the last ready chunk alone",
        lambda usual, self, ready: usual(self, ready[-1:])),
]  # fmt: skip
