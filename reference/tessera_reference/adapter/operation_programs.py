"""Operations of the language by name, without a program of the asker's: the reference writes the program of one line.

`numerics.evaluate` computes what the numerics have by themselves; all else that a vector may ask, operators, movements,
normalizations and optimizers, is an operation of Graph IR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.dsl import program, type_of
from tessera_conformance.tensors import Tensor

from ..ir.operation import SPELLINGS

__all__ = ["is_of_language", "program_of"]

OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "greater": ">",
    "less_or_equal": "<=",
    "greater_or_equal": ">=",
}

WORD = re.compile(r"[a-z][a-z0-9_]*")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def is_of_language(operation: str) -> bool:
    """Whether the language has an operator or a pure function of that name."""
    return operation == "negate" or operation in OPERATORS or f"op.{operation}" in SPELLINGS


def program_of(
    operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]
) -> tuple[str, dict[str, Tensor]]:
    """A program whose function `f` is the operation, and its inputs by name.

    Raises `Refusal` for an attribute that cannot be written, or that an operator is given.
    """
    named = {f"x{place}": value for place, value in enumerate(inputs)}
    written = [f"{name}={_written(operation, name, value)}" for name, value in attributes.items()]
    if operation in OPERATORS or operation == "negate":
        operands = 1 if operation == "negate" else 2
        if len(inputs) != operands:
            raise _refusal(operation, "number of operands", len(inputs), str(operands))
        if written:
            raise _refusal(operation, "attribute", next(iter(attributes)), "none")
        expression = f"-{next(iter(named))}" if operands == 1 else f" {OPERATORS[operation]} ".join(named)
    else:
        expression = f"op.{operation}({', '.join([*named, *written])})"
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in named.items())
    return program(f"return {expression};", parameters=parameters), named


def _written(operation: str, name: str, value: Any) -> str:
    """An attribute as the language writes it; a decimal number may come as text, which keeps its digits."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(operation, name, each) for each in value)}]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str) and (WORD.fullmatch(value) or NUMBER.fullmatch(value)):
        return value
    raise _refusal(operation, name, value, "a number, a word or a list of them")


def _refusal(operation: str, name: str, value: Any, allowed: str) -> Refusal:
    return Refusal("TESS_ERR_INVALID_VALUE", "call", f"{operation}: {name} is {value!r}, allowed is {allowed}")
