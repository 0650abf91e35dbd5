"""pow against MPFR and exact powers, and the special values of IEEE 754-2019, 9.2.1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.numerics.array import code_dtype, decode
from tessera_reference.numerics.elementary import pow
from tessera_reference.numerics.errors import WrongCarrier
from tessera_reference.numerics.formats import DTYPES, dtype

FLOATS = [name for name, each in DTYPES.items() if each.kind == "float"]
INF, NAN = math.inf, math.nan


def check(type_name: str, x: np.ndarray, y: np.ndarray, oracle, mpfr) -> None:
    form = dtype(type_name)
    x, y = x.astype(form.carrier), y.astype(form.carrier)
    oracle.same(pow(x, y, form).tolist(), mpfr.nearest("pow", type_name, x.tolist(), y.tolist()))


@pytest.mark.parametrize("type_name", ["fp8_e4m3", "fp8_e5m2"])
def test_a_ninth_of_all_pairs_of_fp8_numbers(type_name, oracle, mpfr):
    values = decode(np.arange(256).astype(np.uint8), dtype(type_name))[::3]
    x, y = (each.ravel() for each in np.broadcast_arrays(values[:, None], values[None, :]))
    check(type_name, x, y, oracle, mpfr)


@pytest.mark.slow
@pytest.mark.parametrize("type_name", ["fp8_e4m3", "fp8_e5m2"])
def test_every_pair_of_fp8_numbers(type_name, oracle, mpfr):
    values = decode(np.arange(256).astype(np.uint8), dtype(type_name))
    x, y = (each.ravel() for each in np.broadcast_arrays(values[:, None], values[None, :]))
    check(type_name, x, y, oracle, mpfr)


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
        x, y = (np.array([oracle.nearest_or_special(v, type_name) for v in each.tolist()]) for each in (x, y))
    check(type_name, x, y, oracle, mpfr)


@pytest.mark.slow
@pytest.mark.parametrize("type_name", FLOATS)
def test_exact_powers_and_ties(type_name, oracle):
    """Whole powers of small integers, and of their reciprocals powers of two: many are midpoints of the type."""
    form = dtype(type_name)
    precision = form.storage.fraction_bits + 1
    bases = [b for b in range(1, 200) if b.bit_length() <= precision]
    cases = [(b, n) for b in bases for n in range(1, 40) if n.bit_length() <= precision and b**n < form.max_finite]
    cases = cases[:: max(1, len(cases) // 1500)]
    x, y = (np.array(each, form.carrier) for each in zip(*cases, strict=True))
    exact = [Fraction(b) ** n for b, n in cases]
    oracle.same(pow(x, y, form).tolist(), [oracle.nearest(each, type_name) for each in exact])
    signed = [oracle.nearest(each * (-1) ** n, type_name) for each, (_, n) in zip(exact, cases, strict=True)]
    oracle.same(pow(-x, y, form).tolist(), signed)


@pytest.mark.parametrize(
    ("type_name", "x", "y", "expected"),
    [
        ("fp8_e4m3", 5.0, 2.0, 24.0),  # 25 lies between 24 and 26
        ("fp8_e5m2", 3.0, 2.0, 8.0),  # 9 lies between 8 and 10
        ("fp64", 94906267.0, 2.0, 9007199515875288.0),  # 94906267**2 = ...289, between ...288 and ...290
        ("fp64", 9.0, 0.5, 3.0),
        ("fp64", 2.0**-1074, 0.5, 2.0**-537),
        ("fp64", 2.0**-1074, 2.0**-1, 2.0**-537),
        ("fp64", 16.0, 0.25, 2.0),
        ("fp64", 2.0, -1075.0, 0.0),  # half the smallest number: a tie
        ("fp64", -2.0, -1075.0, -0.0),
        ("fp64", 2.0**-25, 43.0, 0.0),
        ("fp32", 4097.0, 2.0, 16785408.0),  # 16785409, a tie
        ("fp32", 2.0, -150.0, 0.0),
        ("fp16", 2.0, -25.0, 0.0),
        ("fp64", float.fromhex("0x1.ffffffffffff8p-1"), float.fromhex("-0x1.ffffffffffffbp-3"), 1 + 2.0**-52),
        ("fp64", 1 + 2.0**-52, 0.5, 1.0),  # 1 + 2**-53 less 2**-107
        ("fp64", 1 - 2.0**-53, 0.5, 1 - 2.0**-53),  # 1 - 2**-54 less 2**-109
        ("fp64", 1 + 2.0**-52, 1e300, INF),
        ("fp64", 1 - 2.0**-53, -1e300, INF),
        ("fp64", 1 + 2.0**-52, -1.7e308, 0.0),
        ("fp64", 1.7e308, 5e-324, 1.0),
        ("fp64", -1 - 2.0**-52, 2.0**53 - 1, -float.fromhex("0x1.d8e64b8d4ddaap+2")),  # -(e**2) (1 - 2**-51)
    ],
)
def test_hand_made_cases(type_name, x, y, expected, oracle):
    form = dtype(type_name)
    oracle.same(pow(np.array([x], form.carrier), np.array([y], form.carrier), form).tolist(), [expected])


SPECIAL = [
    # x, y, pow(x, y)
    (NAN, 0.0, 1.0), (NAN, -0.0, 1.0), (INF, 0.0, 1.0), (-INF, -0.0, 1.0), (0.0, 0.0, 1.0), (-0.0, 0.0, 1.0),
    (1.0, NAN, 1.0), (1.0, INF, 1.0), (1.0, -INF, 1.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (-1.0, NAN, NAN),
    (NAN, 1.0, NAN), (2.0, NAN, NAN), (0.0, NAN, NAN), (INF, NAN, NAN), (NAN, INF, NAN), (NAN, NAN, NAN),
    (0.0, -3.0, INF), (-0.0, -3.0, -INF), (0.0, -2.0, INF), (-0.0, -2.0, INF), (-0.0, -0.5, INF), (-0.0, -INF, INF),
    (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (0.0, 2.0, 0.0), (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0), (-0.0, INF, 0.0),
    (0.5, INF, 0.0), (-0.5, INF, 0.0), (2.0, INF, INF), (-2.0, INF, INF),
    (0.5, -INF, INF), (-0.5, -INF, INF), (2.0, -INF, 0.0), (-2.0, -INF, 0.0),
    (INF, 3.0, INF), (INF, 0.5, INF), (INF, -3.0, 0.0), (INF, INF, INF), (INF, -INF, 0.0),
    (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, 0.5, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, -0.5, 0.0),
    (-INF, INF, INF), (-INF, -INF, 0.0), (-2.0, 0.5, NAN), (-2.0, -1.5, NAN), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0),
]  # fmt: skip


@pytest.mark.parametrize("type_name", FLOATS)
def test_special_values(type_name, oracle):
    form = dtype(type_name)
    x, y, expected = (np.array(each, form.carrier) for each in zip(*SPECIAL, strict=True))
    beyond = oracle.formats[type_name].beyond
    saturated = [math.copysign(beyond, each) if math.isinf(each) else each for each in expected.tolist()]
    oracle.same(pow(x, y, form).tolist(), saturated)


def test_shapes_broadcast_and_carriers_are_checked():
    form = dtype("fp32")
    x, y = np.array([[2.0], [3.0]], np.float32), np.array([1.0, 2.0, -1.0], np.float32)
    assert pow(x, y, form).tolist() == [[2.0, 4.0, 0.5], [3.0, 9.0, float(np.float32(1 / 3))]]
    assert pow(np.ones((0, 1), np.float32), y, form).shape == (0, 3)
    assert pow(x[0, 0], y[1], form).shape == ()
    with pytest.raises(WrongCarrier):
        pow(x, y.astype(np.float64), form)
