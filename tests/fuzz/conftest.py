"""Shared by the tests of the fuzzer: what the generator can be asked for, and programs written by hand."""

from __future__ import annotations

import pytest

from tessera_conformance.fuzz.choices import SeededChooser
from tessera_conformance.fuzz.commands import FEATURES
from tessera_conformance.fuzz.generator import GeneratedProgram, generate


@pytest.fixture(scope="session")
def programs() -> list[GeneratedProgram]:
    """Enough legal programs to meet every form of the language."""
    return [generate(SeededChooser(f"tests/{number}"), FEATURES) for number in range(1500)]
