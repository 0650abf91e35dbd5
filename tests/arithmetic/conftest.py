"""Shared by the tests of orders and node arithmetics."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.tensors import Tensor

NAMES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "int32": "int32", "int8": "int8"}


@pytest.fixture
def draw() -> np.random.Generator:
    return np.random.default_rng(20261)


@pytest.fixture
def tensor() -> Callable[[Any], Tensor]:
    """A tensor of the numbers of a numpy array."""

    def make(array: Any) -> Tensor:
        return Tensor(NAMES[array.dtype.name], array.shape, np.ascontiguousarray(array).tobytes())

    return make


@pytest.fixture
def wide(draw: np.random.Generator) -> Callable[..., Any]:
    """Numbers whose magnitudes spread over many binades."""

    def make(shape: tuple[int, ...], kind: type = np.float32, spread: int = 8) -> Any:
        return (draw.standard_normal(shape) * 2.0 ** draw.integers(-spread, spread + 1, shape)).astype(kind)

    return make


@pytest.fixture(scope="session")
def fused() -> dict[type, Callable[[Any, Any, Any], Any]]:
    """The C library's fused multiply-add."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    found = {}
    for kind, name, c_type in ((np.float32, "fmaf", ctypes.c_float), (np.float64, "fma", ctypes.c_double)):
        function = getattr(library, name)
        function.restype, function.argtypes = c_type, [c_type] * 3
        found[kind] = lambda a, b, c, function=function, kind=kind: kind(function(a, b, c))
    return found


@pytest.fixture
def fractions() -> Callable[[Any], list[Fraction]]:
    return lambda array: [Fraction(float(number)) for number in array]
