"""Helpers of violators of IR texts: verifiers that overlook one kind of mistake, or refuse one legal form."""

from __future__ import annotations

import re
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import Diagnostic
from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter


class Overlooking(ReferenceAdapter):
    """The reference, which accepts a text whose first diagnostic matches `pattern`."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = pattern

    def language_verify_ir(self, **request: Any) -> dict[str, Any]:
        """Return no warnings if the first diagnostic matches."""
        try:
            return super().language_verify_ir(**request)
        except Refusal as refusal:
            if re.search(self._pattern, refusal.outcome.message) is None:
                raise
            return {"warnings": []}


class Choosy(ReferenceAdapter):
    """The reference, which refuses a text that matches `pattern`, and does not run it either."""

    def __init__(self, pattern: str, category: str) -> None:
        super().__init__()
        self._pattern = pattern
        self._category = category

    def language_verify_ir(self, *, text: str, **request: Any) -> dict[str, Any]:
        """Raise an error if the pattern matches."""
        self._look(text)
        return super().language_verify_ir(text=text, **request)

    def language_execute_ir(self, *, text: str, **request: Any) -> dict[str, Any]:
        """Execute the text unless its form is refused."""
        self._look(text)
        return super().language_execute_ir(text=text, **request)

    def _look(self, text: str) -> None:
        if re.search(self._pattern, text, re.DOTALL):
            message = "this form is not known"
            phase = "parse" if self._category == "syntax" else "verify"
            raise Refusal(self._category, phase, message, [Diagnostic(self._category, message, line=1)])


class Misreading(ReferenceAdapter):
    """The reference, which reads matches of `pattern` as another text."""

    def __init__(self, pattern: str, replacement: str) -> None:
        super().__init__()
        self._pattern = pattern
        self._replacement = replacement

    def language_verify_ir(self, *, text: str, **request: Any) -> dict[str, Any]:
        """Verify the other text."""
        return super().language_verify_ir(text=self._other(text), **request)

    def language_execute_ir(self, *, text: str, **request: Any) -> dict[str, Any]:
        """Execute the other text."""
        return super().language_execute_ir(text=self._other(text), **request)

    def _other(self, text: str) -> str:
        return re.sub(self._pattern, self._replacement, text)


def overlooks(name: str, clause: str, description: str, pattern: str) -> Violation:
    """Return a violation that overlooks mistakes whose diagnostic matches the pattern."""
    return replaced(clause, f"does not see {description}", lambda: Overlooking(pattern), name=name)


def turns_down(name: str, clause: str, description: str, pattern: str, category: str = "syntax") -> Violation:
    """Return a violation that refuses a legal form."""
    return replaced(clause, f"refuses {description}", lambda: Choosy(pattern, category), name=name)


def misreads(name: str, clause: str, description: str, pattern: str, replacement: str) -> Violation:
    """Return a violation that reads one text as another."""
    return replaced(clause, description, lambda: Misreading(pattern, replacement), name=name)
