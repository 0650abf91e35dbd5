"""Complex numbers of a kernel, each two floats of its component dtype (AMB-LANG-221).

LLVM has no complex type. Sums are by component; the product is the canon's, (ac - bd, ad + bc), every step an
instruction of its own (numerics.complex_numbers). Memory holds the two parts side by side, and is accessed as vectors
of two, so that a number is read and written at once. The canon defines no quotient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...graph import elementwise as graph
from ...graph import selection
from ...graph.cast import Cast
from ...graph.constant import Constant
from ...graph.identity import Identity
from ...ir.module import Instruction, Value
from ...ir.operation import Operation
from ...ir.types import Vector
from ...numerics.formats import DType
from ...tile.complex_parts import Part
from ..operations import arithmetic as llvm
from ..operations import comparisons, vectors
from .body import Body, Number, Pair
from .casts import converted, truth


def is_complex(operation: Operation, operands: tuple[Number, ...]) -> bool:
    """Whether an elementwise operation takes or makes complex numbers."""
    stated = getattr(operation, "dtype", None)
    makes = isinstance(stated, DType) and stated.kind == "complex"
    return makes or any(isinstance(each, Pair) for each in operands)


def lowered_complex(body: Body, operation: Operation, *operands: Number) -> Number:
    """Lower an elementwise operation on complex numbers. Raises `UnsupportedConstruct`."""
    kind = type(operation)
    if kind not in OPERATIONS:
        raise body.unsupported(f"complex.{operation.short_name}")
    return OPERATIONS[kind](body, operation, *operands)


def _sum(body: Body, operation: Operation, x: Pair, y: Pair) -> Pair:
    return Pair(body(llvm.FAdd, x.real, y.real), body(llvm.FAdd, x.imaginary, y.imaginary))


def _difference(body: Body, operation: Operation, x: Pair, y: Pair) -> Pair:
    return Pair(body(llvm.FSub, x.real, y.real), body(llvm.FSub, x.imaginary, y.imaginary))


def _product(body: Body, operation: Operation, x: Pair, y: Pair) -> Pair:
    """The product (ac - bd, ad + bc): six roundings."""
    real = body(llvm.FSub, body(llvm.FMul, x.real, y.real), body(llvm.FMul, x.imaginary, y.imaginary))
    imaginary = body(llvm.FAdd, body(llvm.FMul, x.real, y.imaginary), body(llvm.FMul, x.imaginary, y.real))
    return Pair(real, imaginary)


def _negate(body: Body, operation: Operation, x: Pair) -> Pair:
    return Pair(body(llvm.FNeg, x.real), body(llvm.FNeg, x.imaginary))


def _equal(body: Body, operation: Operation, x: Pair, y: Pair) -> Value:
    """Whether both parts are equal."""
    real = body(comparisons.FCmp, x.real, y.real, predicate="oeq")
    return body(llvm.And, real, body(comparisons.FCmp, x.imaginary, y.imaginary, predicate="oeq"))


def _not_equal(body: Body, operation: Operation, x: Pair, y: Pair) -> Value:
    """Whether one part differs; NaN differs from everything."""
    real = body(comparisons.FCmp, x.real, y.real, predicate="une")
    return body(llvm.Or, real, body(comparisons.FCmp, x.imaginary, y.imaginary, predicate="une"))


def _select(body: Body, operation: Operation, condition: Value, x: Pair, y: Pair) -> Pair:
    real = body(comparisons.Select, condition, x.real, y.real)
    return Pair(real, body(comparisons.Select, condition, x.imaginary, y.imaginary))


def _constant(body: Body, operation: Any) -> Pair:
    """A real constant as a complex number."""
    component = operation.dtype.component
    return Pair(body.constant(operation.value, component), body.constant(0.0, component))


def _cast(body: Body, operation: Any, x: Number) -> Number:
    """Each part rounds once; a real number gets the imaginary part +0 (LANG-03.1-05)."""
    to: DType = operation.dtype
    if isinstance(x, Pair) and to.kind == "bool":
        return body(llvm.Or, truth(body, x.real), truth(body, x.imaginary))
    if isinstance(x, Pair):
        return Pair(*(converted(body, part, to.component, operation.overflow) for part in (x.real, x.imaginary)))
    return Pair(converted(body, x, to.component, operation.overflow), body.constant(0.0, to.component))


def _same(body: Body, operation: Operation, x: Pair) -> Pair:
    return x


OPERATIONS: Mapping[type[Operation], Callable[..., Number]] = {
    graph.Add: _sum,
    graph.Subtract: _difference,
    graph.Multiply: _product,
    graph.Negate: _negate,
    graph.Equal: _equal,
    graph.NotEqual: _not_equal,
    selection.Select: _select,
    Constant: _constant,
    Cast: _cast,
    Identity: _same,
}
"""Every operation of Graph IR on elements that is defined on complex numbers, but the quotient."""


# Parts


def part(body: Body, instruction: Instruction) -> Value:
    """The real or the imaginary part."""
    operation = instruction.operation
    assert isinstance(operation, Part)
    pair = body.pair(instruction.operands[0])
    return pair.real if operation.which == "real" else pair.imaginary


def joined(body: Body, instruction: Instruction) -> Pair:
    """The complex number that has these parts."""
    real, imaginary = map(body.scalar, instruction.operands)
    return Pair(real, imaginary)


# Memory


def in_memory(dtype: DType) -> Vector:
    """The type of a complex number in memory: a vector of two."""
    return Vector(2, dtype.component)


def unpacked(body: Body, vector: Value) -> Pair:
    """The complex number in a vector of its two parts."""
    return Pair(*(body(vectors.ExtractElement, vector, position=position) for position in (0, 1)))


def packed(body: Body, pair: Pair, dtype: DType) -> Value:
    """A complex number as a vector of its two parts."""
    vector = body(vectors.Zero, returns=in_memory(dtype))
    for position, value in enumerate((pair.real, pair.imaginary)):
        vector = body(vectors.InsertElement, vector, value, position=position)
    return vector
