"""Control flow, calls, functions as values, and directives (spec sections 2.3, 4, 5, 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.diagnostics import did_you_mean
from ..ir.operation import (
    Attribute,
    AttributeValue,
    Environment,
    Function,
    Hidden,
    Operand,
    Operands,
    Operation,
    Refusal,
    Shown,
    StepEnvironment,
    Steps,
    Stepwise,
    no_gradient,
    operation,
)
from ..ir.types import LAYOUTS, Dim, FunctionType, Scalar, Tensor, Type, fits, joined_all, loosened_all, substituted
from ..numerics.array import Array
from ..numerics.formats import NumericsFailure, dtype

# Control flow: if, for and while as operations with regions, and what orders or ends execution (sections 2.3, 4).
#
# The names are ours (AMB-LANG-85). A region yields what it rebinds of the names around it (AMB-LANG-52): the values
# carried by a loop are arguments of its regions and its results.


_INT32 = Scalar(dtype("int32"))


def _require_bool(condition: Scalar) -> None:
    if condition.dtype.kind != "bool":
        message, remedy = f"the condition is {condition}, not bool", "compare it: x != 0"
        raise Refusal("types", message, "a scalar bool", "AMB-LANG-55", remedy)


@dataclass(frozen=True)
class Choice(Operation):
    """The base of `if` at Graph and Tile IR: its two regions yield the results."""

    condition: Operand[Scalar]
    returns: Hidden[tuple[Type, ...]]

    regions = ("then", "otherwise")

    def infer(self) -> tuple[Type, ...]:
        """Return the types that both regions yield."""
        _require_bool(self.condition)
        return self.returns

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        return self.returns, self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the types of the results: those that the regions yield, as far as these agree."""
        yielded = [tuple(value.type for value in block.results) for block in shown.regions if block.exit == "yield"]
        both = joined_all(yielded)
        if both is None:
            raise Refusal("types", "its regions yield different types", "regions that agree", "LANG-02-08")
        return {"returns": loosened_all(both, shown.results)}


@operation("tessera.graph.if", clauses=("LANG-02-08", "LANG-02.3-23", "LANG-01-06"))
class If(Choice, Stepwise):
    """Runs one of two regions, whose yielded values are the results."""

    def steps(self, condition: Array, env: StepEnvironment) -> Steps:
        return env.region(0 if condition.values else 1, ())


@dataclass(frozen=True)
class Counting(Operation):
    """The base of `for` at Graph and Tile IR, whose region takes the index and the carried values."""

    start: Operand[Scalar]
    stop: Operand[Scalar]
    step: Operand[Scalar]
    carried: Operands[Type]

    regions = ("body",)
    layouts = frozenset(LAYOUTS)

    def infer(self) -> tuple[Type, ...]:
        """Return the types of the carried values, which do not change (AMB-LANG-92)."""
        for name, type_ in (("start", self.start), ("stop", self.stop), ("step", self.step)):
            if type_ != _INT32:
                raise Refusal("types", f"the range's {name} is {type_}, not int32", "an int32 scalar", "AMB-LANG-94")
        return self.carried

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        return ((_INT32, *operands[3:]),)

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        return (self.carried,)


@operation("tessera.graph.for", clauses=("LANG-02-10", "LANG-02.3-24", "LANG-02.3-27", "LANG-01-06"))
class For(Counting, Stepwise):
    """Counts from start to stop, excluded, by step; the region takes the int32 index and the carried values."""

    takes_futures = True

    def steps(self, start: Array, stop: Array, step: Array, *carried: Array, env: StepEnvironment) -> Steps:
        """Run the body for each index; a step of zero is an error (AMB-LANG-29)."""
        stride = int(step.values)
        if stride == 0:
            raise ZeroStep
        for index in range(int(start.values), int(stop.values), stride):
            carried = yield from env.region(0, (Array(start.dtype, start.values.dtype.type(index)), *carried))
        return carried


class ZeroStep(NumericsFailure):
    """A range has a step of zero (AMB-LANG-29)."""

    def __str__(self) -> str:
        return "the step is 0; it must not be"


@operation("tessera.graph.while", clauses=("LANG-02-11", "LANG-02.3-25", "LANG-01-06"))
class While(Stepwise):
    """Runs `body` as long as `condition` yields true; both regions take the carried values."""

    carried: Operands[Type]

    regions = ("condition", "body")
    layouts = frozenset(LAYOUTS)
    takes_futures = True

    def infer(self) -> tuple[Type, ...]:
        """Return the types of the carried values, which do not change (AMB-LANG-92)."""
        return self.carried

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        return operands, operands

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """Return the results of the regions: a bool, true to continue, and the carried values."""
        return (Scalar(dtype("bool")),), self.carried

    def steps(self, *carried: Array, env: StepEnvironment) -> Steps:
        while True:
            (holds,) = yield from env.region(0, carried)
            if not holds.values:
                return carried
            carried = yield from env.region(1, carried)


@operation("tessera.graph.assert", clauses=("LANG-02.3-46",))
class Assert(Operation):
    """Ends execution with `message` unless the condition holds (AMB-LANG-56)."""

    condition: Operand[Scalar]
    message: Attribute[str] = ""

    effects = frozenset({"assert"})
    adjoint = no_gradient

    def infer(self) -> None:
        """Return no types."""
        _require_bool(self.condition)

    def execute(self, condition: Array, env: Environment) -> tuple[Array, ...]:
        if not condition.values:
            raise AssertionFailed(self.message)
        return ()


