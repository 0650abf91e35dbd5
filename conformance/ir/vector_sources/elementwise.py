"""Elementwise operators: one rounding from the exact result, for every type, with its ties, subnormals and edges."""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance import oracle
from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import integer_edges, pairs, require_different
from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import float_format, tensor_of, values_of
from tessera_conformance.vectors.building import FLOATS, INTEGERS, Question, Topic, codes, counted, float_edges, tensor

topic = Topic(__doc__)

OPERATORS = [*questions.ARITHMETIC, *questions.COMPARISONS]


@topic.vector("{dtype}/{operator}/edges", dtype=FLOATS, operator=OPERATORS)
def edges(dtype: str, operator: str) -> Question:
    """Every edge value against every other, in both orders."""
    values = float_edges(dtype)
    return questions.binary(operator, *pairs(values, values))


@topic.vector("{dtype}/{operator}/edges", dtype=INTEGERS, operator=OPERATORS)
def integer_pairs(dtype: str, operator: str) -> Question:
    """Every edge value against every other, in both orders; results wrap, and division truncates toward zero."""
    return questions.binary(operator, *pairs(integer_edges(dtype), integer_edges(dtype, zero=operator != "divide")))


@topic.vector("{dtype}/{operator}/all", dtype=["fp8_e4m3", "fp8_e5m2"], operator=questions.ARITHMETIC)
def every_pair(dtype: str, operator: str) -> Question:
    """All 65,536 pairs of 8-bit codes."""
    every = codes(dtype, (256,), range(256))
    return questions.binary(operator, *pairs(every, every))


@topic.vector("{dtype}/{operator}/counted", dtype=FLOATS, operator=questions.ARITHMETIC)
def counted_pairs(dtype: str, operator: str) -> Question:
    """Two hundred pairs with full significands and close exponents, so that most results round."""
    return questions.binary(operator, counted(dtype, (8, 25), seed=51), counted(dtype, (8, 25), seed=52))


@topic.vector("{dtype}/{operator}/subnormal-results", dtype=FLOATS, operator=["multiply", "divide"])
def subnormal_results(dtype: str, operator: str) -> Question:
    """Products and quotients that fall among the subnormals, where the significand is rounded to fewer bits."""
    format_ = float_format(dtype)
    lowest = 1 - format_.bias
    down = (-format_.fraction_bits - 2, 0) if operator == "multiply" else (0, format_.fraction_bits + 2)
    within = (max(down[0], lowest), min(down[1], format_.bias))
    a = counted(dtype, (64,), 53, (lowest, lowest + 1))
    return questions.binary(operator, a, counted(dtype, (64,), 54, within))


@topic.vector("{dtype}/add/ties", dtype=FLOATS)
def ties(dtype: str) -> Question:
    """Sums exactly halfway between two numbers go to the even one, with either sign."""
    e = float_format(dtype).epsilon
    lefts: list[Fraction] = [1 + step * e for step in range(4)]
    a = tensor(dtype, [*lefts, *(-number for number in lefts)])
    return questions.binary("add", a, tensor(dtype, [*[e / 2] * 4, *[-e / 2] * 4]))


@topic.vector("{dtype}/negate", dtype=FLOATS)
def negate(dtype: str) -> Question:
    """The sign of every edge value is flipped, that of zeros and infinities too; nothing is rounded or saturated."""
    return questions.negate(float_edges(dtype))


@topic.vector("{dtype}/negate", dtype=INTEGERS)
def negate_integers(dtype: str) -> Question:
    """The smallest integer is its own negation."""
    return questions.negate(integer_edges(dtype))


@topic.vector("{dtype}/multiply/scalar", dtype=[*FLOATS, "int32"])
def scalar(dtype: str) -> Question:
    """A scalar operand meets every element."""
    return questions.binary("multiply", counted(dtype, (3, 4), seed=55), tensor(dtype, 3))


@topic.vector("{dtype}/multiply/literal", dtype=FLOATS)
def literal(dtype: str) -> Question:
    """A literal takes the tensor's type, and 0.1 is the number of that type nearest to one tenth."""
    return questions.scale(tensor(dtype, [1, 2, -3, 0, -0.0]), "0.1")


@topic.vector("{dtype}/multiply/literal-beside-a-tie", dtype=["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32"])
def literal_beside_a_tie(dtype: str) -> Question:
    """A literal so little above a tie that reading it as a double first would round it the other way."""
    tie = 1 + float_format(dtype).epsilon / 2
    digits = f"{tie.numerator * 10**30 // tie.denominator + 1}"
    factor = f"{digits[:-30]}.{digits[-30:]}"
    ones = tensor(dtype, [1, -1])
    require_different([oracle.scale(ones, factor=factor), ones], "the literal and its rounding down to one")
    return questions.scale(ones, factor)


@topic.vector("{dtype}/multiply-then-add", dtype=FLOATS)
def multiply_then_add(dtype: str) -> Question:
    """A * B + C rounds twice; a fused multiply-add rounds once and differs."""
    a, b, c = (counted(dtype, (64,), seed) for seed in (56, 57, 58))
    terms = zip(values_of(a), values_of(b), values_of(c), strict=True)
    fused = tensor_of(dtype, (64,), [exact.add(exact.multiply(x, y), z) for x, y, z in terms])
    require_different([oracle.multiply_add(a, b, c), fused], "two roundings and one")
    return questions.multiply_add(a, b, c)


@topic.vector("{dtype}/add-to-product", dtype=["bf16", "fp32", "fp64"])
def add_to_product(dtype: str) -> Question:
    """C + (A @ B) finishes and rounds the product before C is added; a C that seeds the accumulator differs."""
    a, b, c = (
        counted(dtype, (4, 9), seed=59),
        counted(dtype, (9, 4), seed=60),
        counted(dtype, (4, 4), seed=61, exponents=(6, 8)),
    )
    return questions.add_to_product(a, b, c)
