"""Reductions: the order of sums and products, and the corners of every reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import prod

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.dsl import returning, tensor_of, type_text
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/reductions")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


SHAPE = (2, 3, 2, 4)
NUMBERS = [place * 7 % 11 - 4 for place in range(prod(SHAPE))]
REDUCTIONS: Mapping[str, Callable[[Iterable[int]], int]] = {"sum": sum, "prod": prod, "max": max, "min": min}


@clause("LANG-02-04")
@feature("reductions")
@pytest.mark.parametrize("keepdims", ["", ", keepdims=false", ", keepdims=true"], ids=["left-out", "dropped", "kept"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2, -3, -4])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_axis_of_a_reduction_is_the_one_that_is_named(impl, check, reduction, axis, keepdims):
    """Each of four axes, counted from either end, is reduced; it is dropped, or kept with an extent of one."""
    at, kept = axis % len(SHAPE), keepdims.endswith("true")
    others = [range(1 if place == at else extent) for place, extent in enumerate(SHAPE)]
    strides = [prod(SHAPE[place + 1 :]) for place in range(len(SHAPE))]
    expected = []
    for index in product(*others):
        start = sum(position * stride for position, stride in zip(index, strides, strict=True))
        expected.append(REDUCTIONS[reduction](NUMBERS[start + step * strides[at]] for step in range(SHAPE[at])))
    shape = [1 if place == at else extent for place, extent in enumerate(SHAPE) if kept or place != at]
    source = returning(
        f"op.{reduction}(X) @{{axis={axis}{keepdims}}}",
        f"X: {type_text('int32', SHAPE)}",
        type_text("int32", tuple(shape)),
    )
    actual = value_of(impl, check, source, X=tensor_of("int32", NUMBERS, SHAPE))
    check.bits(actual, tensor_of("int32", expected, shape))
