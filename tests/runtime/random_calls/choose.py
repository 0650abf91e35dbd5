"""What draws the choices of a session: a seeded generator, or hypothesis."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

__all__ = ["Choose", "Drawn", "Seeded"]

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


class Drawn:
    """From hypothesis, which makes failures small: so 0 is always the plainest choice."""

    def __init__(self, data: Any) -> None:
        self._draw = data.draw

    def below(self, count: int) -> int:
        return int(self._draw(_BELOW[count] if count in _BELOW else st.integers(0, count - 1))) if count > 1 else 0


_BELOW = {count: st.integers(0, count - 1) for count in range(2, 101)}


def pick(choose: Choose, options: Sequence[T]) -> T:
    """One of several."""
    return options[choose.below(len(options))]


def chance(choose: Choose, percent: int) -> bool:
    """True in so many of a hundred cases."""
    return choose.below(100) >= 100 - percent
