"""Operations that run other code, or wait for other ranks, while they execute.

Such an operation is `Stepwise`; one that is defined by simpler ones is `Composite`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..numerics.array import Array
from .diagnostics import Location
from .operation import Builder, Environment, Operation
from .values import Value


@dataclass(frozen=True)
class Arrival:
    """A rank's arrival at a collective, where it waits until its group is complete."""

    operation: Operation
    operands: tuple[Array, ...]
    location: Location


Steps = Generator[Arrival, tuple[Array, ...], tuple[Array, ...]]
"""Running code: a generator that yields at each collective, is sent its results, and returns its own."""


class StepEnvironment(Environment, Protocol):
    """What an operation that runs in steps may ask of its surroundings besides."""

    @property
    def location(self) -> Location:
        """The place of the instruction that is being executed."""

    def region(self, index: int, arguments: tuple[Array, ...]) -> Steps:
        """Run a region of the instruction; what it yields."""

    def call(self, function: str, arguments: tuple[Array, ...]) -> Steps:
        """Run another function of the module."""

    def number_of(self, function: str) -> Array:
        """What stands for a function of the module as a value."""

    def function_of(self, number: Array) -> str:
        """The function that such a value stands for."""

    def expand(self, operation: Composite, operands: tuple[Array, ...]) -> Steps:
        """Run the operations that a composite stands for."""

    def differentiate(self, y: Array, wrt: tuple[Array, ...]) -> Steps:
        """The gradients of the sum of y's elements, computed back along what was executed so far."""


class Stepwise(Operation):
    """An operation that runs other code, or waits for other ranks, while it executes."""

    transparent: ClassVar[bool] = True
    """Whether differentiation sees what it runs, rather than itself."""

    @abstractmethod
    def steps(self, *operands: Any, **context: Any) -> Steps:
        """Its execution; called with the operand arrays and `env`, a `StepEnvironment`."""

    def execute(self, *operands: Any, **context: Any) -> Any:
        """Never called: it runs by `steps`."""
        raise TypeError(f"{self.name} runs in steps")

    @classmethod
    def is_differentiable(cls) -> bool:
        """What it runs is checked on its own."""
        return cls.transparent or super().is_differentiable()


class Composite(Stepwise):
    """An operation defined by simpler ones; its derivative is theirs (AMB-LANG-59)."""

    @abstractmethod
    def decompose(self, build: Builder, *operands: Value) -> Value | tuple[Value, ...]:
        """Build the operations that it stands for; its result or results."""

    def steps(self, *operands: Array, env: StepEnvironment) -> Steps:
        """Run what it stands for."""
        return env.expand(self, operands)
