"""Warps of a block whose last one lacks threads (AMB-LANG-206)."""

from __future__ import annotations

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.text_reader import read_module
from tessera_reference.tile.interpreter import run_kernel

KERNEL = """"builtin.module"() ({{
  "tessera.tile.kernel"() ({{
  ^bb0(%c: memref<16x16xfp32>[addrspace=global]):
    %z = "tessera.tile.fragment.zero"() {{accum = "fp32"}} : () -> fragment<16,16,16,bf16>
    %i = "tessera.graph.constant"() {{value = 0}} : () -> int32
    %w = "tessera.tile.warp_id"() : () -> int32
    %n = "tessera.graph.constant"() {{value = {number}}} : () -> int32
    %first = "tessera.graph.equal"(%w, %n) : (int32, int32) -> bool
    "tessera.tile.if"(%first) ({{
      "tessera.tile.fragment.store"(%z, %c, %i, %i)
        : (fragment<16,16,16,bf16>, memref<16x16xfp32>[addrspace=global], int32, int32) -> ()
      "tessera.graph.yield"() : () -> ()
    }}, {{
      "tessera.graph.yield"() : () -> ()
    }}) : (bool) -> ()
    "tessera.graph.return"() : () -> ()
  }}) {{sym_name = "tss_kernel_k", function_type = (memref<16x16xfp32>[addrspace=global]) -> (),
      grid = [1, 1, 1], block = [48, 1, 1], smem_bytes = 0, target = "sm_90"}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""


def stored_by(warp: int) -> bytes:
    kernel = read_module(KERNEL.format(number=warp)).functions["tss_kernel_k"]
    (buffer,) = run_kernel(kernel, [None], target_of("sm_90"))
    return buffer.to_bits()


def test_a_whole_warp_works_beside_one_that_lacks_threads() -> None:
    assert stored_by(0) == bytes(16 * 16 * 4)


def test_the_warp_that_lacks_threads_does_not() -> None:
    with pytest.raises(Rejection, match="part of warp 1"):
        stored_by(1)
