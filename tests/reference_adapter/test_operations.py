"""Single operations of the reference: what they refuse, and what a descriptor or context changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_reference.adapter import ReferenceAdapter, make

ONE = 0x3F800000


@pytest.fixture
def reference() -> ReferenceAdapter:
    return make()


def floats(*words: int) -> Tensor:
    return Tensor.from_words("fp32", (len(words),), words)


REFUSED: list[tuple[str, int, Mapping[str, Any], str]] = [
    ("sums", 1, {}, "operation is 'sums', allowed is one of exp"),
    ("exp", 2, {}, "number of operands is 2, allowed is 1"),
    ("matmul", 1, {}, "number of operands is 1, allowed is 2 or 3"),
    ("exp", 1, {"axis": 0}, "attribute is 'axis', allowed is one of overflow"),
    ("relu", 1, {"axis": 0}, "attribute is 'axis', allowed is one of none"),
    ("cast", 1, {}, "dtype is None, allowed is a value, since it has no default"),
    ("cast", 1, {"dtype": "fp8"}, "dtype is 'fp8', allowed is a dtype: one of fp8_e4m3, "),
    ("cast", 1, {"dtype": "bf16", "overflow": "wrap"}, "overflow is 'wrap'"),
    ("sum", 1, {"axis": 1}, "axis 1 is out of range for rank 1, allowed is -1 <= axis <= 0"),
    ("sum", 1, {"axis": 0, "tree": [0, 1]}, "3 elements are reduced, the tree has 2 leaves"),
    ("sum", 1, {"axis": 0, "tree": "folded"}, "tree"),
    ("sum", 1, {"axis": 0, "order": "sorted"}, "order is 'sorted'"),
    ("quantize", 1, {"wire": "fp64", "block": 2}, "fp64"),
    ("quantize", 1, {"wire": "bf16", "block": 0}, "block is 0"),
    ("top_k", 1, {"k": 4}, "k is 4, allowed is an integer from 0 to 3"),
    ("dropout", 1, {"rate": 1.0}, "rate is 1.0"),
    ("add", 1, {}, "number of operands is 1, allowed is 2"),
    ("negate", 1, {"axis": 0}, "attribute is 'axis', allowed is none"),
    ("transpose", 1, {"perm": "0) + f("}, "perm is '0) + f(', allowed is a number, a word or a list of them"),
]


@pytest.mark.parametrize(("operation", "operands", "attributes", "message"), REFUSED)
def test_a_refusal_names_the_argument_and_what_is_allowed(
    reference: ReferenceAdapter, operation: str, operands: int, attributes: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(Refusal) as caught:
        reference.numerics_evaluate(
            operation=operation, inputs=[floats(ONE, ONE, ONE)] * operands, attributes=attributes
        )
    assert caught.value.outcome.code == "TESS_ERR_INVALID_VALUE"
    assert message in caught.value.outcome.message


def test_a_scale_that_is_not_finite_is_refused(reference: ReferenceAdapter) -> None:
    codes = Tensor.from_words("fp8_e4m3", (2,), [0x38, 0x38])
    with pytest.raises(Refusal, match="scales"):
        reference.numerics_evaluate(operation="dequantize", inputs=[codes, floats(0x7F800000)], attributes={"block": 2})


def test_a_descriptor_fills_in_what_the_attributes_leave_open(reference: ReferenceAdapter) -> None:
    asked = {"shape": [4], "dtype": "fp32", "seed": 5}
    answer = reference.numerics_evaluate(
        operation="uniform", inputs=[], attributes=asked, descriptor={"seed": 6, "stream": 7}
    )
    assert (answer["descriptor"]["seed"], answer["descriptor"]["stream"]) == (5, 7)


def test_nothing_is_declared_of_operations_that_do_not_reduce(reference: ReferenceAdapter) -> None:
    with pytest.raises(NotSupported, match=r"numerics\.declared\.exp"):
        reference.numerics_declared(operation="exp", dtype="fp32", shapes=[[4]])


def test_a_reset_forgets_contexts(reference: ReferenceAdapter) -> None:
    context = reference.runtime_tessInit()["context"]
    reference.session_reset()
    with pytest.raises(Refusal) as caught:
        reference.runtime_tessGetNumericsPolicy(context=context)
    assert caught.value.outcome.code == "TESS_ERR_NOT_INITIALIZED"


@pytest.mark.parametrize("operation", ["sum", "softmax", "mean", "logsumexp", "prod"])
@pytest.mark.parametrize("order", ["fold", {"ring": 3}])
def test_every_reduction_follows_the_order_of_the_descriptor(
    reference: ReferenceAdapter, operation: str, order: Any
) -> None:
    x = counted("fp32", (60, 13), seed=1, exponents=(-3, 1))
    asked = {"operation": operation, "inputs": [x], "attributes": {"axis": 1}}
    answer = reference.numerics_evaluate(**asked, descriptor={"reduction_order": order})
    assert answer["descriptor"]["reduction_order"] == order
    (found,), (canonical,) = answer["outputs"], reference.numerics_evaluate(**asked)["outputs"]
    assert found == FUNCTIONS[f"oracle.{operation}"](x, axis=1, tree=order)
    assert found != canonical


@pytest.mark.parametrize(
    ("operation", "attributes"), [("fft", {}), ("ifft", {}), ("sum", {"axis": 0, "order": "kahan"})]
)
def test_an_order_that_an_operation_cannot_take_is_refused(
    reference: ReferenceAdapter, operation: str, attributes: Mapping[str, Any]
) -> None:
    x = Tensor.from_words("complex64", (2,), [ONE, 0, ONE, 0])
    reference.numerics_evaluate(operation=operation, inputs=[x], attributes=attributes)
    with pytest.raises(Refusal) as caught:
        reference.numerics_evaluate(
            operation=operation, inputs=[x], attributes=attributes, descriptor={"reduction_order": "fold"}
        )
    assert caught.value.outcome.code == "TESS_ERR_UNSUPPORTED"


def test_a_compensated_sum_names_no_order(reference: ReferenceAdapter) -> None:
    answer = reference.numerics_evaluate(
        operation="sum", inputs=[floats(ONE, ONE)], attributes={"axis": 0, "order": "kahan"}
    )
    assert "reduction_order" not in answer["descriptor"]


def test_what_is_declared_follows_from_the_attributes(reference: ReferenceAdapter) -> None:
    asked = {"operation": "matmul", "dtype": "bf16", "shapes": [[2, 4], [4, 2]]}
    plain = reference.numerics_declared(**asked)
    given = reference.numerics_declared(**asked, attributes={"tree": "pairwise", "accum": "fp64", "out": "fp32"})
    assert (plain["tree"], plain["arithmetic"]["accumulator"]) == ("fold", "fp32")
    assert (given["tree"], given["arithmetic"]["accumulator"]) == ("pairwise", "fp64")
    with pytest.raises(Refusal, match="softmax is not defined on int8"):
        reference.numerics_declared(operation="softmax", dtype="int8", shapes=[[4]])
    with pytest.raises(NotSupported):
        reference.numerics_declared(operation="sum", dtype="fp32", shapes=[[4]], attributes={"order": "kahan"})


def test_a_collective_refuses_a_tree_over_another_number_of_ranks(reference: ReferenceAdapter) -> None:
    for op in ("sum", "max"):
        with pytest.raises(Refusal, match="2 elements are reduced, the tree has 3 leaves"):
            reference.collectives_all_reduce(
                inputs=[floats(ONE)] * 2, op=op, descriptors=[{"reduction_order": [[0, 1], 2]}] * 2
            )
