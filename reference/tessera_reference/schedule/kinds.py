"""Which operations of Graph IR become which loop nests, and which stay in the host function (section 6, AMB-LANG-214).

Random draws, collectives, operations with regions, calls, state and assertions stay; so do arithmetic on scalars and
operations with an unknown extent.
"""

from __future__ import annotations

from typing import Literal

from ..graph.cast import Cast
from ..graph.elementwise import ElementwiseBinary, Negate
from ..graph.fft import FourierTransform
from ..graph.functions import FloatFunction
from ..graph.gathering import Gather
from ..graph.identity import Identity
from ..graph.layouts import LayoutCast
from ..graph.matmul import MatMul
from ..graph.movement import Concat, Iota, Pad
from ..graph.reductions import Reduction
from ..graph.selection import Abs, Clamp, Select
from ..graph.shaping import Broadcast, Reshape
from ..graph.slicing import Slice, StridedSlice, Update
from ..graph.softmax import Softmax
from ..graph.transpose import Transpose
from ..ir.module import Instruction
from ..ir.operation import Operation
from ..ir.types import Scalar, Tensor, Type

Kind = Literal["contract", "map", "rows"]

ELEMENTWISE = (ElementwiseBinary, Negate, FloatFunction, Cast, Select, Clamp, Abs)
"""Operations whose result has an element for each of the operands' broadcast shape."""

MOVEMENTS = (
    Broadcast,
    Concat,
    Gather,
    Identity,
    Iota,
    LayoutCast,
    Pad,
    Reshape,
    Slice,
    StridedSlice,
    Transpose,
    Update,
)
"""Operations whose result consists of elements of their operands, or of positions."""

MAPPED = (*ELEMENTWISE, *MOVEMENTS)
"""Operations that become nests of kind `map`."""

ROWS = (Reduction, Softmax, FourierTransform)
"""Operations on independent rows along one axis."""

FUSIBLE = (MatMul, *ROWS, *MAPPED)
"""Operations that may be part of a nest."""


def kind_of(instruction: Instruction) -> Kind | None:
    """The kind of nest that an instruction becomes; None where it stays in the host function."""
    operation, results = instruction.operation, instruction.results
    types = [value.type for value in (*instruction.operands, *results)]
    if not all(map(is_known, types)) or len(results) != 1:
        return None
    if isinstance(operation, Update) and any(":" in part and "$" in part for part in operation.spec):
        return None  # which elements it writes is known only when it runs
    if isinstance(operation, MatMul):
        return "contract"
    if isinstance(operation, ROWS):
        return "rows"
    if isinstance(operation, MAPPED) and isinstance(results[0].type, Tensor):
        return "map"
    return None


def is_fusible(instruction: Instruction) -> bool:
    """Whether an instruction may be part of a nest, once its extents are known."""
    return isinstance(instruction.operation, FUSIBLE)


def is_elementwise(operation: Operation) -> bool:
    """Whether an operation is elementwise, so that it can share a nest with others over the same shape."""
    return isinstance(operation, ELEMENTWISE)


def is_known(type_: Type) -> bool:
    """Whether a value is a scalar, or a tensor of which every extent is known."""
    return isinstance(type_, Scalar) or (
        isinstance(type_, Tensor) and all(isinstance(extent, int) for extent in type_.shape)
    )


def row_axis(operation: Operation) -> int:
    """The axis of the operand along which the rows of an operation on rows lie."""
    axis = operation.attributes.get("axis", -1)
    (_, type_), *_ = operation.operand_types
    assert isinstance(axis, int) and isinstance(type_, Tensor)
    return axis % type_.rank