class AssertionFailed(NumericsFailure):
    """The condition of an assert is false; `message` is the program's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"assertion failed: {self.message}" if self.message else "assertion failed"


@operation("tessera.graph.barrier", clauses=("LANG-02.3-45", "LANG-04-10"))
class Barrier(Operation):
    """A barrier: everything before it happens before everything after it (AMB-LANG-84)."""

    label: Attribute[str] = ""

    effects = frozenset({"barrier"})
    adjoint = no_gradient

    def infer(self) -> None:
        """Return no types."""

    def execute(self, env: Environment) -> tuple[Array, ...]:
        """Do nothing, since instructions run in program order."""
        return ()


# `tessera.graph.call`: another function of the module (LANG-05-03).


def callee_of(shown: Shown) -> tuple[str, Function]:
    """Return the name and the signature of the function in the attribute `callee`. Raises `Refusal`."""
    name = str(shown.attributes.get("callee"))
    callee = shown.functions.get(name)
    if callee is None:
        remedy = did_you_mean(name, shown.functions, "@{}")
        raise Refusal("types", f"unknown function @{name}", "a function of this module", "LANG-05-03", remedy)
    return name, callee


@operation("tessera.graph.call", clauses=("LANG-02.3-32", "LANG-05-03"))
class Call(Stepwise):
    """Runs `callee` on the arguments; its results are what the callee's signature gives for these arguments."""

    arguments: Operands[Type]
    callee: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)
    takes_futures = True
    calls = "callee"

    def infer(self) -> tuple[Type, ...]:
        """Return the result types that the front end found for the callee."""
        return self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the fields that the callee's signature determines for these arguments, in the words of the caller."""
        name, callee = callee_of(shown)
        if callee.kernel:
            raise Refusal("types", f"@{name} is a kernel, which is launched, not called", "a func", "AMB-RT-20")
        types = tuple(parameter.type for parameter in callee.parameters)
        dims: dict[str, Dim] = {}
        if len(types) != len(shown.operands) or not all(map(lambda w, o: fits(w, o, dims), types, shown.operands)):
            message = f"the arguments are ({', '.join(map(str, shown.operands))})"
            raise Refusal("types", message, f"those of @{name}: ({', '.join(map(str, types))})", "LANG-11-01")
        results = tuple(substituted(type_, dims) for type_ in callee.results)
        return {"returns": loosened_all(results, shown.results)}

    def steps(self, *arguments: Array, env: StepEnvironment) -> Steps:
        """Return the callee's results."""
        return env.call(self.callee, arguments)


# Functions as values: a function of the module by name, and a call of such a value (LANG-02.3-51, AMB-LANG-187).
#
# At run time, such a value is the number of a function among those of its module.


def type_of_function(name: str, function: Function) -> FunctionType:
    """Return the type of a function as a value: one result, extents that are numbers. Raises `Refusal`."""
    parameters, results = tuple(parameter.type for parameter in function.parameters), function.results
    clause = "LANG-02.3-51"
    if function.kernel:
        raise Refusal("types", f"{name} is a kernel, which is launched and no value", "a func", "AMB-RT-20")
    if len(results) != 1:
        raise Refusal("types", f"{name} returns {len(results)} values", "a function of one result", clause)
    if not all(map(_is_closed, (*parameters, *results))):
        message = f"{name} has dimensions that are not known"
        raise Refusal("shapes", message, "a function whose extents are numbers", clause)
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
        """Return the type of the function."""
        return self.type

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """Return the function's type, which follows from its signature."""
        name, function = callee_of(shown)
        return {"type": type_of_function(f"@{name}", function)}

    def arguments_of_callee(self, operands: tuple[Type, ...]) -> tuple[Type, ...]:
        return self.type.parameters

    def steps(self, env: StepEnvironment) -> Steps:
        """Return the function's number."""
        yield from ()
        return (env.number_of(self.callee),)


@operation("tessera.graph.call_value", clauses=("LANG-02.3-32", "LANG-02.3-51"))
class CallValue(Stepwise):
    """Calls the function that a value denotes on the arguments."""

    function: Operand[FunctionType]
    arguments: Operands[Type]

    layouts = frozenset(LAYOUTS)

    def infer(self) -> Type:
        """Return the result of the function's type, whose parameters the arguments match."""
        parameters = self.function.parameters
        if self.arguments != parameters:
            message = f"the arguments are ({', '.join(map(str, self.arguments))})"
            raise Refusal("types", message, f"({', '.join(map(str, parameters))})", "LANG-11-01")
        return self.function.result

    def steps(self, function: Array, *arguments: Array, env: StepEnvironment) -> Steps:
        return env.call(env.function_of(function), arguments)


# `tessera.graph.directive`: schedule and dist statements about values (sections 2.3, 6; AMB-LANG-13).
#
# A directive changes how a value is computed, never a bit of it (AMB-LANG-110): executing it does nothing. Lowering to
# Schedule IR reads it.


@operation(
    "tessera.graph.directive", clauses=("LANG-02.3-53", "LANG-02.3-54", "LANG-02.3-79", "LANG-02.3-80", "LANG-02-06")
)
class Directive(Operation):
    """Metadata about its operands: the directive's dotted name, and its settings as pairs of name and value."""

    subjects: Operands[Type]
    directive: Attribute[str]
    settings: Attribute[tuple[tuple[str, AttributeValue], ...]] = ()

    layouts = frozenset(LAYOUTS)
    effects = frozenset({"metadata"})
    adjoint = no_gradient

    def infer(self) -> None:
        """Return no types (LANG-02.3-53)."""

    def execute(self, *subjects: Array, env: Environment) -> tuple[Array, ...]:
        """Compute nothing."""
        return ()
