"""The same generator as hypothesis strategies, which shrink: for the tests of a front end's own authors."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from hypothesis import strategies as st

from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.generator import GeneratedProgram, generate
from tessera_conformance.fuzz.trials import KINDS, Kind, Trial, make_trial


class DrawnChooser(Chooser):
    """Decisions that hypothesis draws."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def below(self, bound: int) -> int:
        """A drawn number."""
        return self._draw(st.integers(0, bound - 1))

    def place(self) -> int:
        """Nowhere: hypothesis keeps its own account."""
        return 0

    def part(self, start: int) -> None:
        """Nothing to keep."""


@st.composite
def programs(draw: Any, features: Collection[str] = ()) -> GeneratedProgram:
    """Legal programs of the core and of the features given."""
    return generate(DrawnChooser(draw), features)


@st.composite
def trials(draw: Any, features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> Trial:
    """Trials of the kinds given: legal programs, pairs of one meaning, illegal programs, mutated texts."""
    return make_trial(DrawnChooser(draw), features, kinds)
