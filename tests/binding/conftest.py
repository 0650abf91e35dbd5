"""A module of small kernels, and a context with a mesh to run them on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tessera_reference as ts
from tessera_reference.compilation.images import compile_module

SOURCE = """
module demo {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxfp32>, K: tensor<BxHxLxDxfp32>, V: tensor<BxHxLxDxfp32>,
                               O: tensor<BxHxLxDxfp32>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = op.matmul(op.softmax(op.matmul(Q, op.transpose(K, perm=[0,1,3,2])) * scale), V);
  }
  kernel twice(X: tensor<Nxfp32>, Y: tensor<Nxfp32>, N: int32) { Y = X + X; }
  kernel increase(X: tensor<Nxfp32>, N: int32) { X = X + 1.0; }
  kernel half(X: tensor<4xbf16>, Y: tensor<4xbf16>) { Y = X * 0.5; }
  kernel quotient(X: tensor<4xint32>, Y: tensor<4xint32>) { Y = X / Y; }
  kernel times(X: tensor<2xint64>, factor: int64) { X = X * factor; }
}
"""


@pytest.fixture(scope="session")
def image() -> bytes:
    """The fatbin of the kernels above."""
    return compile_module(SOURCE, ["sm_90"], ir_pack=True)


@pytest.fixture
def ctx() -> Iterator[ts.Context]:
    """A context that is the default one during a test."""
    with ts.init(environment={}) as context:
        yield context


@pytest.fixture
def mesh(ctx: ts.Context) -> ts.Mesh:
    """Eight devices, two by four."""
    return ts.mesh(devices=range(8), axes={"tp": 2, "dp": 4})


@pytest.fixture
def pair(ctx: ts.Context) -> ts.Mesh:
    """Two devices along dp."""
    return ts.mesh(devices=[5, 2], axes={"dp": 2})


@pytest.fixture
def mod(ctx: ts.Context, image: bytes) -> ts.Module:
    """The kernels, loaded."""
    return ts.module.load(image)
