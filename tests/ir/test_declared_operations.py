"""How a class becomes an operation (`ir/operation.py`)."""

from __future__ import annotations

import pytest

from tessera_reference.ir.operation import OPERATIONS, Operation, operation


def test_an_operation_that_lacks_what_its_level_needs_is_not_declared() -> None:
    class Hollow(Operation):
        """Infers nothing and executes nothing."""

    with pytest.raises(TypeError, match=r"operation tessera\.graph\.hollow does not implement execute, infer"):
        operation("tessera.graph.hollow", clauses=())(Hollow)
    assert "tessera.graph.hollow" not in OPERATIONS
