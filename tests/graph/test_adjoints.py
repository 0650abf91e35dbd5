"""Every adjoint against differences of the function that it belongs to, taken in 80 digits.

The function is modelled in mpmath, apart from the reference. Its central difference with a step of 1e-25 is the exact
derivative to some 50 digits. How far the executed gradient may be from it is not chosen but derived: the operations
that the adjoint builds are gone through once more with the exact values and a bound of the rounding errors made so far
(running error analysis), each operation passing on what it is given and adding its own rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from tessera_reference.graph.execution import execute
from tessera_reference.graph.grad import Grad
from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.module import Block, BlockBuilder, Function, Module
from tessera_reference.ir.operation import OPERATIONS, SPELLINGS, Applied, Environment, Operand, Operation, operation
from tessera_reference.ir.types import Scalar, Tensor, Type
from tessera_reference.language import Rejection, compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType, dtype

DIGITS, STEP, TRUNCATION = 80, "1e-25", "1e-35"
"""Digits of all that is exact; the step of a difference, and what the difference itself may be off by."""

AT = Location("t.tsr", Span(1, 1, 1, 2))
Values = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def precisely() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


# The cases: an operation, its model on arrays of mpmath numbers, and operands


@dataclass(frozen=True)
class Case:
    operation: str
    model: Callable[..., Values]
    operands: tuple[Values, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, operand.shape)) or "scalar" for operand in self.operands)
        return "-".join([self.operation, shapes, *(f"{key}={value}" for key, value in self.attributes.items())])


def each(function: Callable[[Any], Any]) -> Callable[..., Values]:
    """For every element; of a scalar too an array."""
    apply = np.vectorize(function, otypes=[object])
    return lambda *operands: np.asarray(apply(*operands), object)


def numbers(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 1) -> Values:
    """Random numbers, the same ones for the same shape."""
    generator = np.random.Generator(np.random.PCG64([seed, *shape]))
    return low + (high - low) * generator.random(shape)


def unary(name: str, function: Callable[[Any], Any], *points: float, low: float = -2.0, high: float = 2.0) -> Case:
    """Special points beside random ones."""
    return Case(name, each(function), (np.array([*points, *numbers(6, low=low, high=high)]),))


def normal(x: Any) -> Any:
    return x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2


def normal_by_tanh(x: Any) -> Any:
    return x * (1 + mpmath.tanh(mpmath.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3))) / 2


def softmax(axis: int) -> Callable[[Values], Values]:
    def model(x: Values) -> Values:
        powers = each(mpmath.exp)(x)
        return powers / powers.sum(axis=axis, keepdims=True)

    return model


def set_part(x: Values, value: Values) -> Values:
    x = x.copy()
    x[1, 2:0:-1] = value
    return x


def scatter(x: Values, indices: Values, updates: Values) -> Values:
    x = x.copy()
    for position, index in np.ndenumerate(indices):
        x[:, index] = x[:, index] + updates[(slice(None), *position)]
    return x


def framed(x: Values) -> Values:
    y = np.full((4, 4), mpf(7), object)
    y[1:3, 0:3] = x
    return y


CELL = numbers(2, 3)
CHOICE = np.array([[True, False, True], [False, False, True]])
PICKED = np.array([[2, 0], [2, 1]], np.int32)
BATCH = numbers(2, 3, 4), numbers(2, 4, 2)
BIG = np.array([1e-3, 5.0, 30.0, -30.0])
CASES = [
    Case("add", lambda a, b: a + b, (CELL, numbers(3))),
    Case("add", lambda a, b: a + b, (numbers(2, 1, 3), numbers(4, 1))),
    Case("subtract", lambda a, b: a - b, (numbers(1, 3), CELL)),
    Case("subtract", lambda a, b: a - b, (np.array(1.5), CELL)),
    Case("multiply", lambda a, b: a * b, (CELL, numbers(2, 1))),
    Case("multiply", lambda a, b: a * b, (CELL, np.array(-0.75))),
    Case("multiply", lambda a, b: a * b, (np.array(3.5), np.array(-0.75))),
    Case("divide", lambda a, b: a / b, (CELL, numbers(3, low=0.5))),
    Case("divide", lambda a, b: a / b, (numbers(3), -numbers(2, 1, low=0.5))),
    Case("negate", lambda x: -x, (CELL,)),
    Case("maximum", np.maximum, (CELL, numbers(3, seed=2))),
    Case("minimum", np.minimum, (CELL, numbers(2, 1, seed=2))),
    Case("abs", np.abs, (CELL,)),
    Case("clamp", lambda x, a, b: np.minimum(np.maximum(x, a), b), (CELL, np.array(-0.5), numbers(3, low=0.25))),
    Case("select", np.where, (CHOICE, CELL, numbers(3))),
    Case("select", np.where, (CHOICE[:, :1], np.array(2.0), CELL)),
    unary("exp", mpmath.exp, 0.0, -20.0, 20.0),
    unary("exp2", lambda x: mpf(2) ** x, 0.0, -20.0, 20.0),
    unary("expm1", mpmath.expm1, 0.0, 1e-6, -30.0, 20.0),
    unary("log", mpmath.log, 1.0, 1e-6, 1e6, low=0.1),
    unary("log2", lambda x: mpmath.log(x, 2), 1.0, 1e-6, 1e6, low=0.1),
    unary("log1p", mpmath.log1p, 0.0, 1e-6, -0.999, 1e6, low=-0.5),
    unary("sin", mpmath.sin, 0.0, 1e3, -7.0),
    unary("cos", mpmath.cos, 0.0, 1e3, -7.0),
    unary("tan", mpmath.tan, 0.0, 1.5, 1e3, low=-1.0, high=1.0),
    unary("sinh", mpmath.sinh, 0.0, 20.0, -20.0),
    unary("cosh", mpmath.cosh, 0.0, 20.0, -20.0),
    unary("tanh", mpmath.tanh, 0.0, 1e-6, 20.0, -3.0),
    unary("erf", mpmath.erf, 0.0, 1e-6, 5.0, -3.0),
    unary("sqrt", mpmath.sqrt, 1e-12, 1e12, 4.0, low=0.1),
    unary("rsqrt", lambda x: 1 / mpmath.sqrt(x), 1e-6, 1e12, 4.0, low=0.1),
    unary("reciprocal", lambda x: 1 / x, -1e-6, 1e12, -4.0, low=0.1),
    unary("sigmoid", lambda x: 1 / (1 + mpmath.exp(-x)), 0.0, *BIG),
    unary("silu", lambda x: x / (1 + mpmath.exp(-x)), 0.0, *BIG),
    unary("relu", lambda x: max(x, mpf(0)), 1e-20, -1e-20),
    unary("gelu", normal, 0.0, 1e-6, 4.0, -4.0),
    Case("gelu", each(normal_by_tanh), (np.array([0.0, 1e-6, 4.0, -3.0, *numbers(6)]),), {"approximate": "tanh"}),
    Case("pow", each(mpmath.power), (numbers(2, 3, low=0.2), numbers(3))),
    Case("pow", each(mpmath.power), (numbers(3, low=0.2), np.array(2.5))),
    Case("cast", lambda x: x, (CELL,), {"dtype": dtype("fp32")}),
    Case("cast", lambda x: x, (CELL,), {"dtype": dtype("fp64")}),
    Case("transpose", lambda x: x.transpose(2, 0, 1), (numbers(2, 3, 4),), {"perm": (2, 0, 1)}),
    Case("matmul", np.matmul, (CELL, numbers(3, 4))),
    Case("matmul", np.matmul, BATCH),
    Case("matmul", np.matmul, BATCH, {"out": dtype("fp64")}),
    Case("matmul", np.matmul, BATCH, {"out": dtype("fp32")}),
    Case("softmax", softmax(-1), (CELL,)),
    Case("softmax", softmax(0), (20 * CELL,), {"axis": 0}),
    Case("sum", lambda x: x.sum(axis=1), (CELL,), {"axis": 1}),
    Case("sum", lambda x: x.sum(axis=0), (numbers(3),), {"axis": 0}),
    Case("sum", lambda x: x.sum(axis=0, keepdims=True), (CELL,), {"axis": -2, "keepdims": True}),
    Case("mean", lambda x: x.sum(axis=1) / 3, (CELL,), {"axis": 1}),
    Case("prod", lambda x: x.prod(axis=1), (numbers(2, 7),), {"axis": 1}),
    Case("prod", lambda x: x.prod(axis=0, keepdims=True), (numbers(4, 2),), {"axis": 0, "keepdims": True}),
    Case("prod", lambda x: x.prod(axis=0), (np.array([2.0, 0.0, 3.0, 5.0, 7.0]),), {"axis": 0}),
    Case("prod", lambda x: x.prod(axis=1), (np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -0.0]]),), {"axis": 1}),
    Case("prod", lambda x: x.prod(axis=1), (numbers(3, 1),), {"axis": 1}),
    Case("max", lambda x: x.max(axis=1), (CELL,), {"axis": 1}),
    Case("max", lambda x: x.max(axis=0, keepdims=True), (CELL,), {"axis": 0, "keepdims": True}),
    Case("min", lambda x: x.min(axis=1), (CELL,), {"axis": -1}),
    Case("logsumexp", lambda x: each(mpmath.log)(each(mpmath.exp)(x).sum(axis=1)), (10 * CELL,), {"axis": 1}),
    Case("slice", lambda x: x[1, ::-2], (CELL,), {"spec": ("1", "::-2")}),
    Case("slice", lambda x, i, j: x[i:, j], (CELL, np.int32(1), np.int32(2)), {"spec": ("$0:", "$1")}),
    Case("strided_slice", lambda x: x[0:2:1, 2:0:-1], (CELL,), {"starts": (0, 2), "stops": (2, 0), "steps": (1, -1)}),
    Case("update", set_part, (CELL, numbers(2)), {"spec": ("1", "2:0:-1")}),
    Case("update", set_part, (CELL, np.array(0.5)), {"spec": ("1", "2:0:-1")}),
    Case("update", lambda x, v, i: set_part(x, v), (CELL, numbers(2), np.int32(2)), {"spec": ("1", "$0:0:-1")}),
    Case("gather", lambda x, i: x[:, i.astype(int)], (CELL, PICKED), {"axis": 1}),
    Case("gather", lambda x, i: x[int(i)], (CELL, np.int64(1)), {"axis": 0}),
    Case("scatter_add", scatter, (CELL, PICKED, numbers(2, 2, 2)), {"axis": -1}),
    Case("concat", lambda a, b: np.concatenate([a, b], 1), (CELL, numbers(2, 2)), {"axis": 1}),
    Case("concat", lambda *xs: np.concatenate(xs, 0), (CELL, numbers(1, 3), CELL + 1), {"axis": -2}),
    Case("pad", framed, (CELL,), {"low": (1, 0), "high": (1, 1), "value": 7.0}),
    Case("reshape", lambda x: x.reshape(3, 2), (CELL,), {"shape": (3, -1)}),
    Case("reshape", lambda x: x.reshape(1, 1), (np.array(2.0),), {"shape": (1, 1)}),
    Case("broadcast", lambda x: np.broadcast_to(x, (4, 2, 3)), (CELL[:, :1],), {"shape": (4, 2, 3)}),
    Case("broadcast", lambda x: np.broadcast_to(x, (2,)), (np.array(2.0),), {"shape": (2,)}),
]
NO_GRADIENT = {"equal", "not_equal", "less", "greater", "less_equal", "greater_equal", "argmax"}
NO_OPERANDS = {"constant", "const_tensor", "iota"}
FAMILIES = "elementwise functions matmul reductions movement constant"
ELSEWHERE = {"fft", "ifft", "identity", "layout_cast"}
"""Operations of these families whose adjoints other tests judge."""


def test_every_adjoint_of_these_families_has_a_case() -> None:
    declared = {
        name.rpartition(".")[2]
        for name, declared in OPERATIONS.items()
        if name.startswith("tessera.graph.") and declared.__module__.rpartition(".")[2] in FAMILIES.split()
    }
    assert len(declared) > 50
    assert declared == {case.operation for case in CASES} | NO_GRADIENT | NO_OPERANDS | ELSEWHERE


# Exact derivatives


def precise(x: Values) -> Values:
    """Floats as mpmath numbers; integers and bools as they are."""
    x = np.asarray(x)
    return each(mpf)(x) if x.dtype.kind == "f" else x


def derivative(case: Case, operands: list[Values], weights: Values, which: int) -> Values:
    """The central difference of the weighted sum of the results in each element of one operand."""
    step = mpf(STEP)

    def total(index: tuple[int, ...], shift: mpf) -> Any:
        moved = [precise(operand) for operand in operands]
        moved[which] = moved[which].copy()
        moved[which][index] += shift
        return np.sum(case.model(*moved) * precise(weights))

    found = np.empty(np.shape(operands[which]), object)
    for index in np.ndindex(found.shape):
        found[index] = (total(index, step) - total(index, -step)) / (2 * step)
    return found


# Running error analysis


class Bounded:
    """A number and how far what was computed for it may be from it."""

    def __init__(self, value: Any, error: Any = 0) -> None:
        self.value, self.error = mpf(value), mpf(error)

    def __add__(self, other: Bounded) -> Bounded:
        return Bounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Bounded) -> Bounded:
        return Bounded(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Bounded) -> Bounded:
        a, b = self, other
        return Bounded(a.value * b.value, abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error)

    def __truediv__(self, other: Bounded) -> Bounded:
        quotient = self.value / other.value
        return Bounded(quotient, (self.error + abs(quotient) * other.error) / (abs(other.value) - other.error))

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error)

    def through(self, function: Callable[[Any], Any]) -> Bounded:
        """A smooth function: its slope at the place, and room for its change within the error."""
        slope = abs(mpmath.diff(function, self.value)) if self.error else mpf(0)
        return Bounded(function(self.value), slope * self.error * mpf("1.001"))

    def rounded(self, form: DType, times: int = 1) -> Bounded:
        unit = mpf(2) ** -(form.fraction_bits + 1)
        own = times * (unit * (abs(self.value) + self.error) + mpf(form.min_subnormal))
        return Bounded(self.value, self.error + own)


def power(a: Bounded, b: Bounded) -> Bounded:
    value = mpmath.power(a.value, b.value)
    return Bounded(
        value, mpf("1.001") * abs(value) * (abs(b.value / a.value) * a.error + abs(mpmath.log(a.value)) * b.error)
    )


def magnitude(x: Values) -> Values:
    return each(lambda b: Bounded(abs(b.value), b.error))(x)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    **{name: (getattr(mpmath, name), 1) for name in "exp log sin cos sinh cosh tanh erf".split()},
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), 3),
}
"""Functions that adjoints use, and how often they round; sigmoid's three steps add up, being of positive numbers."""

