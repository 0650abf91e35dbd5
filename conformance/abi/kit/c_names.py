"""The names of the C interface in the order of the specification (runtime specification, section 4 and 6)."""

from __future__ import annotations

from tessera_conformance.interface import interface

__all__ = ["COLLECTIVE_OPERATORS", "COPY_KINDS", "LAUNCH_FLAGS", "MEMORY_KINDS", "PROTOTYPES", "STATUSES"]

STATUSES = interface().enumerators["tessStatus_t"]
MEMORY_KINDS = interface().enumerators["tessMemKind"]
COPY_KINDS = interface().enumerators["tessCopyKind"]
COLLECTIVE_OPERATORS = interface().enumerators["tessCollOp"]
LAUNCH_FLAGS = interface().enumerators["tessLaunchFlags"]

PROTOTYPES = {name: (function.clauses[0], function.c) for name, function in interface().c_functions.items()}
"""Every function of the host interface: the clause of its prototype, and its parameters."""
