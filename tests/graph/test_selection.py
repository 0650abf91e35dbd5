"""select, maximum, minimum, clamp and abs: values by hand, special ones too, and what is refused."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SIGNATURE = (
    "A: tensor<4xfp32>, B: tensor<4xfp32>, C: tensor<2x1xbool>, M: tensor<2x2xfp32; layout=col_major>, "
    "N: tensor<2x2xfp32>, H: tensor<4xbf16>, I: tensor<4xint8>, Z: tensor<4xcomplex64>, p: bool, s: fp32"
)


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def run(expression: str, a: list[float], b: list[float]) -> Array:
    source = f"module m {{ func f({SIGNATURE}) {{ return {expression}; }} }}"
    inputs = {
        "A": array("fp32", a),
        "B": array("fp32", b),
        "C": array("bool", [[True], [False]]),
        "M": array("fp32", [[1, 2], [3, 4]]),
        "N": array("fp32", [[1, 2], [3, 4]]),
        "H": array("bf16", [1, 2, 3, 4]),
        "I": array("int8", [-128, -1, 0, 127]),
        "Z": array("complex64", [1, 2, 3, 4]),
        "p": array("bool", True),
        "s": array("fp32", 2.5),
    }
    module = compile_source(source, "t.tsr").module
    (result,) = execute(module, "f", inputs)
    assert module.functions["f"].results[0].shape == result.shape
    return result


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("op.maximum(A, B)", [nan, 0.0, 5.0, inf]),
        ("op.maximum(B, A)", [nan, 0.0, 5.0, inf]),
        ("op.minimum(A, B)", [nan, -0.0, -1.0, 2.0]),
        ("op.minimum(B, A)", [nan, -0.0, -1.0, 2.0]),
        ("op.maximum(A, 1.0)", [nan, 1.0, 1.0, inf]),
        ("op.minimum(2.0, s)", 2.0),
        ("op.abs(A)", [nan, 0.0, 1.0, inf]),
        ("op.abs(-s)", 2.5),
        ("op.abs(I)", [-128, 1, 0, 127]),
        ("op.maximum(I, -I)", [-128, 1, 0, 127]),
        ("op.clamp(A, -0.5, s)", [nan, -0.0, -0.5, 2.5]),
        ("op.clamp(A, 0.0, B)", [nan, 0.0, 0.0, 2.0]),
        ("op.clamp(B, 3.0, 1.0)", [1.0, 1.0, 1.0, 1.0]),
        ("op.select(p, A, B)", [nan, -0.0, -1.0, inf]),
        ("op.select(A < B, A, s)", [2.5, 2.5, -1.0, 2.5]),
        ("op.select(C, A, B)", [[nan, -0.0, -1.0, inf], [1.0, 0.0, 5.0, 2.0]]),
        ("op.select(p, op.select(p, p, p), p)", 1.0),
    ],
)
def test_values_to_the_bit(expression: str, expected: object) -> None:
    found = run(expression, [nan, -0.0, -1.0, inf], [1.0, 0.0, 5.0, 2.0])
    np.testing.assert_array_equal(found.values, np.asarray(expected))
    if found.dtype.kind == "float":
        zeros = np.asarray(expected) == 0
        np.testing.assert_array_equal(np.signbit(found.values)[zeros], np.signbit(expected)[zeros])


@pytest.mark.parametrize("name", ["bool", "int64", "fp8_e4m3", "complex128"])
def test_elements_of_any_dtype_are_selected(name: str) -> None:
    source = (
        f"module m {{ func f(c: tensor<2xbool>, a: tensor<2x{name}>, b: {name}) {{ return op.select(c, a, b); }} }}"
    )
    inputs = {"c": array("bool", [True, False]), "a": array(name, [0, 0]), "b": array(name, 1)}
    (found,) = execute(compile_source(source).module, "f", inputs)
    assert (found.dtype.name, found.values.tolist()) == (name, [0, 1])


@pytest.mark.parametrize(
    ("expression", "category", "problem"),
    [
        ("op.select(A, A, B)", "types", "the condition is tensor<4xfp32>, not bool"),
        ("op.select(C, A, H)", "types", "operands have dtypes fp32 and bf16"),
        ("op.select(C, A, N)", "shapes", "dimensions differ: 4 and 2"),
        ("op.select(M < M, M, N)", "layouts", "operands have layouts col_major and row_major"),
        ("op.maximum(A, H)", "types", "operands have dtypes fp32 and bf16"),
        ("op.maximum(p, p)", "types", "is not defined on bool"),
        ("op.minimum(Z, Z)", "types", "is not defined on complex64"),
        ("op.abs(Z)", "types", "is not defined on complex64"),
        ("op.abs(p)", "types", "is not defined on bool"),
        ("op.clamp(A, A, H)", "types", "operands have dtypes fp32 and bf16"),
        ("op.clamp(A, H, A)", "types", "operands have dtypes fp32 and bf16"),
        ("op.clamp(Z, Z, Z)", "types", "is not defined on complex64"),
        ("op.clamp(A, N, s)", "shapes", "dimensions differ: 4 and 2"),
    ],
)
def test_refusals(expression: str, category: str, problem: str) -> None:
    with pytest.raises(Rejection) as caught:
        run(expression, [0, 0, 0, 0], [0, 0, 0, 0])
    (found,) = caught.value.diagnostics
    assert isinstance(found, Diagnostic)
    assert (found.category, found.phase) == (category, "verify")
    assert problem in found.message
    assert found.requirement and found.clause
