"""The statistics of rounding errors in many long sums: the bound, the variance and the bias test of TOSA.

The bound of any order grows with the number of terms, but roundings err like its root. So operands that were shortened,
or sums that are always rounded to one side, may lie within the bound of every single result and still show in all of
them together.

At the level deterministic the same results have the bits of their declaration, which may round to one side.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.chapters.ir.kit.statistics import judge_errors
from tessera_conformance.dsl import returning, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

ROWS = 16
SUMS = 256
TERMS = [100, 512]
DTYPES = ["fp32", "bf16", "fp16"]
EITHER_SIGN, ONE_SIGN = pytest.param(False, id="either-sign"), pytest.param(True, id="one-sign")


def drawn(dtype, shape, seed, one_sign):
    """Numbers of magnitude 1 to 2: of either sign, where errors in sums are small, or of one, where they pile up."""
    x = counted(dtype, shape, seed=seed, exponents=(0, 0))
    if not one_sign:
        return x
    fractions = x.words() & ((1 << (8 * x.format.word_bytes - 1)) - 1)
    return Tensor(dtype, shape, fractions.astype(x.words().dtype).tobytes())


def judge(impl, check, question, actual, factors, unbiased):
    """Every rule accepts; the one that does not is named. At the level deterministic the declaration is replayed."""
    if impl.level == "deterministic":
        judge_declared(impl, check, question, actual)
        return
    judge_errors(check, factors, actual, impl.level, unbiased=unbiased)


@clause("LANG-05.2-02", "LANG-10-02", "LANG-10-08")
@level("fast", "deterministic")
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("one_sign", [EITHER_SIGN, ONE_SIGN])
def test_products_err_as_roundings_do(impl, check, one_sign, dtype, terms):
    """256 inner products: no error beyond the bound, few near it, and as many too large as too small."""
    a, b = drawn(dtype, (ROWS, terms), 401, one_sign), drawn(dtype, (terms, ROWS), 402, one_sign)
    source = returning("op.matmul(A, B)", f"A: tensor<{ROWS}x{terms}x{dtype}>, B: tensor<{terms}x{ROWS}x{dtype}>")
    actual = value_of(impl, check, source, A=a, B=b)
    judge(impl, check, Question("matmul", [a, b], {}), actual, (a, b), not one_sign)


@clause("LANG-02-04", "LANG-10-08")
@feature("reductions")
@level("fast", "deterministic")
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("one_sign", [EITHER_SIGN, ONE_SIGN])
def test_sums_err_as_roundings_do(impl, check, one_sign, dtype, terms):
    """256 sums, which are inner products with ones."""
    x = drawn(dtype, (SUMS, terms), 403, one_sign)
    actual = value_of(
        impl, check, returning("op.sum(X) @{axis=1, keepdims=true}", f"X: tensor<{SUMS}x{terms}x{dtype}>"), X=x
    )
    question = Question("sum", [x], {"axis": 1, "keepdims": True})
    judge(impl, check, question, actual, (x, tensor_of(dtype, [[1.0]] * terms)), not one_sign)
