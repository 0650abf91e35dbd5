"""A tree of sums evaluated on exact values: the definition that the fast path is held against.

A leaf is a value, or a product that has not been rounded yet. Every node adds its terms exactly and rounds once, as its
model says.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tessera_conformance.arithmetic.model import NodeArithmetic
from tessera_conformance.arithmetic.rounding import flushed, result_of, zero_sum
from tessera_conformance.arithmetic.tree import START, Tree
from tessera_conformance.oracle.exact import (
    NAN,
    ZERO,
    Value,
    add,
    exponent_of,
    finite,
    is_infinite,
    is_negative,
    is_zero,
    multiply,
)
from tessera_conformance.oracle.formats import FORMATS


@dataclass(frozen=True)
class Pending:
    """An exact product on its way into the node that holds its leaf."""

    value: Value


def reduce(terms: Sequence[Value], tree: Tree, model: NodeArithmetic, start: Value | None = None) -> Value:
    """The sum of values in the order of the tree, in the accumulator; without a start value, `c` stands for +0.

    Raises:
        LeafCountError: the tree is not one over these terms.
    """
    return _evaluated(list(terms), tree, model, start)


def product(
    left: Sequence[Value], right: Sequence[Value], tree: Tree, model: NodeArithmetic, start: Value | None = ZERO
) -> Value:
    """The inner product of two rows of values, in the accumulator, from the start value, by default +0."""
    terms = [Pending(multiply(x, y)) for x, y in zip(left, right, strict=True)]
    if model.product == "fused":
        return _evaluated(list(terms), tree, model, start)
    return _evaluated([result_of(term.value, model) for term in terms], tree, model, start)


def operands(values: Sequence[Value], dtype: str, model: NodeArithmetic) -> list[Value]:
    """Input values as the arithmetic sees them: subnormals of their dtype flushed where the model says so."""
    if model.subnormals == "kept":
        return list(values)
    return [flushed(value, FORMATS[dtype]) for value in values]


def _evaluated(terms: Sequence[Value | Pending], tree: Tree, model: NodeArithmetic, start: Value | None) -> Value:
    explicit = tree.over(len(terms)) if start is None else tree.with_start(len(terms))
    first = ZERO if start is None else result_of(start, model)

    def leaf(number: int) -> Value | Pending:
        return first if number == START else terms[number]

    result = explicit.folded(leaf, lambda children: _node(children, model))
    return result_of(_value(result), model)  # rounds what no node has rounded: a leaf that is the whole tree


def _node(children: Sequence[Value | Pending], model: NodeArithmetic) -> Value:
    if len(children) == 2 and all(isinstance(child, Pending) for child in children):
        children = [result_of(_value(children[0]), model), children[1]]
    terms = [_value(child) for child in children]
    if len(terms) > 2 and model.alignment_bits is not None and model.is_float:
        terms = _aligned(terms, model.alignment_bits)
    return result_of(_sum(terms, model), model)


def _value(child: Value | Pending) -> Value:
    return child.value if isinstance(child, Pending) else child


def _sum(terms: Sequence[Value], model: NodeArithmetic) -> Value:
    """The exact sum, with the sign that a zero has."""
    if any(term is NAN or is_infinite(term) for term in terms):
        return functools.reduce(add, terms)
    number = sum((finite(term) for term in terms), ZERO)
    if number:
        return number
    signs = [is_negative(term) for term in terms]
    return zero_sum(all(map(is_zero, terms)) and all(signs), not any(signs), model.rounding)


def _aligned(terms: Sequence[Value], bits: int) -> list[Value]:
    """Each term cut toward zero to a multiple of 2^(e - bits), e being the largest exponent among them."""
    numbers = [term for term in terms if isinstance(term, Fraction) and term]
    if not numbers:
        return list(terms)
    spacing = Fraction(2) ** (max(map(exponent_of, numbers)) - bits)
    return [_cut(term, spacing) if isinstance(term, Fraction) else term for term in terms]


def _cut(term: Fraction, spacing: Fraction) -> Fraction:
    return (abs(term) // spacing) * (spacing if term > 0 else -spacing)
