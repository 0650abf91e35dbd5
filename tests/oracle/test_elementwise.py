"""Operators against the machine's own arithmetic on random bits, and special values by hand."""

from __future__ import annotations

import operator
import random
import struct
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.tensors import Tensor

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
FUNCTIONS = [pytest.param(ours, theirs, id=ours.__name__) for ours, theirs in [*OPERATORS, *COMPARISONS]]
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


@pytest.mark.parametrize(
    ("dtype", "a", "b", "quotient"),
    [("int8", 0x80, 0xFF, 0x80), ("int8", 0xF9, 0x02, 0xFD), ("int32", 7, 0xFFFFFFFE, 0xFFFFFFFD)],
)
def test_integer_division_truncates_and_wraps(dtype: str, a: int, b: int, quotient: int) -> None:
    """-128 / -1 wraps, -7 / 2 is -3, 7 / -2 is -3."""
    result = oracle.divide(Tensor.from_words(dtype, (), [a]), Tensor.from_words(dtype, (), [b]))
    assert result.words().tolist() == [quotient]


@pytest.mark.parametrize(("ours", "theirs"), [pytest.param(*pair, id=pair[0].__name__) for pair in OPERATORS[:3]])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_agree_with_numpy(draw: random.Random, ours: Any, theirs: Any, dtype: str) -> None:
    width = np.dtype(dtype).itemsize
    words = np.array([[draw.getrandbits(8 * width) for _ in range(50)] for _ in range(2)], dtype=f"<u{width}")
    check(ours, theirs, words[0].view(dtype), words[1].view(dtype), dtype)


def test_dividing_an_integer_by_zero_has_no_value() -> None:
    with pytest.raises(ValueError, match="divided by zero"):
        oracle.divide(Tensor.from_words("int8", (), [1]), Tensor.from_words("int8", (), [0]))


@pytest.mark.parametrize(("code", "negated"), [(0x00, 0x80), (0x80, 0x00), (0x7C, 0xFC), (0x7B, 0xFB), (0x7E, 0x7E)])
def test_negation_flips_the_sign_and_leaves_infinities(code: int, negated: int) -> None:
    assert oracle.negate(Tensor.from_words("fp8_e5m2", (), [code])).words().tolist() == [negated]


@pytest.mark.parametrize(
    ("dtype", "one", "zero", "largest"), [("fp8_e4m3", 0x38, 0, 0x7E), ("fp8_e5m2", 0x3C, 0, 0x7B)]
)
def test_an_infinite_eight_bit_result_saturates(dtype: str, one: int, zero: int, largest: int) -> None:
    quotient = oracle.divide(Tensor.from_words(dtype, (), [one]), Tensor.from_words(dtype, (), [zero]))
    assert quotient.words().tolist() == [largest]


def test_broadcasting_is_that_of_numpy() -> None:
    a, b = np.arange(6, dtype=np.int32).reshape(2, 1, 3), np.arange(4, dtype=np.int32).reshape(4, 1)
    check(oracle.add, operator.add, a, b, "int32")


def test_operands_of_two_types_are_an_error() -> None:
    with pytest.raises(ValueError, match="one dtype"):
        oracle.add(Tensor.from_words("int8", (), [1]), Tensor.from_words("int16", (), [1]))


def test_transpose_reverses_the_axes() -> None:
    result = oracle.transpose(Tensor.from_words("bf16", (2, 3), range(6)))
    assert (result.shape, result.words().tolist()) == ((3, 2), [0, 3, 1, 4, 2, 5])
