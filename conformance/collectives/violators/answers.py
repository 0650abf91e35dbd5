"""Violators of the methods on topology, transports, selection, costs and the autotuner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import Rejected
from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed

Answer: TypeAlias = dict[str, Any]


def answered(clause: str, name: str, description: str, method: str, change: Callable[[Answer], Any]) -> Violation:
    """Return a violation whose method changes its answer, in place or by returning another one."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
        answer: Answer = usual(self, **arguments)
        return change(answer) or answer

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


def asked(clause: str, name: str, description: str, method: str, change: Callable[[Answer], Answer]) -> Violation:
    """Return a violation whose method answers another question."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
        answer: Answer = usual(self, **change(arguments))
        return answer

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


Refused: TypeAlias = Callable[[Rejected, Callable[..., Answer], Answer], Answer]
"""Maps a refusal, the method and its arguments to the answer that replaces the refusal."""


def refused_otherwise(clause: str, name: str, description: str, method: str, words: str, instead: Refused) -> Violation:
    """Return a violation whose method has another outcome for refusals with these words in the message."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
        try:
            answer: Answer = usual(self, **arguments)
        except Refusal as refusal:
            if words not in refusal.outcome.message:
                raise
            answer = instead(refusal.outcome, partial(usual, self), arguments)
        return answer

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


def lenient(
    clause: str, name: str, description: str, method: str, words: str, instead: Callable[[Answer], Answer]
) -> Violation:
    """Return a violation whose method answers another question instead of a refusal with these words."""
    return refused_otherwise(
        clause, name, description, method, words, lambda _, answer, given: answer(**instead(given))
    )


def refusing(
    clause: str, name: str, description: str, method: str, words: str, change: Callable[[Rejected], Refusal]
) -> Violation:
    """Return a violation whose method changes refusals with these words in the message."""

    def another(outcome: Rejected, *_: Any) -> Answer:
        raise change(outcome) from None

    return refused_otherwise(clause, name, description, method, words, another)


def silent(rejected: Rejected) -> Refusal:
    """Return the refusal with the same status and no details."""
    return Refusal(rejected.code, rejected.phase, "refused")


def left_out(*names: str) -> Callable[[Answer], Answer]:
    """Return a change of the question that omits some of its parameters."""
    return lambda given: {name: value for name, value in given.items() if name not in names}
