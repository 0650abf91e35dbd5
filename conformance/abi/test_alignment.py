"""The alignment that vectorized loads need (runtime specification, section 9)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText
from tessera_conformance.chapters.ir.kit.level_programs import executed_text
from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

VECTOR = 16
"""Bytes of the widest load of a lane, and of a row that ldmatrix reads."""


@clause("RT-09-08")
def test_device_memory_is_aligned_for_vectors(impl, check):
    """Memory begins at a multiple of 16 bytes, whatever was allocated before it (AMB-RT-103)."""
    session = opened(impl, check)
    pointers = [session.allocate(count) for count in (1, 3, 17, 2, 64, 100, 5)]
    check.equal([pointer % VECTOR for pointer in pointers], [0] * len(pointers), "the remainders of 16")


@feature("target-ir-text")
@clause("RT-09-08")
@pytest.mark.parametrize("skew", [0, 8, 4, 1], ids=["0-bytes", "16-bytes", "8-bytes", "2-bytes"])
def test_ldmatrix_reads_rows_at_multiples_of_16_bytes(impl, check, skew):
    """Rows that begin between them are an error where the kernel executes; at them they are read."""
    kernel = loading_a_matrix(skew)
    observation = executed_text(impl, kernel.module, "target", x=tensor_of("bf16", [1.0] * 512))
    if skew % 8:
        check.rejects(observation, category="tile", phase="execute")
    else:
        check.returns(observation, "the matrix is loaded")


def loading_a_matrix(skew):
    """A warp that fills 1,024 bytes of shared memory and loads a matrix whose rows begin `skew` bf16 behind."""
    pointer, local = "!llvm.ptr<1>", "!llvm.ptr<3>"
    kernel = KernelText({"x": pointer}, level="target", block=(32, 1, 1), smem_bytes=1024)
    thread = kernel.op("nvvm.read.ptx.sreg.tid.x", gives="int32")

    def number(value):
        return kernel.op("llvm.mlir.constant", gives="int32", value=value)

    def at(base, index, gives):
        return kernel.op("llvm.getelementptr", base, index, gives=gives, elem_type="bf16")

    stated = {"global_name": "tile", "elements": 512, "elem_type": "bf16", "alignment": VECTOR}
    tile = kernel.op("llvm.mlir.addressof", gives=local, **stated)
    begin = kernel.op("llvm.mul", thread, number(16), gives="int32")
    for place in (0, 8):
        index = kernel.op("llvm.add", begin, number(place), gives="int32")
        loaded = kernel.op("llvm.load", at(kernel["x"], index, pointer), gives="vector<8xbf16>")
        kernel.op("llvm.store", loaded, at(tile, index, local))
    kernel.op("nvvm.barrier0")
    scaled = kernel.op("llvm.mul", thread, number(8), gives="int32")
    row = kernel.op("llvm.add", scaled, number(skew), gives="int32")
    kernel.op("nvvm.ldmatrix", at(tile, row, local), gives="vector<2xbf16>", num=1, layout="row")
    return kernel
