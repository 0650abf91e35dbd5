"""Functions as values: one of the module by name, and a call of whichever a value is (LANG-02.3-51, AMB-LANG-187).

While a program runs, such a value is the number of a function among those of its module.
"""

from __future__ import annotations

from typing import Any

from ..ir.operation import Attribute, Hidden, Operand, Operands, Shown, Signature, operation, require
from ..ir.stepwise import StepEnvironment, Steps, Stepwise
from ..ir.types import LAYOUTS, FunctionType, Tensor, Type
from ..numerics.array import Array
from .call import callee_of


def type_of_function(name: str, function: Signature) -> FunctionType:
    """The type of a function as a value: one result, and extents that are numbers. Raises `Refusal`."""
    parameters, results = tuple(each.type for each in function.parameters), function.results
    clause = "LANG-02.3-51"
    require(not function.kernel, "types", f"{name} is a kernel, which is launched and no value", "a func", "AMB-RT-20")
    require(len(results) == 1, "types", f"{name} returns {len(results)} values", "a function of one result", clause)
    require(
        all(map(_is_closed, (*parameters, *results))),
        "shapes",
        f"{name} has dimensions that are not known",
        "a function whose extents are numbers",
        clause,
    )
    return FunctionType(parameters, results[0])


def _is_closed(type_: Type) -> bool:
    return not isinstance(type_, Tensor) or all(isinstance(extent, int) for extent in type_.shape)


@operation("tessera.graph.function", clauses=("LANG-02.3-51", "LANG-05-03"))
class FunctionValue(Stepwise):
    """The function `callee` of the module."""

    callee: Attribute[str]
    type: Hidden[FunctionType]

    calls = "callee"

    def infer(self) -> FunctionType:
        """The type of the function."""
        return self.type

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The function's type follows from its signature."""
        name, function = callee_of(shown)
        return {"type": type_of_function(f"@{name}", function)}

    def arguments_of_callee(self, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        """Those of the type."""
        return self.type.parameters

    def steps(self, env: StepEnvironment) -> Steps:
        """Its number."""
        yield from ()
        return (env.number_of(self.callee),)


@operation("tessera.graph.call_value", clauses=("LANG-02.3-32", "LANG-02.3-51"))
class CallValue(Stepwise):
    """Runs the function that a value is on the arguments."""

    function: Operand[FunctionType]
    arguments: Operands[Type]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Type:
        """The result of the function's type, whose parameters the arguments are."""
        wanted = self.function.parameters
        require(
            self.arguments == wanted,
            "types",
            f"the arguments are ({', '.join(map(str, self.arguments))})",
            f"({', '.join(map(str, wanted))})",
            "LANG-11-01",
        )
        return self.function.result

    def steps(self, function: Array, *arguments: Array, env: StepEnvironment) -> Steps:
        """The function's results."""
        return env.call(env.function_of(function), arguments)
