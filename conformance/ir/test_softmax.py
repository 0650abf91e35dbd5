"""Softmax: maximum subtracted, exponential correctly rounded, sum over the tree, one final rounding."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.check import values_of
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.tensors import ELEMENT_FORMATS
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/softmax")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


DTYPES = ["bf16", "fp16", "fp32", "fp64"]


def unit(dtype):
    """The unit in the last place of 1."""
    return Fraction(1, 1 << ELEMENT_FORMATS[dtype].fraction_bits)


def probabilities(impl, check, dtype, row):
    """The exact values of the softmax of one row; None for what is not finite."""
    source = returning("op.softmax(X)", f"X: tensor<1x{len(row)}x{dtype}>")
    return values_of(value_of(impl, check, source, X=tensor_of(dtype, [row])))


ROWS = {
    "spread": [-40, -8, -1, 0, 1, 3, 8],
    "far-below-the-first": [-96, 0, 1],
    "large": [2048, 2040, -2048, 2048],
}


@clause("LANG-15-08", "LANG-15-09")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_finite_inputs_give_probabilities(impl, check, dtype, row):
    """Every output is finite and in the closed interval from 0 to 1 (AMB-LANG-38)."""
    for value in probabilities(impl, check, dtype, row):
        check.true(value is not None, "the output is finite")
        check.true(0 <= value <= 1, "the output lies between 0 and 1", float(value))


@clause("LANG-15-09")
@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_add_up_to_one(impl, check, dtype):
    """Their sum is 1 within as many units in the last place as there are elements (AMB-LANG-38)."""
    values = probabilities(impl, check, dtype, ROWS["spread"])
    check.true(None not in values, "the outputs are finite")
    check.true(abs(sum(values) - 1) <= len(values) * unit(dtype), "the sum is 1", float(sum(values)))


@clause("LANG-10-03", "LANG-15-07", "LANG-05.4-03", "LANG-02-04")
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_would_overflow_without_the_maximum_does_not(impl, check, dtype):
    """Two elements of 2048 share evenly, though the exponential of either is beyond every type."""
    source = returning("op.softmax(X)", f"X: tensor<1x2x{dtype}>")
    actual = value_of(impl, check, source, X=tensor_of(dtype, [[2048, 2048]]))
    check.within(actual, [Fraction(1, 2)] * 2, [unit(dtype)] * 2, "the two halves")


@clause("LANG-10-03", "LANG-15-07", "LANG-05.4-03")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_long_row_of_large_numbers_does_not_overflow_either(impl, check, dtype):
    """The large half shares evenly and nothing is left to the other: the maximum is that of the whole row."""
    source = returning("op.softmax(X)", f"X: tensor<1x2048x{dtype}>")
    actual = value_of(impl, check, source, X=tensor_of(dtype, [[-1024] * 1024 + [1024] * 1024]))
    shares = [Fraction(0)] * 1024 + [Fraction(1, 1024)] * 1024
    check.within(actual, shares, [unit(dtype) / 1024] * 2048, "the shares")


@clause("LANG-15-07", "LANG-10-03")
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_row_subtracts_its_own_maximum(impl, check, dtype):
    """A row far below another one is not swamped by it."""
    source = returning("op.softmax(X) @{axis=-1}", f"X: tensor<2x2x{dtype}>")
    actual = value_of(impl, check, source, X=tensor_of(dtype, [[2048, 2048], [-2048, -2048]]))
    check.within(actual, [Fraction(1, 2)] * 4, [unit(dtype)] * 4, "the halves")
