"""Matrix products against the definition, a left fold of rounded products, in exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.errors import DTypeMismatch, ShapeMismatch
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.matmul import matmul

ACCUMULATOR = {"fp64": "fp64"}  # of floats; all others accumulate in fp32
FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
INTS = {"int8": 32, "int16": 32, "int32": 32, "int64": 64}
SHAPES = [(3, 5, 2), (1, 1, 1), (4, 17, 3), (2, 0, 3), (0, 2, 2), (2, 3, 0)]


def array(name: str, values: object) -> Array:
    return Array(dtype(name), np.array(values, dtype(name).carrier))


def wide_range(name: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Random codes, so that sums cancel, overflow, and meet subnormals, infinities and NaN."""
    code = f"u{dtype(name).storage_bytes}"
    return decode(rng.integers(0, np.iinfo(code).max, shape, code, endpoint=True), dtype(name))


def near_one(name: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Significands of full length within a few binades, so that most sums are inexact."""
    precision = 1 + dtype(name).storage.fraction_bits
    significands = rng.integers(1 << (precision - 1), 1 << precision, shape) * rng.choice([-1, 1], shape)
    return np.ldexp(significands.astype(np.float64), rng.integers(-2, 3, shape) - precision).astype(dtype(name).carrier)


def fold(row: list[float], column: list[float], name: str, oracle) -> float:
    """Evaluate one element by the definition."""
    inner = ACCUMULATOR.get(name, "fp32")
    total = 0.0
    for a, b in zip(row, column, strict=True):
        if name == "tf32":
            a, b = (oracle.nearest_or_special(x, "tf32 operand") for x in (a, b))
        total = oracle.add(total, oracle.multiply(a, b, inner), inner)
    return oracle.nearest_or_special(total, name)


@pytest.mark.parametrize("values", [near_one, wide_range])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FLOATS)
def test_floats_fold_from_the_left(name, shape, values, oracle, rng):
    m, k, n = shape
    a, b = values(name, (m, k), rng), values(name, (k, n), rng)
    found = matmul(Array(dtype(name), a), Array(dtype(name), b))
    assert (found.dtype, found.shape) == (dtype(name), (m, n))
    expected = [fold(row, column, name, oracle) for row in a.tolist() for column in b.T.tolist()]
    oracle.same(found.values.ravel().tolist(), expected if k else [0.0] * (m * n))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", INTS)
def test_integers_wrap_in_the_accumulator_and_into_the_result(name, shape, rng):
    m, k, n = shape
    low, high = dtype(name).int_min, dtype(name).int_max
    a = rng.integers(low, high, (m, k), np.int64, endpoint=True).tolist()
    b = rng.integers(low, high, (k, n), np.int64, endpoint=True).tolist()

    def wrap(value: int, bits: int) -> int:
        return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))

    sums = [[sum(a[i][x] * b[x][j] for x in range(k)) for j in range(n)] for i in range(m)]
    left, right = (np.array(x, dtype(name).carrier).reshape(s) for x, s in ((a, (m, k)), (b, (k, n))))
    found = matmul(Array(dtype(name), left), Array(dtype(name), right))
    assert found.values.tolist() == [[wrap(x, dtype(name).bits) for x in row] for row in sums]
    wide = matmul(Array(dtype(name), left), Array(dtype(name), right), out=dtype("int64"))
    assert wide.values.tolist() == [[wrap(x, INTS[name]) for x in row] for row in sums]


def test_int8_products_leave_int8_only_at_the_end():
    a, b = array("int8", [[100, 100]]), array("int8", [[100], [-99]])
    assert matmul(a, b).values.tolist() == [[100]]
    assert matmul(array("int8", [[127, 127]]), array("int8", [[127], [127]]), dtype("int32")).values.tolist() == [
        [32258]
    ]


def test_the_accumulator_starts_from_plus_zero():
    """+0 + -0 is +0: a product of minus zeros never shows."""
    found = matmul(array("fp32", [[-0.0, 1.0]]), array("fp32", [[1.0], [-0.0]]))
    assert not np.signbit(found.values).any()


def test_bf16_accumulates_in_fp32_and_rounds_once():
    """256 + 1 + 1 is 258 in fp32, the next bf16 after 256; accumulated in bf16, each one would be lost."""
    a, ones = array("bf16", [[256, 1, 1]]), array("bf16", [[1], [1], [1]])
    assert matmul(a, ones).values.tolist() == [[258]]
    assert matmul(array("bf16", [[256, 1]]), array("bf16", [[1], [1]]), dtype("fp32")).values.tolist() == [[257]]


def test_fp32_products_are_rounded_before_they_are_added():
    """(1 + 2**-12)**2 - (1 + 2**-11) is 2**-24 exactly; a fused multiply-add would show it."""
    x = 1 + 2.0**-12
    assert matmul(array("fp32", [[-(1 + 2.0**-11), x]]), array("fp32", [[1], [x]])).values.tolist() == [[0.0]]


def test_k_ascends():
    big = 2.0**24
    assert matmul(array("fp32", [[big, 1, 1]]), array("fp32", [[1], [1], [1]])).values.tolist() == [[big]]
    assert matmul(array("fp32", [[1, 1, big]]), array("fp32", [[1], [1], [1]])).values.tolist() == [[big + 2]]


def test_tf32_operands_are_rounded_and_its_result_is_not():
    a = array("tf32", [[1 + 2.0**-11, 2.0**-20]])
    found = matmul(a, array("tf32", [[1.0], [1.0]]))
    assert found.values.tolist() == [[1 + 2.0**-20]]
    assert found.dtype.name == "tf32"


def test_fp8_saturates_at_the_end_only():
    a = array("fp8_e4m3", [[448, 448, -448]])
    assert matmul(a, array("fp8_e4m3", [[1], [1], [1]])).values.tolist() == [[448]]
    assert matmul(a, array("fp8_e4m3", [[1], [1], [0]])).values.tolist() == [[448]]
    assert matmul(a, array("fp8_e4m3", [[1], [1], [0]]), dtype("fp32")).values.tolist() == [[896]]


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_products_fold_by_component(name, oracle, rng):
    part = dtype(name).component.name
    a, b = rng.standard_normal((2, 2, 4, 2)), rng.standard_normal((2, 4, 3, 2))[0]
    a = a[0].astype(dtype(part).carrier)
    b = b.astype(dtype(part).carrier)
    found = matmul(
        Array(dtype(name), a.view(dtype(name).carrier)[..., 0]), Array(dtype(name), b.view(dtype(name).carrier)[..., 0])
    ).values
    for i in range(2):
        for j in range(3):
            real = imaginary = 0.0
            for k in range(4):
                (p, q), (r, s) = a[i, k].tolist(), b[k, j].tolist()
                pr, qs, ps, qr = (oracle.multiply(x, y, part) for x, y in ((p, r), (q, s), (p, s), (q, r)))
                real = oracle.add(real, oracle.subtract(pr, qs, part), part)
                imaginary = oracle.add(imaginary, oracle.add(ps, qr, part), part)
            oracle.same([found[i, j].real, found[i, j].imag], [real, imaginary])


@pytest.mark.parametrize("shape", [(300, 3, 70), (3, 2, 20000), (20000, 2, 3)])
def test_large_results_are_computed_in_tiles_alike(shape):
    """Small integers are exact in any order, so numpy's integer product is an oracle across every tile border."""
    m, k, n = shape
    a = np.arange(m * k, dtype=np.int64).reshape(m, k) % 11 - 5
    b = np.arange(k * n, dtype=np.int64).reshape(k, n) % 7 - 3
    found = matmul(array("fp32", a), array("fp32", b))
    assert np.array_equal(found.values, a @ b)


@pytest.mark.parametrize("batch", [(3,), (2, 3), (400,), (0,), (2, 0)])
def test_leading_dimensions_are_batches(batch):
    size = math.prod(batch)
    a = np.arange(size * 6, dtype=np.int64).reshape(*batch, 2, 3) % 11 - 5
    b = np.arange(size * 15, dtype=np.int64).reshape(*batch, 3, 5) % 7 - 3
    for name in ("fp32", "int32", "complex64"):
        found = matmul(array(name, a), array(name, b))
        assert found.shape == (*batch, 2, 5)
        assert np.array_equal(found.values, a @ b)


def test_operands_in_any_memory_order():
    a = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = matmul(Array(dtype("fp32"), a.T), Array(dtype("fp32"), a))
    assert found.values.tolist() == [[20, 26], [26, 35]]


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        ((2, 3), (2, 3), "inner dimensions differ: 3 and 2"),
        ((3,), (3, 2), "ranks 1 and 2"),
        ((), (), "ranks 0 and 0"),
        ((2, 2, 3), (3, 3, 2), r"batch dimensions differ: \[2\] and \[3\]"),
        ((1, 2, 3), (3, 2), r"batch dimensions differ: \[1\] and \[\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(a, b, problem):
    with pytest.raises(ShapeMismatch, match=problem):
        matmul(array("fp32", np.zeros(a)), array("fp32", np.zeros(b)))


def test_dtypes_that_do_not_fit_are_refused():
    with pytest.raises(DTypeMismatch):
        matmul(array("bf16", [[1]]), array("fp32", [[1]]))
    with pytest.raises(UnsupportedDType):
        matmul(array("bool", [[1]]), array("bool", [[1]]))
