"""Shared by the tests of IR text: texts around a body, and what is said about them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import tessera_reference.graph  # noqa: F401  # declares the operations
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.ir.text_reader import read_modules

Reject = Callable[[str], list[Diagnostic]]


@pytest.fixture(scope="session")
def rejected() -> Reject:
    """Return the diagnostics of a text that must be refused, in the order of the text."""

    def reject(text: str) -> list[Diagnostic]:
        with pytest.raises(Rejection) as caught:
            read_modules(text)
        return list(caught.value.diagnostics)

    return reject


@pytest.fixture(scope="session")
def examples() -> ModuleType:
    """The module that finds an example of every operation."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        import examples
    finally:
        sys.path.pop(0)
    return examples
