"""Who goes first of those that could: first come first served, drawn from a seed, or replayed from a record."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

__all__ = ["Choices", "FirstCome", "Replayed", "Seeded"]


class Choices(Protocol):
    """Resolves every choice of a run; `taken` of `widths` is the record that replays it."""

    taken: list[int]
    widths: list[int]

    def pick(self, count: int) -> int:
        """Which of `count`, at least two."""


class FirstCome:
    """The one that has waited longest. Nothing is recorded, since there is nothing to replay."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """The first."""
        return 0


class Seeded:
    """Any of them, drawn from a seed: the seed is the whole schedule."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """One at random."""
        chosen = self._random.randrange(count)
        self.taken.append(chosen)
        self.widths.append(count)
        return chosen


class Replayed:
    """What a record says, and the first of them once it has ended or names one that is not there."""

    def __init__(self, record: Sequence[int]) -> None:
        self._record = tuple(record)
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """The one of the record."""
        place = len(self.taken)
        recorded = self._record[place] if place < len(self._record) else 0
        chosen = recorded if 0 <= recorded < count else 0
        self.taken.append(chosen)
        self.widths.append(count)
        return chosen
