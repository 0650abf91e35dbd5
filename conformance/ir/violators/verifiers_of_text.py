"""Helpers of violators of IR texts: verifiers that overlook one kind of mistake, or refuse one legal form."""

import re

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import Diagnostic
from tessera_conformance.strength import replaced
from tessera_reference.adapter import make

from .changes import around, wrapped


def overlooks(clause, name, description, pattern):
    """Return a violation that overlooks mistakes whose first diagnostic matches the pattern."""

    def verify(usual, self, **request):
        try:
            return usual(self, **request)
        except Refusal as refusal:
            if re.search(pattern, refusal.outcome.message) is None:
                raise
            return {"warnings": []}

    return wrapped(clause, name, f"does not see {description}", "adapter.ReferenceAdapter.language_verify_ir", verify)


def _reading(clause, name, description, read):
    """Return a violation that verifies and executes what `read` makes of a text."""
    change = around(lambda usual, self, *, text, **request: usual(self, text=read(text), **request))
    places = [(f"adapter.ReferenceAdapter.language_{method}", change) for method in ("verify_ir", "execute_ir")]
    return replaced(clause, description, make, *places, name=name)


def turns_down(clause, name, description, pattern, category="syntax"):
    """Return a violation that refuses a legal form."""

    def read(text):
        if re.search(pattern, text, re.DOTALL):
            message, phase = "this form is not known", "parse" if category == "syntax" else "verify"
            raise Refusal(category, phase, message, [Diagnostic(category, message, line=1)])
        return text

    return _reading(clause, name, f"refuses {description}", read)


def misreads(clause, name, description, pattern, replacement):
    """Return a violation that reads one text as another."""
    return _reading(clause, name, description, lambda text: re.sub(pattern, replacement, text))
