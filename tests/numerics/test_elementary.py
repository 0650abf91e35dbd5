"""Elementary functions against MPFR: random, structured and hard inputs, and Ziv's test."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from fractions import Fraction

import gmpy2
import mpmath.libmp
import numpy as np
import pytest

from tessera_reference.numerics import ziv
from tessera_reference.numerics.array import Array, code_dtype, decode
from tessera_reference.numerics.elementary import FUNCTIONS, apply, pow
from tessera_reference.numerics.elementary.tables import BITS, LN2, PI
from tessera_reference.numerics.errors import InvalidArgument, WrongCarrier
from tessera_reference.numerics.formats import UnsupportedDType, dtype

UNARY = [name for name in FUNCTIONS if name != "pow"]
WIDE = ["fp32", "fp64", "tf32"]


def every_value(name: str) -> np.ndarray:
    """All values of a narrow type but -0, of which MPFR has its own opinion for rsqrt, and NaN."""
    values = decode(np.arange(1 << dtype(name).bits).astype(code_dtype(dtype(name))), dtype(name))
    return values[~np.isnan(values) & ~((values == 0) & np.signbit(values))]


def random_codes(name: str, rng: np.random.Generator, count: int) -> np.ndarray:
    code = code_dtype(dtype(name))
    return decode(rng.integers(0, np.iinfo(code).max, count, code, endpoint=True), dtype(name))


def structured(name: str, rng: np.random.Generator) -> np.ndarray:
    """From the whole range; of everyday size; small; next to 1; whole and half; next to thresholds and to k pi/2."""
    form, carrier = dtype(name), dtype(name).carrier
    signs = rng.choice([-1.0, 1.0], 300)
    largest = math.log(form.max_finite)
    thresholds = [math.log(form.min_subnormal), math.log(form.min_normal), largest, largest + math.log(2)]
    thresholds += [form.max_exponent + 1.0, form.min_exponent - form.fraction_bits - 1.0, 0.5 * largest]
    steps = np.arange(-3, 4)
    near_thresholds = np.concatenate([t + steps * np.spacing(carrier.type(abs(t))) for t in thresholds])
    turns = np.concatenate([np.arange(1, 60), rng.integers(1, 1 << 20, 140)]) * (math.pi / 2)
    blocks = [
        rng.normal(0, 1, 300),
        rng.normal(0, 30, 200),
        signs * 2.0 ** rng.uniform(-2 * form.fraction_bits, 0, 300),
        signs * 2.0 ** rng.uniform(form.min_exponent - form.fraction_bits, form.min_exponent + 3, 300),
        1 + steps * 2.0 ** -(form.fraction_bits + 1),
        1 + signs * 2.0 ** rng.uniform(-form.fraction_bits, -2, 300),
        -1 + signs * 2.0 ** rng.uniform(-form.fraction_bits, -2, 300),
        np.arange(-40, 41) / 2,
        near_thresholds,
        turns,
    ]
    return np.concatenate([random_codes(name, rng, 400), *(block.astype(carrier) for block in blocks)])


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", WIDE)
def test_random_and_structured_inputs(type_name, name, oracle, mpfr, rng):
    values = structured(type_name, rng)
    values = values[values != 0]
    actual = FUNCTIONS[name](values, dtype(type_name))
    assert actual.dtype == dtype(type_name).carrier
    oracle.same(actual.tolist(), mpfr.nearest(name, type_name, values.tolist()))


SIXTEEN_BITS = (pytest.param(name, marks=pytest.mark.slow) for name in ("fp16", "bf16"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", ["fp8_e4m3", "fp8_e5m2", *SIXTEEN_BITS])
def test_every_input(type_name, name, oracle, mpfr, drawn):
    """Every fourth number of sixteen bits is tried, or every one with `--whole`."""
    values = every_value(type_name)[:: 1 if type_name.startswith("fp8") else 4 // drawn(4)]
    actual = FUNCTIONS[name](values, dtype(type_name))
    oracle.same(actual.tolist(), mpfr.nearest(name, type_name, values.tolist()))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", ["fp16", "bf16"])
def test_some_inputs_of_sixteen_bits(type_name, name, oracle, mpfr):
    values = every_value(type_name)[3::97]
    actual = FUNCTIONS[name](values, dtype(type_name))
    oracle.same(actual.tolist(), mpfr.nearest(name, type_name, values.tolist()))


# Inputs whose results in fp64 agree with a midpoint between floats in 40 bits more than its own 54: found by Lefevre
# and Muller and, of erf and rsqrt, by the CORE-MATH project.
HARD = {
    "exp": """0x1.00091a4a0dae5p+2 0x1.005ae04256babp-1 0x1.00bf0dafe8156p-27 0x1.02d3fffffefa5p-39
        0x1.046bea8fccaebp+4 0x1.2f52f0bd42853p+9 0x1.3f4afffff9c71p-37 0x1.07e3167a458abp+0 0x1.2c4afc48707c3p+2""",
    "exp2": "0x1.0002ff1388649p+9 0x1.0082ff1388649p+9",
    "log": """0x1.b9f1fa4587967p+0 0x1.11867637cbd03p+4 0x1.05eb7625384e6p+2
        0x1.6de110c79fac5p+2 0x1.25fd45593f228p-1 0x1.edeffbdb1a6e6p-1 0x1.789e95b11578cp+0 0x1.31143c7c0b1e6p+962""",
    "log2": """0x1.2ff40373cbbp-1030 0x1.90564eb47015dp+0 0x1.97a59c2fe0257p+0
        0x1.fabcc01fe788bp+0 0x1.e829fee5d4c58p+0 0x1.280ea1c531c4p-1028""",
    "sin": """0x1.54b3504c6b4a3p-1 0x1.9161eb1f20886p-10 0x1.1c63df63d59d0p-2
        0x1.d1772843917d7p+0 0x1.01a9891dd8e91p-4 0x1.1d60c80ae0d38p-6 0x1.986a75aeb40f4p-16""",
    "tanh": """0x1.000b47bdb383fp-9 0x1.0017d47cec425p-12 0x1.004524207fad9p-3 0x1.015bdb2761717p+4
        0x1.02a3ad2ef6f49p-24 0x1.30fc1931f09c8p+4 0x1.61246d6ad9aecp-25""",
    "erf": "0x1.6d5ad4307dd52p-7 0x1.037b548d9d7a6p-61 0x1.07bb029a8d96bp-61",
    "rsqrt": "0x1.a6a9cc15abccep+0 0x1.c562b857453ddp+1 0x1.ffffffffffffep+1 0x1.f4b0482bfa34cp+0",
}


@pytest.mark.parametrize("name", HARD)
def test_hard_inputs_which_no_pair_of_floats_decides(name, oracle, mpfr, monkeypatch):
    asked = []
    enclose = ziv._by_enclosure
    monkeypatch.setattr(ziv, "_by_enclosure", lambda *arguments: asked.append(arguments[1]) or enclose(*arguments))
    values = [float.fromhex(text) for text in HARD[name].split()]
    actual = FUNCTIONS[name](np.array(values), dtype("fp64"))
    oracle.same(actual.tolist(), mpfr.nearest(name, "fp64", values))
    assert len(asked) == len(values)


INF, NAN = math.inf, math.nan


def check(type_name: str, x: np.ndarray, y: np.ndarray, oracle, mpfr) -> None:
    form = dtype(type_name)
    x, y = x.astype(form.carrier), y.astype(form.carrier)
    oracle.same(pow(x, y, form).tolist(), mpfr.nearest("pow", type_name, x.tolist(), y.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize("type_name", ["fp16", "bf16", "fp32", "tf32", "fp64"])
def test_random_and_structured_pairs(type_name, oracle, mpfr, rng):
    form = dtype(type_name)
    code = code_dtype(form)
    anything = decode(rng.integers(0, np.iinfo(code).max, (2, 500), code, endpoint=True), form)
    anything = np.where(np.isnan(anything), form.carrier.type(NAN), anything)  # signalling ones warn when converted
    near_one = 1 + rng.choice([-1.0, 1.0], 500) * 2.0 ** rng.uniform(-form.fraction_bits, -2, 500)
    positive = np.abs(rng.normal(0, 10, 500)) + 2.0**-10
    range_of_results = (form.max_exponent + 5) * rng.uniform(-1.1, 1, 500) / np.log2(positive)
    blocks = [
        (anything[0], anything[1]),
        (np.abs(anything[0]), rng.uniform(-2, 2, 500)),
        (near_one, rng.uniform(-1, 1, 500) * 2.0 ** rng.uniform(0, form.fraction_bits + 6, 500)),
        (positive, range_of_results),
        (-positive, np.rint(range_of_results)),
        (rng.integers(-9, 10, 500) / 2.0, rng.integers(-16, 17, 500) / 2.0),
    ]
    x = np.concatenate([block[0] for block in blocks]).astype(np.float64)
    y = np.concatenate([block[1] for block in blocks]).astype(np.float64)
    if form.is_narrow:  # the operands are numbers of the type
        x, y = (np.array([oracle.nearest_or_special(v, type_name) for v in array.tolist()]) for array in (x, y))
    check(type_name, x, y, oracle, mpfr)


@pytest.mark.parametrize(
    ("type_name", "name", "x", "expected"),
    [
        ("fp64", "exp2", -1075.0, 0.0),  # half the smallest number: a tie, to even
        ("fp64", "exp2", -1074.0, 2.0**-1074),
        ("fp64", "exp2", math.nextafter(-1075.0, 0), 2.0**-1074),
        ("fp32", "exp2", -150.0, 0.0),
        ("fp32", "exp2", -149.0, 2.0**-149),
        ("fp16", "exp2", -25.0, 0.0),
        ("fp8_e4m3", "exp2", -10.0, 0.0),
        ("fp8_e5m2", "log2", 2.0**9, 8.0),  # 9 lies between 8 and 10
        ("fp8_e5m2", "log2", 2.0**11, 12.0),
        ("fp8_e5m2", "log2", 2.0**-13, -12.0),
        ("fp8_e4m3", "reciprocal", 2.0**-9, 448.0),
        ("fp16", "reciprocal", 2.0**-16, INF),
        ("fp16", "rsqrt", 2.0**-24, 4096.0),
        ("fp16", "cosh", 2.0**-5, 1 + 2.0**-10),  # above the midpoint by x**4/24
        ("fp64", "cosh", 2.0**-26, 1 + 2.0**-52),
        ("fp64", "exp", 2.0**-53, 1 + 2.0**-52),  # above the midpoint by x**2/2
        ("fp64", "exp", -(2.0**-54), 1.0),
        ("bf16", "exp", 2.0**-8, 1 + 2.0**-7),
        ("fp16", "exp", 2.0**-11, 1 + 2.0**-10),
        ("fp32", "exp", -(2.0**-25), 1.0),
    ],
)
def test_results_on_or_next_to_a_midpoint(type_name, name, x, expected):
    assert FUNCTIONS[name](np.array([x], dtype(type_name).carrier), dtype(type_name))[0] == expected


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("type_name", ["fp16", "fp32", "fp64"])
def test_a_result_depends_on_its_input_only(type_name, name):
    """Neither position, nor length, nor memory order: the trap of vectorised libraries."""
    form = dtype(type_name)
    values = np.linspace(-90, 80, 10007).astype(np.float16).astype(form.carrier)
    whole = FUNCTIONS[name](values, form)
    assert np.array_equal(FUNCTIONS[name](values[::-1], form)[::-1], whole, equal_nan=True)
    assert np.array_equal(FUNCTIONS[name](values[7:].reshape(-1, 4), form).ravel(), whole[7:], equal_nan=True)
    assert np.array_equal(FUNCTIONS[name](values[100], form), whole[100], equal_nan=True)


def test_the_names_of_the_canon():
    names = "exp exp2 expm1 log log2 log1p sin cos tan tanh sinh cosh erf sqrt rsqrt reciprocal pow"
    assert list(FUNCTIONS) == names.split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_refused(name):
    operands = 2 if name == "pow" else 1
    with pytest.raises(UnsupportedDType, match=f"{name} is not defined on int32"):
        FUNCTIONS[name](*[np.zeros(1, np.int32)] * operands, dtype("int32"))
    with pytest.raises(WrongCarrier):
        FUNCTIONS[name](*[np.zeros(1, np.float64)] * operands, dtype("fp32"))
    with pytest.raises(UnsupportedDType, match=f"{name} is not defined on complex64"):
        apply(name, *[Array(dtype("complex64"), np.zeros(1, np.complex64))] * operands)
    with pytest.raises(InvalidArgument, match="number of operands"):
        apply(name, *[Array(dtype("fp32"), np.zeros(1, np.float32))] * 3)


BY_ZIV = [name for name in FUNCTIONS if name not in ("sqrt", "reciprocal")]
POSITIVE = ("log", "log2", "rsqrt")


def operands(name: str, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Numbers of all sizes at which the function is neither overflow nor underflow, close to special points too."""
    signs = rng.choice([-1.0, 1.0], count)
    blocks = [rng.normal(0, 2, count), rng.normal(0, 40, count), signs * 2.0 ** rng.uniform(-60, 5, count)]
    x = np.concatenate([*blocks, 1 + signs * 2.0 ** rng.uniform(-50, -3, count)])
    if name == "log1p":
        x = np.where(x <= -1, -x, x)
    if name == "pow":
        x = np.abs(x)
        y = rng.uniform(-1, 1, x.size) * 600 / np.maximum(np.abs(np.log2(x)), 1)
        negative = np.arange(x.size) % 3 == 0  # to a whole power, odd or even
        return [np.where(negative, -x, x), np.where(negative, np.rint(y), y)]
    return [np.abs(x) if name in POSITIVE else x]


