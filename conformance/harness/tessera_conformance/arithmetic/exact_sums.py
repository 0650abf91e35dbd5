"""Rounding of exact values by integer division, and trees of sums evaluated exactly, which define the fast path."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tessera_conformance.arithmetic.tree import START, NodeArithmetic, Rounding, Tree
from tessera_conformance.oracle.exact import (
    FORMATS,
    NAN,
    NEGATIVE_ZERO,
    ZERO,
    FloatFormat,
    Format,
    Value,
    add,
    exponent_of,
    finite,
    is_infinite,
    is_negative,
    is_zero,
    multiply,
    zero,
)

# Rounding of exact values to a number format in any direction that IEEE 754 names, by integer division.


def rounded(value: Value, format_: Format, direction: Rounding = "nearest_even") -> Value:
    """`value` in a format; integers wrap in every direction."""
    if direction == "nearest_even" or not isinstance(format_, FloatFormat):
        return format_.round(value)
    return _directed(value, format_, direction)


def flushed(value: Value, format_: Format) -> Value:
    """`value`, or the zero of its sign where it is a subnormal of the format."""
    if isinstance(value, Fraction) and isinstance(format_, FloatFormat) and 0 < abs(value) < format_.smallest_normal:
        return zero(value < 0)
    return value


def result_of(value: Value, model: NodeArithmetic) -> Value:
    """Return the value that a node makes of the exact value of its sum."""
    result = rounded(value, model.format, model.rounding)
    return flushed(result, model.format) if model.subnormals == "flushed" else result


def _directed(value: Value, format_: FloatFormat, direction: Rounding) -> Value:
    if value is NAN or is_infinite(value) or is_zero(value):
        return format_.round(value)
    negative = is_negative(value)
    magnitude, truncated = _truncated(abs(finite(value)), format_)
    rest = abs(finite(value)) - truncated
    if rest and _rounds_away(direction, negative, rest, truncated, magnitude, format_):
        magnitude += 1
    if magnitude > format_.largest_code:
        return _overflowed(negative, format_, direction)
    return format_.decode(magnitude | (format_.sign_bit if negative else 0))


def _truncated(number: Fraction, format_: FloatFormat) -> tuple[int, Fraction]:
    """The code at or below a positive number, as if there were no largest exponent, and its value."""
    exponent = exponent_of(number)
    binade = max(exponent - format_.fraction_bits - format_.smallest_exponent, 0)
    spacing = Fraction(2) ** (binade + format_.smallest_exponent)
    significand = number // spacing
    return (binade << format_.fraction_bits) + significand, significand * spacing


def _rounds_away(
    direction: Rounding, negative: bool, rest: Fraction, truncated: Fraction, magnitude: int, format_: FloatFormat
) -> bool:
    if direction == "nearest_away":
        binade = max((magnitude >> format_.fraction_bits) - 1, 0)
        return 2 * rest >= Fraction(2) ** (binade + format_.smallest_exponent)
    return direction == ("down" if negative else "up")


def _overflowed(negative: bool, format_: FloatFormat, direction: Rounding) -> Value:
    """Directions that point to zero stop at the largest value; others go where the format overflows to."""
    stops = direction == "toward_zero" or direction == ("up" if negative else "down")
    if stops:
        return -format_.largest if negative else format_.largest
    beyond = format_.largest * 4
    return format_.round(-beyond if negative else beyond)


def zero_sum(all_negative: bool, none_negative: bool, direction: Rounding) -> Value:
    """The zero that terms of sum zero give: of their common sign, else +0, or -0 where rounding goes down."""
    if all_negative or (direction == "down" and not none_negative):
        return NEGATIVE_ZERO
    return Fraction(0)


# A tree of sums evaluated on exact values: the definition that the fast path is held against.
#
# A leaf is a value, or a product that has not been rounded yet. Every node adds its terms exactly and rounds once, as
# its model says.


@dataclass(frozen=True)
class Pending:
    """An exact product on its way into the node that holds its leaf."""

    value: Value


def reduce(terms: Sequence[Value], tree: Tree, model: NodeArithmetic, start: Value | None = None) -> Value:
    """The sum of values in the order of the tree, in the accumulator; without a start value, `c` is +0.

    Raises `LeafCountError`: the tree is not one over these terms.
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
