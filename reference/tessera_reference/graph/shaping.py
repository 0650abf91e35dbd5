"""`tessera.graph.reshape` and `tessera.graph.broadcast`: the same elements in another shape, or repeated (section 3.2).

What does not fit is refused where the extents of the operand are known, and an error at run time where they are not.
"""

from dataclasses import dataclass
from math import prod

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, operation, require
from ..ir.types import Dim, Numeric, Scalar, Tensor
from ..numerics import movement
from ..numerics.array import Array
from .adjoints import terms
from .axes import require_extents


@dataclass(frozen=True)
class Count:
    """How many elements a shape has: a number, times the dimensions that are not known."""

    number: int
    symbols: tuple[str, ...]

    @classmethod
    def of(cls, shape: tuple[Dim, ...]) -> "Count":
        """The count of a shape."""
        return cls(
            prod(dim for dim in shape if isinstance(dim, int)), tuple(dim for dim in shape if isinstance(dim, str))
        )

    def may_be(self, number: int) -> bool:
        """Whether the dimensions that are not known can make it `number`."""
        if not self.symbols or self.number == 0:
            return self.number == number
        return number % self.number == 0

    def without(self, number: int) -> Dim | None:
        """What is left when divided by `number`; nothing when that leaves a remainder."""
        if not self.symbols or self.number == 0:
            return self.number // number if self.number % number == 0 else None
        return self.symbols[0] if self.number == number and len(self.symbols) == 1 else "?"


def of_shape(shape: tuple[Dim, ...], like: Numeric) -> Numeric:
    """A tensor of the operand's dtype; a scalar where the shape has no dimensions (AMB-LANG-27)."""
    return Tensor(shape, like.dtype) if shape else Scalar(like.dtype)


@operation("tessera.graph.reshape", spellings=("op.reshape",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Reshape(Operation):
    """The elements in row-major order in another shape, of which one extent may be -1: whatever is left."""

    x: Operand[Tensor | Scalar]
    shape: Attribute[tuple[int, ...]]

    def infer(self) -> Numeric:
        """As many elements as the operand has."""
        require_extents("shape", self.shape, -1)
        require(
            self.shape.count(-1) < 2,
            "shapes",
            f"shape {list(self.shape)} leaves several extents open",
            "-1 at most once",
            "LANG-03.2-01",
        )
        count, asked = Count.of(self.x.shape), prod(extent for extent in self.shape if extent != -1)
        left = count.without(asked) if -1 in self.shape and asked else None
        fits = left is not None if -1 in self.shape else count.may_be(asked)
        require(
            fits,
            "shapes",
            f"{self.x} does not become shape {list(self.shape)}",
            "as many elements as before",
            "LANG-03.2-01",
        )
        shape = tuple(left if extent == -1 and left is not None else extent for extent in self.shape)
        return of_shape(shape, self.x)

    def execute(self, x: Array, env: Environment) -> Array:
        """The same elements."""
        return movement.reshaped(x, self.shape)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy in the operand's shape."""
        dy, _, x = terms(at, build)
        return (dy.shaped(x.shape).value,)


@operation("tessera.graph.broadcast", spellings=("op.broadcast",), clauses=("LANG-02-04", "LANG-03.2-02"))
class Broadcast(Operation):
    """The operand repeated to a shape by NumPy's rules: along axes of extent 1, and new ones in front."""

    x: Operand[Tensor | Scalar]
    shape: Attribute[tuple[int, ...]]

    def infer(self) -> Numeric:
        """The shape asked for; each of its last dimensions is the operand's, or that is 1."""
        require_extents("shape", self.shape)
        x, shape = self.x.shape, self.shape
        fits = len(shape) >= len(x) and all(
            not isinstance(have, int) or have in (1, want)
            for have, want in zip(reversed(x), reversed(shape), strict=False)
        )
        require(
            fits,
            "shapes",
            f"{self.x} does not broadcast to shape {list(shape)}",
            "each dimension equal, or 1",
            "LANG-03.2-03",
        )
        return of_shape(shape, self.x)

    def execute(self, x: Array, env: Environment) -> Array:
        """The elements repeated."""
        return movement.broadcast(x, self.shape)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """The sum of dy over the axes that were spread."""
        dy, _, x = terms(at, build)
        return (dy.summed_to(x).value,)