EXACT: dict[str, Callable[..., Any]] = {
    "constant": lambda op: Bounded(op.value) if op.dtype.kind == "float" else np.asarray(op.value),
    "iota": lambda op: np.indices(op.shape)[op.axis],
    "negate": lambda op, x: -x,
    "select": lambda op, c, a, b: np.where(c, a, b),
    "greater": lambda op, a, b: compared(a, b, lambda x, y: x > y),
    "less": lambda op, a, b: compared(a, b, lambda x, y: x < y),
    "equal": lambda op, a, b: compared(a, b, lambda x, y: x == y),
    "maximum": lambda op, a, b: np.where(compared(a, b, lambda x, y: x >= y), a, b),
    "argmax": lambda op, x: np.expand_dims(each(lambda b: b.value)(x).argmax(op.axis), op.axis),
    "reshape": lambda op, x: np.reshape(x, op.shape),
    "broadcast": lambda op, x: np.broadcast_to(x, op.shape),
    "transpose": lambda op, x: np.transpose(x, op.perm),
    "concat": lambda op, *xs: np.concatenate(xs, op.axis),
    "gather": lambda op, x, i: np.take(x, i, op.axis),
    "slice": lambda op, x, *bounds: x[places(op.spec, bounds)],
    "update": lambda op, x, value, *bounds: replaced(x, value, places(op.spec, bounds)),
}


