"""Violators that change the answers of the methods of the WSP runtime, or their questions."""

import json

from tessera_reference.wsp.package import canonical_bytes, content_hash

from ....ir.violators.changes import around, changed

RESULTS = ("run", "step", "statistics")
"""The methods that answer with a result."""


def methods_as(call, methods):
    """Return the substitutions of methods by `call`, which gets the usual method first."""
    return [(f"adapter.ReferenceAdapter.wsp_{method}", around(call)) for method in methods]


def answered(clause, name, description, change, *methods):
    """Return a violation whose methods change their answers, in place or by returning another one."""

    def call(usual, self, **arguments):
        answer = usual(self, **arguments)
        return change(answer) or answer

    return changed(clause, name, description, *methods_as(call, methods))


def asked(clause, name, description, change, *methods):
    """Return a violation whose methods answer another question."""
    return changed(
        clause, name, description, *methods_as(lambda usual, self, **given: usual(self, **change(given)), methods)
    )


def with_statistics(clause, name, description, change):
    """Return a violation with other statistics in results."""
    return answered(clause, name, description, lambda answer: change(answer["statistics"]), *RESULTS)


def of_report(change):
    """Return a change of the report of a deadlock, if there is one."""

    def of_deadlocks(answer):
        if "deadlock" in answer:
            change(answer["deadlock"])

    return of_deadlocks


def with_report(clause, name, description, change):
    """Return a violation with another report of deadlocks."""
    return answered(clause, name, description, of_report(change), *RESULTS)


def repackaged(change):
    """Return a change of the document of a package."""

    def rewrite(answer):
        document = json.loads(answer["package"])
        change(document)
        answer["package"] = canonical_bytes(document | {"hash": content_hash(document)}).decode()

    return rewrite
