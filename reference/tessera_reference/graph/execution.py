"""Executing Graph IR: inputs against the signature, then one instruction after another (spec sections 3.1, 4).

A program is a pure function of its inputs (LANG-04-01). Dimensions that the signature leaves open are bound by the
inputs: equal names to equal sizes (AMB-LANG-08), each `?` to whatever comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.diagnostics import Category, Diagnostic, Rejection, UnsupportedConstruct
from ..ir.module import Function, Instruction, Module, Value
from ..ir.types import is_unknown
from ..numerics.array import Array
from ..numerics.errors import DivisionByZero, NumericsFailure, ShapeMismatch


class UnknownFunction(Exception):
    """The module has no function of that name."""

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        self.name = name
        self.available = available
        super().__init__(f"no function {name!r}; there is {', '.join(available) or 'none'}")


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


def execute(module: Module, function: str, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    """Run a function on named inputs; its results in order.

    Raises `UnknownFunction`, `InputMismatch`, `Rejection` with phase execute for an error of the running program, or
    `UnsupportedConstruct` where it goes beyond this machine.
    """
    if function not in module.functions:
        raise UnknownFunction(function, tuple(module.functions))
    target = module.functions[function]
    try:
        return _Interpreter(module).run(target, bind(target, inputs))
    except RecursionError:
        raise UnsupportedConstruct("execute.deep_calls", target.location) from None


def bind(function: Function, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    """The inputs in the order of the parameters. Raises `InputMismatch` for the first that does not fit."""
    names = [parameter.name for parameter in function.parameters]
    for name, array in inputs.items():
        if name not in names:
            why = f"@{function.name} takes {', '.join(names) or 'none'}"
            raise InputMismatch(name, "", describe(array), why)
    bound: dict[str, tuple[int, str]] = {}
    for parameter in function.parameters:
        if parameter.name not in inputs:
            raise InputMismatch(parameter.name, str(parameter.type), "")
        _bind_one(parameter, inputs[parameter.name], bound)
    return tuple(inputs[name] for name in names)


def _bind_one(parameter: Value, array: Array, bound: dict[str, tuple[int, str]]) -> None:
    type_ = parameter.type
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


@dataclass(frozen=True)
class _Interpreter:
    """The `Environment` of executing operations."""

    module: Module

    def call(self, function: str, arguments: tuple[Array, ...]) -> tuple[Array, ...]:
        return self.run(self.module.functions[function], arguments)

    def run(self, function: Function, arguments: tuple[Array, ...]) -> tuple[Array, ...]:
        values: dict[Value, Array] = dict(zip(function.parameters, arguments, strict=True))
        for instruction in function.body.instructions:
            results = self.step(instruction, tuple(values[operand] for operand in instruction.operands))
            for value, array in zip(instruction.results, results, strict=True):
                assert array.dtype == value.type.dtype, f"{value.name} came out as {array.dtype}, not {value.type}"
                values[value] = array
        return tuple(values[result] for result in function.body.results)

    def step(self, instruction: Instruction, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        try:
            result = instruction.operation.execute(*operands, env=self)
        except NumericsFailure as failure:
            raise Rejection([_failure(instruction, failure)]) from failure
        except MemoryError as error:
            raise UnsupportedConstruct("execute.more_memory", instruction.location) from error
        return result if isinstance(result, tuple) else (result,)


def _failure(instruction: Instruction, failure: NumericsFailure) -> Diagnostic:
    """What went wrong while running, with the place of the expression."""
    location, operation = instruction.location, instruction.operation
    category: Category = "shapes" if isinstance(failure, ShapeMismatch) else "numerics"
    remedy = "make sure that no divisor is zero" if isinstance(failure, DivisionByZero) else ""
    return Diagnostic(
        category,
        "execute",
        str(failure) if isinstance(failure, ShapeMismatch) else f"{operation.short_name}: {failure}",
        location.span,
        location.filename,
        operands=tuple(f"{name} is {type_}" for name, type_ in operation.operand_types),
        requirement="divisors other than zero" if remedy else "",
        clause="AMB-LANG-55" if remedy else "",
        remedy=remedy,
    )
