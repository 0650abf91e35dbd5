"""Every pair of dtypes, at the values where casts go wrong, against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import InvalidArgument
from tessera_reference.numerics.formats import DTYPES, UnsupportedDType, dtype
from tessera_reference.numerics.rounding import cast, round_exact, round_to

TWO = Fraction(2)
FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
INTS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
PARTS = {"complex64": "fp32", "complex128": "fp64"}
NONFINITE = {"fp8_e4m3": math.nan, "fp8_e5m2": math.inf}


def landmarks(oracle: Any) -> list[Fraction]:
    """Where some target changes its mind: ties, and a little to either side, at the ends and in the middle."""
    found = []
    for form in oracle.formats.values():
        smallest = TWO ** (form.min_exponent - form.precision + 1)
        last_step = TWO ** (form.largest.numerator.bit_length() - form.precision)
        ulp = TWO ** (1 - form.precision)
        found += [form.largest, form.largest + last_step / 2, form.largest + last_step, form.largest - last_step / 2]
        found += [smallest * factor for factor in (1, Fraction(1, 2), Fraction(3, 2), Fraction(5, 2))]
        found += [TWO**form.min_exponent - smallest / 2, TWO**form.min_exponent, 1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp]
    for bits in INTS.values():
        found += [TWO ** (bits - 1) + offset for offset in (-2, -1, Fraction(-1, 2), 0, Fraction(1, 2), 1)]
    found += [TWO ** (p + q) + TWO**q for p in (3, 4, 8, 11, 24, 53) for q in (0, 5, 61 - p)]  # ties of integers
    near = [v * (1 + sign * TWO**-e) for v in found for sign in (1, -1) for e in (20, 40)]
    return found + near


def float_values(name: str, oracle: Any) -> list[float]:
    """The values of a float dtype at and beside the landmarks, and what is special."""
    step = TWO ** (1 - oracle.formats[name].precision)
    beside = [v * factor for v in landmarks(oracle) for factor in (1, 1 - step, 1 + step)]
    finite = sorted({oracle.nearest(v, name) for v in beside if v <= oracle.formats[name].largest})
    special = [0.0, -0.0, math.nan] + ([] if name == "fp8_e4m3" else [math.inf, -math.inf])
    return [*finite, *(-v for v in finite), *special]


def values_of(name: str, oracle: Any) -> list[Any]:
    if name in INTS:
        limit = 2 ** (INTS[name] - 1)
        whole = [int(v) for v in landmarks(oracle)]
        return sorted({v for w in whole for v in (w - 1, w, w + 1, -w - 1, -w, 1 - w) if -limit <= v < limit})
    if name == "bool":
        return [False, True]
    if name in PARTS:
        parts = float_values(PARTS[name], oracle)
        return [complex(a, b) for a, b in zip(parts, reversed(parts), strict=True)]
    return float_values(name, oracle)


@pytest.fixture(scope="module")
def values(oracle: Any) -> dict[str, list[Any]]:
    """The values tried of every dtype."""
    return {name: values_of(name, oracle) for name in DTYPES}


def to_float(x: Any, target: str, overflow: str, oracle: Any) -> float:
    """Round a real number to a float dtype."""
    beyond = NONFINITE.get(target) if overflow == "nonfinite" else None
    if isinstance(x, float) and not math.isfinite(x):
        limit = oracle.formats[target].beyond if beyond is None else beyond
        return x if math.isnan(x) else math.copysign(limit, x)
    if x == 0:
        return float(x)
    return oracle.nearest(Fraction(x), target, beyond)


def to_int(x: Any, target: str) -> int:
    limit = 2 ** (INTS[target] - 1)
    if not isinstance(x, float):
        return (int(x) + limit) % (2 * limit) - limit
    if math.isnan(x):
        return 0
    return int(max(-limit, min(limit - 1, math.trunc(x) if math.isfinite(x) else x)))


@pytest.mark.slow
@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_every_pair_of_dtypes_rounds_once(source, target, values, oracle):
    numbers = values[source]
    given = Array(dtype(source), np.array(numbers, dtype(source).carrier))
    for overflow in ("saturate", "nonfinite"):
        if source in PARTS and target not in PARTS and target != "bool":
            with pytest.raises(UnsupportedDType, match=f"cast to {target} is not defined on {source}"):
                cast(given, dtype(target), overflow)
            continue
        found = cast(given, dtype(target), overflow)
        assert (found.dtype, found.shape) == (dtype(target), given.shape)
        if target == "bool":
            assert found.values.tolist() == [x != 0 for x in numbers]
        elif target in INTS:
            assert found.values.tolist() == [to_int(x, target) for x in numbers]
        elif target in PARTS:
            part = PARTS[target]
            pairs = [(x.real, x.imag) if source in PARTS else (x, 0.0) for x in numbers]
            oracle.same(found.values.real.tolist(), [to_float(a, part, overflow, oracle) for a, _ in pairs])
            oracle.same(found.values.imag.tolist(), [to_float(b, part, overflow, oracle) for _, b in pairs])
        else:
            oracle.same(found.values.tolist(), [to_float(x, target, overflow, oracle) for x in numbers])


@pytest.mark.parametrize("target", ["fp8_e4m3", "fp8_e5m2", "fp32"])
def test_results_are_values_of_the_target(target, values, oracle):
    """Encoding and decoding a result loses nothing."""
    found = cast(Array(dtype("fp64"), np.array(values["fp64"])), dtype(target), "nonfinite")
    oracle.same(Array.from_bits(found.dtype, found.shape, found.to_bits()).values.tolist(), found.values.tolist())


@pytest.mark.parametrize("overflow", ["wrap", "Saturate", "", None])
def test_another_name_of_an_overflow_is_refused(overflow):
    x = np.ones(1)
    for operation, act in {
        "cast": lambda: cast(Array(dtype("fp64"), x), dtype("int8"), overflow),
        "round_to": lambda: round_to(x, dtype("fp16"), overflow),
        "round_exact": lambda: round_exact(Fraction(1), dtype("fp64"), overflow),
    }.items():
        with pytest.raises(InvalidArgument, match=f"{operation}: overflow is") as caught:
            act()
        assert caught.value.argument == "overflow"
