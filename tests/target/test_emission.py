"""Emitted texts: accepted by LLVM's verifier and by the vendors' tools, without any permission to fuse."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_reference.ir.operation import Function, Module, Refusal
from tessera_reference.ir.targets import OtherVendor, Target, target_of
from tessera_reference.ir.types import Scalar, Vector
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import lower, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.target_ir.emission.machine_code import (
    NotAccepted,
    assembly,
    checked,
    llvm_module_text,
    permissions,
)
from tessera_reference.target_ir.operations import llvm, memory, vendors
from tessera_reference.target_ir.operations.memory import AddressOf
from tessera_reference.target_ir.operations.vendors import KINDS, MFMA, SHAPES, LoadMatrix, MmaSync

TARGETS = ("sm_80", "sm_90", "gfx90a", "gfx942")


def llvm_text(kernel: Function, target: Target) -> str:
    """LLVM IR of one kernel."""
    return llvm_module_text(Module("kernels", {kernel.name: kernel}, kernel.location), target)


def scalar(name: str) -> Scalar:
    return Scalar(DTYPES[name])


def every_scalar_operation(build: Any, x: Any, y: Any) -> None:
    """Each operation on lanes, for each dtype that it takes."""
    lane = build.thread()
    values = {name: build.load(x, lane, scalar(name)) for name in ("fp32", "fp64", "fp16", "bf16", *llvm.LOGICAL)}
    families = (llvm.Binary, llvm.Lanes, llvm.Extremum)
    binary = [kind for family in families for kind in family.__subclasses__()]
    made = []
    for name, value in values.items():
        for kind in binary:
            if name in getattr(kind, "dtypes", ()):
                made.append(build(kind, value, value))
        if name in llvm.FLOATS:
            made += [build(kind, value) for kind in (llvm.FNeg, llvm.FAbs, llvm.Sqrt)]
            made.append(build(llvm.FCmp, value, value, predicate="une"))
        elif name in llvm.LOGICAL:
            made.append(build(llvm.ICmp, value, value, predicate="eq"))
        for conversion in llvm.Cast.__subclasses__():
            for to in ("fp64", "fp32", "bf16", "fp16", "int64", "int8"):
                with suppress(Refusal):
                    made.append(build(conversion, value, to=DTYPES[to]))
    chosen = build(llvm.Select, values["bool"], values["fp32"], values["fp32"])
    for value in [*made, chosen]:
        build.store(value, y, lane)


@pytest.mark.parametrize("target", TARGETS)
def test_every_scalar_operation_is_accepted(kernels: Any, tools: Any, target: str, tmp_path: Path) -> None:
    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, every_scalar_operation, target=target)
    tools.assemble(llvm_text(made, kernels.target_of(made)), kernels.target_of(made), tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_calls_of_the_library_stay_calls(kernels: Any, tools: Any, target: str, tmp_path: Path) -> None:
    """Every function is emitted for floats of all sizes; the library is linked later."""

    def body(build: Any, x: Any) -> None:
        lane = build.thread()
        for name, callee in llvm.CALLEES.items():
            operands = [build.load(x, lane, Scalar(held)) for held in callee.operands]
            build.store(build(llvm.Call, *operands, callee=name, returns=callee.result), x, lane)

    made = kernels.kernel({"x": kernels.buffer}, body, target=target)
    text = llvm_text(made, kernels.target_of(made))
    assert "declare bfloat @tss_exp_bf16(bfloat)" in text
    tools.assemble(text, kernels.target_of(made), tmp_path)


def matrix_kernel(kernels: Any, target: str, held: str, shape: tuple[int, int, int], spread: Any, product: Any) -> Any:
    dtype = DTYPES[held]
    types = [
        Vector(spread(role, *shape, dtype).held, dtype.accumulator if role == "c" else dtype)
        for role in ("a", "b", "c")
    ]

    def body(build: Any, x: Any, y: Any) -> None:
        lane = build.thread()
        build.store(product(build, *[build.load(x, lane, type_) for type_ in types]), y, lane)

    warp = 64 if target.startswith("gfx") else 32
    return kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, block=(warp, 1, 1), target=target)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_every_mma_sync_is_accepted(kernels: Any, tools: Any, target: str, tmp_path: Path) -> None:
    for held, shapes in SHAPES.items():
        for m, n, k in shapes if target == "sm_90" or not held.startswith("fp8") else ():

            def product(build: Any, *shares: Any, m: int = m, n: int = n, k: int = k) -> Any:
                return build(MmaSync, *shares, m=m, n=n, k=k)

            made = matrix_kernel(kernels, target, held, (m, n, k), vendors.nvidia, product)
            text = llvm_text(made, kernels.target_of(made))
            assert f"mma.sync.aligned.m{m}n{n}k{k}.row.col" in tools.assembly(text, kernels.target_of(made))
            tools.assemble(text, kernels.target_of(made), tmp_path)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_every_mfma_is_accepted(kernels: Any, tools: Any, target: str, tmp_path: Path) -> None:
    for kind in KINDS:
        if target not in kind.targets:
            continue

        def product(build: Any, *shares: Any, name: str = kind.intrinsic) -> Any:
            return build(MFMA[name], *shares)

        made = matrix_kernel(kernels, target, kind.dtype.name, kind.shape, vendors.amd, product)
        text = llvm_text(made, kernels.target_of(made))
        assert "v_mfma_" in tools.assembly(text, kernels.target_of(made))
        tools.assemble(text, kernels.target_of(made), tmp_path)


def test_nvidia_instructions_of_a_block(kernels: Any, tools: Any, tmp_path: Path) -> None:
    """cp.async, its groups, bar.sync, ldmatrix and shfl.sync stand in the PTX."""

    def body(build: Any, x: Any, y: Any) -> None:
        shared = build(AddressOf, global_name="tile", elements=512, elem_type=DTYPES["bf16"])
        build.all(vendors.CopyAsync, shared, x, size=16)
        build.all(vendors.CopyCommit)
        build.all(vendors.CopyWait, n=0)
        build.all(vendors.Barrier)
        for num, layout in ((1, "row"), (2, "col"), (4, "row")):
            held = Vector(2 * num, DTYPES["bf16"])
            made = build(LoadMatrix, shared, returns=held, num=num, layout=layout)
            build.store(build(memory.ExtractElement, made, position=0), y, build.thread())
        for name in ("fp32", "fp64", "bf16", "int8", "bool", "int64"):
            value = build.load(x, build.thread(), scalar(name))
            build.store(build(vendors.ShuffleDown, value, delta=3), y, build.thread())

    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, smem=1024)
    target = kernels.target_of(made)
    text = llvm_text(made, target)
    code = tools.assembly(text, target)
    expected = (
        "cp.async.cg.shared.global",
        "cp.async.commit_group",
        "cp.async.wait_group",
        "bar.sync",
        "shfl.sync.down",
    )
    assert [line for line in expected if line not in code] == []
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in code and ".x2.trans.shared" in code
    tools.assemble(text, target, tmp_path)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_amd_instructions_of_a_block(kernels: Any, tools: Any, target: str, tmp_path: Path) -> None:
    """LDS reads and writes, the barrier, which one warp alone would not need, and the permutation."""

    def body(build: Any, x: Any, y: Any) -> None:
        shared = build(AddressOf, global_name="tile", elements=512, elem_type=DTYPES["fp32"])
        lane = build.thread()
        held = Vector(4, DTYPES["fp32"])
        address = build(llvm.Mul, lane, build.constant(4))
        build.all(vendors.DsWrite, build.load(x, address, held), shared)
        build.all(vendors.RocdlBarrier)
        build.store(build(vendors.DsRead, shared, returns=held), y, address)
        for name in ("fp32", "fp64", "fp16", "bool"):
            value = build.load(x, lane, scalar(name))
            build.store(build(vendors.BPermute, lane, value), y, lane)

    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, (128, 1, 1), target=target, smem=2048)
    text = llvm_text(made, kernels.target_of(made))
    code = tools.assembly(text, kernels.target_of(made))
    expected = ("ds_write_b128", "ds_read_b128", "s_barrier", "ds_bpermute_b32")
    assert [line for line in expected if line not in code] == []
    tools.assemble(text, kernels.target_of(made), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "  %1 = fadd contract float %a, %b",
        "  %1 = fmul fast float %a, %b",
        "  %1 = call reassoc float @llvm.sqrt.f32(float %a)",
        "  %1 = call float @llvm.fmuladd.f32(float %a, float %b, float %c)",
        "  %1 = add nsw i32 %a, %b",
        'attributes #0 = { "unsafe-fp-math"="true" }',
    ],
)
def test_a_permission_is_found(line: str) -> None:
    assert list(permissions(f"x\n{line}\ny")) == [line.strip()]


def test_names_are_no_permissions() -> None:
    """A value may be called as a flag is."""
    assert list(permissions("  %fast = fadd float %contract.1, %b\n  %1 = call float @nsz(float %exact.2)")) == []


def test_what_permits_or_is_no_ir_is_not_accepted(tools: Any) -> None:
    tools.needs_llvm()
    with pytest.raises(NotAccepted, match="permits"):
        checked("define float @f(float %a) {\n  %1 = fadd fast float %a, %a\n  ret float %1\n}\n")
    with pytest.raises(NotAccepted, match="expected"):
        checked("define float @f(float %a) { ret }")


def test_ptx_is_nvidias(kernels: Any) -> None:
    made = kernels.kernel({"x": kernels.buffer}, lambda build, x: None, target="gfx90a")
    with pytest.raises(OtherVendor):
        assembly(llvm_text(made, kernels.target_of(made)), "ptx", kernels.target_of(made))


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(PROGRAMS) >= 60
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "gfx90a", "gfx942"])
def test_every_program_is_assembled(tools: Any, tmp_path: Path, drawn: Callable[[int], int], name: str) -> None:
    """A quarter for each target, another one for each; all of them with `--whole`."""
    target = target_of(name)
    programs = Random(name).sample(PROGRAMS, drawn(len(PROGRAMS)))
    with_kernels = 0
    for program in programs:
        shapes = {key: Array.from_bits(dtype(it.dtype), it.shape, it.data) for key, it in program.inputs.items()}
        module = specialized(compile_source(program.source).module, "f", shapes)
        lowered = lower(module, "target", target)
        if any(function.device for function in lowered.functions.values()):
            with_kernels += 1
            tools.assemble(emit(lowered, "llvm", target), target, tmp_path)
    assert with_kernels > len(programs) / 2