def compared(a: Values, b: Values, relation: Callable[[Any, Any], bool]) -> Values:
    plain = [each(lambda x: x.value if isinstance(x, Bounded) else x)(x) for x in (a, b)]
    return np.asarray(np.vectorize(relation, otypes=[bool])(*plain))


def places(spec: tuple[str, ...], bounds: tuple[Values, ...]) -> tuple[Any, ...]:
    """As numpy reads a specification; none here counts down past 0."""

    def part(text: str) -> int | None:
        return None if not text else int(bounds[int(text[1:])]) if text.startswith("$") else int(text)

    return tuple(slice(*map(part, text.split(":"))) if ":" in text else part(text) for text in spec)


def replaced(x: Values, value: Values, where: tuple[Any, ...]) -> Values:
    x = np.array(x, object)
    x[where] = value
    return x


def one_step(operation: Operation, form: DType, operands: list[Any]) -> Any:
    """An operation on bounded numbers: exactly, with what was passed on, and its own rounding."""
    name = operation.short_name
    rounded = each(lambda x: x.rounded(form))
    if name in EXACT:
        found = EXACT[name](operation, *operands)
        return rounded(found) if name == "constant" and form.kind == "float" else found
    if name in FUNCTIONS:
        function, times = FUNCTIONS[name]
        return each(lambda x: x.through(function).rounded(form, times))(operands[0])
    if name == "pow":
        return rounded(each(power)(*operands))
    if name in ("add", "subtract", "multiply", "divide"):
        symbol = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}[name]
        return rounded(symbol(*operands))
    if name == "cast":
        return rounded(operands[0])
    return summed(operation, form, operands)


