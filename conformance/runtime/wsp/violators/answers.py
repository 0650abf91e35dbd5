"""Violators that change the answers of the methods of the WSP runtime, or their questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from tessera_conformance.strength import Violation
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.package import canonical_bytes, content_hash

from ....ir.violators.changes import changed

Answer: TypeAlias = dict[str, Any]
RESULTS = ("run", "step", "statistics")
"""The methods that answer with a result."""


def answered(clause: str, name: str, description: str, change: Callable[[Answer], Any], *methods: str) -> Violation:
    """Return a violation whose methods change their answers, in place or by returning another one."""

    def changing(method: str) -> Callable[..., Answer]:
        usual = getattr(ReferenceAdapter, method)

        def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
            answer: Answer = usual(self, **arguments)
            return change(answer) or answer

        return call

    called = [f"wsp_{method}" for method in methods]
    return changed(clause, name, description, *((ReferenceAdapter, method, changing(method)) for method in called))


def asked(clause: str, name: str, description: str, change: Callable[[Answer], Answer], *methods: str) -> Violation:
    """Return a violation whose methods answer another question."""

    def changing(method: str) -> Callable[..., Answer]:
        usual = getattr(ReferenceAdapter, method)

        def call(self: ReferenceAdapter, **arguments: Any) -> Answer:
            answer: Answer = usual(self, **change(arguments))
            return answer

        return call

    called = [f"wsp_{method}" for method in methods]
    return changed(clause, name, description, *((ReferenceAdapter, method, changing(method)) for method in called))


def with_statistics(clause: str, name: str, description: str, change: Callable[[Answer], Any]) -> Violation:
    """Return a violation with other statistics in results."""
    return answered(clause, name, description, lambda answer: change(answer["statistics"]), *RESULTS)


def with_report(clause: str, name: str, description: str, change: Callable[[Answer], Any]) -> Violation:
    """Return a violation with another report of deadlocks."""

    def of_deadlocks(answer: Answer) -> None:
        if "deadlock" in answer:
            change(answer["deadlock"])

    return answered(clause, name, description, of_deadlocks, *RESULTS)


def without(*names: str) -> Callable[[Answer], None]:
    """Return a change that removes members."""

    def drop(answer: Answer) -> None:
        for name in names:
            answer.pop(name, None)

    return drop


def emptied(name: str) -> Callable[[Answer], None]:
    """Return a change that empties a member."""

    def empty(answer: Answer) -> None:
        answer[name] = type(answer[name])()

    return empty


def repackaged(change: Callable[[dict[str, Any]], Any]) -> Callable[[Answer], None]:
    """Return a change of the document of a package."""

    def rewrite(answer: Answer) -> None:
        document = json.loads(answer["package"])
        change(document)
        answer["package"] = canonical_bytes(document | {"hash": content_hash(document)}).decode()

    return rewrite
