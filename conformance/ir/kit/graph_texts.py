"""Pieces of Graph IR in the generic form of MLIR, for texts without a front end (language spec, 1, 5, 13.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

MATRIX = "tensor<2x2xfp32>"
"""The default type."""


def module(*members: str, name: str = "m") -> str:
    """Return a module around functions and meshes; the first member's first line is line 2."""
    return "\n".join(['"builtin.module"() ({', *members, f'}}) {{sym_name = "{name}"}} : () -> ()']) + "\n"


def func(
    *operations: str,
    takes: str = f"%a: {MATRIX}, %b: {MATRIX}, %c: bool",
    gives: str = MATRIX,
    name: str = "f",
    profile: str = "",
) -> str:
    """Return a function; its first operation is three lines below the module's first."""
    types = ", ".join(part.partition(": ")[2] for part in re.split(r", (?=%)", takes) if part)
    signature = f"({types}) -> ({gives})"
    declared = f'numerics_profile = "{profile}", ' if profile else ""
    return "\n".join(
        [
            '  "tessera.graph.func"() ({',
            f"  ^bb0({takes}):",
            *(f"    {operation}" for operation in operations),
            f'  }}) {{sym_name = "{name}", {declared}function_type = {signature}}} : () -> ()',
        ]
    )


def softmax(operand: str, result: str, more: str = "") -> str:
    """Return an operation of one operand and one result, of one type."""
    return f'{result} = "tessera.graph.softmax"({operand}){more} : ({MATRIX}) -> {MATRIX}'


def returns(value: str) -> str:
    """Return the end of a function."""
    return f'"tessera.graph.return"({value}) : ({MATRIX}) -> ()'


def branch(then: Sequence[str], otherwise: Sequence[str], result: str = "%r", condition: str = "(%c) ") -> str:
    """Return a branch that yields one value from each of its regions, lists of operations."""
    return "\n    ".join(
        [
            f'{result} = "tessera.graph.if"{condition}({{',
            *(f"  {operation}" for operation in then),
            "}, {",
            *(f"  {operation}" for operation in otherwise),
            f"}}) : (bool) -> {MATRIX}",
        ]
    )


def yields(value: str) -> str:
    """Return the end of a region."""
    return f'"tessera.graph.yield"({value}) : ({MATRIX}) -> ()'
