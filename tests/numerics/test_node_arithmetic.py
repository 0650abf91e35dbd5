"""Declared arithmetics of nodes, against exact fractions rounded as the declaration says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from tessera_conformance.chapters.ir.variants.declared_arithmetic import ROUNDINGS, DeclaredArithmetic
from tessera_reference.numerics import reductions
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.node_arithmetic import NodeArithmetic
from tessera_reference.numerics.trees import Tree

FLOATS = [name for name, dtype in DTYPES.items() if dtype.kind == "float"]
NESTINGS: list[Any] = [
    [[[["c", 0], 1], 2], 3],
    [["c", 0, 1, 2], 3],
    [[[0, 1], [2, 3]], "c"],
    ["c", 0, 1, 2, 3],
    [[3, 1, 0], [2, "c"]],
    [0, [1, 2, 3]],
]
V100 = DeclaredArithmetic(dtype("fp32"), "fused", "toward_zero", alignment_bits=23)
"""As Fasi, Higham, Mikaitis and Pranesh (2021) found: four exact products and the accumulator are aligned to the
largest of the five without extra bits, truncated, added, and the sum is truncated."""


class Exact(NamedTuple):
    """A number a * b not yet rounded."""

    a: float
    b: float = 1.0


class Definition:
    """The contract of a node, spelled out on fractions; shares nothing with the reference."""

    def __init__(self, model: dict[str, Any], directed: Any, oracle: Any) -> None:
        self.model, self.directed, self.form = model, directed, oracle.formats[model["accumulator"]]

    def flushed(self, x: float, form: Any = None) -> float:
        subnormal = 0 < abs(x) < 2.0 ** (form or self.form).min_exponent
        return math.copysign(0.0, x) if subnormal and self.model["subnormals"] == "flushed" else x

    def rounded(self, terms: list[Exact], aligned: bool = False) -> float:
        numbers = [t.a * t.b for t in terms if not (math.isfinite(t.a) and math.isfinite(t.b))]
        if numbers:
            total = sum(numbers)
            return math.copysign(self.form.beyond, total) if math.isinf(total) else total
        fractions = [Fraction(t.a) * Fraction(t.b) for t in terms]
        if aligned and any(fractions):
            step = Fraction(2) ** (exponent(max(map(abs, fractions))) - self.model["alignment_bits"])
            fractions = [(abs(x) // step) * step * (-1 if x < 0 else 1) for x in fractions]
        total = sum(fractions, Fraction(0))
        if total:
            return self.flushed(self.directed(total, self.model["accumulator"], self.model["rounding"]))
        signs = {math.copysign(1, t.a) * math.copysign(1, t.b) if t.a * t.b == 0 else 0 for t in terms if not exact(t)}
        signs |= {0} if any(map(exact, terms)) else set()
        if self.model["rounding"] == "down":
            return 0.0 if signs == {1.0} else -0.0
        return -0.0 if signs == {-1.0} else 0.0

    def settled(self, term: Exact) -> float:
        return self.rounded([term])

    def node(self, terms: list[Exact]) -> Exact:
        products = [term for term in terms if term.b != 1.0]
        if len(terms) == 2 and len(products) == 2:
            terms = [Exact(self.settled(terms[0])), terms[1]]
        return Exact(self.rounded(terms, len(terms) > 2 and self.model["alignment_bits"] is not None))

    def evaluate(self, nesting: Any, leaves: list[Exact], start: float) -> Exact:
        if isinstance(nesting, list):
            return self.node([self.evaluate(child, leaves, start) for child in nesting])
        if nesting == "c":
            return Exact(start)
        leaf = leaves[nesting]
        return Exact(self.settled(leaf)) if self.model["product"] == "rounded" and leaf.b != 1.0 else leaf


def exact(term: Exact) -> bool:
    return term.a != 0 and term.b != 0


def exponent(size: Fraction) -> int:
    estimate = size.numerator.bit_length() - size.denominator.bit_length()
    return estimate if Fraction(2) ** estimate <= size else estimate - 1


def codes(name: str, shape: tuple[int, ...], rng: np.random.Generator, wild: bool) -> np.ndarray:
    """Random codes, wild ones of every magnitude and kind; tame ones within a few binades, so that bits interact."""
    form = dtype(name)
    if wild:
        code = code_dtype(form)
        return decode(rng.integers(0, np.iinfo(code).max, shape, code, endpoint=True), form)
    precision = 1 + (10 if name == "tf32" else form.fraction_bits)
    significands = rng.integers(1 << (precision - 1), 1 << precision, shape) * rng.choice([-1, 1], shape)
    return np.ldexp(significands.astype(np.float64), rng.integers(-3, 3, shape) - precision).astype(form.carrier)


def without_b_of_one(values: np.ndarray) -> np.ndarray:
    """The oracle marks values by the factor 1, so that no product may have it."""
    return np.where(values == 1, -values, values)


def models(accumulator: str) -> list[dict[str, Any]]:
    """Every rounding with every choice of product and subnormals, each with some alignment."""
    widths = [None, 23, 0, None, 3, 24, 60]
    combinations = [(p, r, s) for p in ("rounded", "fused") for r in ROUNDINGS for s in ("kept", "flushed")]
    return [
        {"product": p, "accumulator": accumulator, "rounding": r, "alignment_bits": widths[i % 7], "subnormals": s}
        for i, (p, r, s) in enumerate(combinations)
    ]


def declared(form: dict[str, Any]) -> NodeArithmetic:
    """The model of a JSON form: the reference's own, or another one."""
    own = NodeArithmetic(dtype(form["accumulator"]))
    return own if own.to_json() == form else DeclaredArithmetic(**form | {"accumulator": own.accumulator})


