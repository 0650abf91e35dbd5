"""Programs at the Target level as native code, with the bits of Graph IR, accepted by every tool."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessera_reference.ir.operation import Module
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


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("matmul")])
def test_native_code_has_the_same_bits(name: str, tools: Any, bits: Any) -> None:
    """Launches of kernels whose threads work alone run on the host."""
    tools.needs_llvm()
    module, inputs = program(name)
    lowered = lower(module, "target", target_of("sm_90"))
    assert bits.of(native(lowered), inputs) == bits.of(module, inputs)


def test_emitted_code_is_accepted(tools: Any, tmp_path: Any) -> None:
    """By ptxas and by the linker, for a matmul and for what calls the library."""
    for name in ("matmul-bf16", "softmax"):
        module, _ = program(name)
        for target in ("sm_80", "sm_90", "gfx90a", "gfx942"):
            text = emit(lower(module, "target", target_of(target)), "llvm", target_of(target))
            tools.assemble(text, target_of(target), tmp_path)


VENDORS = ["sm_90", "gfx942"]
DTYPES_OF_BOTH = ["complex64", "complex128"]
COMPLEX_PROGRAMS = {
    "chain": ("A: tensor<5x13x{0}>, B: tensor<5x13x{0}>", "A * B + A - (-B) * A"),
    "choice": ("A: tensor<5x13x{0}>, B: tensor<5x13x{0}>", "op.select(A == B, A * A, -B)"),
    "difference": ("A: tensor<5x13x{0}>, B: tensor<5x13x{0}>", "op.select(A != B, B, A + B)"),
    "truth": ("A: tensor<5x13x{0}>", "op.cast(A, dtype=bool)"),
    "narrowed": ("A: tensor<5x13x{0}>", "op.cast(A + A, dtype=complex64)"),
    "widened": ("A: tensor<5x13x{0}>", "op.cast(A + A, dtype=complex128)"),
    "from-real": ("A: tensor<5x13xbf16>, B: tensor<5x13x{0}>", "op.cast(A, dtype={0}) * B"),
    "from-integer": ("A: tensor<5x13xint32>, B: tensor<5x13x{0}>", "op.cast(A, dtype={0}) * B"),
    "matmul": ("A: tensor<9x20x{0}>, B: tensor<20x11x{0}>", "op.matmul(A, B)"),
    "matmul-batch": ("A: tensor<2x4x5x{0}>, B: tensor<2x5x3x{0}>", "-op.matmul(A, B)"),
    "sum": ("A: tensor<5x40x{0}>", "op.sum(A, axis=1)"),
    "prod": ("A: tensor<5x7x{0}>", "op.prod(A, axis=0)"),
    "mean": ("A: tensor<5x40x{0}>", "op.mean(A, axis=1)"),
    "fft": ("A: tensor<3x12x{0}>", "op.fft(A)"),
    "ifft": ("A: tensor<3x12x{0}>", "op.ifft(A)"),
    "transpose": ("A: tensor<9x7x{0}>", "op.transpose(A)"),
    "one": ("A: tensor<1x{0}>", "A * A"),
}
REDUCING = ("matmul", "matmul-batch", "sum", "prod", "mean", "fft", "ifft")
"""Operations that make one number of many: there one NaN hides the others."""

SHARING = ("matmul", "matmul-batch", "sum", "prod", "mean", "fft", "ifft")
"""Programs whose threads may work together."""

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38)


def compiled(name: str, dtype: str) -> Module:
    signature, result = COMPLEX_PROGRAMS[name]
    source = f"module m {{ func f({signature.format(dtype)}) {{ return {result.format(dtype)}; }} }}"
    return compile_source(source, "t.tsr").module


def numbers(held: str, shape: tuple[int, ...], special: bool, seed: int) -> Array:
    """Numbers around 1; every pair of special parts, or two special numbers that leave most results ordinary."""
    dtype, random = DTYPES[held], np.random.default_rng(seed)
    if dtype.kind != "complex":
        drawn = random.integers(-3, 4, shape)
        return Array(dtype, drawn.astype(dtype.carrier))
    values = np.empty(shape, dtype.carrier)
    values.real, values.imag = random.normal(size=shape), random.normal(size=shape)
    flat = values.reshape(-1)
    pairs = list(product(SPECIAL, SPECIAL)) if special else [(-0.0, 1.0), (1e-45, -np.inf)]
    for place, (real, imaginary) in enumerate(pairs[: flat.size - 1]):
        flat.real[place], flat.imag[place] = real, imaginary
    return Array(dtype, random.permutation(flat).reshape(shape))


def inputs_of(name: str, dtype: str) -> dict[str, Array]:
    declared = re.findall(r"(\w+): tensor<([0-9x]+)x([a-z]\w*)>", COMPLEX_PROGRAMS[name][0].format(dtype))
    return {
        parameter: numbers(held, tuple(map(int, shape.split("x"))), name not in REDUCING, seed)
        for seed, (parameter, shape, held) in enumerate(declared)
    }


@pytest.mark.parametrize("target", VENDORS)
@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
def test_emitted_code_is_accepted_of_complex_numbers(tools: Any, tmp_path: Any, dtype: str, target: str) -> None:
    """By ptxas and by the linker."""
    for name in ("chain", "choice", "truth", "from-real", "matmul", "mean", "fft", "transpose"):
        text = emit(lower(compiled(name, dtype), "target", target_of(target)), "llvm", target_of(target))
        tools.assemble(text, target_of(target), tmp_path)


@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
@pytest.mark.parametrize("name", [name for name in COMPLEX_PROGRAMS if name not in SHARING])
def test_native_code_has_the_same_bits_of_complex_numbers(name: str, dtype: str, tools: Any, bits: Any) -> None:
    """Launches of kernels whose threads work alone run on the host."""
    tools.needs_llvm()
    module, inputs = compiled(name, dtype), inputs_of(name, dtype)
    lowered = native(lower(module, "target", target_of("sm_90")))
    assert bits.of(lowered, inputs) == bits.of(module, inputs)
