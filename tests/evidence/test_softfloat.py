"""+ - * / sqrt fma and casts against Berkeley SoftFloat 3e, bit for bit, at edges and at random.

SoftFloat computes in integers only. It offers fp16, fp32 and fp64, and conversions between fp32 and bf16; an operation
on bf16 is taken in fp32 and rounded, which is innocuous for + - * / and sqrt, as 24 >= 2 * 8 + 2. Every NaN is alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.variants.declared_arithmetic import DeclaredArithmetic
from tessera_reference.numerics import arithmetic, elementary
from tessera_reference.numerics.array import Array, nan_code
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast

softfloat = pytest.importorskip(
    "softfloatpy", reason="softfloatpy is missing: pip install 'tessera-conformance[evidence]'"
)

NUMBER = {
    "fp16": softfloat.Float16,
    "bf16": softfloat.BFloat16,
    "fp32": softfloat.Float32,
    "fp64": softfloat.Float64,
    "int32": softfloat.Int32,
    "int64": softfloat.Int64,
}
PREFIX = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "int32": "i32", "int64": "i64"}
FLOATS = ["fp16", "bf16", "fp32", "fp64"]
OPERATIONS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}
RANDOM = 20_000


def foreign(name: str, function: str) -> Callable[..., Any]:
    """SoftFloat's function on a format; on bf16, fp32's between two conversions."""
    if name != "bf16":
        return getattr(softfloat, f"{PREFIX[name]}_{function}")
    wide = getattr(softfloat, f"f32_{function}")
    return lambda *operands: softfloat.f32_to_bf16(wide(*map(softfloat.bf16_to_f32, operands)))


def edges(name: str) -> list[int]:
    """Codes of zero, subnormals, the ends of the normal numbers, numbers around 1, infinity and NaN, both signs."""
    form = dtype(name)
    fraction, exponent, bias = form.fraction_bits, (1 << form.exponent_bits) - 1, form.bias
    one = bias << fraction
    codes = [0, 1, 2, 3, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, (2 << fraction) - 1]
    codes += [one - 2, one - 1, one, one + 1, one + 2, one + (1 << fraction), one + 3 * (1 << (fraction - 1))]
    codes += [one - (fraction << fraction), one - ((fraction + 1) << fraction), one - ((fraction + 2) << fraction)]
    codes += [(exponent << fraction) - 2, (exponent << fraction) - 1, exponent << fraction, nan_code(form)]
    return codes + [code + (1 << (form.bits - 1)) for code in codes]


def random_codes(name: str, count: int, rng: np.random.Generator) -> list[int]:
    """Codes of every magnitude; half of them with long runs of equal bits, where rounding is decided."""
    codes = rng.integers(0, (1 << dtype(name).bits) - 1, count, dtype=np.uint64, endpoint=True)
    run = rng.integers(0, dtype(name).fraction_bits + 1, count, dtype=np.uint64)
    ones = (np.uint64(1) << run) - np.uint64(1)
    cleared, filled = codes & ~ones, codes | ones
    kind = rng.integers(0, 4, count)
    return np.where(kind == 0, cleared, np.where(kind == 1, filled, codes)).tolist()


def near(codes: list[int], name: str, rng: np.random.Generator) -> list[int]:
    """Codes with nearly the exponents of `codes` and any fraction: operands that cancel or are just apart."""
    form = dtype(name)
    fraction = 1 << form.fraction_bits
    steps = rng.integers(-form.fraction_bits - 3, form.fraction_bits + 4, len(codes)).tolist()
    fresh = random_codes(name, len(codes), rng)
    top = ((1 << form.exponent_bits) - 1) * fraction
    magnitudes = [
        min(max(c % (1 << (form.bits - 1)) + s * fraction, 0), top) for c, s in zip(codes, steps, strict=True)
    ]
    return [
        m - m % fraction + f % fraction + (f >> (form.bits - 1) << (form.bits - 1))
        for m, f in zip(magnitudes, fresh, strict=True)
    ]


def operands(name: str, arity: int, rng: np.random.Generator) -> list[list[int]]:
    """Columns of codes: every combination of edges (of a sample, for three), then random ones, far and near."""
    some = edges(name) if arity < 3 else edges(name)[::2]
    first = random_codes(name, RANDOM, rng)
    far = [first] + [random_codes(name, RANDOM, rng) for _ in range(arity - 1)]
    close = [first] + [near(first, name, rng) for _ in range(arity - 1)]
    columns = zip(*itertools.product(some, repeat=arity), strict=True)
    return [[*a, *b, *c] for a, b, c in zip(columns, far, close, strict=True)]


def numbers(codes: Iterable[int], name: str) -> list[Any]:
    size = dtype(name).storage_bytes
    return [NUMBER[name].from_bytes(code.to_bytes(size, "big")) for code in codes]


def array(codes: list[int], name: str) -> Array:
    form = dtype(name)
    return Array.from_bits(form, (len(codes),), np.array(codes, f"<u{form.storage_bytes}").tobytes())


def codes_of(results: Iterable[Any], name: str) -> list[int]:
    """Codes of SoftFloat's numbers, every NaN as the one code we store."""
    form = dtype(name)
    found = [int.from_bytes(result.to_bytes(), "big") for result in results]
    if form.kind != "float":
        return found
    infinity, mask = ((1 << form.exponent_bits) - 1) << form.fraction_bits, (1 << (form.bits - 1)) - 1
    return [nan_code(form) if code & mask > infinity else code for code in found]


