"""The substitutes that implementations of other bits put in the place of parts of the reference."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from tessera_reference.graph import collectives, elementwise
from tessera_reference.graph import elementwise as functions
from tessera_reference.graph.elementwise import Cast
from tessera_reference.graph.reductions import ArgMax, Softmax
from tessera_reference.ir.operation import Environment
from tessera_reference.numerics import activations, catalogue, elementary, reductions, rounding
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.rounding import round_to
from tessera_reference.numerics.trees import FOLD, Tree

Substitution: TypeAlias = tuple[Any, str, Any]
"""An owner, the name of its attribute, and the substitute."""

GRAPH_MATMUL = sys.modules["tessera_reference.graph.reductions"]
GRAPH_CAST = sys.modules["tessera_reference.graph.elementwise"]
NUMERICS_SOFTMAX = sys.modules["tessera_reference.numerics.reductions"]
MATMUL, OVER_TREE, MODEL = GRAPH_MATMUL.matmul, reductions._over_tree, reductions._model


class Orders:
    """matmul, sum and all_reduce in an order and an arithmetic of one's own."""

    def __init__(self, order: Callable[[str, DType, int], Tree], node: Callable[[str, DType], NodeArithmetic]) -> None:
        self.order, self.node = order, node
        self.operation, self.kind = "sum", None
        self.chance = np.random.Generator(np.random.Philox(3))

    @contextmanager
    def called(self, operation: str) -> Iterator[None]:
        """Sums are those of another operation."""
        self.operation = operation
        try:
            yield
        finally:
            self.operation = "sum"

    def substitutions(self) -> list[Substitution]:
        """Return the substitutions."""
        return [
            (GRAPH_MATMUL, "matmul", self.product),
            (catalogue, "matmul", self.product),
            (reductions, "_model", self.model),
            (reductions, "_over_tree", self.over_tree),
            (collectives, "reduced", self.over_ranks(collectives.reduced)),
        ]

    def over_ranks(self, collective: Callable[..., Any]) -> Callable[..., Any]:
        """Return a collective of the language in the order of all_reduce."""

        def in_its_order(*arguments: Any, **named: Any) -> Any:
            with self.called("all_reduce"):
                return collective(*arguments, **named)

        return in_its_order

    def columns_left_over(self, width: int) -> list[Substitution]:
        """Products whose last columns, those of no whole group, are folded."""

        def product(a: Array, b: Array, out: DType | None = None, **arguments: Any) -> Array:
            found = self.product(a, b, out, **arguments)
            whole = b.shape[-1] - b.shape[-1] % width
            rest = MATMUL(a, Array(b.dtype, b.values[..., whole:]), out, arithmetic=self.node("matmul", a.dtype))
            return Array(found.dtype, np.concatenate([found.values[..., :whole], rest.values], -1))

        return [(GRAPH_MATMUL, "matmul", product), (catalogue, "matmul", product)]

    def from_the_first_term(self) -> list[Substitution]:
        """Products that add to -0, which changes no term that comes first."""

        def product(a: Array, b: Array, out: DType | None = None, **arguments: Any) -> Array:
            folded = arguments.get("addend") is None and arguments.get("tree") in (None, FOLD)
            if folded and a.dtype.kind == "float" and a.shape[-1]:
                kind = arguments.get("accumulator") or a.dtype.accumulator
                arguments["addend"] = Array(kind, np.full((*a.shape[:-1], b.shape[-1]), -0.0, kind.carrier))
            return MATMUL(a, b, out, **arguments)

        return [(GRAPH_MATMUL, "matmul", product), (catalogue, "matmul", product)]

    def product(
        self,
        a: Array,
        b: Array,
        out: DType | None = None,
        *,
        tree: Tree = FOLD,
        accumulator: DType | None = None,
        **arguments: Any,
    ) -> Array:
        """In this order, unless another one or another accumulator is asked for."""
        chosen = self.order("matmul", a.dtype, a.shape[-1]) if tree == FOLD else tree
        if accumulator not in (None, a.dtype.accumulator):
            return MATMUL(a, b, out, tree=tree, accumulator=accumulator, **arguments)
        return MATMUL(a, b, out, tree=chosen, arithmetic=self.node("matmul", a.dtype), **arguments)

    def model(self, operation: str, x: Array, arithmetic: NodeArithmetic | None, *kinds: str) -> NodeArithmetic:
        """The arithmetic of a sum."""
        model = MODEL(operation, x, arithmetic, *kinds)
        self.kind = x.dtype
        return self.node(self.operation, x.dtype) if arithmetic is None and operation == "sum" else model

    def over_tree(self, values: Any, axis: int, tree: Tree | None, model: Any, node: Any, neutral: int) -> Any:
        """A sum, in this order unless another one is asked for."""
        count = values.shape[axis]
        if tree is None and neutral == 0 and count:
            tree = self.order(self.operation, self.kind or model.accumulator, count)
        return OVER_TREE(values, axis, tree, model, node, neutral)

    def shuffled(self, terms: int) -> Tree:
        """Pairs of terms in an order that is never the same."""
        return Tree.from_json(paired(self.chance.permutation(terms).tolist()))


def paired(nests: list[Any]) -> Any:
    """Neighbours as pairs, until one is left."""
    while len(nests) > 1:
        nests = [list(pair) for pair in zip(nests[::2], nests[1::2], strict=False)] + nests[len(nests) & ~1 :]
    return nests[0]


# Functions


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


PLATFORM: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt")
} | {"erf": _erf, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "pow": np.power}
"""The functions of the machine's mathematical library."""


