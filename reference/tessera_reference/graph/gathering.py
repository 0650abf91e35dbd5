"""`tessera.graph.gather` and its adjoint `scatter_add`: the slices along an axis at computed indices."""

from ..ir.module import Value
from ..ir.operation import Applied, Attribute, Builder, Environment, Operand, Operation, operation, require
from ..ir.types import Dim, Numeric, Scalar, Tensor, show_dim
from ..numerics import movement
from ..numerics.array import Array
from .adjoints import terms
from .axes import require_axis
from .dtypes import require_numeric
from .shaping import of_shape

INDEX_DTYPES = ("int32", "int64")


def slices_shape(x: Tensor, indices: Numeric, axis: int) -> tuple[Dim, ...]:
    """The shape of the slices of `x` at `indices`, whose dimensions replace the axis. Raises `Refusal`."""
    require_axis(axis, x.rank)
    require(
        indices.dtype.name in INDEX_DTYPES,
        "types",
        f"the indices are {indices.dtype}",
        " or ".join(INDEX_DTYPES),
        "LANG-11-01",
        "cast them with op.cast(..., dtype=int32)",
    )
    at = axis % x.rank
    return (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])


@operation("tessera.graph.gather", spellings=("op.gather",), clauses=("LANG-02-04", "LANG-03.2-01"))
class Gather(Operation):
    """The slices of `x` along an axis at `indices`; an index outside is an error at run time (AMB-LANG-96)."""

    x: Operand[Tensor]
    indices: Operand[Tensor | Scalar]
    axis: Attribute[int]

    def infer(self) -> Numeric:
        """The dimensions of the indices in the place of the axis."""
        return of_shape(slices_shape(self.x, self.indices, self.axis), self.x)

    def execute(self, x: Array, indices: Array, env: Environment) -> Array:
        """The slices."""
        return movement.gathered(x, indices, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """dy added to where its slices came from, in the order of the indices."""
        dy, _, x, indices = terms(at, build)
        nothing = x.beside(0).broadcast(shape=x.shape)
        return (nothing.scatter_add(indices, dy, axis=self.axis).value, None)


@operation("tessera.graph.scatter_add", spellings=("op.scatter_add",), clauses=("LANG-02-04", "LANG-10-06"))
class ScatterAdd(Operation):
    """`x` with `updates` added to its slices along an axis at `indices`.

    What falls on one slice is added in ascending order of its position among the indices, row-major, to the element of
    x, in the accumulator type; one final rounding.
    """

    x: Operand[Tensor]
    indices: Operand[Tensor | Scalar]
    updates: Operand[Tensor | Scalar]
    axis: Attribute[int]

    def infer(self) -> Tensor:
        """x's type; the updates have its dtype and the shape that gathering would give."""
        x, updates = self.x, self.updates
        require_numeric(x.dtype)
        require(
            updates.dtype == x.dtype,
            "types",
            f"operands have dtypes {x.dtype} and {updates.dtype}",
            "updates.dtype == x.dtype",
            "LANG-03.1-05",
            "cast one operand with op.cast",
        )
        shape = slices_shape(x, self.indices, self.axis)
        require(
            updates.shape == shape,
            "shapes",
            f"the updates are {updates}, not of shape {', '.join(map(show_dim, shape))}",
            "the shape of x with the axis replaced by the dimensions of the indices",
            "LANG-03.2-01",
        )
        return x

    def execute(self, x: Array, indices: Array, updates: Array, env: Environment) -> Array:
        """The additions in order."""
        return movement.scattered(x, indices, updates, self.axis)

    def adjoint(self, at: Applied, build: Builder) -> tuple[Value | None, ...]:
        """To x all of dy, to the updates its slices."""
        dy, _, _, indices, _ = terms(at, build)
        return (dy.value, None, dy.gather(indices, axis=self.axis).value)
