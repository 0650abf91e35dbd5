"""Node arithmetics as values."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.arithmetic import ModelError, NodeArithmetic, canonical

WHOLE = {
    "product": "fused",
    "accumulator": "fp32",
    "rounding": "toward_zero",
    "alignment_bits": 24,
    "subnormals": "flushed",
}


def test_json_both_ways() -> None:
    assert NodeArithmetic.from_json(WHOLE).to_json() == WHOLE
    assert NodeArithmetic.from_json(WHOLE).alignment_bits == 24


@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [("bf16", "fp32"), ("tf32", "fp32"), ("fp8_e4m3", "fp32"), ("fp64", "fp64"), ("int8", "int32"), ("int64", "int64")],
)
def test_the_canon(dtype: str, accumulator: str) -> None:
    assert canonical(dtype).to_json() == {
        "product": "rounded",
        "accumulator": accumulator,
        "rounding": "nearest_even",
        "alignment_bits": None,
        "subnormals": "kept",
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"product": "both"}, "product"),
        ({"accumulator": "fp33"}, "accumulator"),
        ({"accumulator": "bool"}, "accumulator"),
        ({"accumulator": ["fp32"]}, "accumulator"),
        ({"rounding": "nearest"}, "rounding"),
        ({"alignment_bits": -1}, "alignment_bits"),
        ({"alignment_bits": True}, "alignment_bits"),
        ({"alignment_bits": 1.0}, "alignment_bits"),
        ({"subnormals": None}, "subnormals"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ModelError, match=f"^arithmetic.{field}: expected ") as caught:
        NodeArithmetic.from_json(WHOLE | changes)
    assert caught.value.field == field


@pytest.mark.parametrize("value", [None, "canonical", [], {"product": "rounded"}])
def test_what_is_no_model(value: Any) -> None:
    with pytest.raises(ModelError):
        NodeArithmetic.from_json(value)


def test_complex_numbers_have_no_model() -> None:
    with pytest.raises(ModelError, match="complex64"):
        canonical("complex64")
