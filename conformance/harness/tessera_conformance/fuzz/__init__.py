"""Generated programs for fuzzing any front end through the protocol (docs/fuzzing.md).

The generator decides through a `Chooser`: the command line replays it from a seed, and hypothesis draws and shrinks the
same programs. Only `programs` and `trials` need hypothesis.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tessera_conformance.fuzz.statements import GeneratedProgram, generate
from tessera_conformance.fuzz.trials import KINDS, Kind, Trial, make_trial

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def programs(features: Collection[str] = ()) -> SearchStrategy[GeneratedProgram]:
    """Return a hypothesis strategy of legal programs, of the core and the given features."""
    from tessera_conformance.fuzz.drawn import drawn

    return drawn(lambda chooser: generate(chooser, features))


def trials(features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> SearchStrategy[Trial]:
    """Return a hypothesis strategy of the command's trials: programs with the facts known about them."""
    from tessera_conformance.fuzz.drawn import drawn

    return drawn(lambda chooser: make_trial(chooser, features, kinds))
