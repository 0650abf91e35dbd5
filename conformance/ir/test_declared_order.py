"""The order and the arithmetic of reductions are those that are declared (language specification, 10; AMB-LANG-44).

The functions declare the profile deterministic, which holds in runs that ask for another (AMB-LANG-111).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import declaring, outputs_in
from tessera_conformance.dsl import returning
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

DTYPES = ["fp64", "fp32", "bf16", "fp16"]
TERMS = [2, 3, 8, 13, 33, 100, 257, 300]
RUNS = ("fast", "deterministic", "fast", "deterministic")
"""The levels that the runs of one function ask for, in turn."""

SPREAD = (-7, 7)
"""Exponents far enough apart that every order, rounding and accumulator has bits of its own."""


def added_as_declared(impl, check, source, question, inputs):
    """The function, declared deterministic, returns the replayed bits, and the same in every run."""
    deterministic = declaring(source, "deterministic")
    (actual,) = outputs_in(impl, check, deterministic, "fast", inputs)
    judge_declared(impl, check, question, actual)
    for run in (*RUNS, impl.level):
        (again,) = outputs_in(impl, check, deterministic, run, inputs)
        check.bits(again, actual, f"deterministic: the same bits in a {run} run")


@clause("LANG-10-05", "LANG-05.2-02")
@level("deterministic")
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_added_as_declared(impl, check, dtype, terms):
    """The declared tree and arithmetic, replayed; and the same bits on every run."""
    a, b = (
        counted(dtype, (5, terms), seed=421, exponents=SPREAD),
        counted(dtype, (terms, 7), seed=422, exponents=SPREAD),
    )
    source = returning("op.matmul(A, B)", f"A: tensor<5x{terms}x{dtype}>, B: tensor<{terms}x7x{dtype}>")
    added_as_declared(impl, check, source, Question("matmul", [a, b], {}), {"A": a, "B": b})


@clause("LANG-10-05")
@level("strict", "deterministic")
@pytest.mark.parametrize("terms", TERMS)
def test_a_deterministic_function_adds_its_products_as_declared(impl, check, terms):
    """A func with the attribute, under a strict run too: the order of its products is not another one."""
    a, b = counted("fp32", (4, terms), seed=424, exponents=SPREAD), counted("fp32", (terms, 4), seed=425)
    source = returning("A @ B", f"A: tensor<4x{terms}xfp32>, B: tensor<{terms}x4xfp32>")
    added_as_declared(impl, check, source, Question("matmul", [a, b], {}), {"A": a, "B": b})


@clause("LANG-10-05")
@feature("reductions")
@level("strict", "deterministic")
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_are_added_as_declared(impl, check, dtype, terms):
    """The declared tree and arithmetic, replayed; and the same bits on every run."""
    x = counted(dtype, (24, terms), seed=423, exponents=SPREAD)
    source = returning("op.sum(X) @{axis=1}", f"X: tensor<24x{terms}x{dtype}>")
    added_as_declared(impl, check, source, Question("sum", [x], {"axis": 1}), {"X": x})
