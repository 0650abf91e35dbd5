"""Enclosures of every function and of derivatives, and the imports of the oracle."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from tessera_conformance import oracle
from tessera_conformance.chapters.ir.kit import derivatives
from tessera_conformance.chapters.ir.kit.derivatives import SLOPES, Model, Number, enclosed, function, sigmoid, total
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.bounds.intervals import Enclosure, Interval
from tessera_conformance.oracle.exact import FORMATS, BadArgument, FloatFormat, fraction, values_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted, tensor

FLOATS = [name for name, entry in FORMATS.items() if isinstance(entry, FloatFormat)]
UNARY = ["exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "erf", "sqrt"]
UNARY += ["rsqrt", "reciprocal", "sigmoid", "silu", "gelu", "relu", "negate", "transpose", "abs"]
BINARY = ["add", "subtract", "multiply", "divide", "pow", "maximum", "minimum"]
ALONG = ["sum", "mean", "prod", "max", "min", "softmax", "logsumexp"]


def positive(x: Tensor) -> Tensor:
    format_ = FORMATS[x.dtype]
    assert isinstance(format_, FloatFormat)
    return Tensor.from_words(x.dtype, x.shape, [word & ~format_.sign_bit for word in x.words().tolist()])


def complexes(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    parts = counted({"complex64": "fp32", "complex128": "fp64"}[dtype], (*shape, 2), seed)
    return Tensor(dtype, shape, parts.data)


def first_result(name: str, inputs: list[Tensor], arguments: Mapping[str, Any]) -> Tensor:
    found = oracle.FUNCTIONS[f"oracle.{name}"](*inputs, **arguments)
    return found[0] if isinstance(found, tuple) else found


def check(name: str, inputs: list[Tensor], arguments: Mapping[str, Any] | None = None, promised: float = 1.0) -> None:
    """The canonical result lies within; at least a part of the elements have an enclosure."""
    arguments = arguments or {}
    result = first_result(name, inputs, arguments)
    limits = bounds.enclose(f"oracle.{name}", inputs, arguments)
    values = values_of(result)
    assert len(limits) == len(values)
    for limit, value in zip(limits, values, strict=True):
        assert limit is None or (limit.holds(value) and limit.rule), (limit, value)
    assert sum(limit is not None for limit in limits) >= promised * len(limits)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_the_canon_lies_within_of_one_operand(name: str, dtype: str) -> None:
    x = counted(dtype, (4, 8), 1)
    check(name, [positive(x) if name in ("log", "log2", "log1p", "sqrt", "rsqrt") else x], promised=0.8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_the_canon_lies_within_of_two_operands(name: str, dtype: str) -> None:
    check(name, [positive(counted(dtype, (4, 8), 1)), counted(dtype, (4, 8), 2)], promised=0.8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ALONG)
def test_the_canon_lies_within_along_an_axis(name: str, axis: int, dtype: str) -> None:
    check(name, [counted(dtype, (5, 9), 3, (-1, 1))], {"axis": axis}, promised=0.5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_canon_lies_within_of_compositions(dtype: str) -> None:
    a, b, c = (counted(dtype, shape, seed) for shape, seed in (((3, 6), 1), ((6, 3), 2), ((3, 3), 3)))
    check("matmul", [a, b])
    check("matmul", [a, b, c])
    check("add_to_product", [a, b, c])
    check("scale", [a], {"factor": "0.3"})
    check("multiply_add", [c, c, c])
    check("gelu", [a], {"approximate": "tanh"})
    check("cast", [a], {"dtype": "bf16"})
    check("attention", [a, counted(dtype, (4, 6), 4), counted(dtype, (4, 2), 5)], {"factor": "0.5"})


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_canon_lies_within_of_complex_numbers(dtype: str) -> None:
    x = complexes(dtype, (2, 6), 1)
    for name in ("sum", "mean", "prod"):
        check(name, [x], {"axis": 1})
    for n in (1, 2, 6, 8, 17):
        for norm in ("ortho", "backward", "forward"):
            check("fft", [complexes(dtype, (n,), 4)], {"norm": norm})
            check("ifft", [complexes(dtype, (n,), 4)], {"norm": norm})


def test_the_canon_lies_within_over_ranks() -> None:
    x, y = counted("fp32", (3, 10), 1, (-9, 9)), counted("fp32", (3, 10), 2, (-9, 9))
    check("all_reduce", [x, y, x], {"op": "sum"})
    check("all_reduce", [x, y], {"op": "max"})
    check("top_k", [counted("fp32", (10,), 1)], {"k": 4})


def test_every_function_that_yields_floats_has_an_enclosure() -> None:
    comparisons = {"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"}
    integers = comparisons | {"argmax", "parameter_buffer", "parameter_layout"}
    strict_only = {"batch_norm", "sgd", "adamw"}  # several results: AMB-LANG-174, AMB-LANG-175
    strict_only |= {"all_gather", "all_to_all", "reduce_scatter"}  # several results: one of each rank
    strict_only |= {"uniform", "normal", "dropout"}  # random numbers, which have no meaning but their bits
    functions = {name.removeprefix("oracle.") for name in oracle.FUNCTIONS}
    assert bounds.ENCLOSED.keys() == functions - integers - strict_only


@pytest.mark.parametrize("name", ["argmax", "equal", "nothing"])
def test_other_functions_have_none(name: str) -> None:
    with pytest.raises(BadArgument, match="function_name"):
        bounds.enclose(name, [], {})


@pytest.mark.parametrize("tree", ["fold", "pairwise", "ring(3)"])
def test_known_orders_lie_within_bounds_of_their_own(tree: str) -> None:
    x = counted("fp32", (6, 41), 9, (-12, 12))
    limits = bounds.sums(x, -1, tree)
    result = values_of(oracle.sum_(x, tree=tree))
    assert all(limit is not None and limit.holds(value) for limit, value in zip(limits, result, strict=True))
    assert all(
        one is not None and other is not None and one.error < other.error
        for one, other in zip(limits, bounds.sums(x, -1), strict=True)
        if tree == "pairwise"
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_that_are_moved_and_added_lie_within(dtype: str) -> None:
    x, updates = counted(dtype, (3, 4), 11), counted(dtype, (5, 4), 12)
    indices = Tensor.from_words("int32", (5,), [2, 0, 2, 2, 0])
    check("scatter_add", [x, indices, updates], {"axis": 0})
    check("gather", [x, indices], {"axis": 0})
    check("concat", [x, updates], {"axis": 0})
    check("pad", [x], {"low": [1, 0], "high": [0, 2], "value": "0.1"})
    check("clamp", [x, *(Tensor.from_words(dtype, (), [word]) for word in x.words().tolist()[:2])])
    check("select", [Tensor.from_words("bool", (4,), [1, 0, 1, 1]), x, x])


def test_signs_and_magnitudes_of_an_interval_are_exact() -> None:
    """gmpy2's own unary minus and abs would round to 53 bits and leave the number outside."""
    third = Interval.around(Fraction(1, 3))
    assert fraction((-third).low) == -fraction(third.high) and fraction((-third).high) == -fraction(third.low)
    assert fraction((-third).magnitude) == fraction(third.high)


