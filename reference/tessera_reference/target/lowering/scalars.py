"""Scalar arithmetic of a kernel in the LLVM dialect, with the canon's roundings (LANG-08.2-01, AMB-LANG-222).

Floats of 8 or 16 bits are computed in fp32 and rounded once more: with significands of at most 11 bits the result is
that of a single rounding (numerics.arithmetic). Functions whose bits LLVM does not fix are calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...graph import elementwise as graph
from ...graph import functions, selection
from ...graph.cast import Cast
from ...graph.constant import Constant
from ...graph.identity import Identity
from ...ir.module import Value
from ...ir.operation import Operation
from ..operations import arithmetic as llvm
from ..operations import comparisons
from ..operations.calls import CALLEES, Call, symbol
from .body import Body, Number, Pair
from .casts import converted, dtype_of, narrowed, unrounded, widened
from .complex_numbers import is_complex, lowered_complex

Binary = type[llvm.Binary]

BINARY: Mapping[type[Operation], tuple[Binary, Binary]] = {
    graph.Add: (llvm.FAdd, llvm.Add),
    graph.Subtract: (llvm.FSub, llvm.Sub),
    graph.Multiply: (llvm.FMul, llvm.Mul),
}
"""The instruction on floats, and that on integers."""

MAXIMUM = (llvm.Maximum, llvm.SMax)
MINIMUM = (llvm.Minimum, llvm.SMin)
EXTREMA: Mapping[type[Operation], tuple[Binary, Binary]] = {selection.Maximum: MAXIMUM, selection.Minimum: MINIMUM}
"""Instructions, as in `BINARY`, whose result is one of their operands."""

COMPARISONS: Mapping[type[Operation], tuple[str, str]] = {
    graph.Equal: ("oeq", "eq"),
    graph.NotEqual: ("une", "ne"),
    graph.Less: ("olt", "slt"),
    graph.Greater: ("ogt", "sgt"),
    graph.LessEqual: ("ole", "sle"),
    graph.GreaterEqual: ("oge", "sge"),
}
"""The predicate on floats, and that on integers."""


def lowered_element(body: Body, operation: Operation, *operands: Number) -> Number:
    """Lower an elementwise operation of Graph IR in a kernel. Raises `UnsupportedConstruct`."""
    if is_complex(operation, operands):
        return lowered_complex(body, operation, *operands)
    return lowered_scalar(body, operation, *(each for each in operands if not isinstance(each, Pair)))


def lowered_scalar(body: Body, operation: Operation, *operands: Value) -> Value:
    """Lower an elementwise operation on operands that are not complex."""
    kind = type(operation)
    if kind in BINARY:
        return _binary(body, *BINARY[kind], *operands)
    if kind in EXTREMA:
        return _extremum(body, *EXTREMA[kind], *operands)
    if kind in COMPARISONS:
        return _comparison(body, *COMPARISONS[kind], *operands)
    if kind in SPECIAL:
        return SPECIAL[kind](body, operation, *operands)
    if isinstance(operation, functions.FloatFunction | functions.Pow):
        return _call(body, operation, *operands)
    raise body.unsupported(operation.short_name)


def _binary(body: Body, on_floats: Binary, on_integers: Binary, a: Value, b: Value) -> Value:
    held = dtype_of(a)
    if held.kind != "float":
        return body(on_integers, a, b)
    return narrowed(body, body(on_floats, widened(body, a), widened(body, b)), held)


def _extremum(body: Body, on_floats: Binary, on_integers: Binary, a: Value, b: Value) -> Value:
    held = dtype_of(a)
    if held.kind != "float":
        return body(on_integers, a, b)
    return unrounded(body, body(on_floats, widened(body, a), widened(body, b)), held)


def _comparison(body: Body, on_floats: str, on_integers: str, a: Value, b: Value) -> Value:
    if dtype_of(a).kind != "float":
        return body(comparisons.ICmp, a, b, predicate=on_integers)
    return body(comparisons.FCmp, widened(body, a), widened(body, b), predicate=on_floats)


def _divide(body: Body, operation: Operation, a: Value, b: Value) -> Value:
    """The quotient. The least integer over -1 wraps, which sdiv leaves undefined: division by -1 is a subtraction."""
    held = dtype_of(a)
    if held.kind == "float":
        return narrowed(body, body(llvm.FDiv, widened(body, a), widened(body, b)), held)
    if body.number_of(b) not in (None, -1):
        return body(llvm.SDiv, a, b)
    is_minus_one = body(comparisons.ICmp, b, body.constant(-1, held), predicate="eq")
    divisor = body(comparisons.Select, is_minus_one, body.constant(1, held), b)
    negated = body(llvm.Sub, body.constant(0, held), a)
    return body(comparisons.Select, is_minus_one, negated, body(llvm.SDiv, a, divisor))


def _negate(body: Body, operation: Operation, x: Value) -> Value:
    held = dtype_of(x)
    if held.kind == "float":
        return unrounded(body, body(llvm.FNeg, widened(body, x)), held)
    return body(llvm.Sub, body.constant(0, held), x)


def _absolute(body: Body, operation: Operation, x: Value) -> Value:
    held = dtype_of(x)
    if held.kind == "float":
        return unrounded(body, body(llvm.FAbs, widened(body, x)), held)
    return body(llvm.SMax, x, body(llvm.Sub, body.constant(0, held), x))


def _clamp(body: Body, operation: Operation, x: Value, low: Value, high: Value) -> Value:
    return _extremum(body, *MINIMUM, _extremum(body, *MAXIMUM, x, low), high)


def _relu(body: Body, operation: Operation, x: Value) -> Value:
    return _extremum(body, *MAXIMUM, x, body.constant(0, dtype_of(x)))


def _sqrt(body: Body, operation: Operation, x: Value) -> Value:
    return narrowed(body, body(llvm.Sqrt, widened(body, x)), dtype_of(x))


def _reciprocal(body: Body, operation: Operation, x: Value) -> Value:
    wide = widened(body, x)
    return narrowed(body, body(llvm.FDiv, body.constant(1.0, dtype_of(wide)), wide), dtype_of(x))


def _select(body: Body, operation: Operation, condition: Value, a: Value, b: Value) -> Value:
    return body(comparisons.Select, condition, a, b)


def _constant(body: Body, operation: Any) -> Value:
    return body.constant(operation.value, operation.dtype.storage)


def _cast(body: Body, operation: Any, x: Value) -> Value:
    return converted(body, x, operation.dtype.storage, operation.overflow)


def _same(body: Body, operation: Operation, x: Value) -> Value:
    return x


SPECIAL: Mapping[type[Operation], Callable[..., Value]] = {
    graph.Divide: _divide,
    graph.Negate: _negate,
    selection.Abs: _absolute,
    selection.Clamp: _clamp,
    selection.Select: _select,
    functions.Relu: _relu,
    functions.Sqrt: _sqrt,
    functions.Reciprocal: _reciprocal,
    Constant: _constant,
    Cast: _cast,
    Identity: _same,
}
"""Operations that take several instructions, or one whose operands are others."""


def _call(body: Body, operation: Operation, *operands: Value) -> Value:
    """Call a library function, correctly rounded in the operands' own dtype."""
    held = dtype_of(operands[0])
    name = operation.name.rpartition(".")[2]
    if operation.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    callee = symbol(name, held)
    if callee not in CALLEES:
        raise body.unsupported(name)
    return body(Call, *operands, callee=callee, returns=held)
