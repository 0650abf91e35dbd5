"""What programs compute, to the bit, against values worked out by hand or in exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tessera_reference.graph.execution import UnknownFunction, execute
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


def run(source: str, **inputs: Array) -> tuple[Array, ...]:
    return execute(compile_source(source, "t.tsr").module, "f", inputs)


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def evaluate(signature: str, expression: str, **inputs: Array) -> Array:
    (result,) = run(f"module m {{ func f({signature}) {{ return {expression}; }} }}", **inputs)
    return result


def hexadecimal(found: Array) -> str:
    return found.to_bits().hex()


def nearest_fp32(value: Fraction) -> Fraction:
    """A rational number of fp32's normal range, rounded to nearest even."""
    if not value:
        return value
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (exponent - 23)
    return round(value / quantum) * quantum


def exact_matmul(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> list[list[float]]:
    """The canon: acc = round(acc + round(a * b)) over ascending k, from +0."""
    rows = []
    for row in a:
        out = []
        for column in zip(*b, strict=True):
            total = Fraction(0)
            for x, y in zip(row, column, strict=True):
                total = nearest_fp32(total + nearest_fp32(Fraction(x) * Fraction(y)))
            out.append(float(total))
        rows.append(out)
    return rows


def test_matmul_rounds_products_and_sums_in_order() -> None:
    random = np.random.Generator(np.random.PCG64(7))
    a = (random.integers(-(2**23), 2**23, (3, 9)) * 2.0**-20).astype(np.float32)
    b = (random.integers(-(2**23), 2**23, (9, 2)) * 2.0**-20).astype(np.float32)
    found = evaluate(
        "A: tensor<3xKxfp32>, B: tensor<Kx2xfp32>", "A @ B", A=Array(dtype("fp32"), a), B=Array(dtype("fp32"), b)
    )
    assert found.values.tolist() == exact_matmul(a.tolist(), b.tolist())


def test_matmul_of_bf16_rounds_once_from_fp32_or_not_at_all() -> None:
    signature = "A: tensor<1x2xbf16>, B: tensor<2x1xbf16>"
    inputs = {"A": array("bf16", [[1.0, 0.00390625]]), "B": array("bf16", [[1.0], [1.0]])}
    # 1 + 2**-8 is a midpoint of bf16: to even is 1; fp32 holds it.
    assert hexadecimal(evaluate(signature, "op.matmul(A, B)", **inputs)) == "803f"
    assert hexadecimal(evaluate(signature, "op.matmul(A, B, out=fp32)", **inputs)) == "0080803f"
    assert hexadecimal(evaluate(signature, "op.matmul(A, B) @{out=fp32}", **inputs)) == "0080803f"


def test_an_empty_contraction_is_plus_zero() -> None:
    empty_a, empty_b = np.zeros((1, 0), np.float32), np.zeros((0, 1), np.float32)
    found = evaluate(
        "A: tensor<1x0xfp32>, B: tensor<0x1xfp32>",
        "A @ B",
        A=Array(dtype("fp32"), empty_a),
        B=Array(dtype("fp32"), empty_b),
    )
    assert hexadecimal(found) == "00000000"


def test_every_operator_rounds_on_its_own() -> None:
    # In bf16, 1 + 2**-4 squared is 1 + 2**-3 + 2**-8, a midpoint: to even 1.125. Less 1.125 is 0; fused, 2**-8.
    assert hexadecimal(evaluate("A: bf16", "A * A - 1.125", A=array("bf16", 1.0625))) == "0000"


@pytest.mark.parametrize(
    ("expression", "bits"),
    [
        ("i / 2", "fdffffff"),  # -7 / 2 truncates to -3
        ("-i / 2", "03000000"),
        ("i * 2147483647", "07000080"),  # wraps: -7 * (2**31 - 1) = 7 - 7 * 2**31, and 7 * 2**31 = 2**31 modulo 2**32
        ("i - 2147483647 - 2147483647", "fbffffff"),
        ("i == -7", "01"),
        ("i < -7", "00"),
        ("+i", "f9ffffff"),
    ],
)
def test_integers_wrap_and_truncate(expression: str, bits: str) -> None:
    assert hexadecimal(evaluate("i: int32", expression, i=array("int32", -7))) == bits


@pytest.mark.parametrize(
    ("expression", "bits"),
    [
        ("-z", "00000080"),
        ("-0.0 * one", "00000080"),
        ("0 - z", "00000000"),
        ("one / 3", "abaaaa3e"),
        ("0.1 + z", "cdcccc3d"),
        ("one / z", "0000807f"),
        ("z / z == z / z", "00"),
        ("z / z != z", "01"),
        ("one >= 1", "01"),
    ],
)
def test_floats_follow_ieee(expression: str, bits: str) -> None:
    inputs = {"z": array("fp32", 0.0), "one": array("fp32", 1.0)}
    assert hexadecimal(evaluate("z: fp32, one: fp32", expression, **inputs)) == bits


def test_elementwise_operators_broadcast() -> None:
    a, b = array("int32", [[1, 2, 3]]), array("int32", [[10], [20]])
    found = evaluate("A: tensor<1x3xint32>, B: tensor<2x1xint32>", "A + B * 2", A=a, B=b)
    assert found.values.tolist() == [[21, 22, 23], [41, 42, 43]]
    lower = evaluate("A: tensor<1x3xint32>, v: tensor<3xint32>", "A == v", A=a, v=array("int32", [1, 0, 3]))
    assert (lower.dtype.name, lower.values.tolist()) == ("bool", [[True, False, True]])


def test_softmax_of_equal_and_of_distant_elements_is_exact() -> None:
    x = array("fp32", [[3.0, 3.0, 3.0, 3.0], [0.0, -1000.0, -1000.0, -1000.0]])
    assert evaluate("X: tensor<2x4xfp32>", "op.softmax(X)", X=x).values.tolist() == [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]
    columns = evaluate("X: tensor<2x4xfp32>", "op.softmax(X, axis=0)", X=x).values.tolist()
    assert columns[0][1:] == [1.0, 1.0, 1.0]


def test_transpose_moves_elements() -> None:
    x = array("int8", [[[1, 2, 3], [4, 5, 6]]])
    assert evaluate("X: tensor<1x2x3xint8>", "op.transpose(X)", X=x).values.tolist() == [
        [[1], [4]],
        [[2], [5]],
        [[3], [6]],
    ]
    same = evaluate("X: tensor<1x2x3xint8>", "op.transpose(X, perm=[1, 0, 2])", X=x)
    assert same.values.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]