MODELS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(mpmath, name) for name in "exp expm1 log log1p sin cos tan sinh cosh tanh erf sqrt".split()},
    "exp2": lambda x: mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
POINTS = [Fraction(3, 8), Fraction(5, 4), Fraction(7, 2), Fraction(1, 64)]


def each(name: str) -> Model:
    return lambda xs: [function(name, x) for x in xs]


def near(found: Enclosure | None, expected: Any) -> bool:
    assert found is not None
    off = abs(mpf(found.exact.numerator) / found.exact.denominator - expected)
    return bool(off <= mpf(10) ** -25 * (1 + abs(expected)))


def test_every_function_but_pow_is_compared_here() -> None:
    assert SLOPES.keys() == MODELS.keys() | {"pow"}


@pytest.mark.parametrize("name", MODELS)
def test_the_centre_is_the_derivative(name: str) -> None:
    x, weights = tensor("fp64", POINTS), tensor("fp64", [1, -2, 3, Fraction(1, 2)])
    with mp.workdps(60):
        for actual, point, weight in zip(enclosed(each(name), [x], weights), POINTS, [1, -2, 3, 0.5], strict=True):
            slope = mpmath.diff(MODELS[name], mpf(point.numerator) / point.denominator)
            assert near(actual, weight * slope)
            assert actual is not None and actual.error < Fraction(1, 10**12) * (1 + abs(actual.exact))


@pytest.mark.parametrize("which", [0, 1])
def test_powers(which: int) -> None:
    model: Model = lambda a, b: [function("pow", a[0], b[0])]  # noqa: E731
    (actual,) = enclosed(model, [tensor("fp64", [2.5]), tensor("fp64", [1.25])], tensor("fp64", [1]), which)
    with mp.workdps(60):
        assert near(actual, mpmath.diff(lambda a, b: a**b, (2.5, 1.25), (1 - which, which)))


