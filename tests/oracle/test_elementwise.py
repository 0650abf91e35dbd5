"""Formats, casts, operators and movement of the oracle, against numpy, ml_dtypes and the machine."""

from __future__ import annotations

import math
import operator
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.check import first_difference
from tessera_conformance.oracle.exact import INFINITY, NAN, NEGATIVE_INFINITY, NEGATIVE_ZERO, Value, float_format
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counted, tensor


def value_of(number: float) -> Value:
    if np.isnan(number):
        return NAN
    if np.isinf(number):
        return INFINITY if number > 0 else NEGATIVE_INFINITY
    return NEGATIVE_ZERO if number == 0 and np.signbit(number) else Fraction(number)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "bf16"])
def test_every_code_decodes_as_in_ml_dtypes(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: pip install ml_dtypes")
    theirs = {"fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}[dtype]
    width = ELEMENT_FORMATS[dtype].word_bytes
    codes = np.arange(1 << (8 * width), dtype=f"u{width}")
    format_ = float_format(dtype)
    with np.errstate(invalid="ignore"):
        values = codes.view(theirs).astype(float).tolist()
    assert [format_.decode(code) for code in codes.tolist()] == [value_of(x) for x in values]


@pytest.mark.slow
def test_every_fp16_code_decodes_as_in_numpy() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    format_ = float_format("fp16")
    assert [format_.decode(code) for code in codes.tolist()] == [
        value_of(x) for x in codes.view(np.float16).astype(float).tolist()
    ]


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_every_value_encodes_to_the_code_it_came_from(dtype: str) -> None:
    format_ = float_format(dtype)
    for code in range(2 * format_.sign_bit):
        value = format_.decode(code)
        if value is not NAN:
            assert format_.encode(value, nonfinite=True) == code


def test_finite_values_agree_with_the_decoder_of_python(draw: random.Random) -> None:
    for dtype, letter, bits in (("fp32", "f", 32), ("fp64", "d", 64)):
        for _ in range(500):
            code = draw.getrandbits(bits)
            value = float_format(dtype).decode(code)
            (expected,) = struct.unpack(f"<{letter}", code.to_bytes(bits // 8, "little"))
            if math.isfinite(expected):
                assert (Fraction(0) if value is NEGATIVE_ZERO else value) == Fraction(expected)
            else:
                assert not isinstance(value, Fraction)


def interesting_double(draw: random.Random, low: int, high: int) -> float:
    """A double near a midpoint of a narrow type about half of the time."""
    fraction = draw.getrandbits(52) if draw.random() < 0.5 else (draw.getrandbits(13) << 39) + draw.choice([-1, 0, 1])
    bits = draw.getrandbits(1) << 63 | draw.randint(1023 + low, 1023 + high) << 52 | fraction % (1 << 52)
    number: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return number


@pytest.mark.parametrize(("dtype", "numpy_type", "low", "high"), [("fp16", "f2", -27, 17), ("fp32", "f4", -152, 129)])
def test_rounding_from_double_is_that_of_numpy(
    draw: random.Random, dtype: str, numpy_type: str, low: int, high: int
) -> None:
    numbers = [interesting_double(draw, low, high) for _ in range(4000)]
    with np.errstate(all="ignore"):
        expected = np.array(numbers).astype(numpy_type).view(f"u{numpy_type[1]}").tolist()
    assert [float_format(dtype).encode(Fraction(number)) for number in numbers] == expected


def test_rounding_to_double_is_that_of_python(draw: random.Random) -> None:
    """Python's int / int is correctly rounded, subnormals included."""
    format_ = float_format("fp64")
    for _ in range(2000):
        numerator, denominator = draw.getrandbits(draw.randint(1, 200)), draw.getrandbits(draw.randint(1, 1200)) + 1
        expected = struct.unpack("<Q", struct.pack("<d", numerator / denominator))[0]
        assert format_.encode(Fraction(numerator, denominator)) == expected


def nearest_by_search(table: list[tuple[Fraction, int]], number: Fraction) -> int:
    """The closest value by looking at all of them; of two, the one with the even code."""
    return min(table, key=lambda entry: (abs(entry[0] - number), entry[1] & 1))[1]


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
def test_rounding_finds_the_nearest_of_all_values(draw: random.Random, dtype: str) -> None:
    format_ = float_format(dtype)
    table: list[tuple[Fraction, int]] = []
    for code in range(format_.largest_code + 1):
        value = format_.decode(code)
        assert isinstance(value, Fraction)
        table.append((value, code))
    midpoints = [(a + b) / 2 for (a, _), (b, _) in pairwise(table)]
    nudge = Fraction(1, 1 << 60)
    for number in [nudged for middle in midpoints for nudged in (middle - nudge, middle, middle + nudge)]:
        assert format_.encode(number) == nearest_by_search(table, number)
        if number:
            assert format_.encode(-number) == nearest_by_search(table, number) | format_.sign_bit


NUMPY = {"fp16": "<f2", "fp32": "<f4", "fp64": "<f8", "int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8"}


def array(x: Tensor) -> Any:
    return np.frombuffer(x.data, dtype=NUMPY[x.dtype])


@pytest.mark.parametrize("source", NUMPY)
@pytest.mark.parametrize("target", NUMPY)
def test_casts_are_those_of_numpy(source: str, target: str) -> None:
    """Between numbers in range; int64 to fp16 goes through a double in numpy, so those stay small."""
    x = counted(source, (64,), 5)
    values = array(x)
    if target.startswith("int") and source.startswith("fp"):
        values = np.clip(values, -100, 100).astype(NUMPY[source])
    if target == "fp16" and source in ("int32", "int64"):
        values = (values % 1000).astype(NUMPY[source])
    expected = values.astype(NUMPY[target])
    actual = oracle.cast(Tensor(source, (64,), values.tobytes()), dtype=target)
    assert first_difference(actual, Tensor(target, (64,), expected.tobytes())) is None


OPERATORS = [
    (oracle.add, operator.add),
    (oracle.subtract, operator.sub),
    (oracle.multiply, operator.mul),
    (oracle.divide, operator.truediv),
]
COMPARISONS = [
    (oracle.equal, operator.eq),
    (oracle.not_equal, operator.ne),
    (oracle.less, operator.lt),
    (oracle.greater, operator.gt),
    (oracle.less_or_equal, operator.le),
    (oracle.greater_or_equal, operator.ge),
]
FUNCTIONS = [pytest.param(ours, theirs, id=theirs.__name__) for ours, theirs in [*OPERATORS, *COMPARISONS]]
EDGES = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan]


def random_codes(draw: random.Random, bits: int, fraction_bits: int) -> list[int]:
    """Any bits, and numbers so small that sums and products of them are subnormal."""
    small = [draw.getrandbits(fraction_bits + 2) | draw.getrandbits(1) << (bits - 1) for _ in range(300)]
    return [*(draw.getrandbits(bits) for _ in range(300)), *small]


def check(ours: Any, theirs: Any, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: str) -> None:
    with np.errstate(all="ignore"):
        results = theirs(a, b)
    expected = Tensor("bool" if results.dtype == bool else dtype, results.shape, results.tobytes())
    actual = ours(Tensor(dtype, a.shape, a.tobytes()), Tensor(dtype, b.shape, b.tobytes()))
    assert first_difference(actual, expected) is None


@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS)
@pytest.mark.parametrize(("dtype", "numpy_type", "fraction_bits"), [("fp32", "<f4", 23), ("fp64", "<f8", 52)])
def test_wide_floats_agree_with_the_machine(
    draw: random.Random, ours: Any, theirs: Any, dtype: str, numpy_type: str, fraction_bits: int
) -> None:
    width = np.dtype(numpy_type).itemsize
    codes = np.array([random_codes(draw, 8 * width, fraction_bits) for _ in range(2)], dtype=f"<u{width}")
    values = codes.view(numpy_type)
    check(ours, theirs, values[0], values[1], dtype)
    check(ours, theirs, values[0][300:], values[1][:300], dtype)
    edges = np.array(EDGES, dtype=numpy_type)
    check(ours, theirs, np.repeat(edges, len(EDGES)), np.tile(edges, len(EDGES)), dtype)


def test_doubles_agree_with_python_floats(draw: random.Random, scalar: Callable[[str, float], Tensor]) -> None:
    for _ in range(300):
        x, y = (struct.unpack("<d", draw.getrandbits(64).to_bytes(8, "little"))[0] for _ in range(2))
        for ours, theirs in OPERATORS[:3]:
            actual = ours(scalar("fp64", x), scalar("fp64", y))
            assert first_difference(actual, scalar("fp64", theirs(x, y))) is None


@pytest.mark.parametrize(("ours", "theirs"), [pytest.param(*pair, id=pair[0].__name__) for pair in OPERATORS])
def test_halves_agree_with_numpy(draw: random.Random, ours: Any, theirs: Any) -> None:
    """numpy goes through fp32, which is wide enough for fp16 that rounding twice gives what rounding once does."""
    codes = np.array([random_codes(draw, 16, 10) for _ in range(2)], dtype="<u2").view("<f2")
    check(ours, theirs, codes[0], codes[1], "fp16")


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs"), [pytest.param(*pair, id=pair[0].__name__) for pair in OPERATORS])
@pytest.mark.parametrize(("dtype", "name"), [("fp8_e4m3", "float8_e4m3fn"), ("fp8_e5m2", "float8_e5m2")])
def test_every_pair_of_eight_bit_codes_agrees_with_ml_dtypes(ours: Any, theirs: Any, dtype: str, name: str) -> None:
    """Compared where ml_dtypes does not overflow: it gives NaN or infinity there, and we saturate."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: pip install ml_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
    with np.errstate(all="ignore"):
        cast = theirs(values[:, None], values[None, :]).astype(getattr(ml_dtypes, name))
    finite = np.isfinite(cast.astype(np.float32)).reshape(-1)
    a, b = Tensor(dtype, (256, 1), codes.tobytes()), Tensor(dtype, (1, 256), codes.tobytes())
    assert ours(a, b).words()[finite].tolist() == cast.view(np.uint8).reshape(-1)[finite].tolist()
    assert finite.sum() > 50_000


@pytest.mark.parametrize(("ours", "theirs"), [pytest.param(*pair, id=pair[0].__name__) for pair in OPERATORS[:3]])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_agree_with_numpy(draw: random.Random, ours: Any, theirs: Any, dtype: str) -> None:
    width = np.dtype(dtype).itemsize
    words = np.array([[draw.getrandbits(8 * width) for _ in range(50)] for _ in range(2)], dtype=f"<u{width}")
    check(ours, theirs, words[0].view(dtype), words[1].view(dtype), dtype)


Array = np.ndarray[Any, Any]


def int16(x: Array) -> Tensor:
    return Tensor("int16", x.shape, np.ascontiguousarray(x).tobytes())


def int32(*values: int) -> Tensor:
    return tensor("int32", list(values))