def library(name: str, operands: Sequence[Any], kind: DType, overflow: str) -> tuple[Any, Any]:
    """The result in long double, and its nearest neighbour in the carrier of the dtype."""
    with np.errstate(all="ignore"):
        wide = np.asarray(PLATFORM[name](*(np.asarray(x).astype(np.longdouble) for x in operands)))
        if kind.is_narrow:
            return wide, round_to(wide.astype(np.float64), kind, overflow)
        return wide, wide.astype(kind.carrier)


def truncated(name: str) -> Callable[..., Any]:
    """Wide types truncated, narrow ones to nearest: off by less than one unit."""

    def function(*arguments: Any) -> Any:
        operands, kind, overflow = _arguments(name, arguments)
        wide, nearest = library(name, operands, kind, overflow)
        with np.errstate(all="ignore"):
            if kind.is_narrow or name == "erf":
                return nearest
            too_large = (np.abs(nearest) > np.abs(wide)) & np.isfinite(nearest)
            return np.where(too_large, np.nextafter(nearest, nearest.dtype.type(0)), nearest)

    return function


def careless(name: str, units: float = 1.0) -> Callable[..., Any]:
    """Up to three times so many units too small, or once too large, as the operand has it."""

    def function(*arguments: Any) -> Any:
        operands, kind, overflow = _arguments(name, arguments)
        wide, nearest = library(name, operands, kind, overflow)
        with np.errstate(all="ignore"):
            exponent, bits = np.frexp(wide)[1] - 1, kind.storage.fraction_bits
            unit = np.ldexp(1.0, np.where(exponent > kind.min_exponent, exponent, kind.min_exponent) - bits)
            code = np.abs(nearest).view(f"u{nearest.dtype.itemsize}") >> (23 - bits if bits < 23 else 0)
            steps = units * (1.0 - (code % 5).astype(np.float64))
            stepped = (nearest.astype(np.longdouble) + np.sign(nearest) * steps * unit).astype(nearest.dtype)
        usable = np.isfinite(nearest) & (nearest != 0) & (np.abs(stepped) <= kind.max_finite)
        return np.where(usable & (np.sign(stepped) == np.sign(nearest)), stepped, nearest)

    return function


def _arguments(name: str, arguments: Sequence[Any]) -> tuple[Sequence[Any], Any, str]:
    count = 2 if name == "pow" else 1
    return arguments[:count], arguments[count], arguments[count + 1] if len(arguments) > count + 1 else "saturate"


def functions_made_by(make: Callable[[str], Callable[..., Any]]) -> list[Substitution]:
    """Functions as operations, and inside compositions."""
    made = {name: make(name) for name in elementary.FUNCTIONS}
    inside = [
        (activations, "exp"),
        (activations, "erf"),
        (activations, "tanh"),
        (reductions, "exp"),
        (reductions, "log"),
        (NUMERICS_SOFTMAX, "exp"),
    ]
    return [(elementary, "FUNCTIONS", made), *((owner, name, made[name]) for owner, name in inside)]


def truncated_functions() -> list[Substitution]:
    """Every function of the platform, truncated."""
    return functions_made_by(truncated)


def careless_functions() -> list[Substitution]:
    """Every function, off by up to three units."""
    return functions_made_by(careless)


# Subnormals, and wider intermediates


def flushed(x: Array) -> Array:
    """Subnormals of all floats but fp8 as zeros of their sign."""
    if x.dtype.kind != "float" or x.dtype.bits < 16:
        return x
    small = np.abs(x.values) < x.dtype.min_normal
    return Array(x.dtype, np.where(small, np.copysign(x.values.dtype.type(0), x.values), x.values))


def flushing(execute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation between flushed operands and results."""

    def substitute(self: Any, *operands: Array, env: Environment) -> Array:
        return flushed(execute(self, *map(flushed, operands), env=env))

    return substitute


def flushing_operations() -> list[Substitution]:
    """Operators, comparisons, functions, conversions and argmax."""
    classes = [
        elementwise.ElementwiseBinary,
        functions.ElementaryFunction,
        functions.Sigmoid,
        functions.Silu,
        functions.Gelu,
        Cast,
        ArgMax,
    ]
    return [(operation, "execute", flushing(operation.execute)) for operation in classes]


def softmax_in_double(self: Softmax, x: Array, env: Environment) -> Array:
    """Everything in fp64, the sum from the last to the first, and the reciprocal of it."""
    with np.errstate(all="ignore"):
        values = np.moveaxis(x.values.astype(np.float64), self.axis, -1)
        powers = np.exp(values - values.max(-1, keepdims=True))
        result = powers * (1 / powers[..., ::-1].cumsum(-1)[..., -1:])
        return Array(x.dtype, round_to(np.moveaxis(result, -1, self.axis), x.dtype).astype(x.dtype.carrier))


def cast_by_way_of_single(x: Array, kind: DType, overflow: str = "saturate") -> Array:
    """Two roundings from fp64 to what is narrower than fp32."""
    if x.dtype.name == "fp64" and kind.is_narrow:
        with np.errstate(all="ignore"):
            x = Array(rounding.DTYPES["fp32"], x.values.astype(np.float32))
    return rounding.cast(x, kind, overflow)  # type: ignore[arg-type]


def wide_intermediates() -> list[Substitution]:
    """A softmax in fp64, and casts by way of fp32."""
    return [(Softmax, "execute", softmax_in_double), (GRAPH_CAST, "cast", cast_by_way_of_single)]