def softmax(xs: Sequence[Number]) -> list[Number]:
    top = max(xs, key=lambda x: x.ideal.high).constant
    powers = [function("exp", x - top) for x in xs]
    return [power / total(powers) for power in powers]


def test_a_composition_of_several_operands() -> None:
    x, weights = tensor("fp64", [0.5, -1, 2]), tensor("fp64", [1, 2, -3])

    def weighted(*xs: Any) -> Any:
        powers = [mpmath.exp(x) for x in xs]
        return sum(w * p for w, p in zip([1, 2, -3], powers, strict=True)) / sum(powers)

    with mp.workdps(60):
        for place, actual in enumerate(enclosed(softmax, [x], weights)):
            order = tuple(int(place == at) for at in range(3))
            assert near(actual, mpmath.diff(weighted, (0.5, -1, 2), order))


FORMS: list[tuple[str, Model, Callable[[Any], Any]]] = [
    ("tanh by its value", each("tanh"), lambda x: 1 - np.tanh(x) * np.tanh(x)),
    ("tanh by cosh", each("tanh"), lambda x: 1 / (np.cosh(x) * np.cosh(x))),
    ("tan by cos", each("tan"), lambda x: 1 / (np.cos(x) * np.cos(x))),
    ("rsqrt by x", each("rsqrt"), lambda x: -(1 / np.sqrt(x)) / (x + x)),
    ("expm1 by exp", each("expm1"), lambda x: np.exp(x)),
    ("expm1 by its value", each("expm1"), lambda x: np.expm1(x) + np.float32(1)),
    ("sqrt by x", each("sqrt"), lambda x: np.sqrt(x) / (x + x)),
    ("sigmoid by exp", lambda xs: [sigmoid(x) for x in xs], lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
]


@pytest.mark.parametrize(("model", "form"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_other_forms_of_an_adjoint_lie_within_the_bound(model: Model, form: Callable[[Any], Any]) -> None:
    values = np.linspace(0.01, 1.5, 400, dtype=np.float32)
    x = Tensor("fp32", values.shape, values.tobytes())
    actual = enclosed(model, [x], Tensor("fp32", values.shape, np.ones_like(values).tobytes()))
    for single, slope in zip(actual, form(values).tolist(), strict=True):
        assert single is not None and single.holds(Fraction(slope))


def test_a_slope_of_another_sign_or_a_hundred_units_off_does_not() -> None:
    (actual,) = enclosed(each("tanh"), [tensor("fp32", [0.5])], tensor("fp32", [1]))
    assert actual is not None
    assert actual.holds(actual.exact) and not actual.holds(-actual.exact)
    assert not actual.holds(actual.exact * (1 + Fraction(100, 1 << 23)))


FOLDER = Path(oracle.__file__).parent
FILES = [*sorted(FOLDER.rglob("*.py")), Path(derivatives.__file__)]
STANDARD = {
    "__future__",
    "abc",
    "collections.abc",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "itertools",
    "math",
    "re",
    "types",
    "typing",
}
FROM_MATH = {"ceil", "isqrt", "prod"}
INDEX_FUNCTIONS = set("arange array broadcast_shapes broadcast_to concatenate frombuffer indices moveaxis".split())
INDEX_FUNCTIONS |= {"ndindex", "where", "dtype", "int64", "ndarray", "void"}
"""Functions that number elements, and move them as bytes."""
INTEGER_FUNCTIONS = {"add", "arange", "int64", "maximum", "moveaxis", "ndarray", "where", "zeros"}
"""Functions that exact sums consist of: their arrays hold integers only."""


def name(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix() if path.is_relative_to(FOLDER) else path.stem


@pytest.mark.parametrize("path", FILES, ids=name)
def test_imports_and_numpy(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = STANDARD | {"numpy", "gmpy2", "tessera_conformance.tensors"}
    assert {module for module in imported if not module.startswith("tessera_conformance.oracle")} <= allowed
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
    }
    assert used <= (INTEGER_FUNCTIONS if path.name == "exact_sum.py" else INDEX_FUNCTIONS)
    from_math = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "math"
        for alias in node.names
    }
    assert from_math <= FROM_MATH


def test_there_are_files_to_look_at() -> None:
    assert {"bounds/__init__", "derivatives", "exact", "exact_sum"} <= {name(path) for path in FILES}
