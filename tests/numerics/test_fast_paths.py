"""Shortcuts and compiled loops against the plain definitions beside them; the guard of the environment."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.numerics import arithmetic, array, kernels, rounding, ziv
from tessera_reference.numerics.arithmetic import larger, largest
from tessera_reference.numerics.array import Array, decode
from tessera_reference.numerics.elementary import FUNCTIONS, exp, exponential, logarithm, roots, trigonometric
from tessera_reference.numerics.environment import check_environment
from tessera_reference.numerics.errors import UnsuitableEnvironment
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.kernels import left_fold_product
from tessera_reference.numerics.matmul import matmul
from tessera_reference.numerics.rounding import round_operand, round_to
from tessera_reference.numerics.trees import fold, pairwise
from tessera_reference.numerics.ziv import Approximation, Definition, correctly_rounded

from .test_elementary import HARD

FP32 = dtype("fp32")


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Every bit but those of NaN."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    code = f"u{expected.dtype.itemsize}"
    differ = (found.view(code) != expected.view(code)) & ~(np.isnan(found) & np.isnan(expected))
    assert not differ.any(), (found[differ][:3], expected[differ][:3])


DEFINITIONS = {
    name.lower()[1:]: value
    for module in (exponential, logarithm, roots, trigonometric)
    for name, value in vars(module).items()
    if isinstance(value, Definition) and value.estimate and name != "_POW"
}


def by_definition(name: str, values: np.ndarray) -> np.ndarray:
    return correctly_rounded(replace(DEFINITIONS[name], estimate=None), FP32, "saturate", values)


def neighbours(center: float, count: int) -> np.ndarray:
    """The fp32 numbers around one and around its negative."""
    around = (np.float32(center).view(np.int32) + np.arange(-count, count, dtype=np.int32)).view(np.float32)
    return np.concatenate([around, -around])


def scaled(rng: np.random.Generator, most: int) -> np.ndarray:
    return np.ldexp(rng.standard_normal(1 << 14), -rng.integers(0, most, 1 << 14)).astype(np.float32)


def beside_steps(rng: np.random.Generator) -> np.ndarray:
    """Numbers near multiples of the steps of a reduction, where little is left."""
    counts = rng.integers(-40000, 40000, 1 << 14)
    return np.concatenate([counts * step for step in (np.pi / 2, np.pi / 512, np.log(2) / 1024)]).astype(np.float32)


ENDS = [105, 152, 50000, 4, 12, 88.72284, 103.97208, 89.41599, 9.01, 3.92, 150, 128, 0.69140625, 1, 1.3828125, 2**-9]
ENDS += [2**-10, 2**-149 * 601, 3.4e38]
HARDEST = [float.fromhex(text) for text in ("0x1.112856p+6", "-0x1.d2259ap+3")]
"""Operands of exp whose estimate lies on the wrong side of a midpoint, about 2**-52 away."""

SINGLE_OPERANDS = {
    "any code": lambda rng: rng.integers(0, 1 << 32, 1 << 15, np.uint32).view(np.float32),
    "around zero": lambda rng: rng.standard_normal(1 << 16, np.float32) * 3,
    "around one": lambda rng: 1 + scaled(rng, 24),
    "whole range": lambda rng: rng.uniform(-120, 120, 1 << 15).astype(np.float32),
    "small": lambda rng: scaled(rng, 16),
    "tiny": lambda rng: scaled(rng, 150),
    "beside steps": beside_steps,
    "ends of domains and intervals": lambda rng: np.concatenate([neighbours(end, 600) for end in ENDS]),
    "special": lambda rng: np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, -3.4e38, *HARDEST], np.float32),
}


@pytest.mark.parametrize("operands", SINGLE_OPERANDS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_function_in_fp32_is_as_its_definition(name, operands, rng):
    with np.errstate(all="ignore"):
        x = SINGLE_OPERANDS[operands](rng)
    same_bits(FUNCTIONS[name](x, FP32), by_definition(name, x))


def test_pow_in_fp32_is_as_its_definition(rng):
    """Any codes, results of any size, bases around one, small numbers whose powers are exact or ties, special ones."""
    count = 1 << 15
    with np.errstate(all="ignore"):
        base = rng.integers(0, 0x7F800000, count, np.uint32).view(np.float32)
        edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, 0.5, 3, 1e-45, 3e38, -2, 105, 1.5], np.float32)
        pairs = [
            rng.integers(0, 1 << 32, (2, count), np.uint32).view(np.float32),
            (base, (rng.uniform(-120, 120, count) / np.log(base.astype(np.float64))).astype(np.float32)),
            (1 + scaled(rng, 24), np.ldexp(rng.standard_normal(1 << 14), rng.integers(-4, 28, 1 << 14))),
            (rng.integers(-40, 60, count), rng.integers(-16, 16, count)),
            (rng.integers(1, 5000, count) / 8, rng.integers(-24, 24, count) / 4),
            np.meshgrid(edges, edges),
        ]
    for x, y in pairs:
        operands = x.astype(np.float32), y.astype(np.float32)
        definition = replace(logarithm._POW, estimate=None)
        same_bits(FUNCTIONS["pow"](*operands, FP32), correctly_rounded(definition, FP32, "saturate", *operands))


def double_operands(rng: np.random.Generator) -> np.ndarray:
    """Those of fp32; any code; of every size; around one; beside steps of a reduction and beside midpoints."""
    count = 1 << 14
    exponents, steps = rng.integers(-1100, 4, count), (np.pi / 2, np.pi / 512, np.log(2) / 64, 1 / 128)
    hard = [float.fromhex(text) for row in HARD.values() for text in row.split()]
    single = [make(rng).astype(np.float64) for make in SINGLE_OPERANDS.values()]
    smallest = np.arange(-40, 40) * 2.0**-1074
    return np.concatenate(
        [
            *single,
            rng.integers(0, 1 << 64, count, np.uint64).view(np.float64),
            np.ldexp(rng.standard_normal(count), exponents),
            1 + np.ldexp(rng.standard_normal(count), rng.integers(-56, 0, count)),
            rng.uniform(-760, 1100, count),
            *(rng.integers(-(1 << 20), 1 << 20, count) * step for step in steps),
            np.concatenate([hard, np.nextafter(hard, np.inf), smallest, [-1.0, 1.7e308, -1.7e308]]),
        ]
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["fp32", "fp64"])
@pytest.mark.parametrize("name", [*DEFINITIONS, "pow"])
def test_a_compiled_function_gives_the_same_bits_and_doubts_as_in_numpy(name, kind, rng, monkeypatch):
    pytest.importorskip("llvmlite")
    definition = logarithm._POW if name == "pow" else DEFINITIONS[name]
    decide = ziv._by_estimate(definition) if kind == "fp32" else ziv._by_pairs(definition)
    with np.errstate(all="ignore"):
        single = np.concatenate([make(rng) for make in SINGLE_OPERANDS.values()])
        x = single if kind == "fp32" else double_operands(rng)
        y = np.concatenate([x[1:], x[:1]])
        operands = (np.concatenate([x, np.abs(x)]), np.concatenate([y, np.rint(y)])) if name == "pow" else (x,)
        assert kernels.compiled_elements(decide, [x[:1]]) is None
        monkeypatch.setattr(kernels, "_WORTHWHILE", dict.fromkeys(kernels._WORTHWHILE, 0))
        compiled = kernels.compiled_elements(decide, operands)
        assert compiled is not None
        actual, certain = np.empty_like(operands[0]), np.empty(operands[0].shape, np.bool_)
        compiled(*operands, result=actual, mask=certain)
        expected, sure = decide(*operands)
    same_bits(actual, expected)
    assert np.array_equal(certain, sure)
    monkeypatch.setenv("TESSERA_PLAIN_NUMERICS", "1")
    assert kernels.compiled_elements(decide, operands) is None


@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_estimate_leaves_few_elements_to_the_definition_and_never_nan(name, monkeypatch, rng):
    asked: list[int] = []

    def counting(values: np.ndarray) -> Approximation:
        assert not np.isnan(values).any()
        asked.append(values.size)
        return DEFINITIONS[name].approximate(values)

    x = np.abs(rng.standard_normal(1 << 20, np.float32) * 20)
    x[::5] = np.nan
    monkeypatch.setattr(ziv, "QUICK", True)
    correctly_rounded(replace(DEFINITIONS[name], approximate=counting), FP32, "saturate", x)
    assert sum(asked) < 40
    monkeypatch.setattr(ziv, "QUICK", False)
    correctly_rounded(replace(DEFINITIONS[name], estimate=pytest.fail), FP32, "saturate", x[1:5])


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (2, 3, 4)])
def test_a_function_keeps_the_shape(shape, rng):
    x = np.asarray(rng.standard_normal(shape).astype(np.float32))
    same_bits(exp(x, FP32), by_definition("exp", x))


@pytest.mark.parametrize("carrier", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_largest_is_what_any_tree_of_larger_gives(carrier, axis, rng):
    code = f"u{np.dtype(carrier).itemsize}"
    any_code = rng.integers(0, np.iinfo(code).max, (5, 7, 6), code, endpoint=True).view(carrier)
    edges = rng.choice(np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan], carrier), (40, 30, 3))
    zeros = rng.choice(np.array([0.0, -0.0], carrier), (3, 2, 3))
    for values in (any_code, edges, zeros, -np.abs(any_code), edges[:1, :1, :1], any_code.T, any_code[::2, ::-1]):
        for tree in (fold, pairwise):
            same_bits(largest(values, axis), tree(values, axis, larger))


CARRIERS = ("float32", "float64", "int32", "int64")
SHAPES = [(1, 1, 1), (3, 0, 2), (0, 4, 3), (3, 4, 0), (1, 70, 1), (17, 33, 65), (5, 3, 129), (64, 64, 64)]
SHAPES += [(1, 5, 1100), (3, 16, 511), (260, 9, 2), (129, 23, 513)]
BATCHES = [(), (1,), (3,), (2, 3), (0,)]


@pytest.fixture(autouse=True)
def not_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESSERA_PLAIN_NUMERICS", raising=False)


@pytest.fixture
def at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products take the accelerated path too."""
    if importlib.util.find_spec("llvmlite") is None:
        pytest.skip("llvmlite is not installed: pip install 'tessera-conformance[kernels]'")
    monkeypatch.setattr(kernels, "_WORTHWHILE_PRODUCTS", 0)