@pytest.mark.parametrize("name", BY_ZIV)
def test_approximations_keep_well_within_their_margins(name, mpfr, rng, monkeypatch):
    decide, seen = ziv._decide_double, []
    monkeypatch.setattr(ziv, "_decide_double", lambda *arguments: seen.append(arguments[:2]) or decide(*arguments))
    values = operands(name, rng, 400)
    FUNCTIONS[name](*values, dtype("fp64"))
    (near, margin), worst = seen[0], Fraction(0)
    assert 2.0**-100 < margin <= 2.0**-60
    exponents = np.zeros(near.high.size, int) if near.exponent is None else near.exponent
    exact = mpfr.values(name, *(array.tolist() for array in values))
    for high, low, exponent, value in zip(near.high, near.low, exponents.tolist(), exact, strict=True):
        if value != 0:
            actual = (Fraction(float(high)) + Fraction(float(low))) * Fraction(2) ** exponent
            worst = max(worst, abs(actual / Fraction(*map(int, value.as_integer_ratio())) - 1))
    assert worst < Fraction(margin) * Fraction(3, 4)
    assert (np.abs(near.low) <= np.spacing(np.abs(near.high)) / 2).all()


@pytest.mark.parametrize("name", BY_ZIV)
@pytest.mark.parametrize("type_name", ["fp64", "fp32"])
def test_enclosures_alone_give_the_same_bits(type_name, name, oracle, mpfr, rng, monkeypatch):
    """With a margin of 1/8 next to nothing is certain, and the answers come from mpmath."""
    decide, enclose, asked = ziv._decide_double, ziv._by_enclosure, []
    monkeypatch.setattr(ziv, "_decide_double", lambda near, _margin, *rest: decide(near, 0.125, *rest))
    monkeypatch.setattr(ziv, "_SINGLE_MARGIN", 0.125)
    monkeypatch.setattr(ziv, "QUICK", False)
    monkeypatch.setattr(ziv, "_by_enclosure", lambda *arguments: asked.append(1) or enclose(*arguments))
    values = [operand.astype(dtype(type_name).carrier) for operand in operands(name, rng, 15)]
    actual = FUNCTIONS[name](*values, dtype(type_name))
    oracle.same(actual.tolist(), mpfr.nearest(name, type_name, *(value.tolist() for value in values)))
    assert len(asked) > 0.4 * actual.size


