"""Short programs of the DSL as text, and the tensors that they take (language spec, sections 2.1 to 2.3).

A program is one module with one function; its first statement stands on line `FIRST_STATEMENT`, one statement a line,
so that a test can say where a diagnostic belongs.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from tessera_conformance.differences import float_value
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor, shape_of

FIRST_STATEMENT = 3
"""The line of a program's first statement."""

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int64", "int32", "int16", "int8", "bool")
"""The scalar dtypes of section 2.2, in its order."""

RESERVED = (
    "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
    "pipeline barrier shared align asm import from as"
).split()
"""The reserved words of section 2.1, in its order: clauses LANG-02.1-08 and following."""

Values: TypeAlias = bool | int | float | Sequence["Values"]


def module(*declarations: str, name: str = "m") -> str:
    """A module around declarations."""
    return "\n".join([f"module {name} {{", *declarations, "}"]) + "\n"


def func(*statements: str, parameters: str = "", result: str = "", attributes: str = "", name: str = "f") -> str:
    """A func; `result` and `attributes` are written without their `->` and `@`, and left out where empty."""
    return _declaration("func", name, statements, parameters, result, attributes)


def kernel(*statements: str, parameters: str = "", attributes: str = "", name: str = "k") -> str:
    """A kernel; `attributes` are written without their `@`, and left out where empty."""
    return _declaration("kernel", name, statements, parameters, "", attributes)


def program(*statements: str, parameters: str = "", result: str = "", attributes: str = "") -> str:
    """A module with one func `f`."""
    return module(func(*statements, parameters=parameters, result=result, attributes=attributes))


def returning(expression: str, parameters: str = "", result: str = "") -> str:
    """A program whose func returns the value of one expression."""
    return program(f"return {expression};", parameters=parameters, result=result)


def parameters_of(names: str, type_expression: str) -> str:
    """A parameter list that gives several names, one letter each, the same type."""
    return ", ".join(f"{name}: {type_expression}" for name in names)


def tensor_of(dtype: str, values: Values) -> Tensor:
    """A tensor of exactly these values, nested lists for dimensions, a bare number for a scalar.

    Raises:
        ValueError: the rows differ in length, or a value is not one of the dtype's.
    """
    return Tensor.from_words(dtype, shape_of(values), [_word(dtype, value) for value in _flat(values)])


def integers(**values: Values) -> dict[str, Tensor]:
    """Inputs that are int32, scalars or tensors of them."""
    return {name: tensor_of("int32", value) for name, value in values.items()}


def _declaration(word: str, name: str, statements: Sequence[str], parameters: str, result: str, attributes: str) -> str:
    heading = [
        f"{word} {name}({parameters})",
        *([f"-> {result}"] if result else []),
        *([f"@{attributes}"] * bool(attributes)),
    ]
    return "\n".join([f"  {' '.join(heading)} {{", *(f"    {statement}" for statement in statements), "  }"])


def _flat(values: Values) -> list[bool | int | float]:
    if not isinstance(values, Sequence):
        return [values]
    return [element for row in values for element in _flat(row)]


def _word(dtype: str, value: bool | int | float) -> int:
    layout = ELEMENT_FORMATS[dtype]
    bits = 8 * layout.word_bytes
    if not layout.is_float:
        lowest = 0 if dtype == "bool" else -(1 << (bits - 1))
        if value != int(value) or not lowest <= value <= (1 if dtype == "bool" else (1 << (bits - 1)) - 1):
            raise ValueError(f"{value} is not a value of {dtype}")
        return int(value) % (1 << bits)
    word = _float_word(dtype, float(value))
    if float_value(word, layout) != value:
        raise ValueError(f"{value} is not a value of {dtype}")
    return word


def _float_word(dtype: str, value: float) -> int:
    if dtype == "fp64":
        return int.from_bytes(struct.pack(">d", value))
    if dtype == "fp16":
        return int.from_bytes(struct.pack(">e", value))
    if dtype == "bf16":
        return int.from_bytes(struct.pack(">f", value)[:2])
    if dtype in ("fp32", "tf32"):
        return int.from_bytes(struct.pack(">f", value))
    layout = ELEMENT_FORMATS[dtype]
    codes = [code for code in range(0x80) if float_value(code, layout) == abs(value)]
    if not codes:
        raise ValueError(f"{value} is not a value of {dtype}")
    return codes[0] | (0x80 if struct.pack(">d", value)[0] & 0x80 else 0)
