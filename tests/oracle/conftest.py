from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.exact import values_of
from tessera_conformance.tensors import Tensor

NAMES = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "complex64": "complex64", "complex128": "complex128"}


@pytest.fixture
def draw() -> random.Random:
    return random.Random(20260101)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(20260101))


@pytest.fixture
def scalar() -> Callable[[str, float], Tensor]:
    """A scalar tensor of fp32 or fp64 from a Python float that the type holds exactly."""

    def make(dtype: str, value: float) -> Tensor:
        return Tensor(dtype, (), struct.pack({"fp32": "<f", "fp64": "<d"}[dtype], value))

    return make


class Fast:
    @staticmethod
    def tensor(array: Any, dtype: str | None = None) -> Tensor:
        """A numpy array as a tensor; bf16 from numbers that are rounded to it first."""
        array = np.asarray(array)
        if dtype == "bf16":
            words = Fast.bf16(array.astype(np.float32)).view(np.uint32) >> np.uint32(16)
            return Tensor(dtype, array.shape, words.astype("<u2").tobytes())
        return Tensor(dtype or NAMES[array.dtype.name], array.shape, np.ascontiguousarray(array).tobytes())

    @staticmethod
    def bf16(array: Any) -> Any:
        """fp32 numbers rounded to bf16, kept in fp32."""
        return _shortened(array, 16)

    @staticmethod
    def tf32(array: Any) -> Any:
        """fp32 numbers rounded to the ten fraction bits of tf32."""
        return _shortened(array, 13)

    @staticmethod
    def within(name: str, inputs: Sequence[Tensor], result: Any, arguments: Mapping[str, Any] | None = None) -> bool:
        found = result if isinstance(result, Tensor) else Fast.tensor(result, inputs[0].dtype if inputs else None)
        limits = bounds.enclose(name, inputs, arguments or {})
        return all(limit is not None and limit.holds(x) for limit, x in zip(limits, values_of(found), strict=True))


@pytest.fixture
def fast() -> type[Fast]:
    return Fast


def _shortened(array: Any, dropped: int) -> Any:
    words = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1) + ((words >> np.uint32(dropped)) & np.uint32(1))
    mask = np.uint32(0xFFFFFFFF ^ ((1 << dropped) - 1))
    return ((words + half) & mask).view(np.float32)