def assert_same(found: Array, expected: list[int], given: list[list[int]]) -> None:
    codes = np.frombuffer(found.to_bits(), f"<u{found.dtype.storage_bytes}").tolist()
    wrong = [i for i, (a, b) in enumerate(zip(codes, expected, strict=True)) if a != b]
    shown = [([hex(column[i]) for column in given], hex(codes[i]), hex(expected[i])) for i in wrong[:5]]
    assert not wrong, f"{len(wrong)} of {len(codes)} differ; first (operands, found, expected): {shown}"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(754))


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", FLOATS)
def test_the_four_operations(name, operation, rng):
    given = operands(name, 2, rng)
    function = foreign(name, OPERATIONS[operation])
    expected = codes_of(map(function, *(numbers(column, name) for column in given)), name)
    actual = getattr(arithmetic, operation)(*(array(column, name) for column in given))
    assert_same(actual, expected, given)


@pytest.mark.parametrize("name", FLOATS)
def test_square_root(name, rng):
    given = operands(name, 1, rng)
    expected = codes_of(map(foreign(name, "sqrt"), numbers(given[0], name)), name)
    assert_same(Array(dtype(name), elementary.sqrt(array(given[0], name).values, dtype(name))), expected, given)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp16", "fp32", "fp64"])
def test_fused_multiply_add(name, rng):
    """A node of an accumulator and an exact product."""
    a, b, c = operands(name, 3, rng)
    function = foreign(name, "mul_add")
    expected = codes_of(map(function, *(numbers(column, name) for column in (a, b, c))), name)
    node = DeclaredArithmetic(dtype(name), product="fused")
    with np.errstate(all="ignore"):
        x, y, z = (node.enter(array(column, name).values, dtype(name)) for column in (a, b, c))
        actual = node.add([z, node.leaf_product(x, y)])
    assert_same(Array(dtype(name), actual), expected, [a, b, c])


CASTS = [*itertools.permutations(["fp16", "fp32", "fp64"], 2), ("fp32", "bf16"), ("bf16", "fp32")]
CASTS += list(itertools.product(["int32", "int64"], ["fp16", "fp32", "fp64"]))


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts_to_floats(source, target, rng):
    if source.startswith("int"):
        bits = dtype(source).bits
        powers = [(1 << e) + d for e in range(bits) for d in (-2, -1, 0, 1, 2)]
        sparse = [(1 << int(e)) + (1 << int(f)) + int(d) for e, f, d in rng.integers(0, bits, (RANDOM, 3))]
        given = [code % (1 << bits) for v in [*powers, *sparse] for code in (v, -v)]
    else:
        given = operands(source, 1, rng)[0] + midpoints(source, target, rng)
    function = getattr(softfloat, f"{PREFIX[source]}_to_{PREFIX[target]}")
    expected = codes_of(map(function, numbers(given, source)), target)
    assert_same(cast(array(given, source), dtype(target)), expected, [given])


@pytest.mark.parametrize("source", ["fp16", "fp32", "fp64"])
@pytest.mark.parametrize("target", ["int32", "int64"])
def test_casts_to_integers_truncate(source, target, rng):
    """Compared where the whole part fits; elsewhere SoftFloat answers as its host's processor does, and we saturate."""
    codes = operands(source, 1, rng)[0]
    codes += near([dtype(source).bias << dtype(source).fraction_bits] * RANDOM, source, rng)
    limit = 2.0 ** (dtype(target).bits - 1)
    with np.errstate(all="ignore"):
        values = array(codes, source).values.astype(np.float64)
        fits = (np.trunc(values) >= -limit) & (np.trunc(values) < limit)
    given = [code for code, inside in zip(codes, fits.tolist(), strict=True) if inside]
    function = getattr(softfloat, f"{PREFIX[source]}_to_{PREFIX[target]}")
    toward_zero = softfloat.RoundingMode.MIN_MAG
    expected = codes_of((function(x, toward_zero) for x in numbers(given, source)), target)
    assert_same(cast(array(given, source), dtype(target)), expected, [given])


def midpoints(source: str, target: str, rng: np.random.Generator) -> list[int]:
    """Codes of a wider float halfway between two of a narrower one, and next to there; nothing the other way."""
    wide, narrow = dtype(source), dtype(target)
    dropped = wide.fraction_bits - narrow.fraction_bits
    if dropped <= 0:
        return []
    low, high = narrow.min_exponent - narrow.fraction_bits - 2, narrow.max_exponent + 2
    codes = []
    for exponent in range(max(low, wide.min_exponent), min(high, wide.max_exponent) + 1):
        shift = dropped + max(narrow.min_exponent - exponent, 0)
        fraction = int(rng.integers(0, 1 << wide.fraction_bits))
        tie = fraction >> shift << shift | 1 << (shift - 1) if shift <= wide.fraction_bits else 0
        base = ((exponent + wide.bias) << wide.fraction_bits) + tie
        codes += [base - 1, base, base + 1]
    return codes
