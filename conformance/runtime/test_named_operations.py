"""Single operations by name: in the order of a descriptor, compensated, accumulated in a dtype of choice, refused.

Feature operation-access (AMB-RT-73); runtime specification, 4.7, 11 and appendix A; docs/protocol.md lists the
operations and their attributes. The expected bits are those of exact arithmetic along the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest

from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle import reductions
from tessera_conformance.oracle.exact import float_format, values_of
from tessera_conformance.oracle.reductions import matmul
from tessera_conformance.oracle.trees import Order
from tessera_conformance.protocol import Rejected, Unsupported
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import recognize_wide_indices

SPREAD = (-7, 7)
"""Exponents far enough apart that every order has bits of its own."""

SMALL = (-3, 1)

ORDERS: Mapping[str, Order] = {
    "fused": [[0, 1, 2], [3, 4]],
    "one node": [0, 1, 2, 3, 4],
    "fused text": "((4 3 2 1) 0)",
    "start first": [[["c", 0, 1], 2], [3, 4]],
    "start last": [[[0, 1], [2, 3]], [4, "c"]],
    "start in the middle": "((0 (1 c)) (2 (3 4)))",
}
"""Trees over five terms: nodes of three and more, which are exact and round once, and places for the start value."""


def evaluate(impl, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any], **under: Any) -> Any:
    """An operation by name."""
    return impl.numerics.evaluate(operation=operation, inputs=inputs, attributes=attributes, **under)


def judge_ordered(check, answer: Any, expected: Tensor) -> None:
    """The bits of the order, or a refusal with TESS_ERR_UNSUPPORTED (AMB-RT-78)."""
    if isinstance(answer, Rejected):
        check.status(answer, "TESS_ERR_UNSUPPORTED")
    else:
        check.bits(check.returns(answer)["outputs"][0], expected, "the order, exactly")


def rows(dtype: str) -> Tensor:
    """Rows of five: of many binades, and of zeros, ties, overflows that cancel, infinities, NaN and subnormals."""
    format_ = float_format(dtype)
    e, large, small = format_.epsilon, format_.largest, format_.smallest
    special: list[list[float | Fraction]] = [
        [0, 0, 0, 0, 0],
        [-0.0] * 5,
        [-0.0, -0.0, 0, -0.0, -0.0],
        [1, e / 2, 0, -0.0, 0],
        [1 + e, e / 2, -0.0, 0, 0],
        [-1 - e, -e / 2, -small, small, -small],
        [large, large, -large, 1, -large],
        [-large, -large, -large, 2, -1],
        [-2, inf, 1, -1, 3],
        [inf, -2, -inf, 1, 1],
        [1, nan, 0, 1, -1],
        [-2, 3, 0, -1, 5],
        [inf, 0, 1, -2, 3],
        [small, -3 * small, small, large, -large],
    ]
    plain, odd = counted(dtype, (6, 5), seed=831, exponents=SPREAD), tensor_of(dtype, special)
    return Tensor(dtype, (6 + len(special), 5), plain.data + odd.data)


# Orders


@level("strict")
@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("dtype", ["fp16", "fp32", "fp64"])
@pytest.mark.parametrize("operation", ["sum", "prod", "mean"])
def test_a_reduction_takes_any_tree_of_a_descriptor(impl, check, operation, dtype, tree):
    """Nodes of two round each time and of more once; signs of zeros, ties, overflow, infinities and NaN included."""
    x = rows(dtype)
    answer = evaluate(impl, operation, [x], {"axis": 1}, descriptor={"reduction_order": tree})
    exact = {"sum": reductions.sum_, "prod": reductions.prod, "mean": reductions.mean}[operation]
    judge_ordered(check, answer, exact(x, 1, tree=tree))


@level("strict")
@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("operation", ["sum", "prod"])
def test_a_reduction_to_a_scalar_takes_any_tree_of_a_descriptor(impl, check, operation, tree):
    """A vector, whose terms have no axis left, of floats and of integers that wrap."""
    for dtype in ("fp32", "int32"):
        x = counted(dtype, (5,), seed=832, exponents=SPREAD)
        answer = evaluate(impl, operation, [x], {"axis": 0}, descriptor={"reduction_order": tree})
        exact = reductions.sum_ if operation == "sum" else reductions.prod
        judge_ordered(check, answer, exact(x, 0, tree=tree))


@level("strict")
@feature("operation-access", "descriptor-access")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("operation", [pytest.param("logsumexp", marks=feature("reductions")), "softmax"])
def test_exponentials_are_summed_by_any_tree_of_a_descriptor(impl, check, operation, tree):
    """The start value that a tree names adds nothing."""
    x = counted("fp32", (4, 5), seed=833, exponents=SMALL)
    answer = evaluate(impl, operation, [x], {"axis": 1}, descriptor={"reduction_order": tree})
    exact = reductions.logsumexp if operation == "logsumexp" else reductions.softmax
    judge_ordered(check, answer, exact(x, 1, tree=tree))


def factors(dtype: str, exponents: tuple[int, int] = SPREAD) -> tuple[Tensor, Tensor, Tensor]:
    """A, B and C of a product of five terms; the last row of A and C is of negative zeros."""
    a, b, c = (
        counted(dtype, shape, seed=834 + place, exponents=exponents)
        for place, shape in enumerate([(2, 5), (5, 4), (2, 4)])
    )
    zeros = tensor_of(dtype, [-0.0] * 5)
    return (
        Tensor(dtype, (3, 5), a.data + zeros.data),
        b,
        Tensor(dtype, (3, 4), c.data + zeros.data[: 4 * len(zeros.data) // 5]),
    )


@level("strict")
@feature("operation-access", "descriptor-access")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", [*ORDERS.values(), "fold", "pairwise"], ids=[*ORDERS, "fold", "pairwise"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
@pytest.mark.parametrize("start", [False, True], ids=["from zero", "from C"])
def test_a_product_takes_any_tree_of_a_descriptor(impl, check, start, dtype, tree):
    """The C operand enters where the tree names it, first in a fold, else last."""
    a, b, c = factors(dtype)
    inputs = [a, b, c] if start else [a, b]
    answer = evaluate(impl, "matmul", inputs, {}, descriptor={"reduction_order": tree})
    judge_ordered(check, answer, matmul(*inputs, tree=tree))


@level("strict")
@feature("operation-access")
@clause("LANG-10-01")
@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("fp32", "bf16"), ("fp32", "fp16"), ("bf16", "bf16"), ("fp16", "fp8_e4m3"), ("bf16", "fp64"), ("fp64", "fp32")],
)
@pytest.mark.parametrize("exponents", [SPREAD, (-60, 60)], ids=["near", "far apart"])
def test_a_product_accumulates_in_the_dtype_that_is_asked_for(impl, check, exponents, dtype, accum):
    """Every product and every sum is rounded to it, wide or narrow, also where the terms are far apart."""
    exponents = max(exponents[0], 1 - float_format(dtype).bias), min(exponents[1], float_format(dtype).bias)
    a, b, c = factors(dtype, exponents)
    for inputs in ([a, b], [a, b, c]):
        actual = check.returns(evaluate(impl, "matmul", inputs, {"accum": accum, "out": "fp32"}))["outputs"][0]
        check.bits(actual, matmul(*inputs, out="fp32", accumulator=accum), f"accumulated in {accum}")


def judge_told(impl, check, x: Tensor, tree: str) -> None:
    """The bits of an order, and again those of its answer."""
    expected = reductions.sum_(x, 1, tree=tree)
    answer = evaluate(impl, "sum", [x], {"axis": 1}, descriptor={"reduction_order": tree})
    judge_ordered(check, answer, expected)
    if not isinstance(answer, Rejected):
        told = check.returns(answer)["descriptor"]["reduction_order"]
        judge_ordered(check, evaluate(impl, "sum", [x], {"axis": 1}, descriptor={"reduction_order": told}), expected)


DEEP = 260
"""Terms of a tree that is too deep to come as lists."""


@level("strict")
@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("terms", [7, DEEP])
def test_an_order_written_as_text_is_the_one_that_is_taken_and_told(impl, check, terms):
    """A fold that begins with the last term, deeper than lists can be; the answer names that order again."""
    tree = "(" * (terms - 1) + str(terms - 1) + "".join(f" {place})" for place in range(terms - 2, -1, -1))
    judge_told(impl, check, counted("fp32", (2, terms), seed=837, exponents=SPREAD), tree)


@level("strict")
@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", ["fold", "pairwise", "ring(0)", "ring(5)"])
def test_an_order_that_has_a_name_is_told_by_one_that_is_it(impl, check, tree):
    """The reported name of an order gives the bits of that order again."""
    judge_told(impl, check, counted("fp32", (4, 7), seed=838, exponents=SPREAD), tree)


# Compensated sums


@level("strict")
@feature("operation-access", "reductions")
@clause("RT-04.7-02")
@pytest.mark.parametrize("operation", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
def test_a_compensated_sum_is_the_one_of_kahan(impl, check, dtype, operation):
    """Each lost part is subtracted from the next term, and an infinite sum loses none (AMB-RT-24)."""
    exact = reductions.sum_ if operation == "sum" else reductions.mean
    for x, axis in ((rows(dtype), 1), (counted(dtype, (33, 3), seed=838, exponents=SPREAD), 0)):
        actual = check.returns(evaluate(impl, operation, [x], {"axis": axis, "order": "kahan"}))["outputs"][0]
        check.bits(actual, exact(x, axis, tree="kahan"), "Kahan's sum")


@level("strict")
@feature("operation-access", "reductions")
@clause("RT-04.7-02")
def test_a_compensated_sum_of_complex_numbers_and_of_nothing(impl, check):
    """The parts of complex numbers are summed for themselves; the sum of nothing is +0."""
    for x in (counted_complex(), Tensor("fp32", (2, 0), b"")):
        actual = check.returns(evaluate(impl, "sum", [x], {"axis": 1, "order": "kahan"}))["outputs"][0]
        check.bits(actual, reductions.sum_(x, 1, tree="kahan"), "Kahan's sum")


def counted_complex() -> Tensor:
    """Complex numbers; the imaginary parts of a row overflow, and its real parts are lost if none is compensated."""
    large = tensor_of("fp32", [[part for real in (1, *[2.0**-24] * 4) for part in (real, 2.0**127)]])
    return Tensor("complex64", (3, 5), counted("fp32", (2, 10), seed=839, exponents=SPREAD).data + large.data)


# Operations whose results are exact, by name


def fp32(*numbers: float) -> Tensor:
    """A vector of fp32."""
    return tensor_of("fp32", list(numbers))


def complex64(*parts: float) -> Tensor:
    """A vector of complex numbers, given by their parts."""
    return Tensor("complex64", (len(parts) // 2,), fp32(*parts).data)


X, BACK = complex64(1, 2, 3, -1, -2, 5, 7, 4), complex64(9, 10, 8, -7, -11, 4, -2, 1)
"""Four numbers, and their unscaled transform with the opposite sign."""
FORTH = complex64(9, 10, -2, 1, -11, 4, 8, -7)
SENT, SCALES, RESTORED = tensor_of("fp8_e4m3", [448, -224, 448, 0]), fp32(1, 2**-6), fp32(448, -224, 7, 0)
INFINITE = {"dtype": "fp8_e5m2", "overflow": "nonfinite"}

EXACT: Mapping[str, tuple[str, str, Sequence[Tensor], Mapping[str, Any], Sequence[Tensor]]] = {
    "relu": ("LANG-02-04", "tensor-ops", [fp32(-1.5, 2.5)], {}, [fp32(0, 2.5)]),
    "gelu": ("LANG-02-04", "activations", [fp32(0)], {"approximate": "tanh"}, [fp32(0)]),
    "cast": ("LANG-03.1-05", "casts", [fp32(1, 2**20)], INFINITE, [tensor_of("fp8_e5m2", [1, inf])]),
    "max": ("LANG-02-04", "reductions", [fp32(1, 3, 2)], {"axis": 0, "keepdims": True}, [fp32(3)]),
    "min": ("LANG-02-04", "reductions", [fp32(3, 1, 2)], {"axis": 0, "keepdims": True}, [fp32(1)]),
    "argmax": ("LANG-02-04", "reductions", [fp32(1, 3, 2)], {"axis": 0}, [tensor_of("int32", 1)]),
    "fft": ("LANG-05.2-04", "operation-access", [X], {"norm": "backward"}, [FORTH]),
    "ifft": ("LANG-05.2-04", "inverse-fft", [X], {"norm": "forward"}, [BACK]),
    "dequantize": ("COLL-02.5-02", "compression-probe", [SENT, SCALES], {"block": 2}, [RESTORED]),
    "top_k": ("COLL-02.5-05", "topk-sparsity", [fp32(1, -3, 2)], {"k": 2}, [fp32(-3, 2), tensor_of("int32", [1, 2])]),
}


@level("strict")
@feature("operation-access")
@pytest.mark.parametrize(
    ("operation", "inputs", "attributes", "outputs"),
    [
        pytest.param(name, *question, id=name, marks=[clause(clauses), feature(needed)])
        for name, (clauses, needed, *question) in EXACT.items()
    ],
)
def test_an_operation_by_name_is_the_operation_of_the_language(impl, check, operation, inputs, attributes, outputs):
    """Small numbers, whose results every order and every definition of the operation gives."""
    actual = check.returns(evaluate(impl, operation, inputs, attributes))["outputs"]
    check.equal(len(actual), len(outputs), "the number of results")
    if operation == "argmax":
        recognize_wide_indices(check, actual[0], outputs[0])
    for place, expected in enumerate(outputs):
        check.bits(actual[place], expected, f"result {place}")


@feature("operation-access", "compression-probe")
@clause("COLL-02.5-02")
def test_blocks_by_name_are_restored_within_half_a_step(impl, check):
    """A half step of fp8_e4m3 is a 28th of the largest number of a block (AMB-COLL-26)."""
    packed = check.returns(evaluate(impl, "quantize", [RESTORED], {"wire": "fp8_e4m3", "block": 2}))["outputs"]
    actual = check.returns(evaluate(impl, "dequantize", packed, {"block": 2}))["outputs"][0]
    check.within(actual, values_of(RESTORED), [Fraction(16)] * 2 + [Fraction(1, 4)] * 2, "what is restored")


# Refusals


FOUR = counted("fp32", (4,), seed=840)
HALVES = counted("fp16", (4,), seed=841)
SQUARE = counted("fp32", (3, 3), seed=842)
COUNTS = tensor_of("int32", [1, 2, 3, 4])

REFUSED: Mapping[str, tuple[str, Sequence[Tensor], Mapping[str, Any]]] = {
    "number of operands": ("matmul", [SQUARE], {}),
    "shapes that do not broadcast": ("pow", [FOUR, counted("fp32", (3,), seed=843)], {}),
    "two dtypes": ("pow", [FOUR, HALVES], {}),
    "unknown overflow": ("exp", [FOUR], {"overflow": "wrap"}),
    "attribute of another operation": ("exp", [FOUR], {"axis": 0}),
    "attribute missing": ("sum", [FOUR], {}),
    "axis out of range": ("sum", [FOUR], {"axis": 1}),
    "axis of another kind": ("sum", [FOUR], {"axis": "0"}),
    "keepdims of another kind": ("sum", [FOUR], {"axis": 0, "keepdims": 1}),
    "largest of nothing": ("max", [Tensor("fp32", (2, 0), b"")], {"axis": 1}),
    "transform of nothing": ("fft", [Tensor("fp32", (2, 0), b"")], {}),
    "compensated along a tree": ("sum", [FOUR], {"axis": 0, "order": "kahan", "tree": "fold"}),
    "inner dimensions": ("matmul", [SQUARE, counted("fp32", (4, 3), seed=844)], {}),
    "more than there are": ("top_k", [FOUR], {"k": 5}),
    "blocks of nothing": ("quantize", [FOUR], {"wire": "fp8_e4m3", "block": 0}),
    "rate of 1": ("dropout", [FOUR], {"rate": 1.0}),
}

UNTAKEN: Mapping[str, tuple[str, Sequence[Tensor], Mapping[str, Any]]] = {
    "function of integers": ("exp", [COUNTS], {}),
    "function of no integers": ("exp", [Tensor("int32", (0,), b"")], {}),
    "quantised fp16": ("quantize", [HALVES], {"wire": "fp8_e4m3", "block": 2}),
    "feedback of fp16": ("error_feedback", [HALVES, FOUR], {"wire": "fp8_e4m3", "block": 2}),
    "result of bool": ("matmul", [SQUARE, SQUARE], {"out": "bool"}),
    "accumulator of another kind": ("matmul", [SQUARE, SQUARE], {"accum": "int32"}),
}

MALFORMED: Mapping[str, Any] = {
    "unknown name": "left",
    "empty text": "",
    "open at the end": "(((0 1) 2) 3",
    "closed too often": "(((0 1) 2) 3))",
    "a node of one": "((((0) 1) 2) 3)",
    "a leaf twice": "(((0 1) 2) 2)",
    "a leaf beyond the last": "(((0 1) 2) 4)",
    "lists with a leaf beyond the last": [[[0, 1], 2], 4],
    "the start twice": ["c", 0, 1, 2, 3, "c"],
}


@feature("operation-access")
@clause("RT-19.A-01")
@pytest.mark.parametrize(("operation", "inputs", "attributes"), REFUSED.values(), ids=REFUSED)
def test_what_an_operation_cannot_take_is_refused(impl, check, operation, inputs, attributes):
    """Operands that do not fit, and attributes that are missing, unknown or of another kind."""
    check.status(evaluate(impl, operation, inputs, attributes), "TESS_ERR_INVALID_VALUE")


@feature("operation-access")
@clause("RT-19.A-01")
@pytest.mark.parametrize(("operation", "inputs", "attributes"), UNTAKEN.values(), ids=UNTAKEN)
def test_dtypes_that_an_operation_does_not_take_are_refused(impl, check, operation, inputs, attributes):
    """The dtype is refused as invalid or as not supported; nothing is converted silently."""
    answer = evaluate(impl, operation, inputs, attributes)
    code = answer.code if isinstance(answer, Rejected) else check.returns(answer)
    check.true(code in ("TESS_ERR_INVALID_VALUE", "TESS_ERR_UNSUPPORTED"), "the dtypes are refused", code)


@feature("operation-access", "reductions")
@clause("RT-19.A-01")
def test_a_complex_product_of_three_in_one_node_is_refused_or_given(impl, check):
    """Nothing says what it would be; a request of it ends all the same."""
    answer = evaluate(impl, "prod", [counted_complex()], {"axis": 1, "tree": [[0, 1, 2], [3, 4]]})
    code = answer.code if isinstance(answer, Rejected) else bool(check.returns(answer))
    check.true(
        code in (True, "TESS_ERR_INVALID_VALUE", "TESS_ERR_UNSUPPORTED"), "the product is given or refused", code
    )


LARGE: Mapping[str, tuple[str, Sequence[Tensor], Mapping[str, Any], tuple[int, ...]]] = {
    "places without end": (
        "pow",
        [Tensor("fp32", (1 << 40, 1, 0), b""), Tensor("fp32", (1, 1 << 40, 0), b"")],
        {},
        (1 << 40, 1 << 40, 0),
    ),
    "seventy dimensions": ("broadcast", [FOUR], {"shape": [1] * 69 + [4]}, (*[1] * 69, 4)),
}


@feature("operation-access")
@clause("RT-19.A-01")
@pytest.mark.parametrize(("operation", "inputs", "attributes", "shape"), LARGE.values(), ids=LARGE)
def test_a_result_beyond_all_limits_is_given_or_said_not_to_be(impl, check, operation, inputs, attributes, shape):
    """It has few elements or none, and yet a shape that may be refused or not supported; nothing breaks by it."""
    answer = evaluate(impl, operation, inputs, attributes)
    said = isinstance(answer, Rejected | Unsupported)
    check.equal(shape if said else check.returns(answer)["outputs"][0].shape, shape, "the shape, where it is given")


@feature("operation-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_tree_is_refused(impl, check, tree):
    """Every leaf occurs once, the start value at most once, and a node has two children or more."""
    check.status(evaluate(impl, "sum", [FOUR], {"axis": 0, "tree": tree}), "TESS_ERR_INVALID_VALUE")