@pytest.mark.slow
@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize(
    ("name", "accumulator"),
    [
        *((name, "fp64" if name == "fp64" else "fp32") for name in FLOATS),
        ("fp16", "fp16"),
        ("bf16", "bf16"),
        ("fp8_e4m3", "fp8_e4m3"),
        ("fp8_e5m2", "fp8_e5m2"),
        ("fp32", "fp16"),
        ("fp32", "fp64"),
        ("fp64", "fp32"),
    ],
)
def test_products_are_combined_as_declared(name, accumulator, wild, directed, oracle, rng):
    for i, model in enumerate(models(accumulator) * 3):
        definition = Definition(model, directed, oracle)
        a, b = codes(name, (2, 4), rng, wild), without_b_of_one(codes(name, (4, 2), rng, wild))
        start = codes(accumulator, (2, 2), rng, wild)
        nesting = NESTINGS[(i + i // 20) % len(NESTINGS)]
        actual = matmul(
            Array(dtype(name), a),
            Array(dtype(name), b),
            dtype(accumulator),
            addend=Array(dtype(accumulator), start),
            tree=Tree.from_json(nesting),
            arithmetic=declared(model),
        )
        form = oracle.formats[name]
        operands = [
            [definition.flushed(operand(x, name, oracle), form) for x in matrix.ravel().tolist()] for matrix in (a, b)
        ]
        expected = []
        for row in (0, 1):
            for column in (0, 1):
                leaves = [Exact(operands[0][4 * row + k], operands[1][2 * k + column]) for k in range(4)]
                root = nesting if "c" in str(nesting) else [nesting, "c"]
                first = definition.flushed(float(start[row, column]))
                expected.append(definition.evaluate(root, leaves, first).a)
        oracle.same(actual.values.ravel().tolist(), expected)


def operand(x: float, name: str, oracle: Any) -> float:
    return oracle.nearest_or_special(x, "tf32 operand") if name == "tf32" else x


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize(
    ("name", "accumulator"), [("bf16", "fp32"), ("fp32", "fp32"), ("fp64", "fp64"), ("fp16", "fp16")]
)
def test_sums_are_combined_as_declared(name, accumulator, wild, directed, oracle, rng):
    usual = models(accumulator)[0]
    for i, model in enumerate([*models(accumulator), *[usual] * len(NESTINGS)]):
        definition = Definition(model, directed, oracle)
        x, nesting = codes(name, (3, 4), rng, wild), NESTINGS[i % len(NESTINGS)]
        actual = reductions.sum(Array(dtype(name), x), 1, tree=Tree.from_json(nesting), arithmetic=declared(model))
        form = oracle.formats[name]
        for row, result in zip(x.tolist(), actual.values.tolist(), strict=True):
            leaves = [Exact(definition.flushed(value, form)) for value in row]
            total = definition.evaluate(nesting, leaves, 0.0).a
            oracle.same([result], [oracle.nearest_or_special(total, name)])


def fp32(*values: float) -> Array:
    return Array(dtype("fp32"), np.array(values, np.float32))


def test_an_infinity_outweighs_finite_terms_whose_sum_overflows():
    largest = dtype("fp64").max_finite
    terms = [[largest, largest, -np.inf], [-largest, np.inf, -largest], [np.inf, largest, -np.inf]]
    actual = reductions.sum(Array(dtype("fp64"), np.array(terms)), 1, tree=Tree.parse("(0 1 2)"))
    assert actual.values.tolist()[:2] == [-np.inf, np.inf]
    assert np.isnan(actual.values[2])


def test_integers_wrap_in_any_arithmetic():
    x = Array(dtype("int8"), np.array([100, 100, 100], np.int8))
    model = DeclaredArithmetic(dtype("int16"), "fused", "up", 3, "flushed")
    assert reductions.sum(x, 0, tree=Tree.parse("(0 1 2)"), arithmetic=model).values == 300 - 256
    assert reductions.prod(x, 0, tree=Tree.parse("(0 1 2)")).values == (10**6 + 128) % 256 - 128
    a, b = (
        Array(dtype("int32"), np.array([[2**30, 3]], np.int32)),
        Array(dtype("int32"), np.array([[4], [5]], np.int32)),
    )
    assert matmul(a, b, tree=Tree.parse("(0 1 c)")).values.tolist() == [[15]]
    assert matmul(a, b, dtype("int64"), accumulator=dtype("int64")).values.tolist() == [[2**32 + 15]]


def test_the_json_form_names_every_field():
    form = {
        "product": "fused",
        "accumulator": "fp32",
        "rounding": "toward_zero",
        "alignment_bits": 23,
        "subnormals": "kept",
    }
    assert declared(form) == V100
    assert V100.to_json() == form
    assert NodeArithmetic.canonical(dtype("bf16")).to_json() == {
        "product": "rounded",
        "accumulator": "fp32",
        "rounding": "nearest_even",
        "alignment_bits": None,
        "subnormals": "kept",
    }


def test_accumulators_are_of_the_operands_kind():
    one = fp32(1)
    for name in ("int32", "complex64", "bool"):
        with pytest.raises(UnsupportedDType, match=f"accumulator {name}"):
            reductions.sum(one, 0, arithmetic=NodeArithmetic(dtype(name)))
    x = Array(dtype("complex64"), np.ones((1, 1), np.complex64))
    with pytest.raises(UnsupportedDType, match="fused products"):
        matmul(x, x, arithmetic=DeclaredArithmetic(dtype("complex64"), "fused"))
