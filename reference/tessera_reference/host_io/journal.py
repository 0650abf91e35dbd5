"""The requests that an endpoint has answered, as far as it keeps them: what each passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from .conversion import Request
from .latency import Journey

__all__ = ["Answered", "Journal", "Pair"]

Pair: TypeAlias = tuple[str, str]
"""The ids by which a response belongs to its request (AMB-HIO-12)."""

MOST_KEPT = 16 << 20
"""Characters of frames whose requests are kept, unless told otherwise; older ones are forgotten."""


class Answered(NamedTuple):
    """A request that was answered, and what it passed."""

    request: Request
    journey: Journey
    characters: int


class Journal:
    """The last answered requests by their ids; of a pair that was used again, the later one."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[Pair, Answered] = {}
        self._characters = 0

    def __iter__(self) -> Iterator[Answered]:
        return iter(self._kept.values())

    def get(self, pair: Pair) -> Answered | None:
        """The request of a pair, or None where it is not known."""
        return self._kept.get(pair)

    def add(self, answered: Answered) -> None:
        """Keep a request, and forget the oldest ones where they are too much."""
        pair = answered.request.correlation_id, answered.request.request_id
        self._drop(pair)
        self._kept[pair] = answered
        self._characters += answered.characters
        while self._characters > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, pair: Pair) -> None:
        before = self._kept.pop(pair, None)
        self._characters -= 0 if before is None else before.characters