def test_enclosures_are_really_asked_and_rarely(rng, monkeypatch):
    enclose, asked = ziv._by_enclosure, []
    monkeypatch.setattr(ziv, "_by_enclosure", lambda *arguments: asked.append(1) or enclose(*arguments))
    FUNCTIONS["tanh"](rng.normal(0, 1, 50_000), dtype("fp64"))
    assert 1 <= len(asked) <= 100


def test_precision_grows_until_both_ends_round_alike():
    """The value lies 2**-400 above a midpoint; and just below, and on it, where the tie goes to even."""
    asked = []

    def enclose_near(distance: Fraction):
        def enclose(precision: int, x: float) -> tuple[Fraction, Fraction]:
            asked.append(precision)
            value = Fraction(x) + Fraction(1, 1 << 53) + distance
            slack = Fraction(1, 1 << precision) if distance else Fraction(0)
            return value - slack, value + slack

        return enclose

    def approximate(x: np.ndarray) -> ziv.Approximation:
        return ziv.Approximation(x, np.full_like(x, 2.0**-53))

    one, tiny = np.array([1.0]), Fraction(1, 1 << 400)
    results = []
    for distance in (tiny, -tiny, Fraction(0)):
        definition = ziv.Definition(approximate, 2.0**-60, enclose_near(distance))
        results.append(float(ziv.correctly_rounded(definition, dtype("fp64"), "saturate", one)[0]))
    assert results == [1 + 2.0**-52, 1.0, 1.0]
    assert asked == [100, 200, 400, 800, 100, 200, 400, 100]