def test_calls_several_results_and_lets() -> None:
    source = """
    module m {
      func f(X: tensor<2x3xfp32>) { let Y: tensor<3x2xfp32> = turn(X); return Y, twice(x=turn(Y)), 1, true; }
      func turn(x: tensor<?x?xfp32>) { return op.transpose(x); }
      func twice(x: tensor<NxMxfp32>) -> tensor<NxMxfp32> { return x + x; return 3 * x; }
    }"""
    turned, doubled, one, true = run(source, X=array("fp32", [[1, 2, 3], [4, 5, 6]]))
    assert turned.values.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert doubled.values.tolist() == [[2, 4, 6], [8, 10, 12]]
    assert (one.dtype.name, hexadecimal(one), hexadecimal(true)) == ("int32", "01000000", "01")


def test_integer_division_by_zero_names_its_place() -> None:
    source = "module m {\n  func f(a: tensor<2xint32>, b: tensor<2xint32>) {\n    return a + a / b;\n  }\n}"
    with pytest.raises(Rejection) as caught:
        run(source, a=array("int32", [1, 2]), b=array("int32", [1, 0]))
    (found,) = caught.value.diagnostics
    assert (found.category, found.phase, found.filename) == ("numerics", "execute", "t.tsr")
    assert (found.span.line, found.span.column) == (3, 16)
    assert "[1]" in found.message


def test_softmax_over_what_turns_out_empty_is_a_shape_error() -> None:
    with pytest.raises(Rejection) as caught:
        evaluate("X: tensor<?xfp32>", "op.softmax(X)", X=Array(dtype("fp32"), np.zeros(0, np.float32)))
    assert (caught.value.diagnostics[0].category, caught.value.diagnostics[0].phase) == ("shapes", "execute")


F32 = array("fp32", [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("inputs", "name", "expected", "given", "text"),
    [
        ({"X": F32}, "Y", "tensor<Nx3xfp32>", "", "input Y is missing: expected tensor<Nx3xfp32>"),
        ({"X": F32, "Z": F32}, "Z", "", "tensor<1x2xfp32>", "input Z is not a parameter; @f takes X, Y"),
        ({"X": array("fp32", 1.0)}, "X", "tensor<Nx?xfp32>", "fp32", "input X: expected tensor<Nx?xfp32>, given fp32"),
        (
            {"X": array("bf16", [[1.0, 2.0]])},
            "X",
            "tensor<Nx?xfp32>",
            "tensor<1x2xbf16>",
            "input X: expected tensor<Nx?xfp32>, given tensor<1x2xbf16>",
        ),
        (
            {"X": F32, "Y": F32},
            "Y",
            "tensor<Nx3xfp32>",
            "tensor<1x2xfp32>",
            "input Y: expected tensor<Nx3xfp32>, given tensor<1x2xfp32>",
        ),
        (
            {"X": F32, "Y": array("fp32", [[1.0] * 3] * 2)},
            "Y",
            "tensor<Nx3xfp32>",
            "tensor<2x3xfp32>",
            "input Y: expected tensor<Nx3xfp32>, given tensor<2x3xfp32> (N is 1 in X)",
        ),
    ],
)
def test_inputs_must_fit_the_signature(
    inputs: dict[str, Array], name: str, expected: str, given: str, text: str
) -> None:
    module = compile_source("module m { func f(X: tensor<Nx?xfp32>, Y: tensor<Nx3xfp32>) {} }").module
    with pytest.raises(InputMismatch) as caught:
        execute(module, "f", inputs)
    assert (caught.value.name, caught.value.expected, caught.value.given) == (name, expected, given)
    assert str(caught.value) == text


def test_an_unknown_function_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownFunction, match="no function 'g'; there is f"):
        execute(compile_source("module m { func f() {} }").module, "g", {})
