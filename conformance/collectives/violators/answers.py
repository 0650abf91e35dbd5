"""Violators of the methods on topology, transports, selection, costs and the autotuner."""

from functools import partial

from tessera_conformance.adapter import Refusal
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed


def answered(clause, name, description, method, change):
    """Return a violation whose method changes its answer, in place or by returning another one."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self, **arguments):
        answer = usual(self, **arguments)
        return change(answer) or answer

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


def asked(clause, name, description, method, change):
    """Return a violation whose method answers another question."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self, **arguments):
        return usual(self, **change(arguments))

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


def refused_otherwise(clause, name, description, method, words, instead):
    """Return a violation whose method has another outcome for refusals with these words in the message."""
    usual = getattr(ReferenceAdapter, f"collectives_{method}")

    def call(self, **arguments):
        try:
            answer = usual(self, **arguments)
        except Refusal as refusal:
            if words not in refusal.outcome.message:
                raise
            answer = instead(refusal.outcome, partial(usual, self), arguments)
        return answer

    return changed(clause, name, description, (ReferenceAdapter, f"collectives_{method}", call))


def lenient(clause, name, description, method, words, instead):
    """Return a violation whose method answers another question instead of a refusal with these words."""
    return refused_otherwise(
        clause, name, description, method, words, lambda _, answer, given: answer(**instead(given))
    )


def refusing(clause, name, description, method, words, change):
    """Return a violation whose method changes refusals with these words in the message."""

    def another(outcome, *_):
        raise change(outcome) from None

    return refused_otherwise(clause, name, description, method, words, another)


def silent(rejected):
    """Return the refusal with the same status and no details."""
    return Refusal(rejected.code, rejected.phase, "refused")


def left_out(*names):
    """Return a change of the question that omits some of its parameters."""
    return lambda given: {name: value for name, value in given.items() if name not in names}
