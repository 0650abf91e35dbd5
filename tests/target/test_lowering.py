"""Programs at the Target level: the bits of Graph IR, and the instructions that the specification names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import lower
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import round_to
from tessera_reference.target_ir.emission.host import native

PROGRAMS = {
    "matmul-bf16": ("A: tensor<32x48xbf16>, B: tensor<48x40xbf16>", "op.matmul(A, B)"),
    "matmul-fp32": ("A: tensor<20x24xfp32>, B: tensor<24x17xfp32>", "op.matmul(A, B)"),
    "matmul-int8": ("A: tensor<16x32xint8>, B: tensor<32x16xint8>", "op.matmul(A, B)"),
    "matmul-fp8": ("A: tensor<16x32xfp8_e4m3>, B: tensor<32x8xfp8_e4m3>", "op.matmul(A, B)"),
    "epilogue": ("A: tensor<32x32xfp16>, B: tensor<32x32xfp16>", "op.relu(op.matmul(A, B)) + A"),
    "softmax": ("A: tensor<5x37xfp32>", "op.softmax(A, axis=1)"),
    "sum": ("A: tensor<5x37xbf16>", "op.sum(A, axis=1)"),
    "transpose": ("A: tensor<9x7xfp32>", "op.transpose(A)"),
    "gelu": ("A: tensor<7x33xfp16>", "op.gelu(A * A + A)"),
    "narrow": ("A: tensor<300xbf16>, B: tensor<300xbf16>", "op.maximum(A * B + A / B, op.sqrt(A)) - op.abs(B)"),
    "fp8": ("A: tensor<99xfp8_e5m2>, B: tensor<99xfp8_e5m2>", "op.exp(A * B) + op.minimum(A / B, op.reciprocal(B))"),
    "casts": (
        "A: tensor<60xfp64>",
        'op.cast(op.cast(op.cast(A * A, dtype="bf16"), dtype="int32"), dtype="fp16") - op.cast(A, dtype="fp16")',
    ),
    "integers": ("A: tensor<60xint32>, B: tensor<60xint32>", "op.clamp(A / (B * 2 + 1), B, -B)"),
    "bools": ("A: tensor<60xfp32>, B: tensor<60xfp32>", "op.select(A < B, op.tanh(A), -B)"),
    "long": ("A: tensor<60xint64>", 'op.cast(A * A * A * A, dtype="bf16")'),
}


def program(name: str) -> tuple[Module, dict[str, Array]]:
    """A compiled program and inputs of the shapes that it declares."""
    signature, result = PROGRAMS[name]
    module = compile_source(f"module m {{ func f({signature}) {{ return {result}; }} }}", "t.tsr").module
    random = np.random.default_rng(11)
    inputs = {}
    for parameter, shape, held in re.findall(r"(\w+): tensor<([0-9x]+)x([a-z]\w*)>", signature):
        dtype, extents = DTYPES[held], tuple(map(int, shape.split("x")))
        if dtype.kind == "int":
            values = random.integers(-99, 100, extents).astype(dtype.carrier)
        else:
            values = round_to(random.normal(size=extents) * 2, dtype)
        inputs[parameter] = Array(dtype, values)
    return module, inputs


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "gfx90a", "gfx942"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lowering_preserves_every_bit(name: str, target: str, bits: Any) -> None:
    module, inputs = program(name)
    bits.require_kept(module, inputs, target)


@pytest.mark.parametrize(("held", "above"), [("int32", 2**30 + 2**22 + 1), ("int64", 2**40 + 2**32 + 1)])
def test_an_integer_becomes_a_narrow_float_in_one_rounding(held: str, above: int) -> None:
    """Just above the tie between two bf16 numbers: fp32 in between would reach the tie and go down to even."""
    source = f'module m {{ func f(A: tensor<1x{held}>) {{ return op.cast(A, dtype="bf16"); }} }}'
    lowered = lower(compile_source(source, "t.tsr").module, "target", target_of("gfx90a"))
    (found,) = execute(lowered, "f", {"A": Array.checked(DTYPES[held], [above])})
    power = above.bit_length() - 1
    assert found.values.tolist() == [2.0**power + 2.0 ** (power - 7)]


EXACT = [
    "op.maximum(A, B)",
    "op.minimum(A, B)",
    "-A",
    "op.abs(A)",
    "op.relu(A)",
    "op.clamp(A, B, A)",
    "op.transpose(A)",
]
"""Operations that do not round: an infinite operand is an infinite result."""


@pytest.mark.parametrize("form", [*EXACT, 'op.cast(A, dtype="fp8_e5m2")', "op.sqrt(A)", "A + B", "op.max(A, axis=0)"])
def test_infinities_of_fp8_are_those_of_graph_ir(form: str, tools: Any, bits: Any) -> None:
    """They stay where nothing is rounded, and saturate where a result is, a cast to the same type included."""
    held = DTYPES["fp8_e5m2"]
    source = f"module m {{ func f(A: tensor<2x3xfp8_e5m2>, B: tensor<2x3xfp8_e5m2>) {{ return {form}; }} }}"
    module = compile_source(source, "t.tsr").module
    rows = [[np.inf, -np.inf, 2.0], [-0.0, np.nan, 1.0]], [[1.0, 2.0, -np.inf], [np.inf, 0.0, np.inf]]
    inputs = {name: Array.checked(held, values) for name, values in zip("AB", rows, strict=True)}
    bits.require_kept(module, inputs, "sm_90")
    if form in EXACT:
        (found,) = execute(lower(module, "target", target_of("sm_90")), "f", inputs)
        assert np.isinf(found.values).any()
    tools.needs_llvm()
    assert bits.of(native(lower(module, "target", target_of("sm_90"))), inputs) == bits.of(module, inputs)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("matmul")])
def test_native_code_has_the_same_bits(name: str, tools: Any, bits: Any) -> None:
    """Launches of kernels whose threads work alone run on the host."""
    tools.needs_llvm()
    module, inputs = program(name)
    lowered = lower(module, "target", target_of("sm_90"))
    assert bits.of(native(lowered), inputs) == bits.of(module, inputs)


def test_nvidia_gets_its_instructions(tools: Any) -> None:
    """LANG-08.2-05 to -08: mma.sync, ldmatrix, cp.async and bar.sync; a 16x16x16 is two m16n8k16."""
    tools.needs_llvm()
    module, _ = program("matmul-bf16")
    code = emit(lower(module, "target", target_of("sm_90")), "ptx", target_of("sm_90"))
    wanted = ("mma.sync.aligned.m16n8k16", "ldmatrix.sync.aligned.m8n8.x4", "cp.async.", "bar.sync")
    assert [each for each in wanted if each not in code] == []


def test_amd_gets_its_instructions(tools: Any) -> None:
    """LANG-08.2-10 and -11: MFMA, and reads and writes of the LDS."""
    tools.needs_llvm()
    module, _ = program("matmul-bf16")
    code = emit(lower(module, "target", target_of("gfx90a")), "amdgcn", target_of("gfx90a"))
    assert [each for each in ("v_mfma_f32_16x16x16bf16_1k", "ds_read_", "ds_write_") if each not in code] == []


def test_emitted_code_is_accepted(tools: Any, tmp_path: Any) -> None:
    """By ptxas and by the linker, for a matmul and for what calls the library."""
    for name in ("matmul-bf16", "softmax"):
        module, _ = program(name)
        for target in ("sm_80", "sm_90", "gfx90a", "gfx942"):
            text = emit(lower(module, "target", target_of(target)), "llvm", target_of(target))
            tools.assemble(text, target_of(target), tmp_path)
