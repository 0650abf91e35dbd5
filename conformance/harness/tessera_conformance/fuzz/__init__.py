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

__all__ = ["KINDS", "GeneratedProgram", "Kind", "Trial", "generate", "make_trial", "programs", "trials"]


def programs(features: Collection[str] = ()) -> SearchStrategy[GeneratedProgram]:
    """A hypothesis strategy of legal programs, of the core and of the features given."""
    from tessera_conformance.fuzz import drawn

    return drawn.programs(features)


def trials(features: Collection[str] = (), kinds: Collection[Kind] = KINDS) -> SearchStrategy[Trial]:
    """A hypothesis strategy of what the command tries: programs with what is known of them."""
    from tessera_conformance.fuzz import drawn

    return drawn.trials(features, kinds)
