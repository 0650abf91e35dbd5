"""The sources of the generator's decisions, and the names that it gives."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from tessera_conformance.dsl import DTYPES, RESERVED

# Sources of the generator's decisions, all through one method, `below`.
#
# Every decision of the generator is a number below a bound, and 0 is always the simplest choice, so that a source may
# be a seeded generator, a recorded tape, or hypothesis, which shrinks numbers towards 0.


T = TypeVar("T")


class Chooser(ABC):
    """A source of decisions."""

    @abstractmethod
    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1; 0 is the simplest choice."""

    @abstractmethod
    def place(self) -> int:
        """Return the place of the next decision, for `part`."""

    @abstractmethod
    def part(self, start: int) -> None:
        """The decisions since `start` made one part, such as a statement, which can be left out as a whole."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, once_in: int) -> bool:
        """True once in so many times; False is simpler."""
        return self.below(once_in) == once_in - 1

    def between(self, lowest: int, highest: int) -> int:
        """A number from lowest to highest, both included."""
        return lowest + self.below(highest - lowest + 1)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in some order; their own is the simplest."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in items]


class RecordingChooser(Chooser):
    """Decisions that are kept on `tape`, and which stretches of them are the parts of what was made."""

    def __init__(self) -> None:
        self.tape: list[int] = []
        self.parts: list[tuple[int, int]] = []

    def place(self) -> int:
        """Return the number of decisions so far."""
        return len(self.tape)

    def part(self, start: int) -> None:
        """Keep the stretch."""
        self.parts.append((start, len(self.tape)))


class SeededChooser(RecordingChooser):
    """Decisions that follow from a seed, the same on every machine."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._next = random.Random(seed).random

    def below(self, bound: int) -> int:
        """The next number of the generator, scaled."""
        number = int(self._next() * bound)
        self.tape.append(number)
        return number


class TapeChooser(RecordingChooser):
    """Decisions read from a tape; one that is too large for its bound is cut, and after the end all are 0."""

    def __init__(self, given: Sequence[int]) -> None:
        super().__init__()
        self._given = given

    def below(self, bound: int) -> int:
        """The next number that was given."""
        place = len(self.tape)
        number = min(self._given[place], bound - 1) if place < len(self._given) else 0
        self.tape.append(number)
        return number


# Names for what a program declares: plain ones first, then those that resemble keywords, dtypes and literals.


VALUES = ("v", "a", "T", "x", "_", "e", "x2x", "E1", "letter", "in_", "If", "opx", "axes", "shape", "X_x", "_9", "fp")
FUNCTIONS = ("f", "g", "step", "_f", "modules", "func_", "x", "Tensor", "e5")
TYPES = ("Row", "T", "x_t", "typed", "Matrix", "fp_32")
MODULES = ("m", "demo", "_", "x", "module_")
MESHES = ("g", "grid", "mesh_", "x")
AXES = ("dp", "tp", "rows", "x", "axis")
DIMENSIONS = ("N", "M", "K", "n_1", "rows")
"""A dimension's name holds no lower-case x (AMB-LANG-121)."""

FORBIDDEN = frozenset(
    {*RESERVED, *DTYPES, "true", "false", "assert", "tensor", "memref", "fragment", "fn", "addrspace"}
)
"""Reserved words, and those whose reading as a name depends on what follows."""


class Names:
    """Names that have not been given yet; equal names never stand for two things, unless asked for."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._taken: set[str] = set(FORBIDDEN)

    def fresh(self, stems: tuple[str, ...]) -> str:
        """A new name: a stem, and a number where the stem is taken."""
        stem = self._chooser.pick(stems)
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name


def renaming(names: list[str], chooser: Chooser) -> dict[str, str]:
    """Another name for each of these, no two the same, none with an x, so that dimensions can take them too."""
    numbers = chooser.shuffled(range(len(names)))
    stem = chooser.pick(("r", "q_", "V", "e"))
    return {name: f"{stem}{number}" for name, number in zip(names, numbers, strict=True)}
