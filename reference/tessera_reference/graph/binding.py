"""Inputs against the signature of a function (spec section 3.1).

Dimensions that the signature leaves open are bound by the inputs: equal names to equal sizes (AMB-LANG-08), each `?` to
whatever comes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.diagnostics import UnsupportedConstruct
from ..ir.module import Function, Value
from ..ir.types import Scalar, Tensor, is_unknown
from ..numerics.array import Array


class InputMismatch(Exception):
    """The inputs do not fit the signature. `expected` or `given` is empty for an input unexpected or missing."""

    def __init__(self, name: str, expected: str, given: str, why: str = "") -> None:
        self.name = name
        self.expected = expected
        self.given = given
        self.why = why
        super().__init__(name, expected, given, why)

    def __str__(self) -> str:
        if not self.given:
            return f"input {self.name} is missing: expected {self.expected}"
        if not self.expected:
            return f"input {self.name} is not a parameter; {self.why}"
        return f"input {self.name}: expected {self.expected}, given {self.given}{self.why and f' ({self.why})'}"


def bind(function: Function, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    """The inputs in the order of the parameters; those left out take their defaults (AMB-LANG-74).

    Raises `InputMismatch` for the first that does not fit.
    """
    for type_ in function.results:
        if not isinstance(type_, Tensor | Scalar):
            raise UnsupportedConstruct(f"execute.{type(type_).__name__.lower()}", function.location)
    names = [parameter.name for parameter in function.parameters]
    for name, array in inputs.items():
        if name not in names:
            why = f"@{function.name} takes {', '.join(names) or 'none'}"
            raise InputMismatch(name, "", describe(array), why)
    bound: dict[str, tuple[int, str]] = {}
    given = {**function.defaults, **inputs}
    for parameter in function.parameters:
        if parameter.name not in given:
            raise InputMismatch(parameter.name, str(parameter.type), "")
        _bind_one(function, parameter, given[parameter.name], bound)
    return tuple(given[name] for name in names)


def _bind_one(function: Function, parameter: Value, array: Array, bound: dict[str, tuple[int, str]]) -> None:
    type_ = parameter.type
    if not isinstance(type_, Tensor | Scalar):
        raise UnsupportedConstruct(f"execute.{type(type_).__name__.lower()}", function.location)
    expected, given = str(type_), describe(array)
    if array.dtype != type_.dtype or len(array.shape) != len(type_.shape):
        raise InputMismatch(parameter.name, expected, given)
    for dim, extent in zip(type_.shape, array.shape, strict=True):
        if isinstance(dim, int):
            if dim != extent:
                raise InputMismatch(parameter.name, expected, given)
        elif not is_unknown(dim):
            first, owner = bound.setdefault(dim, (extent, parameter.name))
            if first != extent:
                raise InputMismatch(parameter.name, expected, given, f"{dim} is {first} in {owner}")


def describe(array: Array) -> str:
    """An array's type, as the source would write it."""
    return f"tensor<{'x'.join(map(str, (*array.shape, array.dtype)))}>" if array.shape else array.dtype.name
