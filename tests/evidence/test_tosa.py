"""Matrix products against TOSA's reference model, bit for bit (LANG-15-01; fp32 accumulates bf16)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.matmul import matmul

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tosa(load, monkeypatch):
    load("tosa_reference_model", "tosa-tools")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return load("tosa_model", "tosa-tools")


def given(x: Array) -> np.ndarray:
    """What TOSA is handed: fp32 values, or bf16 codes."""
    return x.values if x.dtype.name == "fp32" else np.frombuffer(x.to_bits(), np.uint16).reshape(x.shape)


def test_products_have_the_same_bits(tosa, matrices, compare):
    for a, b in matrices:
        product = tosa.matmul(a.dtype.name, *a.shape, b.shape[1])
        compare(product(given(a), given(b)), matmul(a, b, out=dtype("fp32")).values)


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_a_larger_product_has_the_same_bits(tosa, name, compare):
    rng = np.random.Generator(np.random.Philox(7))
    codes = rng.integers(0x3F00, 0x4100, (2, 200, 200)) | rng.integers(0, 2, (2, 200, 200)) << 15
    fractions = rng.integers(0, 1 << 16, codes.shape) if name == "fp32" else 0
    values = (codes << 16 | fractions).astype(np.uint32).view(np.float32)
    a, b = (Array(dtype(name), each) for each in values)
    compare(tosa.matmul(name, 200, 200, 200)(given(a), given(b)), matmul(a, b, out=dtype("fp32")).values)
