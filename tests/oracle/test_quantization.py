"""Blockwise quantisation, error feedback and top-k, with the machine's arithmetic and ml_dtypes, and by hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

LARGEST = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0, "fp16": 65504.0}


def tensor(x: Any) -> Tensor:
    x = np.ascontiguousarray(x, np.float32)
    return Tensor("fp32", x.shape, x.tobytes())


def array(x: Tensor) -> Any:
    return np.frombuffer(x.data, "<f4").reshape(x.shape)


@pytest.mark.parametrize(
    ("wire", "name"), [("fp8_e4m3", "float8_e4m3fn"), ("fp8_e5m2", "float8_e5m2"), ("fp16", "float16")]
)
def test_blocks_are_scaled_to_the_largest_value(draw: random.Random, wire: str, name: str) -> None:
    """Seven elements a row in blocks of three: the last block of a row has one."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: pip install ml_dtypes")
    x = np.array([[draw.gauss(0, 1) * 2.0 ** draw.randint(-9, 9) for _ in range(7)] for _ in range(5)], np.float32)
    codes, scales = oracle.quantize(tensor(x), wire=wire, block=3)
    assert (codes.shape, scales.shape) == ((5, 7), (5, 3))
    expected_scales = np.stack([np.abs(part).max(1) for part in (x[:, :3], x[:, 3:6], x[:, 6:])], 1)
    expected_scales = expected_scales / np.float32(LARGEST[wire])
    assert array(scales).tobytes() == expected_scales.tobytes()
    spread = np.repeat(expected_scales, [3, 3, 1], axis=1)
    limited = np.clip(x / spread, -LARGEST[wire], LARGEST[wire])
    narrow = limited.astype(np.float16 if wire == "fp16" else getattr(ml_dtypes, name))
    assert codes.words().tolist() == narrow.view(f"u{narrow.itemsize}").ravel().tolist()
    restored = oracle.dequantize(codes, scales, block=3)
    assert array(restored).tobytes() == (narrow.astype(np.float32) * spread).tobytes()


def test_bf16_has_no_scale_and_a_block_of_zeros_the_scale_one() -> None:
    x = np.array([[0.0, -0.0, 1.00390625, 3]], np.float32)
    codes, scales = oracle.quantize(tensor(x), wire="bf16", block=2)
    assert codes.bits() == "0000" + "8000" + "3f80" + "4040"
    assert scales.bits() == "3f800000" * 2
    codes, scales = oracle.quantize(tensor(x[:, :2]), wire="fp8_e4m3", block=2)
    assert (codes.bits(), scales.bits()) == ("0080", "3f800000")


def test_a_scale_that_vanishes_is_one() -> None:
    """The smallest fp32 number over 448 rounds to zero."""
    codes, scales = oracle.quantize(Tensor.from_bits("fp32", (1,), "00000001"), wire="fp8_e4m3", block=4)
    assert (codes.bits(), scales.bits()) == ("00", "3f800000")


def test_feedback_carries_what_was_not_sent(draw: random.Random) -> None:
    g, r = (np.array([draw.gauss(0, 1) for _ in range(8)], np.float32) for _ in range(2))
    sent, left = oracle.error_feedback(tensor(g), tensor(r), wire="fp8_e5m2", block=4)
    whole = g + r
    expected = oracle.dequantize(*oracle.quantize(tensor(whole), wire="fp8_e5m2", block=4), block=4)
    assert sent == expected
    assert array(left).tobytes() == (whole - array(expected)).tobytes()


def test_the_largest_magnitudes_in_order_of_their_places() -> None:
    values, places = oracle.top_k(tensor([1, -3, 3, 0, -2, 3]), k=3)
    assert (array(values).tolist(), places.words().tolist()) == ([-3, 3, 3], [1, 2, 5])
    values, places = oracle.top_k(tensor([1, -3, 3, 0, -2, 3]), k=2)
    assert (array(values).tolist(), places.words().tolist()) == ([-3, 3], [1, 2])
    assert oracle.top_k(tensor([1, -np.inf, 3]), k=1)[1].words().tolist() == [1]
    assert oracle.top_k(tensor([1]), k=0)[0].shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"wire": "fp64", "block": 2}, "wire"),
        ({"wire": "bf16", "block": 0}, "block"),
        ({"wire": "bf16", "block": 2.0}, "block"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(BadArgument, match=name):
        oracle.quantize(tensor([1, 2]), **arguments)


def test_what_is_not_finite_is_not_sent() -> None:
    for bad in (np.inf, np.nan):
        with pytest.raises(BadArgument, match="infinity or NaN"):
            oracle.quantize(tensor([1, bad]), wire="bf16", block=2)
    with pytest.raises(BadArgument, match="NaN"):
        oracle.top_k(tensor([1, np.nan]), k=1)
    with pytest.raises(BadArgument, match="fp32"):
        oracle.quantize(Tensor("fp16", (1,), bytes(2)), wire="bf16", block=2)
    with pytest.raises(BadArgument, match="scales"):
        oracle.dequantize(Tensor("bf16", (4,), bytes(8)), tensor([1.0]), block=2)