def summed(operation: Operation, form: DType, operands: list[Any]) -> Any:
    """Sums of products: each of n terms meets at most n roundings of a sum of magnitudes, and one of its own."""
    combine: Callable[..., Any] = {
        "sum": lambda x: np.sum(x, operation.attributes["axis"], keepdims=operation.attributes["keepdims"]),
        "matmul": np.matmul,
        "scatter_add": lambda x, i, updates: accumulated(x, i, updates, operation.attributes["axis"]),
    }[operation.short_name]
    total = combine(*operands)
    whole = combine(*(magnitude(x) if x.dtype == object else x for x in operands))
    count = max(int(np.size(x)) for x in operands) + 2
    return np.vectorize(
        lambda exact, sizes: Bounded(exact.value, exact.error + sizes.rounded(form, count).error), otypes=[object]
    )(total, whole)


def accumulated(x: Values, indices: Values, updates: Values, axis: int) -> Values:
    x, updates = (
        np.moveaxis(np.array(x, object), axis, -1),
        np.moveaxis(updates, range(axis % x.ndim, axis % x.ndim + indices.ndim), range(-indices.ndim, 0)),
    )
    for position, index in np.ndenumerate(indices):
        x[..., index] = x[..., index] + updates[(..., *position)]
    return np.moveaxis(x, -1, axis)


