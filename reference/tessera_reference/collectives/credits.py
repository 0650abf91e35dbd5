"""The credits of links (collectives spec 4.2; AMB-COLL-17): a chunk in flight has one of every link on its way.

`CreditLimiter` is the rule alone, asked chunk by chunk; in `travel.py` messages follow it in time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..abi.status import invalid
from ..numerics.errors import shown
from .argument_checks import require_known, require_within

__all__ = ["CreditLimiter", "ReadyChunk"]

_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ReadyChunk:
    """A chunk that could be issued, and the links on its way."""

    id: str
    links: tuple[str, ...]


class CreditLimiter:
    """A limiter of the chunks in flight on links of so many credits."""

    def __init__(self, credits: Mapping[str, int]) -> None:
        for link, count in credits.items():
            require_within("collectives.limiter", f"credits of {link}", count, 1, _MOST)
        self._left = dict(credits)
        self._in_flight: dict[str, tuple[str, ...]] = {}

    def acquire(self, ready: Sequence[ReadyChunk]) -> str | None:
        """Issue the first of these chunks for which every link has credits, and take them; None where there is none.

        Raises `Failure` with TESS_ERR_INVALID_VALUE for a chunk that is in flight, or a link that there is not.
        """
        function = "collectives.acquire"
        for chunk in ready:
            for link in chunk.links:
                require_known(function, "link", link, tuple(self._left))
            if chunk.id in self._in_flight:
                raise invalid(function, f"chunk {shown(chunk.id)} in flight", "a chunk that waits")
        for chunk in ready:
            needed = Counter(chunk.links)
            if all(self._left[link] >= count for link, count in needed.items()):
                for link in chunk.links:
                    self._left[link] -= 1
                self._in_flight[chunk.id] = chunk.links
                return chunk.id
        return None

    def release(self, chunk: str) -> None:
        """Return the credits of a chunk. Raises `Failure` with TESS_ERR_INVALID_VALUE where it is not in flight."""
        require_known("collectives.release", "chunk", chunk, tuple(self._in_flight))
        for link in self._in_flight.pop(chunk):
            self._left[link] += 1
