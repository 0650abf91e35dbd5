"""Movement against numpy on tensors of distinct elements; choice and corners by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, prod
from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import tensor

Array = np.ndarray[Any, Any]


def numbered(*shape: int, start: int = 0) -> Array:
    return np.arange(start, start + prod(shape), dtype="<i2").reshape(shape)


def int16(x: Array) -> Tensor:
    return Tensor("int16", x.shape, np.ascontiguousarray(x).tobytes())


def int32(*values: int) -> Tensor:
    return tensor("int32", list(values))


CASES: dict[str, tuple[Tensor, Array]] = {
    "transpose": (oracle.transpose(int16(numbered(2, 3, 4))), numbered(2, 3, 4).T),
    "perm": (oracle.transpose(int16(numbered(2, 3, 4)), perm=[2, 0, 1]), numbered(2, 3, 4).transpose(2, 0, 1)),
    "reshape": (oracle.reshape(int16(numbered(2, 6)), shape=[3, -1]), numbered(3, 4)),
    "broadcast": (
        oracle.broadcast(int16(numbered(3, 1)), shape=[2, 3, 4]),
        np.broadcast_to(numbered(3, 1), (2, 3, 4)),
    ),
    "slice": (
        oracle.slice_(int16(numbered(4, 6, 2)), starts=[3, 1], stops=[0, 6], steps=[-2, 3]),
        numbered(4, 6, 2)[3:0:-2, 1:6:3],
    ),
    "gather": (
        oracle.gather(int16(numbered(2, 3, 4)), tensor("int32", [[2, 0], [1, 1]]), axis=-2),
        numbered(2, 3, 4)[:, [[2, 0], [1, 1]]],
    ),
    "gather of one": (oracle.gather(int16(numbered(3, 2)), tensor("int64", 1), axis=0), numbered(3, 2)[1]),
    "concat": (
        oracle.concat(int16(numbered(2, 1)), int16(numbered(2, 3, start=90)), int16(numbered(2, 1)), axis=1),
        np.concatenate([numbered(2, 1), numbered(2, 3, start=90), numbered(2, 1)], 1),
    ),
    "pad": (
        oracle.pad(int16(numbered(2, 3)), low=[1, 0], high=[0, 2], value=-7),
        np.pad(numbered(2, 3), ((1, 0), (0, 2)), constant_values=-7),
    ),
    "iota": (oracle.iota(shape=[2, 3], axis=-1, dtype="int16"), np.indices((2, 3), dtype="<i2")[1]),
    "select": (
        oracle.select(tensor("bool", [[1], [0]]), int16(numbered(3)), int16(numbered(2, 3, start=50))),
        np.where([[True], [False]], numbered(3), numbered(2, 3, start=50)).astype("<i2"),
    ),
    "scatter_add": (
        oracle.scatter_add(int16(numbered(3, 2)), int32(2, 0, 2), int16(numbered(3, 2, start=10)), axis=0),
        np.array([[12, 14], [2, 3], [4 + 10 + 14, 5 + 11 + 15]], "<i2"),
    ),
    "constant": (
        oracle.const_tensor(shape=[2, 2], dtype="int16", value=[[1, -2], [3, 4]]),
        np.array([[1, -2], [3, 4]], "<i2"),
    ),
    "flat constant": (
        oracle.const_tensor(shape=[2, 2], dtype="int16", value=[1, -2, 3, 4]),
        np.array([[1, -2], [3, 4]], "<i2"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_numpy_agrees(name: str) -> None:
    found, expected = CASES[name]
    assert (found.shape, found.data) == (expected.shape, np.ascontiguousarray(expected).tobytes())


@pytest.mark.parametrize(
    ("function", "operands", "expected"),
    [
        (oracle.maximum, ([nan, 1, -0.0, 0, -inf], [1, nan, 0, -0.0, 3]), [nan, nan, 0, 0, 3]),
        (oracle.minimum, ([nan, 1, -0.0, 0, -inf], [1, nan, 0, -0.0, 3]), [nan, nan, -0.0, -0.0, -inf]),
        (oracle.clamp, ([5, -5, nan, 0, 1], [-1, -1, -1, nan, 3], [2, 2, 2, 2, 2]), [2, -1, nan, nan, 2]),
        (oracle.abs_, ([-0.0, -inf, -3, 2, nan],), [0, inf, 3, 2, nan]),
    ],
)
def test_choice_by_value(
    function: Callable[..., Tensor], operands: tuple[list[float], ...], expected: list[float]
) -> None:
    found = function(*(tensor("fp16", operand) for operand in operands))
    assert first_difference(found, tensor("fp16", expected)) is None


def test_the_least_integer_is_its_own_magnitude() -> None:
    assert oracle.abs_(tensor("int8", [-128, -127])) == tensor("int8", [-128, 127])


def test_constants_are_rounded_once_and_have_two_parts_where_they_are_complex() -> None:
    assert oracle.const_tensor(shape=[1], dtype="bf16", value="0.1").bits() == "3dcd"
    assert oracle.pad(tensor("bf16", [0]), low=[0], high=[1], value="1.00390625000000000000001").bits() == "00003f81"
    assert oracle.const_tensor(shape=[1], dtype="complex64", value=1).bits() == "3f80000000000000"


def test_additions_are_made_in_ascending_order_in_the_accumulator() -> None:
    x, indices = tensor("fp32", [0]), int32(0, 0, 0, 0)
    terms = tensor("fp32", [2.0**24, 1, 1, -(2.0**24)])
    assert oracle.scatter_add(x, indices, terms, axis=0) == tensor("fp32", [0])
    narrow = tensor("bf16", [256] + [0.25] * 4)
    total = oracle.scatter_add(tensor("bf16", [0]), int32(*[0] * 5), narrow, axis=0)
    assert total == tensor("bf16", [256]), "257 is a tie"


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: oracle.gather(x, int32(2), axis=0),
        lambda x: oracle.gather(x, int32(-1), axis=0),
        lambda x: oracle.gather(x, int32(0), axis=1),
        lambda x: oracle.slice_(x, starts=[0], stops=[3]),
        lambda x: oracle.broadcast(x, shape=[3]),
        lambda x: oracle.const_tensor(shape=[2], dtype="int16", value=[1, 2, 3]),
    ],
)
def test_what_lies_outside_is_refused(ask: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(BadArgument):
        ask(int16(numbered(2)))
