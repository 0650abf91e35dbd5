"""Optimizer steps: `sgd` and `adamw` (spec section 4; LANG-04-08).

As in `stateful`, the state is passed and returned, and a step counts as effectful. Every step of the arithmetic is
rounded in the accumulator type; what results is rounded once to the dtype of the operand that it replaces, which for
the state is that of the parameter or of its accumulator.
"""

from __future__ import annotations

from ..ir.module import Value
from ..ir.operation import Attribute, Builder, Operand, operation, require
from ..ir.types import Scalar, Tensor, Type
from ..numerics.formats import DTYPES
from .compositions import number, require_like, require_number, widened
from .control import Assert
from .dtypes import require_float
from .stateful import Stateful
from .term import Term, constant

_CLAUSES = ("LANG-02-04", "LANG-04-08")


@operation("tessera.graph.sgd", spellings=("op.sgd",), clauses=_CLAUSES)
class Sgd(Stateful):
    """A step of gradient descent with momentum; (parameter, velocity) as the next step is to have them.

    u = (velocity * momentum) + gradient; the parameter becomes parameter - (u * rate), the velocity u.
    """

    parameter: Operand[Tensor | Scalar]
    gradient: Operand[Tensor | Scalar]
    velocity: Operand[Tensor | Scalar]
    rate: Attribute[float]
    momentum: Attribute[float] = 0.9

    gives = ("parameter", "velocity")

    def every_result(self) -> tuple[Type, ...]:
        """The types of parameter and velocity; all three have one shape."""
        require_float(self.parameter)
        require_like("gradient", self.gradient, self.parameter)
        require_like("velocity", self.velocity, self.parameter, wide=True)
        require_number("rate", self.rate)
        require_number("momentum", self.momentum)
        return self.parameter, self.velocity

    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """The steps above."""
        parameter, gradient, velocity = (widened(operand, build) for operand in operands)
        moved = velocity * number(self.momentum) + gradient
        stepped = parameter - moved * number(self.rate)
        return stepped.cast_to(self.parameter.dtype).value, moved.cast_to(self.velocity.dtype).value


@operation("tessera.graph.adamw", spellings=("op.adamw",), clauses=_CLAUSES)
class AdamW(Stateful):
    """A step of Adam with decoupled weight decay; (parameter, m, v) as the next step is to have them.

    With g the gradient, p the parameter and t the step, which counts from 1:
    m' = (m * beta1) + (g * (1 - beta1)); v' = (v * beta2) + ((g * g) * (1 - beta2));
    a = m' / (1 - pow(beta1, t)); b = v' / (1 - pow(beta2, t));
    p' = p - (((a / (sqrt(b) + eps)) + (p * decay)) * rate).
    The numbers beta1, beta2, 1 - beta1, 1 - beta2, eps, decay and rate are rounded once each; t is cast.
    """

    parameter: Operand[Tensor | Scalar]
    gradient: Operand[Tensor | Scalar]
    m: Operand[Tensor | Scalar]
    v: Operand[Tensor | Scalar]
    step: Operand[Scalar]
    rate: Attribute[float]
    beta1: Attribute[float] = 0.9
    beta2: Attribute[float] = 0.999
    eps: Attribute[float] = 1e-8
    decay: Attribute[float] = 0.01

    gives = ("parameter", "m", "v")

    def every_result(self) -> tuple[Type, ...]:
        """The types of the parameter and its state, which have one shape; the step is an int32."""
        require_float(self.parameter)
        require_like("gradient", self.gradient, self.parameter)
        require_like("m", self.m, self.parameter, wide=True)
        require_like("v", self.v, self.parameter, wide=True)
        require(self.step == Scalar(DTYPES["int32"]), "types", f"step is {self.step}, not int32", "int32", "LANG-11-01")
        for name in ("rate", "eps", "decay"):
            require_number(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            require_number(name, getattr(self, name), below=1)
        return self.parameter, self.m, self.v

    def compute(self, build: Builder, *operands: Value) -> tuple[Value, ...]:
        """The steps above; a step below 1 ends execution."""
        *given, count = operands
        step = Term(count, build)
        build.all(Assert, step.greater_equal(1).value, message="adamw counts steps from 1")
        parameter, gradient, m, v = (widened(operand, build) for operand in given)
        m = m * number(self.beta1) + gradient * (1 - number(self.beta1))
        v = v * number(self.beta2) + (gradient * gradient) * (1 - number(self.beta2))
        time = step.cast_to(parameter.dtype)
        mean, square = m / _lacking(self.beta1, time), v / _lacking(self.beta2, time)
        change = mean / (square.sqrt() + number(self.eps)) + parameter * number(self.decay)
        stepped = parameter - change * number(self.rate)
        return (
            stepped.cast_to(self.parameter.dtype).value,
            m.cast_to(self.m.dtype).value,
            v.cast_to(self.v.dtype).value,
        )


def _lacking(beta: float, time: Term) -> Term:
    """1 - pow(beta, t): how much of an average of t steps that began at 0 is there."""
    return 1 - constant(time.build, number(beta), time.dtype).pow(time)
