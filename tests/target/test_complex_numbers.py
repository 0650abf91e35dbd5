"""Complex numbers at the Target level: two floats for each, with the bits of Graph IR (AMB-LANG-221)."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Function, Module
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.ir.types import Scalar, Vector
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import lower
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.emission.host import native
from tessera_reference.target_ir.lowering import to_target
from tessera_reference.target_ir.operations.memory import ExtractElement
from tessera_reference.tile.interpreter import Uninitialised, run_kernel

TARGETS = ["sm_90", "gfx942"]
DTYPES_OF_BOTH = ["complex64", "complex128"]

PROGRAMS = {
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
"""What makes one number of many: there one NaN hides the others."""
SHARING = ("matmul", "matmul-batch", "sum", "prod", "mean", "fft", "ifft")
"""Programs whose threads may work together."""

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38)


def compiled(name: str, dtype: str) -> Module:
    signature, result = PROGRAMS[name]
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
    declared = re.findall(r"(\w+): tensor<([0-9x]+)x([a-z]\w*)>", PROGRAMS[name][0].format(dtype))
    return {
        parameter: numbers(held, tuple(map(int, shape.split("x"))), name not in REDUCING, seed)
        for seed, (parameter, shape, held) in enumerate(declared)
    }


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
@pytest.mark.parametrize("name", PROGRAMS)
def test_lowering_preserves_every_bit(name: str, dtype: str, target: str, bits: Any) -> None:
    module, inputs = compiled(name, dtype), inputs_of(name, dtype)
    bits.require_kept(module, inputs, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
def test_emitted_code_is_accepted(tools: Any, tmp_path: Any, dtype: str, target: str) -> None:
    """By ptxas and by the linker."""
    for name in ("chain", "choice", "truth", "from-real", "matmul", "mean", "fft", "transpose"):
        text = emit(lower(compiled(name, dtype), "target", target_of(target)), "llvm", target_of(target))
        tools.assemble(text, target_of(target), tmp_path)


@pytest.mark.parametrize(("dtype", "suffix"), [("complex64", "f32"), ("complex128", "f64")])
def test_every_step_of_a_product_rounds(tools: Any, dtype: str, suffix: str) -> None:
    """Four products, a difference, a sum, and nothing fused, for either vendor."""
    tools.needs_llvm()
    module = compile_source(
        f"module m {{ func f(A: tensor<8x{dtype}>, B: tensor<8x{dtype}>) {{ return A * B; }} }}", "t"
    )
    code = emit(lower(module.module, "target", target_of("sm_90")), "ptx", target_of("sm_90"))
    steps = [code.count(f"{step}.rn.{suffix}") for step in ("mul", "sub", "add", "fma")]
    assert steps == [4, 1, 1, 0]
    code = emit(lower(module.module, "target", target_of("gfx942")), "amdgcn", target_of("gfx942"))
    assert re.findall(r"v_(?:pk_)?(?:fma|mac|mad|fmac)\w*f(?:32|64)", code) == []


@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SHARING])
def test_native_code_has_the_same_bits(name: str, dtype: str, tools: Any, bits: Any) -> None:
    """Launches of kernels whose threads work alone run on the host."""
    tools.needs_llvm()
    module, inputs = compiled(name, dtype), inputs_of(name, dtype)
    lowered = native(lower(module, "target", target_of("sm_90")))
    assert bits.of(lowered, inputs) == bits.of(module, inputs)


# By hand


def run_elementwise(result: str, returned: str, target: str, **given: list[complex]) -> list[Any]:
    """What a program on complex64 numbers gives at the Target level."""
    count = len(next(iter(given.values())))
    parameters = ", ".join(f"{name}: tensor<{count}xcomplex64>" for name in given)
    source = f"module m {{ func f({parameters}) -> tensor<{count}x{returned}> {{ return {result}; }} }}"
    lowered = lower(compile_source(source, "t.tsr").module, "target", target_of(target))
    arrays = {name: Array.checked(DTYPES["complex64"], values) for name, values in given.items()}
    (found,) = execute(lowered, "f", arrays)
    return list(found.values.tolist())


@pytest.mark.parametrize("target", TARGETS)
def test_products_are_the_canon_s(target: str) -> None:
    """No infinity is recovered from NaN, and (1 + 2^-12)^2 is rounded before 1 is subtracted."""
    near, inf = 1 + 2.0**-12, np.inf
    a = [complex(inf, inf), complex(inf, 0), complex(near, 1), complex(-0.0, 0), complex(2, 3)]
    b = [complex(1, 0), complex(1, 1), complex(near, 1), complex(1, 0), complex(5, -7)]
    nan, infinite, rounded, zero, last = run_elementwise("A * B", "complex64", target, A=a, B=b)
    assert np.isnan([nan.real, nan.imag]).all()
    assert infinite == complex(inf, inf)
    assert rounded == complex(2.0**-11, 2 + 2.0**-11)
    assert [np.copysign(1, part) for part in (zero.real, zero.imag)] == [-1, 1]
    assert last == complex(31, 1)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_are_equal_where_both_parts_are(target: str) -> None:
    nan = np.nan
    a = [1 + 2j, 1 + 2j, 1 + 2j, complex(0.0, -0.0), complex(nan, 1), complex(1, nan), complex(np.inf, 1)]
    b = [1 + 2j, 1 - 2j, 3 + 2j, complex(-0.0, 0.0), complex(nan, 1), complex(1, nan), complex(np.inf, 1)]
    equal = [True, False, False, True, False, False, True]
    assert run_elementwise("A == B", "bool", target, A=a, B=b) == equal
    assert run_elementwise("A != B", "bool", target, A=a, B=b) == [not each for each in equal]
    truths = run_elementwise("op.cast(A, dtype=bool)", "bool", target, A=[0j, -0j, 1j, 1 + 0j, complex(0, nan)])
    assert truths == [False, False, True, True, True]
    chosen = run_elementwise("op.select(A == B, A, -B)", "complex64", target, A=a[:3], B=b[:3])
    assert chosen == [1 + 2j, -1 + 2j, -3 - 2j]


LANES = """
"builtin.module"() ({
  "tessera.tile.kernel"() ({
  ^bb0(%x: memref<64xcomplex64>[addrspace=global], %y: memref<64xcomplex64>[addrspace=global]):
    %lane = "tessera.tile.thread_id"() {axis = "x"} : () -> int32
    %zero = "tessera.graph.constant"() {value = 0} : () -> int32
    %one = "tessera.graph.constant"() {value = 1} : () -> int32
    %three = "tessera.graph.constant"() {value = 3} : () -> int32
    %s = "tessera.tile.shared.alloc"() : () -> memref<64xcomplex64>[addrspace=shared]
    %v = "tessera.tile.load"(%x, %lane) : (memref<64xcomplex64>[addrspace=global], int32) -> complex64
    %power = "tessera.tile.for"(%zero, %three, %one, %v) ({
    ^bb0(%i: int32, %p: complex64):
      %q = "tessera.graph.multiply"(%p, %v) : (complex64, complex64) -> complex64
      "tessera.graph.yield"(%q) : (complex64) -> ()
    }) : (int32, int32, int32, complex64) -> complex64
    %first = "tessera.graph.less"(%lane, %three) : (int32, int32) -> bool
    %c = "tessera.tile.if"(%first) ({
      %re = "tessera.tile.part"(%power) {which = "real"} : (complex64) -> fp32
      %im = "tessera.tile.part"(%power) {which = "imaginary"} : (complex64) -> fp32
      %t = "tessera.tile.complex"(%im, %re) : (fp32, fp32) -> complex64
      "tessera.graph.yield"(%t) : (complex64) -> ()
    }, {
      "tessera.graph.yield"(%power) : (complex64) -> ()
    }) : (bool) -> complex64
    %next = "tessera.tile.shfl.sync"(%c) {delta = 2} : (complex64) -> complex64
    "tessera.tile.store"(%next, %s, %lane) : (complex64, memref<64xcomplex64>[addrspace=shared], int32) -> ()
    %r = "tessera.tile.load"(%s, %lane) : (memref<64xcomplex64>[addrspace=shared], int32) -> complex64
    "tessera.tile.store"(%r, %y, %lane) : (complex64, memref<64xcomplex64>[addrspace=global], int32) -> ()
    "tessera.graph.return"() : () -> ()
  }) {sym_name = "tss_kernel_k", block = [64, 1, 1], grid = [1, 1, 1], smem_bytes = 512, target = "TARGET",
      function_type = (memref<64xcomplex64>[addrspace=global], memref<64xcomplex64>[addrspace=global]) -> ()} : () -> ()
}) {sym_name = "m"} : () -> ()
"""
"""The fourth power by a loop, its parts exchanged by a branch in three lanes, then handed on by two lanes."""


def lowered_lanes(target: str) -> Function:
    (module,) = read_modules(LANES.replace("TARGET", target))
    return to_target(module, target_of(target)).functions["tss_kernel_k"]


@pytest.mark.parametrize("target", TARGETS)
def test_loops_branches_and_shuffles_carry_both_parts(target: str) -> None:
    """Small whole numbers, whose powers are exact: Python's own say what is right."""
    given = [complex(lane % 5 - 2, lane % 7 - 3) for lane in range(64)]
    powers = [z * z * z * z for z in given]
    turned = [complex(z.imag, z.real) if lane < 3 else z for lane, z in enumerate(powers)]
    warp, dtype = target_of(target).warp, DTYPES["complex64"]
    x = Array(dtype, np.asarray(given, np.complex64))
    _, y = run_kernel(lowered_lanes(target), (x, Uninitialised(dtype, (64,))), target_of(target))
    assert y.values.tolist() == [turned[lane + 2 if lane % warp + 2 < warp else lane] for lane in range(64)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_lanes_do_together_is_accepted(tools: Any, tmp_path: Any, target: str) -> None:
    """Two phis for what a loop or a branch carries, a shuffle for each part, and shared memory."""
    (module,) = read_modules(LANES.replace("TARGET", target))
    text = emit(to_target(module, target_of(target)), "llvm", target_of(target))
    assert len(re.findall(r"phi float", text)) == 4
    tools.assemble(text, target_of(target), tmp_path)


# Memory


def test_two_floats_side_by_side_are_a_number(kernels: Any) -> None:
    """In the order real, imaginary, as storage has them; four floats are two numbers."""

    def body(build: Any, x: Any, y: Any) -> None:
        real, imaginary = (
            build(ExtractElement, build.load(x, build.constant(2), Vector(2, DTYPES["fp32"])), position=position)
            for position in (0, 1)
        )
        build.store(real, y, build.constant(0))
        build.store(imaginary, y, build.constant(1))
        build.store(build.load(x, build.constant(4), Vector(4, DTYPES["fp32"])), x, build.constant(0))

    made = kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, block=(1, 1, 1))
    given = kernels.array("complex64", [0j, 1 - 2j, 3 + 4j, 5 - 6j])
    x, y = kernels.run(made, given, kernels.array("fp32", [0.0, 0.0]))
    assert y.values.tolist() == [1.0, -2.0]
    assert x.values.tolist() == [3 + 4j, 5 - 6j, 3 + 4j, 5 - 6j]


@pytest.mark.parametrize(
    ("index", "type_", "message"),
    [
        (0, Scalar(DTYPES["fp32"]), "holds complex64"),
        (0, Vector(3, DTYPES["fp32"]), "holds complex64"),
        (0, Vector(2, DTYPES["fp64"]), "holds complex64"),
        (1, Vector(2, DTYPES["fp32"]), "aligned to 8"),
        (8, Vector(2, DTYPES["fp32"]), "out of bounds"),
        (6, Vector(4, DTYPES["fp32"]), "aligned to 16"),
    ],
)
def test_numbers_are_accessed_whole(kernels: Any, index: int, type_: Any, message: str) -> None:
    def body(build: Any, x: Any) -> None:
        build.load(x, build.constant(index), type_)

    made = kernels.kernel({"x": kernels.buffer}, body, block=(1, 1, 1))
    with pytest.raises(Rejection, match=message):
        kernels.run(made, kernels.array("complex64", [0j] * 4))
