"""Single operations of the reference: what they refuse, and what a descriptor or context changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor
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
    ("cast", 1, {"dtype": "fp8"}, "unknown dtype 'fp8'"),
    ("cast", 1, {"dtype": "bf16", "overflow": "wrap"}, "overflow is 'wrap'"),
    ("sum", 1, {"axis": 1}, "axis 1 is out of range for rank 1, allowed is -1 <= axis <= 0"),
    ("sum", 1, {"axis": 0, "tree": [0, 1]}, "3 elements are reduced, the tree has 2 leaves"),
    ("sum", 1, {"axis": 0, "tree": "folded"}, "tree"),
    ("sum", 1, {"axis": 0, "order": "sorted"}, "order is 'sorted'"),
    ("quantize", 1, {"wire": "fp16", "block": 2}, "fp16"),
    ("quantize", 1, {"wire": "bf16", "block": 0}, "block is 0"),
    ("top_k", 1, {"k": 4}, "k is 4, allowed is an integer from 0 to 3"),
    ("dropout", 1, {"rate": 1.0}, "rate is 1.0"),
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
