"""What is no kernel of a target: its entry, its instructions, its shared memory; and what is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tessera_reference.graph.elementwise import Add as GraphAdd
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.types import Pointer, Scalar, Vector
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations.memory import AddressOf, Zero
from tessera_reference.target_ir.operations.vendors import MFMA, Barrier, MmaSync
from tessera_reference.target_ir.operations.vendors import RocdlBarrier as AmdBarrier
from tessera_reference.target_ir.verifier import verify_target_kernel


def refused(made: Any, target: str = "sm_90") -> Any:
    """The one thing that is wrong."""
    with pytest.raises(Rejection) as caught:
        verify_target_kernel(made, target_of(target))
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def shared(elements: int) -> Any:
    def body(build: Any, *parameters: Any) -> None:
        build(AddressOf, global_name="tile", elements=elements, elem_type=DTYPES["fp32"])

    return body


def nothing(build: Any, *parameters: Any) -> None:
    """An empty body."""


def test_a_kernel_is_accepted(kernels: Any) -> None:
    parameters = {"x": kernels.buffer, "n": Scalar(DTYPES["int64"]), "s": kernels.fp32}
    verify_target_kernel(kernels.kernel(parameters, shared(8), smem=32), target_of("sm_90"))


@pytest.mark.parametrize(
    ("missing", "clause"), [("grid", "LANG-08.1-04"), ("block", "LANG-08.1-11"), ("smem_bytes", "LANG-08.1-05")]
)
def test_an_entry_states_its_launch(kernels: Any, missing: str, clause: str) -> None:
    made = kernels.kernel({"x": kernels.buffer}, nothing)
    attributes = {name: value for name, value in made.attributes.items() if name != missing}
    assert refused(replace(made, attributes=attributes)).clause == clause


def test_a_grid_has_three_components(kernels: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, nothing, grid=(4, 4))
    assert refused(made).clause == "LANG-08.1-07"


def test_a_symbol_has_the_prefix(kernels: Any) -> None:
    assert refused(kernels.kernel({"x": kernels.buffer}, nothing, name="k")).clause == "LANG-16-01"


def test_buffers_come_before_scalars(kernels: Any) -> None:
    made = kernels.kernel({"n": kernels.int32, "x": kernels.buffer}, nothing)
    assert refused(made).clause == "LANG-16-02"


def test_a_buffer_is_a_global_pointer(kernels: Any) -> None:
    assert refused(kernels.kernel({"x": Pointer(3)}, nothing)).clause == "LANG-08.1-02"


def test_a_scalar_has_32_or_64_bits(kernels: Any) -> None:
    assert refused(kernels.kernel({"n": Scalar(DTYPES["int8"])}, nothing)).clause == "LANG-08.1-03"


def test_globals_fit_the_declared_shared_memory(kernels: Any) -> None:
    assert refused(kernels.kernel({"x": kernels.buffer}, shared(9), smem=32)).clause == "LANG-07.3-04"


def test_declared_shared_memory_fits_the_target(kernels: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, nothing, smem=100_000, target="gfx90a", block=(64, 1, 1))
    assert refused(made, "gfx90a").clause == "LANG-07.3-03"


@pytest.mark.parametrize(("target", "barrier"), [("sm_90", AmdBarrier), ("gfx90a", Barrier)])
def test_an_instruction_of_the_other_vendor_is_refused(kernels: Any, target: str, barrier: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, lambda build, x: build.all(barrier), target=target)
    assert refused(made, target).clause == "LANG-11-10"


def test_fp8_has_no_mma_on_sm_80(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        fp8, fp32 = DTYPES["fp8_e4m3"], DTYPES["fp32"]
        a, b, c = (build(Zero, returns=Vector(count, held)) for count, held in ((16, fp8), (8, fp8), (4, fp32)))
        build(MmaSync, a, b, c, m=16, n=8, k=32)

    made = kernels.kernel({"x": kernels.buffer}, body, target="sm_80")
    assert refused(made, "sm_80").clause == "LANG-11-10"
    verify_target_kernel(kernels.kernel({"x": kernels.buffer}, body, target="sm_90"), target_of("sm_90"))


def test_an_mfma_of_the_other_generation_is_refused(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        held, int32 = DTYPES["int8"], DTYPES["int32"]
        a, b, c = (build(Zero, returns=Vector(count, each)) for count, each in ((8, held), (8, held), (4, int32)))
        build(MFMA["mfma.i32.16x16x32.i8"], a, b, c)

    made = kernels.kernel({"x": kernels.buffer}, body, target="gfx90a", block=(64, 1, 1))
    assert refused(made, "gfx90a").clause == "LANG-11-10"


def test_an_operation_of_another_level_is_refused(kernels: Any) -> None:
    made = kernels.kernel({"n": kernels.int32}, lambda build, n: build(GraphAdd, n, n))
    assert refused(made).clause == "LANG-08-01"
