"""Products and rows lowered to kernels: room in shared memory, the order of blocks, levels within a warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.types import Tensor
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.tile.interpreter import run_kernel
from tessera_reference.tile.lowering.contractions import require_accumulator


def test_accumulators_that_find_no_room_make_tiles_shorter_along_k(programs: Any) -> None:
    """Two stages of 128x128x64 are all the 64 KiB that a block of this target has."""
    signature = "a: tensor<128x64xbf16>, b: tensor<64x128xbf16>"
    lowered = programs.lower("op.matmul(a, b)", signature, "gfx942", tile=(128, 128, 64), depth=2)
    assert lowered.operations("shared.alloc")[0].returns.shape == (2, 128, 32)


def test_the_blocks_run_in_any_order(programs: Any) -> None:
    kernel = programs.lower("op.matmul(a, b)", "a: tensor<33x40xbf16>, b: tensor<40x17xbf16>", tile=(16, 16, 16)).kernel
    a, b = programs.numbers("bf16", (33, 40), 1), programs.numbers("bf16", (40, 17), 2)
    empty = Array(DTYPES["bf16"], np.zeros((33, 17), np.float32))
    runs = [run_kernel(kernel, (a, b, empty), target_of("sm_90"), order=order) for order in ("forward", "reverse")]
    assert runs[0][2].to_bits() == runs[1][2].to_bits()


@pytest.mark.parametrize(
    ("operands", "accum"),
    [("fp32", "fp16"), ("fp32", "bf16"), ("fp64", "fp32"), ("bf16", "fp16"), ("fp8_e5m2", "fp8_e5m2")],
)
def test_an_accumulator_that_does_not_hold_the_operands_is_refused(operands: str, accum: str) -> None:
    square = Tensor((2, 2), DTYPES[operands])
    with pytest.raises(Refusal, match="accumulates in"):
        require_accumulator(MatMul(a=square, b=square, accum=DTYPES[accum]))
    require_accumulator(MatMul(a=square, b=square))


def test_levels_within_a_warp_are_shuffles_and_those_above_wait_at_barriers(programs: Any) -> None:
    lowered = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>")
    assert [operation.delta for operation in lowered.operations("shfl.sync")] == [1, 2, 4, 8, 16]
    assert [operation.returns.shape for operation in lowered.operations("shared.alloc")][-1] == (2, 4)
    labels = [operation.label for operation in lowered.operations("barrier")]
    assert labels.count("the nodes of this level are there") == 2
    wide = programs.lower("op.max(x, axis=1)", "x: tensor<2x100xfp32>", "gfx942")
    assert [operation.delta for operation in wide.operations("shfl.sync")] == [1, 2, 4, 8, 16, 32]
