"""The source of a session's random choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["Choose", "Seeded", "chance", "pick"]

T = TypeVar("T")


class Choose(Protocol):
    """Draws whole numbers; everything else is made of them."""

    def below(self, count: int) -> int:
        """A number from 0 to before `count`."""


class Seeded:
    """From a seed."""

    def __init__(self, seed: object) -> None:
        self._random = random.Random(str(seed))

    def below(self, count: int) -> int:
        return self._random.randrange(count)


def pick(choose: Choose, options: Sequence[T]) -> T:
    """One of several."""
    return options[choose.below(len(options))]


def chance(choose: Choose, percent: int) -> bool:
    """True in so many of a hundred cases."""
    return choose.below(100) >= 100 - percent
