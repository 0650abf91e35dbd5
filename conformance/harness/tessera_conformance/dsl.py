"""Short programs of the DSL as text, and the tensors that they take (language spec, sections 2.1 to 2.3).

A program is one module with one function. Its first statement is on line `FIRST_STATEMENT`, one statement a line, so
that a test can name the line of a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from tessera_conformance.oracle.exact import FORMATS, value_of
from tessera_conformance.tensors import Tensor, shape_of

FIRST_STATEMENT = 3
"""The line of a program's first statement."""

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int64", "int32", "int16", "int8", "bool")
"""The scalar dtypes of section 2.2, in its order."""

RESERVED = (
    "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
    "pipeline barrier shared align asm import from as"
).split()
"""The reserved words of section 2.1, in its order: clauses LANG-02.1-08 and following."""

Number: TypeAlias = int | float | Fraction
Values: TypeAlias = Number | Sequence["Values"]


def module(*declarations: str, name: str = "m") -> str:
    """Return a module with these declarations."""
    return "\n".join([f"module {name} {{", *declarations, "}"]) + "\n"


def func(*statements: str, parameters: str = "", result: str = "", attributes: str = "", name: str = "f") -> str:
    """Return a func; `result` and `attributes` are given without their `->` and `@`, and omitted if empty.

    One without statements is the plainest, which returns a number: cases of their own judge empty bodies.
    """
    if not statements and not result:
        statements, result = ("return 1;",), "int32"
    return _declaration("func", name, statements, parameters, result, attributes)


def kernel(*statements: str, parameters: str = "", attributes: str = "", name: str = "k") -> str:
    """Return a kernel; `attributes` are given without their `@`, and omitted if empty."""
    return _declaration("kernel", name, statements, parameters, "", attributes)


def program(*statements: str, parameters: str = "", result: str = "", attributes: str = "") -> str:
    """Return a module with one func `f`."""
    return module(func(*statements, parameters=parameters, result=result, attributes=attributes))


def returning(expression: str, parameters: str = "", result: str = "") -> str:
    """Return a program whose func returns the value of one expression."""
    return program(f"return {expression};", parameters=parameters, result=result)


def parameters_of(names: str, type_expression: str) -> str:
    """Return a parameter list that gives several names, one letter each, the same type."""
    return ", ".join(f"{name}: {type_expression}" for name in names)


def type_of(value: Tensor) -> str:
    """Return a tensor's type as source text."""
    return type_text(value.dtype, value.shape)


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """Return the type of a tensor, or of a scalar."""
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>" if shape else dtype


def tensor_of(dtype: str, values: Values, shape: Sequence[int] | None = None) -> Tensor:
    """Return a tensor of exactly these values, nested lists for dimensions, a bare number for a scalar.

    With a `shape`, the values are listed row-major.

    Raises `ValueError`: the rows differ in length, or a value is not one of the dtype's.
    """
    words: dict[str, int] = {}  # of each number once, by its text, which distinguishes 0.0 from -0.0
    every = []
    for value in _leaves(values):
        text = repr(value)
        if text not in words:
            words[text] = _word(dtype, value)
        every.append(words[text])
    return Tensor.from_words(dtype, shape_of(values) if shape is None else shape, every)


def integers(**values: Values) -> dict[str, Tensor]:
    """Return int32 inputs, scalars or tensors."""
    return {name: tensor_of("int32", value) for name, value in values.items()}


def _declaration(word: str, name: str, statements: Sequence[str], parameters: str, result: str, attributes: str) -> str:
    result, attributes = result and f" -> {result}", attributes and f" @{attributes}"
    lines = [f"  {word} {name}({parameters}){result}{attributes} {{", *(f"    {line}" for line in statements), "  }"]
    return "\n".join(lines)


def _leaves(values: Values) -> Iterator[Number]:
    if not isinstance(values, Sequence):
        yield values
        return
    numbers = [row for row in values if isinstance(row, int | float)]  # a call for each takes three times as long
    if len(numbers) == len(values):
        yield from numbers
    else:
        for row in values:
            yield from _leaves(row)


def _word(dtype: str, number: Number) -> int:
    value = value_of(number) if isinstance(number, float) else Fraction(number)
    layout = FORMATS[dtype]
    word = layout.encode(value, nonfinite=True)
    if layout.decode(word) != value or (dtype == "bool" and word > 1):
        raise ValueError(f"{number} is not a value of {dtype}")
    return word
