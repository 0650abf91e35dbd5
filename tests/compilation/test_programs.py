"""Payloads of another form, and the caches of launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.fatbin import Fatbin, read
from tessera_reference.abi.status import Failure
from tessera_reference.compilation.executables import configured, executable_from, executables_of, specialise
from tessera_reference.compilation.images import compile_module
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.numerics.array import Array

SCALED = """module m {
  kernel scaled(X: tensor<MxNxfp32>, Y: tensor<MxNxfp32>, M: int32, N: int64, by: fp32) { Y = X * by; }
  kernel total(X: tensor<6xint32>, d: int32, Y: tensor<6xint32>) { Y = X / d; }
  kernel nothing() { }
}
"""
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.fixture(scope="module")
def fatbin() -> Fatbin:
    return read(compile_module(SCALED, ["sm_90", "gfx942"]))


def test_a_payload_that_is_something_else_is_refused(fatbin: Fatbin) -> None:
    entry = fatbin.metadata.kernel("scaled")
    assert entry is not None
    with pytest.raises(Rejection):
        executable_from(b"nonsense", entry, "sm_90")
    with pytest.raises(Failure, match="no kernel scaled"):
        executable_from(specialise(fatbin, "nothing", "sm_90"), entry, "sm_90")


MEMREF = "memref<4x32xfp32>[addrspace=global]"
KERNEL = f"""\
  "tessera.tile.kernel"() ({{
  ^bb0(%x: {MEMREF}, %y.out: {MEMREF}, %scale: fp32):
    %b = "tessera.tile.block_id"() {{axis = "x"}} : () -> int32
    %t = "tessera.tile.thread_id"() {{axis = "x"}} : () -> int32
    %v = "tessera.tile.load"(%x, %b, %t) : ({MEMREF}, int32, int32) -> fp32
    %w = "tessera.graph.multiply"(%v, %scale) : (fp32, fp32) -> fp32
    "tessera.tile.store"(%w, %y.out, %b, %t) : (fp32, {MEMREF}, int32, int32) -> ()
    "tessera.graph.return"() : () -> ()
  }}) {{sym_name = "tss_kernel_scale", function_type = ({MEMREF}, {MEMREF}, fp32) -> (), grid = [4, 1, 1], \
block = [32, 1, 1], smem_bytes = 64, dynamic_smem = true}} : () -> ()
"""
MODULE = f'"builtin.module"() ({{\n{KERNEL}}}) {{sym_name = "m"}} : () -> ()\n'


def given(build: Any) -> dict[str, Array]:
    return {
        "x": build.array("fp32", np.arange(128).reshape(4, 32)),
        "p1": build.array("fp32", np.full((4, 32), -1)),
        "scale": build.array("fp32", 2),
    }


@pytest.fixture
def kernels_fatbin(build: Any) -> Fatbin:
    found = build.compiled(MODULE, ("sm_90", "gfx942"), at="tile")
    assert isinstance(found, Fatbin)
    return found


def test_one_kernel_is_made_for_one_configuration(kernels_fatbin: Fatbin) -> None:
    made = executables_of(kernels_fatbin, "scale", "sm_90")
    kernel = made.kernel  # type: ignore[attr-defined]  # of a tile kernel
    assert configured(kernel, (2, 1, 1), (8, 1, 1)) is configured(kernel, (2, 1, 1), (8, 1, 1))
    assert configured(kernel, (2, 1, 1), (8, 1, 1)).attributes["block"] == (8, 1, 1)
