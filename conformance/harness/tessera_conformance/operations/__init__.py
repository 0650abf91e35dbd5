"""A kernel library as a table of callables, `--impl=ops:MODULE:TABLE`; the names of operations in other libraries."""

from __future__ import annotations

from tessera_conformance.operations.names import LIBRARIES, OPERATIONS, Operation, calls

__all__ = ["LIBRARIES", "OPERATIONS", "Operation", "calls"]