accelerated = pytest.mark.usefixtures("at_every_size")


def plain(a: np.ndarray, b: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The definition, one rounded operation of numpy at a time."""
    total = start.copy()
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            total = total + a[..., :, k, None] * b[..., k, None, :]
    return total


def equal_bits(found: np.ndarray | None, expected: np.ndarray) -> None:
    """Every bit, but for NaN, whose sign and payload no IEEE operation defines."""
    assert found is not None
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    code = f"u{expected.dtype.itemsize}"
    differ = (found.view(code) != expected.view(code)) & ~((found != found) & (expected != expected))
    assert not differ.any(), [(found[differ][:3], expected[differ][:3])]


def check(a: np.ndarray, b: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    if start is None:
        start = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    before = start.copy()
    expected = plain(a, b, start)
    equal_bits(left_fold_product(a, b, start), expected)
    equal_bits(start, before)
    return expected


def codes(carrier: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random codes: all exponents, subnormals, infinities and NaN; for integers, all values."""
    code = f"u{np.dtype(carrier).itemsize}"
    return rng.integers(0, np.iinfo(code).max, shape, code, endpoint=True).view(carrier)


def near_one(carrier: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return (rng.standard_normal(shape) * 100).astype(carrier)


@accelerated
@pytest.mark.parametrize("make", [codes, near_one])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_random_matrices(carrier, shape, make, rng):
    m, k, n = shape
    check(make(carrier, (m, k), rng), make(carrier, (k, n), rng))
    check(make(carrier, (m, k), rng), make(carrier, (k, n), rng), make(carrier, (m, n), rng))


@accelerated
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_batches(carrier, batch, rng):
    check(near_one(carrier, (*batch, 3, 5), rng), near_one(carrier, (*batch, 5, 4), rng))


@accelerated
@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_wide_exponents_cancel_and_underflow(carrier, rng):
    limit = np.finfo(carrier).maxexp
    for span in (10, limit // 4, limit // 2 + 12):

        def make(*shape: int, span: int = span) -> np.ndarray:
            return np.ldexp(rng.standard_normal(shape), rng.integers(-span, span, shape)).astype(carrier)

        a, b = make(9, 40), make(40, 33)
        check(np.concatenate([a, -a], axis=1), np.concatenate([b, b + np.roll(b, 1, 0)]))
        check(np.ldexp(a, -limit // 2).astype(carrier), np.ldexp(b, -limit // 2).astype(carrier))


EDGES = "0 -0 inf -inf nan 1 -1 smallest -smallest normal -normal subnormal largest -largest half".split()


def edge_values(carrier: str) -> np.ndarray:
    kind = np.finfo(carrier)
    named = {
        "smallest": kind.smallest_subnormal,
        "normal": kind.smallest_normal,
        "subnormal": kind.smallest_normal - kind.smallest_subnormal,
        "largest": kind.max,
        "half": 0.5,
    }
    signed = [(-1 if name[0] == "-" else 1, name.lstrip("-")) for name in EDGES]
    return np.array([sign * named[name] if name in named else sign * float(name) for sign, name in signed], carrier)


@accelerated
@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_edge_values_in_every_pair_and_as_start(carrier):
    edges = edge_values(carrier)
    size = len(edges)
    products = check(edges[:, None], edges[None, :])
    assert np.isnan(products).any() and np.isinf(products).any()
    a = np.repeat(edges, size)[None, :].repeat(size, 0)
    b = np.tile(edges, size)[:, None].repeat(size, 1)
    start = np.broadcast_to(edges, (size, size))
    for k in (1, 2, 3):
        for offset in range(0, size * size - k, 7):
            check(a[:, offset : offset + k], b[offset : offset + k], start)


@accelerated
@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_signs_of_zero(carrier):
    minus = np.full((2, 3), -0.0, carrier)
    ones = np.ones((3, 2), carrier)
    assert not np.signbit(check(minus, ones)).any()
    assert np.signbit(check(minus, ones, np.full((2, 2), -0.0, carrier))).all()
    assert np.signbit(check(minus[:, :0], ones[:0], np.full((2, 2), -0.0, carrier))).all()


@accelerated
@pytest.mark.parametrize(("carrier", "bits"), [("float32", 24), ("float64", 53)])
@pytest.mark.parametrize("columns", [1, 7, 64])
def test_products_are_rounded_on_their_own(carrier, bits, columns):
    e = 2.0 ** -((bits + 1) // 2)
    square = np.full((1, columns), 1 + e, carrier)
    assert not check(square[:, :1], square, np.full((1, columns), -(1 + 2 * e), carrier)).any()


@accelerated
def test_integers_wrap(rng):
    big = np.array([[2**31 - 1, 2**31 - 1]], np.int32)
    assert check(big, big.T).tolist() == [[2]]


@accelerated
def test_operands_in_any_memory_order(rng):
    a, b = near_one("float32", (40, 12), rng), near_one("float32", (31, 40), rng)
    check(a.T, b.T)
    check(np.asfortranarray(a.T), b.T[:, ::2])
    check(a.T[::-1], b.T[:, ::-1], np.asfortranarray(near_one("float32", (12, 31), rng)))


def test_it_stands_aside_for_few_products_and_complex_ones(monkeypatch):
    monkeypatch.setattr(kernels, "_products", 0)
    for carrier, size in (("float32", 8), ("complex64", 200)):
        square = np.ones((size, size), carrier)
        assert left_fold_product(square, square, square) is None


@accelerated
def test_many_small_products_are_worth_compiling(monkeypatch):
    monkeypatch.setattr(kernels, "_products", 0)
    monkeypatch.setattr(kernels, "_WORTHWHILE_PRODUCTS", 3 * 8**3)
    square = np.ones((8, 8), np.float32)
    assert [left_fold_product(square, square, square) is None for _ in range(4)] == [True, True, False, False]


def test_the_environment_can_forbid_it(monkeypatch):
    monkeypatch.setenv("TESSERA_PLAIN_NUMERICS", "1")
    square = np.ones((200, 200), np.float32)
    assert left_fold_product(square, square, square) is None


def test_it_stands_aside_without_llvmlite(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert kernels._compiled_fold.__wrapped__(np.dtype("float32")) is None


def test_a_fused_multiply_add_would_be_noticed():
    def fused(left: np.ndarray, right: np.ndarray, total: np.ndarray) -> None:
        total[...] = (left[..., -1:].astype(np.float64) * right[:, -1:] + total).astype(total.dtype)

    def rounding(left: np.ndarray, right: np.ndarray, total: np.ndarray) -> None:
        total[...] = plain(left, right, total)

    for carrier in (np.dtype("float32"), np.dtype("float64")):
        assert kernels._rounds_products(rounding, carrier)
        if carrier == np.float32:  # the long double of some machines is a float64
            assert not kernels._rounds_products(fused, carrier)


@accelerated
@pytest.mark.parametrize("name", ["fp8_e4m3", "bf16", "tf32", "fp32", "fp64", "int8", "int64"])
def test_matmul_uses_it_and_does_not_change(name, monkeypatch, rng):
    dtype = DTYPES[name]
    a, b = (Array(dtype, rng.integers(-8, 8, (20, 20)).astype(dtype.carrier)) for _ in range(2))
    used: list[bool] = []

    def spy(*operands: np.ndarray) -> np.ndarray | None:
        product = left_fold_product(*operands)
        used.append(product is not None)
        return product

    monkeypatch.setattr("tessera_reference.numerics.matmul.left_fold_product", spy)
    actual = matmul(a, b).to_bits()
    monkeypatch.setenv("TESSERA_PLAIN_NUMERICS", "1")
    assert matmul(a, b).to_bits() == actual
    assert used == [True, False]


ON_X86_LINUX = sys.platform == "linux" and platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"
FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 1 << 15, 1 << 6
UPWARD, DOWNWARD, TOWARD_ZERO = 2 << 13, 1 << 13, 3 << 13


def findings_under(control_bits: int) -> tuple[str, ...]:
    """Run the guard with bits of the SSE control register set: the last word of glibc's fenv_t on x86-64."""
    libm = ctypes.CDLL("libm.so.6")
    saved, changed = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(saved) == 0
    assert libm.fegetenv(changed) == 0
    changed[7] |= control_bits
    libm.fesetenv(changed)
    try:
        check_environment()
    except UnsuitableEnvironment as caught:
        return caught.findings
    finally:
        libm.fesetenv(saved)
    return ()


def test_this_process_is_suitable():
    check_environment()


@pytest.mark.skipif(not ON_X86_LINUX, reason="needs glibc's fenv_t on x86-64")
@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (FLUSH_TO_ZERO, "subnormal results are flushed"),
        (DENORMALS_ARE_ZERO, "subnormal operands are read as zero"),
        (UPWARD, "does not round to nearest"),
        (DOWNWARD, "does not round to nearest"),
        (TOWARD_ZERO, "does not round to nearest"),
        (UPWARD, "casts from fp64 to fp32"),
    ],
)
def test_a_fault_of_the_processor_state_is_named(fault, named):
    assert any(named in finding for finding in findings_under(fault))
    check_environment()


def test_the_message_names_every_finding():
    assert str(UnsuitableEnvironment(("one", "two"))).endswith(": one; two")


# Rounding on bits against the definition.


@pytest.mark.parametrize("overflow", ["saturate", "nonfinite"])
@pytest.mark.parametrize("code", ["u4", "u8"])
@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32"])
def test_rounding_on_bits_is_rounding(name, code, overflow, rng, monkeypatch):
    """Random bits, ties and their neighbours of every binade, zeros, infinities, NaN with payloads, and no element."""
    narrow, carrier = dtype(name), f"f{code[1]}"
    random = rng.integers(0, 1 << (8 * int(code[1]) - 1), 1 << 18, dtype=code).view(carrier)
    exponents = rng.integers(narrow.min_exponent - narrow.fraction_bits - 3, narrow.max_exponent + 2, 1 << 18)
    with np.errstate(all="ignore"):
        steps = rng.integers(-(4 << narrow.fraction_bits), 4 << narrow.fraction_bits, 1 << 18)
        ties = np.ldexp(steps.astype(np.float64) / 2, exponents).astype(carrier)
        beside = [np.nextafter(ties, np.array(end, carrier)) for end in (-np.inf, np.inf)]
    ends = np.array([0.0, -0.0, np.inf, -np.inf, narrow.max_finite, narrow.min_normal, narrow.min_subnormal], carrier)
    values = np.concatenate([random, -random, ties, *beside, ends])
    for operands in (values, values[:6].reshape(2, 3).T, values[:0], values[7].reshape(())):
        rounded = round_operand if name == "tf32" else lambda x: round_to(x, narrow, overflow)
        if name == "tf32" and carrier == "f8":
            continue
        monkeypatch.setattr(rounding, "BY_BITS", True)
        fast = rounded(operands)
        monkeypatch.setattr(rounding, "BY_BITS", False)
        plain = rounded(operands)
        assert (fast.dtype, fast.shape) == (plain.dtype, plain.shape)
        assert np.array_equal(np.ascontiguousarray(fast).view("u4"), np.ascontiguousarray(plain).view("u4"))


# Narrow floats: arithmetic in float32, and tables of functions.


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_of_narrow_floats_is_rounded_from_float64(operation, name, rng):
    """Random codes, neighbours of either sign, and a smallest operand beside any other, in more than one block."""
    narrow = dtype(name)
    codes_of = np.dtype(f"u{narrow.bits // 8}")
    left = rng.integers(0, 1 << narrow.bits, 3 << 15)
    near = (left + rng.integers(-9, 9, left.size)) ^ (rng.integers(0, 2, left.size) << narrow.bits - 1)
    small = rng.integers(0, 4 << narrow.fraction_bits, left.size)
    a = Array(narrow, decode(np.tile(left, 3).astype(codes_of), narrow))
    b = Array(narrow, decode(np.concatenate([left[::-1], near, small]).astype(codes_of), narrow))
    with np.errstate(all="ignore"):
        exact = getattr(np, operation)(a.values.astype(np.float64), b.values.astype(np.float64))
        expected = rounding._nearest(exact, narrow, rounding._beyond(narrow, "saturate")).astype(np.float32)
    same_bits(getattr(arithmetic, operation)(a, b).values, expected)
    rows = getattr(arithmetic, operation)(Array(narrow, a.values[:21].reshape(7, 3)), Array(narrow, b.values[:3]))
    pairs = getattr(arithmetic, operation)(Array(narrow, a.values[:21]), Array(narrow, np.tile(b.values[:3], 7)))
    same_bits(rows.values, pairs.values.reshape(7, 3))


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide", "maximum", "equal"])
def test_an_array_that_holds_its_codes_is_that_of_its_values(operation, name, rng, monkeypatch):
    """Random codes, NaN of every payload among them, beside every kind of operand, in more than one block."""
    narrow = dtype(name)
    left, right = rng.integers(0, 1 << narrow.bits, (2, 3, 3 << 13)).astype(f"<u{narrow.bits // 8}")

    def operands() -> tuple[Array, ...]:
        whole, other = (Array.from_bits(narrow, codes.shape, codes.tobytes()) for codes in (left, right))
        row = Array.from_bits(narrow, right[:1].shape, right[:1].tobytes())
        return whole, other, row, Array(narrow, other.values)

    kept = {}
    for least in (1, float("inf")):
        monkeypatch.setattr(array, "CODED", least)
        whole, other, row, decoded = operands()
        results = [getattr(arithmetic, operation)(whole, x) for x in (row, decoded, other, whole)]
        kept[least] = [(x.shape, x.rank, x.to_bits()) for x in (*operands(), *results)]
        assert (operands()[0].codes is None) == (least != 1)
    assert kept[1] == kept[float("inf")]


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_a_table_of_a_function_is_the_function(name):
    """Every number of the type, in more than one block, with NaN of every payload, and what is no number of it."""
    narrow = dtype(name)
    numbers = decode(np.arange(1 << narrow.bits).astype(f"u{narrow.bits // 8}"), narrow)
    payloads = (np.arange(1 << 15, dtype=np.uint32) + np.uint32(0x7F800000)).view(np.float32)
    values = np.concatenate([numbers, payloads, np.float32([1.1, -np.inf, 2.3])])
    for function in (exp, FUNCTIONS["tan"], FUNCTIONS["log1p"]):
        same_bits(function(values, narrow), function.__wrapped__(values, narrow, "saturate"))
