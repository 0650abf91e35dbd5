"""Programs of the WSP runtime: compiled, loaded from the bytes of the package, and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.schemas import validator
from tessera_reference.wsp.builder import Program
from tessera_reference.wsp.package import load
from tessera_reference.wsp.run import Run

Execute = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def execute() -> Execute:
    """The result of a program, which follows its schema; arguments as of `Run`."""
    schema = validator("tessera:wsp-result")

    def run(program: Program, **arguments: Any) -> dict[str, Any]:
        result = Run(load(program.compile().package), **arguments).finish().result()
        assert [error.message for error in schema.iter_errors(result)] == []
        return result

    return run


@pytest.fixture
def program() -> Program:
    """A program with nothing in it."""
    return Program("p")
