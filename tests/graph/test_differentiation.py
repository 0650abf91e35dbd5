"""What is differentiated by what: values, not arrays, names or places; gradients worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

THREE = Array(dtype("fp32"), np.float32(3))


def run(functions: str, **inputs: Array) -> list[float]:
    found = execute(compile_source(f"module m {{ {functions} }}", "t.tsr").module, "f", inputs)
    return [each.values.item() for each in found]


@pytest.mark.parametrize(
    ("functions", "gradients"),
    [
        # one value handed over twice is two parameters
        ("func g(a: fp32, b: fp32) { return op.grad(a * b, a, b); } func f(x: fp32) { return g(x, x); }", [3, 3]),
        ("func g(a: fp32, b: fp32) { return op.grad(a * a * b, b); } func f(x: fp32) { return g(x, x); }", [9]),
        # what a loop or a branch gives is another value than what it was given
        ("func f(x: fp32) { let z: fp32 = x; for (i in 0:1) { z = z; } return op.grad(x * z, z); }", [3]),
        ("func f(x: fp32) { let z: fp32 = x; if (x > 0.0) { z = x; } return op.grad(x * z, z); }", [3]),
        # and depends on it
        ("func f(x: fp32) { let z: fp32 = x; for (i in 0:1) { z = z; } return op.grad(x * z, x); }", [6]),
        ("func h(a: fp32) -> fp32 { return a; } func f(x: fp32) { return op.grad(h(x) * x, x); }", [6]),
        # every turn of a loop counts: x * 3 * x * 3 * x * 3
        ("func f(x: fp32) { let z: fp32 = 1.0; for (i in 0:3) { z = z * x; } return op.grad(z, x); }", [27]),
        ("func f(x: fp32) { let z: fp32 = x; while (z < 50.0) { z = z * z; } return op.grad(z, x); }", [108]),
        # only the branch taken
        ("func f(x: fp32) { let z: fp32 = x; if (x < 0.0) { z = x * 5.0; } else { z = x * 7.0; } "
         "return op.grad(z, x); }", [7]),
        # twice, and a derivative inside what is differentiated
        ("func f(x: fp32) { return op.grad(op.grad(x * x * x, x), x); }", [18]),
        ("func f(x: fp32) { let d: fp32 = op.grad(x * x, x); return op.grad(d * x, x); }", [12]),
        # nothing, itself, and what came later
        ("func f(x: fp32) { let z: fp32 = 2.0; return op.grad(z * z, x), op.grad(x, x); }", [0, 1]),
        ("func f(x: fp32) { let y: fp32 = x * x; let g: fp32 = op.grad(y, x); y = y * x; return g, op.grad(y, x); }",
         [6, 27]),
    ],
)  # fmt: skip
def test_a_derivative_follows_the_values_that_were_computed(functions: str, gradients: list[float]) -> None:
    assert run(functions, x=THREE) == gradients


def test_one_array_given_for_two_inputs_is_two_values() -> None:
    assert run("func f(x: fp32, z: fp32) { return op.grad(x * z, x); }", x=THREE, z=THREE) == [3]
