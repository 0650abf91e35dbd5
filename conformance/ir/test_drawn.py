"""Programs whose shapes and numbers the seed of a run draws, judged by the oracle when they run (language spec, 10)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.fuzz.drawn import chooser_of, judge_question, numbers
from tessera_conformance.marks import clause, feature

DRAWS = 6
FLOATS = ("fp16", "bf16", "fp32", "fp64")


def product(choose):
    """A matrix product of up to 9 x 24 x 9."""
    dtype = choose.pick((*FLOATS, "int32"))
    m, k, n = choose.between(1, 9), choose.between(1, 24), choose.between(1, 9)
    return questions.matmul(numbers(choose, dtype, m, k), numbers(choose, dtype, k, n))


def elementwise(choose):
    """A sum, a difference or a product of two tensors."""
    dtype, shape = choose.pick((*FLOATS, "int64")), (choose.between(1, 5), choose.between(1, 12))
    operator = choose.pick(("add", "subtract", "multiply"))
    return questions.binary(operator, numbers(choose, dtype, *shape), numbers(choose, dtype, *shape))


def softmax(choose):
    """Probabilities along rows of up to 40 elements."""
    rows = numbers(choose, choose.pick(FLOATS), choose.between(1, 4), choose.between(2, 40), exponents=(-3, 2))
    return questions.softmax(rows)


def reduction(choose):
    """A sum or a mean along either axis."""
    x = numbers(choose, choose.pick(FLOATS), choose.between(2, 20), choose.between(2, 20))
    return questions.reduction(choose.pick(("sum", "mean")), x, choose.below(2))


def cast(choose):
    """Elements of one float type in another."""
    first, second = choose.pick(FLOATS), choose.pick(FLOATS)
    return questions.cast(numbers(choose, first, choose.between(1, 60), exponents=(-14, 14)), second)


FAMILIES = [
    pytest.param(product, id="product", marks=clause("LANG-05.2-02", "LANG-10-06")),
    pytest.param(elementwise, id="elementwise", marks=clause("LANG-02.3-63")),
    pytest.param(softmax, id="softmax", marks=clause("LANG-15-07", "LANG-05.2-03")),
    pytest.param(reduction, id="reduction", marks=[clause("LANG-10-06"), feature("reductions")]),
    pytest.param(cast, id="cast", marks=[clause("LANG-03.1-05"), feature("casts")]),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_operation_on_drawn_numbers_gives_what_the_oracle_does(impl, check, family):
    """Six of a kind, of shapes and numbers that another seed has others of."""
    choose = chooser_of(impl, f"ir/{family.__name__}")
    for _ in range(DRAWS):
        judge_question(impl, check, family(choose))
