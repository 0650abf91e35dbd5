"""Builders that the violators of this chapter share."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import Rejected
from tessera_conformance.strength import Around, Violation

from ...ir.violators.changes import around, changed

Change = Callable[..., Any]
Builder = Callable[[str, str, str, Change], Violation]


def at(place: str) -> Builder:
    """Return a builder of violations of one function: `change` gets the function that it replaces and its arguments."""
    return lambda clause, name, description, change: changed(clause, name, description, (place, around(change)))


def result_of(place: str) -> Builder:
    """Return a builder of violations of one function: `change` gets its result."""
    return lambda clause, name, description, change: at(place)(
        clause, name, description, lambda usual, *given, **named: change(usual(*given, **named))
    )


def updated(place: str, clause: str, name: str, description: str, **members: Any) -> Violation:
    """Return a violation that changes members of a table."""
    return changed(clause, name, description, (place, Around(lambda usual: {**usual, **members})))


def of_method(clause: str, name: str, description: str, method: str, change: Change) -> Violation:
    """Return a violation of a method: `change` gets the method, bound, and its arguments by name."""
    return at(f"adapter.ReferenceAdapter.collectives_{method}")(
        clause, name, description, lambda usual, self, **given: change(partial(usual, self), given)
    )


def answered(clause: str, name: str, description: str, method: str, change: Change) -> Violation:
    """Return a violation whose method changes its answer."""
    return of_method(clause, name, description, method, lambda usual, given: change(usual(**given)))


def asked(clause: str, name: str, description: str, method: str, change: Change) -> Violation:
    """Return a violation whose method answers another question."""
    return of_method(clause, name, description, method, lambda usual, given: usual(**change(given)))


def refused_otherwise(clause: str, name: str, description: str, method: str, words: str, instead: Change) -> Violation:
    """Return a violation whose method has another outcome for refusals with these words in the message."""

    def call(usual: Change, given: dict[str, Any]) -> Any:
        try:
            return usual(**given)
        except Refusal as refusal:
            if words not in refusal.outcome.message:
                raise
            return instead(refusal.outcome, usual, given)

    return of_method(clause, name, description, method, call)


def lenient(clause: str, name: str, description: str, method: str, words: str, instead: Change) -> Violation:
    """Return a violation whose method answers another question instead of a refusal with these words."""
    return refused_otherwise(clause, name, description, method, words, lambda _, usual, given: usual(**instead(given)))


def refusing(clause: str, name: str, description: str, method: str, words: str, change: Change) -> Violation:
    """Return a violation whose method changes refusals with these words in the message."""

    def another(outcome: Rejected, *_: Any) -> Any:
        raise change(outcome) from None

    return refused_otherwise(clause, name, description, method, words, another)


def each(member: str, change: Change) -> Change:
    """Return a change of the entries of a list in the answer: `change` gets one and returns its other members."""
    return lambda answer: answer | {member: [entry | change(entry) for entry in answer[member]]}


def silent(rejected: Rejected) -> Refusal:
    """Return the refusal with the same status and no details."""
    return Refusal(rejected.code, rejected.phase, "refused")


def left_out(*names: str) -> Change:
    """Return a change of the question that omits some of its parameters."""
    return lambda given: {name: value for name, value in given.items() if name not in names}
