"""Scaled dot-product attention: as a program of four operations that compose without losing a bit, and as one."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import declaring, expression_twins, outputs_in, value_of
from tessera_conformance.dsl import program, returning, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import golden, judge

PARAMETERS = (
    "Q: tensor<3x4xfp32>, K: tensor<5x4xfp32>, V: tensor<5x2xfp32>, B: tensor<2x3x4xfp32>, C: tensor<1x3x4xfp32>, "
    "H: tensor<5x4xbf16>, I: tensor<3x4xint32>"
)


@golden("ir/attention")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by exact rational arithmetic."""
    judge(impl, check, vector)


@golden("ir/fused_attention")
def test_golden_of_one_operation(impl, check, vector):
    """The frozen bits of op.flash_attention, confirmed by exact rational arithmetic and MPFR's exponential."""
    judge(impl, check, vector)


@feature("fused-attention")
@clause("LANG-02-04", "LANG-10-05", "LANG-10-06")
@level("strict", "deterministic")
@pytest.mark.parametrize("rest", ["", "causal=true", "scale=0.75"], ids=["plain", "causal", "scaled"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_blocks_change_no_bit(impl, check, dtype, rest):
    """However many keys are handled at once: one, some that divide their number or do not, all and more."""
    inputs = {name: counted(dtype, (12, 4), seed) for name, seed in zip("QKV", (461, 462, 463), strict=True)}
    parameters = ", ".join(f"{name}: tensor<12x4x{dtype}>" for name in inputs)
    blocks = ["", *(f"block={size}" for size in (1, 4, 5, 12, 64))]
    attributes = [", ".join(filter(None, (rest, block))) for block in blocks]
    calls = ["op.flash_attention(Q, K, V)" + (f" @{{{attribute}}}" if attribute else "") for attribute in attributes]
    source = program(f"return {', '.join(calls)};", parameters=parameters)
    actual = outputs_in(impl, check, declaring(source, impl.level), "fast", inputs)
    check.equal(len(actual), len(calls), "the number of results")
    for blocked in actual[1:]:
        check.bits(blocked, actual[0], "the result in blocks")


@feature("fused-attention")
@clause("LANG-02-04")
def test_equal_scores_average_the_values(impl, check):
    """Queries of zeros see all keys alike: a quarter of 4, 8, 0 and 12; of those up to their own behind a mask."""
    zeros, values = tensor_of("fp32", [[0.0, 0.0]] * 4), tensor_of("fp32", [[4.0], [8.0], [0.0], [12.0]])
    parameters = "Q: tensor<4x2xfp32>, V: tensor<4x1xfp32>"
    plain = value_of(impl, check, returning("op.flash_attention(Q, Q, V)", parameters), Q=zeros, V=values)
    check.bits(plain, tensor_of("fp32", [[6.0]] * 4))
    masked = returning("op.flash_attention(Q, Q, V) @{causal=true}", parameters)
    actual = value_of(impl, check, masked, Q=zeros, V=values)
    first = returning("X[0:2]", "X: tensor<4x1xfp32>")
    check.bits(value_of(impl, check, first, X=actual), tensor_of("fp32", [[4.0], [6.0]]), "the first two queries")


@feature("fused-attention")
@clause("LANG-02-04", "LANG-11-01", "LANG-11-03")
@pytest.mark.parametrize(
    ("call", "wrong", "category"),
    [
        ("op.flash_attention(Q, K, V)", "op.flash_attention(Q, V, V)", "shapes"),
        ("op.flash_attention(Q, K, V)", "op.flash_attention(Q, K, Q)", "shapes"),
        ("op.flash_attention(B, B, B)", "op.flash_attention(B, C, C)", "shapes"),
        ("op.flash_attention(B, B, B)", "op.flash_attention(B, Q, Q)", "shapes"),
        ("op.flash_attention(Q, Q, Q) @{causal=true}", "op.flash_attention(Q, K, V) @{causal=true}", "shapes"),
        ("op.flash_attention(Q, K, V)", "op.flash_attention(Q, H, V)", "types"),
        ("op.flash_attention(Q, K, V)", "op.flash_attention(Q, K, H)", "types"),
        ("op.flash_attention(Q, Q, Q)", "op.flash_attention(I, I, I)", "types"),
        ("op.flash_attention(Q, K, V)", "op.flash_attention(Q, K)", "types"),
        (
            "op.flash_attention(Q, K, V) @{block=1}",
            "op.flash_attention(Q, K, V) @{block=0}",
            ("schedule", "types", "shapes"),
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(impl, check, call, wrong, category):
    """One float dtype, one batch, one width of queries and keys, as many values as keys."""
    expression_twins(impl, check, call, wrong, PARAMETERS, category)
