"""Collectives over numbers that the seed of a run draws, judged by the oracle when they run (runtime spec, 13)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.questions import all_reduce, collective
from tessera_conformance.fuzz.drawn import chooser_of, judge_question, numbers
from tessera_conformance.marks import clause, feature

DRAWS = 4


def operands(choose):
    """The tensors of two to seven ranks."""
    dtype, count = choose.pick(("fp32", "bf16", "int32")), choose.between(1, 40)
    return [numbers(choose, dtype, count) for _ in range(choose.between(2, 7))]


@feature("operation-access")
@clause("RT-13-01", "LANG-09-05", "RT-06-03")
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_a_reduction_of_drawn_numbers_is_that_of_the_oracle(impl, check, op):
    """Over ranks, lengths and numbers that another seed has others of."""
    choose = chooser_of(impl, f"collectives/{op}")
    for _ in range(DRAWS):
        judge_question(impl, check, all_reduce(operands(choose), op))


@feature("operation-access")
@clause("RT-13-01", "LANG-09-06", "LANG-15-10", "LANG-15-16", "RT-04.7-03", "RT-06-03", "RT-02-09")
def test_a_sum_of_long_drawn_tensors_keeps_its_order(impl, check):
    """Past a thousand elements a rank, where libraries take other algorithms; numbers of very different sizes."""
    choose = chooser_of(impl, "collectives/long")
    count = choose.between(1001, 1300)
    inputs = [numbers(choose, "fp32", count, exponents=(-9, 9)) for _ in range(choose.between(3, 5))]
    judge_question(impl, check, all_reduce(inputs, "sum"))


@feature("operation-access", "algorithm-control")
@clause("RT-13-01", "LANG-09-06")
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_an_algorithm_reduces_drawn_numbers_as_the_oracle_does(impl, check, algorithm):
    """Every algorithm gives the oracle's result for numbers drawn as the case runs."""
    choose = chooser_of(impl, f"collectives/{algorithm}")
    for _ in range(DRAWS):
        judge_question(impl, check, collective("all_reduce", algorithm, operands(choose), op="sum"))
