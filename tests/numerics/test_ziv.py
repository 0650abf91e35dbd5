"""Ziv's test: approximations keep their margins, and enclosures decide rightly what margins leave open."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import mpmath.libmp
import numpy as np
import pytest

from tessera_reference.numerics import ziv
from tessera_reference.numerics.elementary import FUNCTIONS
from tessera_reference.numerics.formats import dtype

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
    exact = mpfr.values(name, *(each.tolist() for each in values))
    for high, low, exponent, value in zip(near.high, near.low, exponents.tolist(), exact, strict=True):
        if value != 0:
            found = (Fraction(float(high)) + Fraction(float(low))) * Fraction(2) ** exponent
            worst = max(worst, abs(found / Fraction(*map(int, value.as_integer_ratio())) - 1))
    assert worst < Fraction(margin) * Fraction(3, 4)
    assert (np.abs(near.low) <= np.spacing(np.abs(near.high)) / 2).all()


@pytest.mark.parametrize(
    ("type_name", "name"),
    # exp in fp32 has a quick path, with a margin of its own, before it comes here: test_fast_paths.
    [("fp64", name) for name in BY_ZIV] + [("fp32", name) for name in BY_ZIV if name != "exp"],
)
def test_enclosures_alone_give_the_same_bits(type_name, name, oracle, mpfr, rng, monkeypatch):
    """With a margin of 1/8 next to nothing is certain, and the answers come from mpmath."""
    decide, enclose, asked = ziv._decide_double, ziv._by_enclosure, []
    monkeypatch.setattr(ziv, "_decide_double", lambda near, _margin, *rest: decide(near, 0.125, *rest))
    monkeypatch.setattr(ziv, "_SINGLE_MARGIN", 0.125)
    monkeypatch.setattr(ziv, "_by_enclosure", lambda *arguments: asked.append(1) or enclose(*arguments))
    values = [each.astype(dtype(type_name).carrier) for each in operands(name, rng, 15)]
    found = FUNCTIONS[name](*values, dtype(type_name))
    oracle.same(found.tolist(), mpfr.nearest(name, type_name, *(each.tolist() for each in values)))
    assert len(asked) > 0.4 * found.size


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
        definition,
        enclose=ziv.enclosure(mpmath.libmp.mpf_exp, lambda x: Fraction(x) + Fraction(1, 1 << 53)),
    )
    assert ziv.correctly_rounded(known, dtype("fp64"), "saturate", np.array([1.0]))[0] == 1.0
