"""Legal programs beyond the first slice are told apart from illegal ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.language import UnsupportedConstruct

Unsupported = Callable[[str], UnsupportedConstruct]


@pytest.mark.parametrize(
    ("declaration", "feature"),
    [
        ("kernel k() {}", "language.kernel"),
        ("type T = fp32;", "language.type"),
        ("let c: fp32 = 1;", "language.const"),
        ("mesh g = mesh<axes=[dp], shape=[4]>;", "language.mesh"),
        ("@schedule(m=1) func f() {}", "language.annotation"),
        ("func f() @{precision=fp32} {}", "attribute.precision"),
        ("func f(a: fp32 = 1) {}", "language.default"),
        ("func f(a: memref<4xfp32>) {}", "language.memref"),
        ("func f(a: fragment<16,16,16,bf16>) {}", "language.fragment"),
        ("func f(a: fn(fp32) -> fp32) {}", "language.fn"),
        ("func f(a: mesh<axes=[dp], shape=[4]>) {}", "language.mesh"),
    ],
)
def test_declarations(unsupported: Unsupported, declaration: str, feature: str) -> None:
    found = unsupported(f"module m {{\n  {declaration}\n}}")
    assert (found.feature, found.location.span.line) == (feature, 2)


@pytest.mark.parametrize(
    ("statement", "feature", "column"),
    [
        ("X = X;", "language.assign", 1),
        ("X[0] = 1;", "language.assign", 1),
        ("if (c) { return X; }", "language.if", 1),
        ("for (i in 0:4) {}", "language.for", 1),
        ("while (c) {}", "language.while", 1),
        ("barrier();", "language.barrier", 1),
        ("assert(c);", "language.assert", 1),
        ("schedule.tile(X, m=1);", "language.schedule", 1),
        ("dist.all_reduce(X, axis=dp);", "language.dist", 1),
        ('numerics.profile("strict");', "language.numerics", 1),
        ("return X[0];", "language.index", 8),
        ("return tensor<4xfp32>;", "language.tensor_expression", 8),
        ("return op.pad(X);", "op.pad", 8),
        ("return 1 + op.clamp(X);", "op.clamp", 12),
        ("return op.softmax(X, layout=row_major);", "attribute.layout", 22),
        ("return g(X) @{precision=fp32};", "language.call_attributes", 15),
        ("op.clamp(X); return undeclared;", "op.clamp", 1),
    ],
)
def test_statements(unsupported: Unsupported, statement: str, feature: str, column: int) -> None:
    found = unsupported(f"module m {{ func f(X: tensor<4xfp32>, c: bool) {{\n{statement}\n}} }}")
    assert (found.feature, found.location.span.line, found.location.span.column) == (feature, 2, column)


@pytest.mark.parametrize(
    ("expression", "feature"),
    [
        ("op.matmul(C, C, accum=complex128)", "op.matmul.accum"),
        ('op.softmax(X, accum="fp64")', "op.softmax.accum"),
        ("Z / Z", "op.divide.complex"),
        ("(" * 500 + "X" + ")" * 500, "language.deep_nesting"),
        ("+".join(["X"] * 3000), "language.deep_nesting"),
    ],
)
def test_what_an_operation_does_not_carry_out(unsupported: Unsupported, expression: str, feature: str) -> None:
    parameters = "X: tensor<4x4xfp32>, Z: complex64, C: tensor<2x2xcomplex64>"
    source = f"module m {{ func f({parameters}) {{ return {expression}; }} }}"
    assert unsupported(source).feature == feature
