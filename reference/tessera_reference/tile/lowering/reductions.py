"""Reductions and softmax of one row, as the canon composes them (spec sections 10, 15; canon of arithmetic).

All in the accumulator type, with one final rounding. A maximum or minimum of narrow floats is that of the same numbers
in the accumulator, and exact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from ...graph.reductions import ArgMax, LogSumExp, Max, Mean, Min, Prod, Sum
from ...graph.term import Term
from ...ir.operation import Operation, Refusal
from ...numerics.formats import DTYPES, DType
from ..complex_parts import Complex, Part
from .index import Condition, Index
from .kernel import KernelBuilder
from .row_blocks import RowBlocks

Element = Callable[[Index], Term]
"""An element of the lane's row, by its place, in the accumulator type."""


@singledispatch
def reduced(operation: Operation, rows: RowBlocks, element: Element, accum: DType) -> Term:
    """The reduction of a row, in each of its lanes, before the final rounding. Raises `Refusal`."""
    raise Refusal("tile", f"no kernel holds {operation.short_name}", "a reduction", "LANG-08.2-03", "")


@reduced.register
def _sum(operation: Sum, rows: RowBlocks, element: Element, accum: DType) -> Term:
    return added_up(rows, element, accum)


@reduced.register
def _prod(operation: Prod, rows: RowBlocks, element: Element, accum: DType) -> Term:
    if not rows.length:
        return rows.kernel.exactly(1, accum)
    return rows.tree(element, lambda a, b: a * b, accum)


@reduced.register
def _mean(operation: Mean, rows: RowBlocks, element: Element, accum: DType) -> Term:
    return by_component(rows.kernel, added_up(rows, element, accum), lambda part: part / rows.length)


@reduced.register
def _max(operation: Max, rows: RowBlocks, element: Element, accum: DType) -> Term:
    return largest(rows, element, accum)


@reduced.register
def _min(operation: Min, rows: RowBlocks, element: Element, accum: DType) -> Term:
    return rows.tree(element, lambda a, b: a.minimum(b), accum)


@reduced.register
def _argmax(operation: ArgMax, rows: RowBlocks, element: Element, accum: DType) -> Term:
    """The first place at which the row has its maximum: a NaN where there is one, +0 rather than -0."""
    kernel, most = rows.kernel, largest(rows, element, accum)
    int32 = DTYPES["int32"]
    beyond = kernel.exactly(rows.length, int32)

    def place(index: Index) -> Term:
        return kernel.chosen(is_that(kernel, element(index), most), index.term, beyond)

    return rows.tree(place, lambda a, b: a.minimum(b), int32)


def is_that(kernel: KernelBuilder, x: Term, most: Term) -> Condition:
    """Whether an element is the maximum of its row. +0 and -0 are distinguished by their reciprocals."""
    equal = x.equal(most)
    if x.dtype.kind == "int":
        return equal
    same_sign = (x.reciprocal() < 0).equal(most.reciprocal() < 0)
    return kernel.chosen(x.not_equal(x), kernel.truth(True), kernel.chosen(equal, same_sign, kernel.truth(False)))


@reduced.register
def _logsumexp(operation: LogSumExp, rows: RowBlocks, element: Element, accum: DType) -> Term:
    """log(sum(exp(x - m))) + m, m the maximum, or +0 where that is not finite."""
    kernel, most = rows.kernel, largest(rows, element, accum)
    infinity = kernel.exactly(float("inf"), accum)
    shift = kernel.chosen(most.abs() < infinity, most, kernel.exactly(0, accum))
    total = added_up(rows, lambda index: (element(index) - shift).exp(), accum)
    return total.log() + shift


def added_up(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """The sum of a row; of nothing +0."""
    if not rows.length:
        return rows.kernel.exactly(0, accum)
    return rows.tree(element, lambda a, b: a + b, accum)


def largest(rows: RowBlocks, element: Element, accum: DType) -> Term:
    """The maximum of a row."""
    return rows.tree(element, lambda a, b: a.maximum(b), accum)


def softmax(rows: RowBlocks, element: Element, accum: DType) -> Element:
    """The elements of a row's softmax before the final rounding."""
    most = largest(rows, element, accum)

    def exponential(index: Index) -> Term:
        return (element(index) - most).exp()

    total = added_up(rows, exponential, accum)
    return lambda index: exponential(index) / total


def by_component(kernel: KernelBuilder, x: Term, function: Callable[[Term], Term]) -> Term:
    """Apply a function to a number, or to both parts of a complex number."""
    if x.dtype.kind != "complex":
        return function(x)
    parts = (function(kernel.term(kernel.build(Part, x.value, which=which))) for which in ("real", "imaginary"))
    return kernel.term(kernel.build(Complex, *(part.value for part in parts)))
