from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from tessera_conformance.tensors import Tensor


@pytest.fixture
def draw() -> random.Random:
    return random.Random(20260101)


@pytest.fixture
def scalar() -> Callable[[str, float], Tensor]:
    """A scalar tensor of fp32 or fp64 from a Python float that the type holds exactly."""

    def make(dtype: str, value: float) -> Tensor:
        return Tensor(dtype, (), struct.pack({"fp32": "<f", "fp64": "<d"}[dtype], value))

    return make