def analysed(operation: Operation, operands: list[Any], results: list[Any], dys: list[Any]) -> list[Any]:
    """The gradients that an adjoint gives, with bounds."""
    build = BlockBuilder(AT)
    types = [type_ for _, type_ in operation.operand_types]
    arguments = [
        tuple(build.value(type_) for type_ in group) for group in (types, operation.results(), operation.results())
    ]
    outgoing = operation.adjoint(Applied(*arguments), build)
    held = dict(zip(sum(arguments, ()), [*operands, *results, *dys], strict=True))
    for instruction in build.instructions:
        (result,) = instruction.results
        steps = instruction.operation
        forms = [result.type.dtype, steps.attributes.get("accum", result.type.dtype)]
        coarser = min(forms, key=lambda form: form.fraction_bits)
        held[result] = np.asarray(one_step(steps, coarser, [held[operand] for operand in instruction.operands]))
    return [None if value is None else held[value] for value in outgoing]


# The test


def type_of(array: Array) -> Type:
    return Tensor(array.shape, array.dtype) if array.shape else Scalar(array.dtype)


def arrays_of(case: Case, form: DType) -> list[Array]:
    def array(operand: Values) -> Array:
        kept = {"i": f"int{8 * operand.dtype.itemsize}", "b": "bool"}.get(operand.dtype.kind, form.name)
        return Array(dtype(kept), np.asarray(operand).astype(dtype(kept).carrier))

    return [array(np.asarray(operand)) for operand in case.operands]


def gradients(case: Case, operands: list[Array], weights: Array) -> list[Array | None]:
    """By a program: the gradient of the operation's result times the weights with respect to every float operand."""
    build = BlockBuilder(AT)
    *parameters, w = (build.value(type_of(array)) for array in [*operands, weights])
    y = build(OPERATIONS[f"tessera.graph.{case.operation}"], *parameters, **case.attributes)
    z = build(OPERATIONS["tessera.graph.multiply"], y, w)
    wrt = [value for value, array in zip(parameters, operands, strict=True) if array.dtype.kind == "float"]
    results = build.all(Grad, z, *wrt)
    body = Block((*parameters, w), tuple(build.instructions), results)
    function = Function("f", body, tuple(value.type for value in results), AT)
    inputs = {value.name: array for value, array in zip([*parameters, w], [*operands, weights], strict=True)}
    found = iter(execute(Module("m", {"f": function}, AT), "f", inputs))
    return [next(found) if array.dtype.kind == "float" else None for array in operands]


