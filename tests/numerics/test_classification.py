from __future__ import annotations

import math

import numpy as np
import pytest

from tessera_reference.numerics.array import Array, Category, classify
from tessera_reference.numerics.formats import UnsupportedDType, dtype

FIELDS = {"fp8_e4m3": (4, 3), "fp8_e5m2": (5, 2), "fp16": (5, 10), "bf16": (8, 7), "tf32": (8, 23)} | {
    "fp32": (8, 23),
    "fp64": (11, 52),
}


def by_fields(code: int, name: str) -> tuple[Category, bool]:
    """Classify a code by its exponent and fraction fields, as the formats are defined."""
    exponent_bits, fraction_bits = FIELDS[name]
    exponent = (code >> fraction_bits) & (2**exponent_bits - 1)
    fraction = code & (2**fraction_bits - 1)
    negative = bool(code >> (exponent_bits + fraction_bits))
    if name == "fp8_e4m3":
        special = Category.NAN if (exponent, fraction) == (15, 7) else None
    else:
        special = (Category.NAN if fraction else Category.INFINITE) if exponent == 2**exponent_bits - 1 else None
    if special is None and exponent == 0:
        special = Category.SUBNORMAL if fraction else Category.ZERO
    return Category.NORMAL if special is None else special, negative


def codes_of(name: str, rng: np.random.Generator) -> list[int]:
    """Every code of 16 bits or fewer; else those at the borders of the classes, and random ones."""
    exponent_bits, fraction_bits = FIELDS[name]
    bits = 1 + exponent_bits + fraction_bits
    if bits <= 16:
        return list(range(1 << bits))
    top = (1 << exponent_bits) - 1
    borders = [e << fraction_bits for e in (0, 1, 2, top)]
    borders += [(e << fraction_bits) + (1 << fraction_bits) - 1 for e in (0, 1, top - 1, top)]
    borders += [1, (top << fraction_bits) + 1]
    codes = borders + rng.integers(0, 1 << (bits - 1), 300).tolist()
    return codes + [code + (1 << (bits - 1)) for code in codes]


@pytest.mark.parametrize("name", FIELDS)
def test_codes_are_classified_as_their_fields_say(name, rng):
    codes = codes_of(name, rng)
    stored = np.array(codes, f"<u{dtype(name).storage_bytes}").tobytes()
    found = classify(Array.from_bits(dtype(name), (len(codes),), stored))
    expected = [by_fields(code, name) for code in codes]
    assert (found.categories.dtype, found.negative.dtype) == (np.uint8, np.bool_)
    assert found.categories.tolist() == [category for category, _ in expected]
    assert found.negative.tolist() == [negative for _, negative in expected]


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_are_classified_by_part(name):
    smallest = 2.0 ** (-149 if name == "complex64" else -1074)
    numbers = [[complex(-0.0, 1.5)], [complex(smallest, -math.inf)], [complex(math.nan, -smallest)]]
    found = classify(Array(dtype(name), np.array(numbers, name)))
    assert found.categories.tolist() == [
        [[Category.ZERO, Category.NORMAL]],
        [[Category.SUBNORMAL, Category.INFINITE]],
        [[Category.NAN, Category.SUBNORMAL]],
    ]
    assert found.negative.tolist() == [[[True, False]], [[False, True]], [[False, True]]]


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_the_shape_is_kept(shape):
    found = classify(Array(dtype("fp16"), np.ones(shape, np.float32)))
    assert found.categories.shape == found.negative.shape == shape


@pytest.mark.parametrize("name", ["int8", "int64", "bool"])
def test_integers_and_bool_have_no_classes(name):
    with pytest.raises(UnsupportedDType, match=f"classify is not defined on {name}"):
        classify(Array(dtype(name), np.zeros(1, dtype(name).carrier)))
