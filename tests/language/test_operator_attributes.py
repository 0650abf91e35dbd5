"""Attributes of the operators: which must be given, and what they take (spec sections 2.3, 3.1, 11)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.language import CompiledModule, Diagnostic

REFUSED = [
    ("op.cast(X)", "types", "op.cast needs the attribute dtype"),
    ("op.sum(X)", "types", "op.sum needs the attribute axis"),
    ("op.sum(X, axis=1)", "shapes", "axis 1 is out of range for rank 1"),
    ("op.sum(X, axis=-2)", "shapes", "axis -2 is out of range for rank 1"),
    ("op.sum(X, axis=0, keepdims=1)", "types", "expected true or false"),
    ("op.max(N, axis=0)", "shapes", "axis 0 has no elements"),
    ("op.argmax(N, axis=0)", "shapes", "axis 0 has no elements"),
    ("op.logsumexp(I, axis=0)", "types", "is not defined on int32"),
    ("op.mean(I, axis=0)", "types", "is not defined on int32"),
    ("op.exp(I)", "types", "is not defined on int32"),
    ("op.exp(C)", "types", "is not defined on complex64"),
    ("op.relu(C)", "types", "is not defined on complex64"),
    ("op.pow(X, I)", "types", "operands have dtypes bf16 and int32"),
    ("op.gelu(X, approximate=sigmoid)", "numerics", "there is no approximation 'sigmoid'"),
    ("op.cast(X, dtype=fp8)", "types", "unknown dtype 'fp8'"),
    ("op.cast(X, dtype=fp16, overflow=wrap)", "numerics", "there is no overflow mode 'wrap'"),
    ("op.cast(C, dtype=fp32)", "types", "complex64 does not become fp32"),
    ("op.fft(I)", "types", "is not defined on int32"),
    ("op.fft(C, norm=none)", "numerics", "there is no norm 'none'"),
]


@pytest.mark.parametrize(("expression", "category", "message"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_an_operator_does_not_take(
    rejects: Callable[[str], Diagnostic], expression: str, category: str, message: str
) -> None:
    parameters = "X: tensor<4xbf16>, I: tensor<4xint32>, C: tensor<4xcomplex64>, N: tensor<0xfp32>"
    found = rejects(f"module m {{ func f({parameters}) {{ return {expression}; }} }}")
    assert (found.category, message in found.message) == (category, True), found.message
    assert found.requirement


@pytest.mark.parametrize("profile", ["", "@{numerics_profile=strict} ", "@{numerics_profile=deterministic} "])
@pytest.mark.parametrize(
    ("dtype", "accumulator", "canonical"),
    [("bf16", "bf16", "fp32"), ("fp32", "fp16", "fp32"), ("fp64", "fp32", "fp64"), ("int8", "int16", "int32")],
)
def test_an_accumulator_narrower_than_the_canon_is_refused(
    rejects: Callable[[str], Diagnostic],
    accepts: Callable[[str], CompiledModule],
    profile: str,
    dtype: str,
    accumulator: str,
    canonical: str,
) -> None:
    source = f"module m {{ func f(A: tensor<2x2x{dtype}>) {profile}{{ return op.matmul(A, A, accum=%s); }} }}"
    accepts(source % canonical)
    found = rejects(source % accumulator)
    assert (found.category, found.clause) == ("numerics", "LANG-11-13")
    assert found.message == f"matmul: accumulates in {accumulator}, which is narrower than {canonical}"


def test_a_fast_profile_takes_a_narrow_accumulator_and_a_strict_one_a_wide_one(
    accepts: Callable[[str], CompiledModule],
) -> None:
    accepts("module m { func f(A: tensor<2x2xbf16>) @{numerics_profile=fast} { return op.matmul(A, A, accum=bf16); } }")
    accepts("module m { func f(A: tensor<2x2xbf16>) { return op.matmul(A, A, accum=fp64); } }")


@pytest.mark.parametrize("call", ["op.softmax(A, accum=fp16)", "op.sum(A, axis=0, accum=bf16)"])
def test_other_sums_refuse_it_too(rejects: Callable[[str], Diagnostic], call: str) -> None:
    found = rejects(f"module m {{ func f(A: tensor<2x2xfp32>) {{ return {call}; }} }}")
    assert (found.category, found.clause) == ("numerics", "LANG-11-13")
