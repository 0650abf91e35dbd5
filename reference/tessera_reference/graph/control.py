"""Control flow: if, for and while as operations with regions, and what orders or ends execution (sections 2.3, 4).

Their names are ours (AMB-LANG-85). What a region rebinds of the names around it, it yields (AMB-LANG-52): the values
carried by a loop are arguments of its regions and its results.
"""

from typing import Any

from ..ir.dimensions import joined_all, loosened_all
from ..ir.module import Value
from ..ir.operation import (
    Applied,
    Attribute,
    Builder,
    Environment,
    Hidden,
    Operand,
    Operands,
    Operation,
    Shown,
    operation,
    require,
)
from ..ir.stepwise import StepEnvironment, Steps, Stepwise
from ..ir.types import LAYOUTS, Scalar, Type
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.formats import dtype

_INT32 = Scalar(dtype("int32"))


def _require_bool(condition: Scalar) -> None:
    require(
        condition.dtype.kind == "bool",
        "types",
        f"the condition is {condition}, not bool",
        "a scalar bool",
        "AMB-LANG-55",
        "compare it: x != 0",
    )


@operation("tessera.graph.if", clauses=("LANG-02-08", "LANG-02.3-23", "LANG-01-06"))
class If(Stepwise):
    """Runs one of two regions; what it yields is the result."""

    condition: Operand[Scalar]
    returns: Hidden[tuple[Type, ...]]

    regions = ("then", "otherwise")

    def infer(self) -> tuple[Type, ...]:
        """What both regions yield."""
        _require_bool(self.condition)
        return self.returns

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """Both yield the results."""
        return self.returns, self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The results are what the regions yield, as far as these agree."""
        yielded = [tuple(value.type for value in block.results) for block in shown.regions if block.exit == "yield"]
        both = joined_all(yielded)
        require(both is not None, "types", "its regions yield different types", "regions that agree", "LANG-02-08")
        assert both is not None
        return {"returns": loosened_all(both, shown.results)}

    def steps(self, condition: Array, env: StepEnvironment) -> Steps:
        """Take the branch."""
        return env.region(0 if condition.values else 1, ())


@operation("tessera.graph.for", clauses=("LANG-02-10", "LANG-02.3-24", "LANG-02.3-27", "LANG-01-06"))
class For(Stepwise):
    """Counts from start to stop, excluded, by step; the region takes the int32 index and the carried values."""

    start: Operand[Scalar]
    stop: Operand[Scalar]
    step: Operand[Scalar]
    carried: Operands[Type]

    regions = ("body",)
    layouts = frozenset(LAYOUTS)
    takes_futures = True

    def infer(self) -> tuple[Type, ...]:
        """The carried values, of unchanged types (AMB-LANG-92)."""
        for name, type_ in (("start", self.start), ("stop", self.stop), ("step", self.step)):
            require(
                type_ == _INT32,
                "types",
                f"the range's {name} is {type_}, not int32",
                "an int32 scalar",
                "AMB-LANG-94",
            )
        return self.carried

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        """The index and the carried values."""
        return ((_INT32, *operands[3:]),)

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """The carried values."""
        return (self.carried,)

    def steps(self, start: Array, stop: Array, step: Array, *carried: Array, env: StepEnvironment) -> Steps:
        """Run the body for each index; a step of zero is an error (AMB-LANG-29)."""
        stride = int(step.values)
        if stride == 0:
            raise ZeroStep
        for index in range(int(start.values), int(stop.values), stride):
            carried = yield from env.region(0, (Array(start.dtype, start.values.dtype.type(index)), *carried))
        return carried


class ZeroStep(NumericsFailure):
    """A range goes by steps of zero (AMB-LANG-29)."""

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
        """The carried values, of unchanged types (AMB-LANG-92)."""
        return self.carried

    @classmethod
    def region_arguments(cls, operands: tuple[Type, ...]) -> tuple[tuple[Type, ...], ...]:
        """Both take the carried values."""
        return operands, operands

    def region_results(self) -> tuple[tuple[Type, ...], ...]:
        """Whether to go on; the carried values."""
        return (Scalar(dtype("bool")),), self.carried

    def steps(self, *carried: Array, env: StepEnvironment) -> Steps:
        """Test, run, repeat."""
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

    def infer(self) -> tuple[Type, ...]:
        """Nothing results."""
        _require_bool(self.condition)
        return ()

    def execute(self, condition: Array, env: Environment) -> tuple[Array, ...]:
        """Check."""
        if not condition.values:
            raise AssertionFailed(self.message)
        return ()

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """A bool has no gradient."""
        return (None,)


class AssertionFailed(NumericsFailure):
    """The condition of an assert is false; `message` is the program's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"assertion failed: {self.message}" if self.message else "assertion failed"


@operation("tessera.graph.barrier", clauses=("LANG-02.3-45", "LANG-04-10"))
class Barrier(Operation):
    """Everything before it happens before everything after it (AMB-LANG-84)."""

    label: Attribute[str] = ""

    effects = frozenset({"barrier"})

    def infer(self) -> tuple[Type, ...]:
        """Nothing results."""
        return ()

    def execute(self, env: Environment) -> tuple[Array, ...]:
        """Instructions run in program order as they are, so there is nothing to wait for."""
        return ()

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """It touches no value."""
        return ()
