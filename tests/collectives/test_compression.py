"""Compression and error feedback: attributes, bounds, and what does not depend on how a tensor is shaped."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives.compression import (
    DEFAULT_BLOCK,
    WIRES,
    Compression,
    compress,
    feed_back,
    read_compression,
)
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import NonFinite
from tessera_reference.numerics.formats import DTYPES

FP32 = DTYPES["fp32"]
HALVES = {"fp8_e4m3": 28, "fp8_e5m2": 14, "fp16": 4094, "bf16": 256}
"""What the largest magnitude of a block is divided by for half a step."""

NUMBERS = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=30)
WIRE_NAMES = st.sampled_from(list(WIRES))
GRID = st.lists(st.integers(-2000, 2000), min_size=4, max_size=4)


def fp32(values: Any) -> Array:
    return Array(FP32, np.array(values, np.float32))


@given(NUMBERS, WIRE_NAMES, st.integers(1, 40))
def test_every_element_is_within_half_a_step_of_its_block(values: list[float], name: str, block: int) -> None:
    x = fp32(values)
    given_ = read_compression("f", name, "blockwise", block)
    restored = compress("f", x, given_).restored.values.tolist()
    for start in range(0, len(values), block):
        part = [Fraction(value) for value in x.values.tolist()[start : start + block]]
        m = max(map(abs, part))
        slack = m / (1 << 21) + Fraction(DTYPES["fp8_e5m2"].max_finite) * Fraction(1, 1 << 149)
        for value, found in zip(part, restored[start : start + block], strict=True):
            assert abs(value - Fraction(found)) <= m / HALVES[given_.wire.name] + slack


@given(NUMBERS, WIRE_NAMES, st.integers(1, 9))
def test_blocks_do_not_depend_on_the_shape(values: list[float], name: str, block: int) -> None:
    values = values[: len(values) // 2 * 2] or values * 2
    given_ = read_compression("f", name, "blockwise", block)
    flat, square = (compress("f", fp32(np.reshape(values, shape)), given_) for shape in ((-1,), (2, -1)))
    assert flat.payload.to_bits() == square.payload.to_bits()
    assert flat.restored.to_bits() == square.restored.to_bits()
    assert flat.scales is not None and square.scales is not None
    assert flat.scales.to_bits() == square.scales.to_bits()
    assert square.payload.shape == square.restored.shape == (2, len(values) // 2)


@pytest.mark.parametrize("name", WIRES)
def test_the_end_of_fp32_stays_finite(name: str) -> None:
    top = float(np.finfo(np.float32).max)
    found = compress("f", fp32([top, -top, top / 3]), read_compression("f", name, "blockwise", 2))
    assert np.isfinite(found.restored.values).all()


def test_attributes_and_their_defaults() -> None:
    assert read_compression("f", "fp8") == Compression(DTYPES["fp8_e4m3"])
    assert read_compression("f", "fp8_e5m2", "blockwise") == Compression(DTYPES["fp8_e5m2"], DEFAULT_BLOCK)
    assert read_compression("f", "bf16", "blockwise", 3) == Compression(DTYPES["bf16"], 3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (("int8",), "wire dtype 'int8'; expected one of bf16, fp16, fp8, fp8_e4m3, fp8_e5m2"),
        ((None,), "wire dtype None"),
        (([],), "wire dtype []"),
        (("fp8", "rowwise"), "qscheme 'rowwise'; expected one of blockwise"),
        (("fp8", 5), "qscheme 5"),
        (("fp8", []), "qscheme []"),
        (("fp8", None, 4), "block 4 without a qscheme; expected qscheme = blockwise, or no block"),
        (("fp8", "blockwise", 0), "block 0; expected a whole number of elements from 1"),
        (("fp8", "blockwise", True), "block True"),
        (("fp8", "blockwise", 1 << 63), "block 9223372036854775808"),
    ],
)
def test_attributes_that_are_refused(attributes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        read_compression("f", *attributes)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_an_element_without_a_scale_is_named_by_its_place() -> None:
    with pytest.raises(NonFinite, match=re.escape("nan at [1, 2] is not finite")):
        compress("f", fp32([[1, 2, 3], [4, 5, np.nan]]), read_compression("f", "fp8", "blockwise", 4))


@given(st.lists(GRID, min_size=1, max_size=8), WIRE_NAMES, st.sampled_from([None, 1, 3]))
def test_the_invariant_is_exact_where_nothing_rounds(rows: list[list[int]], name: str, block: int | None) -> None:
    """Without scales sums of small integers are exact; a bf16 block has the scale 1."""
    if block is not None:
        name = "bf16"
    given_ = read_compression("f", name, None if block is None else "blockwise", block)
    steps = feed_back("f", [fp32(row) for row in rows], given_)
    sent = [sum(Fraction(float(step.sent.values[i])) for step in steps) for i in range(4)]
    kept = [Fraction(float(each)) for each in steps[-1].residual.values]
    assert [a + b for a, b in zip(sent, kept, strict=True)] == [sum(column) for column in zip(*rows, strict=True)]


def test_feedback_names_the_step_and_the_gradient_that_it_refuses() -> None:
    cast, one = read_compression("f", "fp16"), fp32([1.0])
    with pytest.raises(Failure, match="no gradients; expected one of each step"):
        feed_back("f", [], cast)
    with pytest.raises(Failure, match=re.escape("gradients[1] has the shape [2]; expected [1], as gradients[0] has")):
        feed_back("f", [one, fp32([1.0, 2.0])], cast)
    with pytest.raises(Failure, match=re.escape("gradients[1]: data of fp64")) as caught:
        feed_back("f", [one, Array(DTYPES["fp64"], np.ones(1))], cast)
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    with pytest.raises(NonFinite, match=re.escape("step 1, gradient and residual: inf at [0]")):
        feed_back("f", [one, fp32([np.inf])], cast)
    with pytest.raises(NonFinite, match="step 0, what is sent as fp16: inf"):
        feed_back("f", [fp32([70000.0])], cast)


def test_empty_tensors_and_scalars() -> None:
    for shape in ((), (0,), (2, 0)):
        for given_ in (read_compression("f", "fp8"), read_compression("f", "fp8", "blockwise", 2)):
            assert compress("f", fp32(np.ones(shape)), given_).payload.shape == shape
            assert feed_back("f", [fp32(np.ones(shape))] * 2, given_)[1].residual.shape == shape
