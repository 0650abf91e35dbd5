"""Policies of choices: which of several ready candidates goes first; in order of arrival, seeded, or replayed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence

__all__ = ["Choices", "FirstCome", "Replayed", "Seeded"]


class Choices(ABC):
    """Makes every choice of a run; `taken` of `widths` is the record that replays it."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """Which of `count` candidates, at least two; the choice is recorded."""
        chosen = self.choose(count)
        self.taken.append(chosen)
        self.widths.append(count)
        return chosen

    @abstractmethod
    def choose(self, count: int) -> int:
        """Which of `count` candidates."""


class FirstCome(Choices):
    """The one that has waited longest. Nothing is recorded, since there is nothing to replay."""

    def pick(self, count: int) -> int:
        """The first."""
        return 0

    choose = pick


class Seeded(Choices):
    """One at random: the seed is the whole schedule."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def choose(self, count: int) -> int:
        """One at random."""
        return self._random.randrange(count)


class Replayed(Choices):
    """The one that a record names, or the first once the record has ended or names one that is not there."""

    def __init__(self, record: Sequence[int]) -> None:
        super().__init__()
        self._record = tuple(record)

    def choose(self, count: int) -> int:
        """The one of the record."""
        place = len(self.taken)
        recorded = self._record[place] if place < len(self._record) else 0
        return recorded if 0 <= recorded < count else 0