def forward(case: Case, operands: list[Array]) -> tuple[Operation, Array]:
    build = BlockBuilder(AT)
    values = [build.value(type_of(array)) for array in operands]
    build(OPERATIONS[f"tessera.graph.{case.operation}"], *values, **case.attributes)
    operation = build.instructions[0].operation
    return operation, operation.execute(*operands, env=None)


@pytest.mark.parametrize("name", ["fp32", "fp64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_gradient_is_the_derivative_but_for_rounding(case: Case, name: str) -> None:
    form = dtype(name)
    operands = arrays_of(case, form)
    operation, y = forward(case, operands)
    weights = Array(y.dtype, np.asarray(numbers(*y.shape, seed=9)).astype(y.dtype.carrier))
    values = [operand.values for operand in operands]
    exact_y = case.model(*map(precise, values))
    bounded_y = each(lambda exact, found: Bounded(exact, abs(exact - found)))(exact_y, precise(y.values))
    inputs = [each(Bounded)(x) if x.dtype.kind == "f" else x for x in values]
    bounds = analysed(operation, inputs, [bounded_y], [each(Bounded)(weights.values)])
    unit = mpf(2) ** -(min(form.fraction_bits, y.dtype.fraction_bits) + 1)
    most = max(map(abs, precise(weights.values).flat))
    for which, gradient in enumerate(gradients(case, operands, weights)):
        if gradient is None:
            assert bounds[which] is None
            continue
        expected = derivative(case, values, weights.values, which)
        assert (gradient.dtype, gradient.shape) == (form, expected.shape)
        for found, exact, bound in zip(precise(gradient.values).flat, expected.flat, bounds[which].flat, strict=True):
            assert bound.error <= 2000 * unit * (abs(exact) + most), "the bound says nothing"
            assert abs(found - exact) <= bound.error + mpf(TRUNCATION)


@pytest.fixture(autouse=True)
def opaque() -> Iterator[None]:
    """Declares `op.opaque(x)`."""

    @operation("tessera.graph.opaque", spellings=("op.opaque",), clauses=("LANG-05.5-02",))
    class Opaque(Operation):
        """x, by ways that nobody knows."""

        x: Operand[Tensor | Scalar]

        def infer(self) -> Tensor | Scalar:
            """The same type."""
            return self.x

        def execute(self, x: Array, env: Environment) -> Array:
            """The same value."""
            return x

    yield
    del OPERATIONS["tessera.graph.opaque"], SPELLINGS["op.opaque"]


F = "func f(x: fp32, w: fp32)"
GRADIENT = "func gradient(y: fp32, x: fp32) -> fp32 { return op.grad(y, x); }"
SCALED = "func scaled(a: fp32, b: fp32) -> fp32 { if (a > b) { return a * op.opaque(b); } return a; }"
TWINS = {
    "at once": (f"{F} {{ return op.grad(op.opaque(x), x); }}", f"{F} {{ return op.grad(op.opaque(w), x); }}"),
    "among others": (
        f"{F} {{ let y: fp32 = op.opaque(x * w) + 1.0; return op.grad(y * y, x); }}",
        f"{F} {{ let y: fp32 = op.opaque(x * w) + 1.0; return op.grad(x * x, x) * y; }}",
    ),
    "after the gradient": (
        f"{F} {{ let y: fp32 = op.opaque(x); return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = op.grad(x, x); return op.opaque(y); }}",
    ),
    "of a gradient": (
        f"{F} {{ return op.grad(op.opaque(op.grad(x * x, x)), x); }}",
        f"{F} {{ return op.opaque(op.grad(op.grad(x * x, x), x)); }}",
    ),
    "by a comparison": (
        f"{F} {{ return op.grad(op.select(x > w, op.opaque(x), w), x); }}",
        f"{F} {{ return op.grad(op.select(op.opaque(x) > w, x, w), x); }}",
    ),
    "by an integer": (
        f"{F} {{ return op.grad(op.cast(op.cast(op.opaque(x), dtype=fp64), dtype=fp32) * x, x); }}",
        f"{F} {{ return op.grad(op.cast(op.cast(op.opaque(x), dtype=int32), dtype=fp32) * x, x); }}",
    ),
    "in a branch": (
        f"{F} {{ let y: fp32 = x; if (x > w) {{ y = op.opaque(x); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; if (x > w) {{ w = op.opaque(x); }} return op.grad(y, x); }}",
    ),
    "in a branch, of what came in": (
        f"{F} {{ let y: fp32 = x * x; if (x > w) {{ y = op.opaque(y); }} else {{ y = w; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x * x; if (x > w) {{ y = op.opaque(w); }} else {{ y = x; }} return op.grad(y, x); }}",
    ),
    "carried by a loop": (
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = op.opaque(y); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = y * op.opaque(w); }} return op.grad(y, x); }}",
    ),
    "past a loop that may not run": (
        f"{F} {{ let y: fp32 = op.opaque(x); for (i in 0:0) {{ y = w; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = op.opaque(w); for (i in 0:0) {{ y = w; }} return op.grad(y, x); }}",
    ),
    "round a loop": (
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = w; w = op.opaque(x); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = y * x; w = op.opaque(w); }} return op.grad(y, x); }}",
    ),
    "round a while": (
        f"{F} {{ let y: fp32 = w; while (y < 9.0) {{ y = op.opaque(y) + x; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = w; while (op.opaque(y) < 9.0) {{ y = y + x; }} return op.grad(y, x); }}",
    ),
    "into a call": (
        f"{F} {{ return op.grad(scaled(w, x), x); }} {SCALED}",
        f"{F} {{ return op.grad(op.opaque(w) * x, x) + scaled(w, x); }} {SCALED}",
    ),
    "through a call and back": (
        f"{F} {{ return op.grad(unknown(x), x); }} func unknown(a: fp32) -> fp32 {{ return op.opaque(a); }}",
        f"{F} {{ return op.grad(unknown(w) * x, x); }} func unknown(a: fp32) -> fp32 {{ return op.opaque(a); }}",
    ),
    "out of a call": (
        f"{GRADIENT} {F} {{ return gradient(op.opaque(x), x); }}",
        f"{GRADIENT} {F} {{ return gradient(x * x, x) * op.opaque(x); }}",
    ),
    "by what a value was handed on from": (
        f"{GRADIENT} {F} {{ let y: fp32 = op.opaque(x); for (i in 0:1) {{ w = gradient(y, x); }} return w; }}",
        f"{GRADIENT} {F} {{ let y: fp32 = op.opaque(w); for (i in 0:1) {{ w = gradient(y * x, x); }} return w; }}",
    ),
    "in a slice": (
        f"{F} {{ let v: tensor<2xfp32> = op.broadcast(x, shape=[2]); v[1] = op.opaque(v[0]); return op.grad(v, x); }}",
        f"{F} {{ let v: tensor<2xfp32> = op.broadcast(w, shape=[2]); v[1] = op.opaque(w); return op.grad(v * x, x); }}",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_gradient_through_it_is_refused(name: str) -> None:
    source = f"module m {{ {TWINS[name][0]} }}"
    with pytest.raises(Rejection) as caught:
        compile_source(source, "t.tsr")
    (found,) = caught.value.diagnostics
    assert (found.category, found.phase, found.clause) == ("types", "verify", "LANG-05.5-02")
    assert found.message.startswith("opaque: no adjoint")
    assert (found.filename, found.span.line, found.span.column) == ("t.tsr", 1, source.index("op.opaque") + 1)
    assert found.requirement and found.remedy and found.operands == ("x is fp32",)


@pytest.mark.parametrize("name", TWINS)
def test_its_twin_that_goes_by_it_is_accepted_and_runs(name: str) -> None:
    module = compile_source(f"module m {{ {TWINS[name][1]} }}", "t.tsr").module
    inputs = {each: Array(dtype("fp32"), np.float32(number)) for each, number in (("x", 2.0), ("w", 1.0))}
    (found,) = execute(module, "f", inputs)
    assert np.isfinite(found.values).all()


def test_each_operation_is_named_once() -> None:
    body = "let y: fp32 = op.opaque(x) * op.opaque(w); return op.grad(y, x), op.grad(y, w), op.grad(y, y);"
    with pytest.raises(Rejection) as caught:
        compile_source(f"module m {{ {F} {{ {body} }} }}")
    first, second = caught.value.diagnostics
    assert first.span.column < second.span.column


def test_every_operation_of_the_language_that_yields_floats_of_floats_has_an_adjoint() -> None:
    graph = {name: declared for name, declared in OPERATIONS.items() if name.startswith("tessera.graph.")}
    missing = {name.rpartition(".")[2] for name, declared in graph.items() if not declared.is_differentiable()}
    assert missing == {"fft", "ifft", "opaque"}, "which are of complex numbers, but for the one declared here"
