"""Verification of SSA form: definitions before uses, types that follow from the operands (LANG-01-03, LANG-05-01).

The front end builds only what verifies; this is for IR that comes from elsewhere, and to keep the front end honest.
"""

from __future__ import annotations

from .diagnostics import Category, Diagnostic, Location, Rejection
from .module import Function, Module, Value
from .operation import Refusal
from .types import admits


def verify(module: Module) -> None:
    """Raise `Rejection` unless every function of the module is well formed."""
    found: list[Diagnostic] = []
    for function in module.functions.values():
        _verify_function(function, found)
    if found:
        raise Rejection(found)


def _verify_function(function: Function, found: list[Diagnostic]) -> None:
    def refuse(category: Category, message: str, location: Location, clause: str) -> None:
        found.append(Diagnostic(category, "verify", message, location.span, location.filename, clause=clause))

    defined: set[Value] = set()
    names: set[str] = set()

    def define(value: Value, location: Location) -> None:
        if value in defined or value.name in names:
            refuse("types", f"%{value.name} is defined twice", location, "LANG-05-01")
        defined.add(value)
        names.add(value.name)

    def use(value: Value, location: Location) -> None:
        if value not in defined:
            refuse("types", f"%{value.name} is used before it is defined", location, "LANG-05-01")

    for parameter in function.parameters:
        define(parameter, function.location)
    for instruction in function.body.instructions:
        operation, location = instruction.operation, instruction.location
        for operand in instruction.operands:
            use(operand, location)
        if tuple(operand.type for operand in instruction.operands) != tuple(t for _, t in operation.operand_types):
            refuse("types", f"{operation.short_name}: operands differ from its declared types", location, "LANG-11-01")
        try:
            inferred = operation.results()
        except Refusal as refusal:
            refuse(refusal.category, f"{operation.short_name}: {refusal.message}", location, refusal.clause)
        else:
            actual = [result.type for result in instruction.results]
            if len(inferred) != len(actual) or not all(map(admits, inferred, actual)):
                refuse("types", f"{operation.short_name}: results have other types", location, "LANG-11-01")
        for result in instruction.results:
            define(result, location)
    for value in function.body.results:
        use(value, function.location)
    given = [value.type for value in function.body.results]
    if len(given) != len(function.results) or not all(map(admits, function.results, given)):
        refuse("types", f"@{function.name} returns other types than it declares", function.location, "LANG-11-01")