def test_an_unknown_exact_case_does_not_go_on_forever():
    definition = ziv.Definition(
        lambda x: ziv.Approximation(x, np.full_like(x, 2.0**-53)),
        2.0**-60,
        ziv.enclosure(lambda x, precision: mpmath.libmp.mpf_add(x, mpmath.libmp.from_man_exp(1, -53))),
    )
    with pytest.raises(AssertionError, match="exact case"):
        ziv.correctly_rounded(definition, dtype("fp64"), "saturate", np.array([1.0]))
    known = dataclasses.replace(
        definition, enclose=ziv.enclosure(mpmath.libmp.mpf_exp, lambda x: Fraction(x) + Fraction(1, 1 << 53))
    )
    assert ziv.correctly_rounded(known, dtype("fp64"), "saturate", np.array([1.0]))[0] == 1.0


@pytest.mark.parametrize(("constant", "computed"), [(LN2, gmpy2.const_log2), (PI, gmpy2.const_pi)], ids=["LN2", "PI"])
def test_it_has_the_bits_that_mpfr_computes(constant: Fraction, computed: object) -> None:
    """To nearest, all 300 of them."""
    assert callable(computed)
    assert constant == Fraction(*computed(BITS).as_integer_ratio())


def test_a_process_that_computes_no_element_does_without_mpmath() -> None:
    code = (
        "import sys, tessera_reference.adapter, tessera_reference.numerics as numerics\n"
        "from tessera_reference.numerics.elementary import exponential, trigonometric\n"
        "assert 'mpmath' not in sys.modules and 'gmpy2' not in sys.modules\n"
        "from tessera_reference.numerics.ziv import mp\n"
        "assert mp().mpf_pi(10, 'n') and 'mpmath' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def exact(pair: tuple[np.ndarray, np.ndarray]) -> list[Fraction]:
    return [Fraction(float(high)) + Fraction(float(low)) for high, low in zip(*pair, strict=True)]


@pytest.fixture
def numbers(rng):
    def draw(count: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], count) * rng.uniform(1, 2, count) * 2.0 ** rng.integers(-60, 60, count)

    return draw


@pytest.fixture
def pairs(numbers, rng):
    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        high = numbers(count)
        return high, high * rng.uniform(-(2.0**-54), 2.0**-54, count)

    return draw
