"""Double-double sums, products and quotients, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.numerics import ziv


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


def test_sums_and_products_are_free_of_error(numbers):
    a, b = numbers(2000), numbers(2000)
    sums = [Fraction(x) + Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    products = [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert exact(ziv.two_sum(a, b)) == sums
    assert exact(ziv.two_product(a, b)) == products
    larger, smaller = np.where(np.abs(a) < np.abs(b), b, a), np.where(np.abs(a) < np.abs(b), a, b)
    assert exact(ziv.fast_two_sum(larger, smaller)) == sums
    assert ziv.two_sum(a, b)[0].tolist() == (a + b).tolist()


@pytest.mark.parametrize(
    ("name", "operation", "bits"),
    [
        ("multiply", lambda x, y: x * y, 102),
        ("divide", lambda x, y: x / y, 100),
    ],
)
def test_relative_errors_of_operations_on_pairs(name, operation, bits, pairs):
    a, b = pairs(2000), pairs(2000)
    found = getattr(ziv, name)(a, b)
    for z, x, y in zip(exact(found), exact(a), exact(b), strict=True):
        assert abs(z / operation(x, y) - 1) < Fraction(1, 1 << bits)
    assert (found[0] == found[0] + found[1]).all()


def test_operations_with_one_float(pairs, numbers):
    a, b = pairs(2000), numbers(2000)
    single = [Fraction(y) for y in b.tolist()]
    for z, x, y in zip(exact(ziv.multiply_float(a, b)), exact(a), single, strict=True):
        assert abs(z / (x * y) - 1) < Fraction(1, 1 << 103)
    for z, x, y in zip(exact(ziv.add_float(a, b)), exact(a), single, strict=True):
        assert abs(z - (x + y)) <= max(abs(x), abs(x + y)) / (1 << 105)


def test_constants():
    third = Fraction(1, 3)
    high, low = ziv.nearest_pair(third)
    assert high == 1 / 3
    assert abs(Fraction(high) + Fraction(low) - third) < third / (1 << 106)
    assert ziv.leading_bits(Fraction(0b110111), 3) == 0b110000
    assert ziv.leading_bits(third, 10) in (Fraction(341, 1024), Fraction(682, 2048))
    assert ziv.power_of_two(np.array([-1022, 0, 1023])).tolist() == [2.0**-1022, 1.0, 2.0**1023]
