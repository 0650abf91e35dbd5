"""A gradient through an operation without an adjoint is refused at its place, and its twin around it runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.operation import OPERATIONS, SPELLINGS, Environment, Operand, Operation, operation
from tessera_reference.ir.types import Scalar, Tensor
from tessera_reference.language import Rejection, compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


@pytest.fixture(autouse=True)
def opaque() -> Iterator[None]:
    """Declares `op.opaque(x)`."""

    @operation("tessera.graph.opaque", spellings=("op.opaque",), clauses=("LANG-05.5-02",))
    class Opaque(Operation):
        """x, by ways that nobody knows."""

        x: Operand[Tensor | Scalar]

        def infer(self) -> Tensor | Scalar:
            """The same type."""
            return self.x

        def execute(self, x: Array, env: Environment) -> Array:
            """The same value."""
            return x

    yield
    del OPERATIONS["tessera.graph.opaque"], SPELLINGS["op.opaque"]


F = "func f(x: fp32, w: fp32)"
GRADIENT = "func gradient(y: fp32, x: fp32) -> fp32 { return op.grad(y, x); }"
SCALED = "func scaled(a: fp32, b: fp32) -> fp32 { if (a > b) { return a * op.opaque(b); } return a; }"
TWINS = {
    "at once": (f"{F} {{ return op.grad(op.opaque(x), x); }}", f"{F} {{ return op.grad(op.opaque(w), x); }}"),
    "among others": (
        f"{F} {{ let y: fp32 = op.opaque(x * w) + 1.0; return op.grad(y * y, x); }}",
        f"{F} {{ let y: fp32 = op.opaque(x * w) + 1.0; return op.grad(x * x, x) * y; }}",
    ),
    "after the gradient": (
        f"{F} {{ let y: fp32 = op.opaque(x); return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = op.grad(x, x); return op.opaque(y); }}",
    ),
    "of a gradient": (
        f"{F} {{ return op.grad(op.opaque(op.grad(x * x, x)), x); }}",
        f"{F} {{ return op.opaque(op.grad(op.grad(x * x, x), x)); }}",
    ),
    "by a comparison": (
        f"{F} {{ return op.grad(op.select(x > w, op.opaque(x), w), x); }}",
        f"{F} {{ return op.grad(op.select(op.opaque(x) > w, x, w), x); }}",
    ),
    "by an integer": (
        f"{F} {{ return op.grad(op.cast(op.cast(op.opaque(x), dtype=fp64), dtype=fp32) * x, x); }}",
        f"{F} {{ return op.grad(op.cast(op.cast(op.opaque(x), dtype=int32), dtype=fp32) * x, x); }}",
    ),
    "in a branch": (
        f"{F} {{ let y: fp32 = x; if (x > w) {{ y = op.opaque(x); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; if (x > w) {{ w = op.opaque(x); }} return op.grad(y, x); }}",
    ),
    "in a branch, of what came in": (
        f"{F} {{ let y: fp32 = x * x; if (x > w) {{ y = op.opaque(y); }} else {{ y = w; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x * x; if (x > w) {{ y = op.opaque(w); }} else {{ y = x; }} return op.grad(y, x); }}",
    ),
    "carried by a loop": (
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = op.opaque(y); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = y * op.opaque(w); }} return op.grad(y, x); }}",
    ),
    "past a loop that may not run": (
        f"{F} {{ let y: fp32 = op.opaque(x); for (i in 0:0) {{ y = w; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = op.opaque(w); for (i in 0:0) {{ y = w; }} return op.grad(y, x); }}",
    ),
    "round a loop": (
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = w; w = op.opaque(x); }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = x; for (i in 0:3) {{ y = y * x; w = op.opaque(w); }} return op.grad(y, x); }}",
    ),
    "round a while": (
        f"{F} {{ let y: fp32 = w; while (y < 9.0) {{ y = op.opaque(y) + x; }} return op.grad(y, x); }}",
        f"{F} {{ let y: fp32 = w; while (op.opaque(y) < 9.0) {{ y = y + x; }} return op.grad(y, x); }}",
    ),
    "into a call": (
        f"{F} {{ return op.grad(scaled(w, x), x); }} {SCALED}",
        f"{F} {{ return op.grad(op.opaque(w) * x, x) + scaled(w, x); }} {SCALED}",
    ),
    "through a call and back": (
        f"{F} {{ return op.grad(unknown(x), x); }} func unknown(a: fp32) -> fp32 {{ return op.opaque(a); }}",
        f"{F} {{ return op.grad(unknown(w) * x, x); }} func unknown(a: fp32) -> fp32 {{ return op.opaque(a); }}",
    ),
    "out of a call": (
        f"{GRADIENT} {F} {{ return gradient(op.opaque(x), x); }}",
        f"{GRADIENT} {F} {{ return gradient(x * x, x) * op.opaque(x); }}",
    ),
    "by what a value was handed on from": (
        f"{GRADIENT} {F} {{ let y: fp32 = op.opaque(x); for (i in 0:1) {{ w = gradient(y, x); }} return w; }}",
        f"{GRADIENT} {F} {{ let y: fp32 = op.opaque(w); for (i in 0:1) {{ w = gradient(y * x, x); }} return w; }}",
    ),
    "in a slice": (
        f"{F} {{ let v: tensor<2xfp32> = op.broadcast(x, shape=[2]); v[1] = op.opaque(v[0]); return op.grad(v, x); }}",
        f"{F} {{ let v: tensor<2xfp32> = op.broadcast(w, shape=[2]); v[1] = op.opaque(w); return op.grad(v * x, x); }}",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_gradient_through_it_is_refused(name: str) -> None:
    source = f"module m {{ {TWINS[name][0]} }}"
    with pytest.raises(Rejection) as caught:
        compile_source(source, "t.tsr")
    (actual,) = caught.value.diagnostics
    assert (actual.category, actual.phase, actual.clause) == ("types", "verify", "LANG-05.5-02")
    assert actual.message.startswith("opaque: no adjoint")
    assert (actual.filename, actual.span.line, actual.span.column) == ("t.tsr", 1, source.index("op.opaque") + 1)
    assert actual.requirement and actual.remedy and actual.operands == ("x is fp32",)


@pytest.mark.parametrize("name", TWINS)
def test_its_twin_that_goes_by_it_is_accepted_and_runs(name: str) -> None:
    module = compile_source(f"module m {{ {TWINS[name][1]} }}", "t.tsr").module
    inputs = {parameter: Array(dtype("fp32"), np.float32(number)) for parameter, number in (("x", 2.0), ("w", 1.0))}
    (actual,) = execute(module, "f", inputs)
    assert np.isfinite(actual.values).all()


def test_each_operation_is_named_once() -> None:
    body = "let y: fp32 = op.opaque(x) * op.opaque(w); return op.grad(y, x), op.grad(y, w), op.grad(y, y);"
    with pytest.raises(Rejection) as caught:
        compile_source(f"module m {{ {F} {{ {body} }} }}")
    first, second = caught.value.diagnostics
    assert first.span.column < second.span.column


def test_every_operation_of_the_language_that_yields_floats_of_floats_has_an_adjoint() -> None:
    graph = {name: declared for name, declared in OPERATIONS.items() if name.startswith("tessera.graph.")}
    missing = {name.rpartition(".")[2] for name, declared in graph.items() if not declared.is_differentiable()}
    assert missing == {"fft", "ifft", "opaque"}, "which are of complex numbers, but for the one declared here"
