"""Programs, fragments and complex numbers at the Target level: the bits of Graph IR, accepted by every tool."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.constant import Constant
from tessera_reference.graph.elementwise import Add, Divide, Less, Multiply, Subtract
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Location, Rejection, Span
from tessera_reference.ir.module import Block, BlockBuilder, Function, Instruction, Module
from tessera_reference.ir.targets import TARGETS, MmaShape, target_of
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.ir.types import Fragment, Memref, Scalar, Value, Vector
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import lower
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import round_to
from tessera_reference.target_ir.emission.host import native
from tessera_reference.target_ir.emission.machine_code import llvm_text
from tessera_reference.target_ir.lowering import to_target
from tessera_reference.target_ir.operations.memory import ExtractElement
from tessera_reference.target_ir.verifier import verify_target_kernel
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.interpreter import Uninitialised, run_kernel
from tessera_reference.tile.operations import (
    Barrier,
    CopyAsync,
    CopyCommit,
    CopyWait,
    If,
    Load,
    SharedAlloc,
    ShuffleSync,
    Store,
    ThreadId,
)

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
@pytest.mark.parametrize("name", COMPLEX_PROGRAMS)
def test_lowering_preserves_every_bit_of_complex_numbers(name: str, dtype: str, target: str, bits: Any) -> None:
    module, inputs = compiled(name, dtype), inputs_of(name, dtype)
    bits.require_kept(module, inputs, target)


@pytest.mark.parametrize("target", VENDORS)
@pytest.mark.parametrize("dtype", DTYPES_OF_BOTH)
def test_emitted_code_is_accepted_of_complex_numbers(tools: Any, tmp_path: Any, dtype: str, target: str) -> None:
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
@pytest.mark.parametrize("name", [name for name in COMPLEX_PROGRAMS if name not in SHARING])
def test_native_code_has_the_same_bits_of_complex_numbers(name: str, dtype: str, tools: Any, bits: Any) -> None:
    """Launches of kernels whose threads work alone run on the host."""
    tools.needs_llvm()
    module, inputs = compiled(name, dtype), inputs_of(name, dtype)
    lowered = native(lower(module, "target", target_of("sm_90")))
    assert bits.of(lowered, inputs) == bits.of(module, inputs)


# By hand


def run_elementwise(result: str, returned: str, target: str, **given: list[complex]) -> list[Any]:
    count = len(next(iter(given.values())))
    parameters = ", ".join(f"{name}: tensor<{count}xcomplex64>" for name in given)
    source = f"module m {{ func f({parameters}) -> tensor<{count}x{returned}> {{ return {result}; }} }}"
    lowered = lower(compile_source(source, "t.tsr").module, "target", target_of(target))
    arrays = {name: Array.checked(DTYPES["complex64"], values) for name, values in given.items()}
    (found,) = execute(lowered, "f", arrays)
    return list(found.values.tolist())


@pytest.mark.parametrize("target", VENDORS)
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


@pytest.mark.parametrize("target", VENDORS)
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


@pytest.mark.parametrize("target", VENDORS)
def test_loops_branches_and_shuffles_carry_both_parts(target: str) -> None:
    """Small whole numbers, whose powers are exact: Python's own say what is right."""
    given = [complex(lane % 5 - 2, lane % 7 - 3) for lane in range(64)]
    powers = [z * z * z * z for z in given]
    turned = [complex(z.imag, z.real) if lane < 3 else z for lane, z in enumerate(powers)]
    warp, dtype = target_of(target).warp, DTYPES["complex64"]
    x = Array(dtype, np.asarray(given, np.complex64))
    _, y = run_kernel(lowered_lanes(target), (x, Uninitialised(dtype, (64,))), target_of(target))
    assert y.values.tolist() == [turned[lane + 2 if lane % warp + 2 < warp else lane] for lane in range(64)]


@pytest.mark.parametrize("target", VENDORS)
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


PLACE = Location("kernel.mlir", Span(1, 1, 1, 2))
CASES = [(name, shape) for name, target in TARGETS.items() for shape in target.mma]


class TileBuild(BlockBuilder):
    """Builds the body of a kernel of Tile IR."""

    def index(self, number: int) -> Value:
        return self(Constant, value=number, dtype=DTYPES["int32"])

    def staged(self, source: Value, warp: int) -> Value:
        """A copy in shared memory, 16 bytes a lane."""
        memref = source.type
        assert isinstance(memref, Memref)
        rows, columns = (int(dim) for dim in memref.shape)
        shared = self(SharedAlloc, returns=Memref(memref.shape, memref.dtype, "shared"))
        each = 16 // memref.dtype.storage_bytes
        lane = self(ThreadId, axis="x")
        for begin in range(0, rows * columns // each, warp):
            number = self(Add, lane, self.index(begin))
            inside = self(Less, number, self.index(rows * columns // each))
            copy = TileBuild(PLACE, f"{source.name}{begin}.")
            place = copy(Multiply, number, copy.index(each))
            row = copy(Divide, place, copy.index(columns))
            at = (row, copy(Subtract, place, copy(Multiply, row, copy.index(columns))))
            copy.all(CopyAsync, source, shared, *at, *at, bytes=16)
            regions = (copy.block((), ()), Block((), (), (), "yield"))
            self.instructions.append(Instruction(If(inside.type, ()), (inside,), (), PLACE, regions))
        return shared


def tile_kernel(name: str, parameters: tuple[Value, ...], build: BlockBuilder, smem: int, target: str) -> Function:
    attributes = {"grid": (1, 1, 1), "block": (target_of(target).warp, 1, 1), "smem_bytes": smem, "target": target}
    return Function(name, Block(parameters, tuple(build.instructions), ()), (), PLACE, attributes, device="tile")


def matrix_product(
    target: str, shape: MmaShape, extents: tuple[int, int, int], used: tuple[int, int, int], transpose: bool
) -> Function:
    """A product of one warp by one shape, of the used part of operands that lie transposed or not."""
    held, build = shape.dtype, TileBuild(PLACE, "t")
    (m, n, k), (rows, columns, depth) = extents, used
    a = Value("a", Memref((k, m) if transpose else (m, k), held))
    b = Value("b", Memref((n, k) if transpose else (k, n), held))
    c = Value("c", Memref((m, n), held.accumulator))
    tiles = [build.staged(each, target_of(target).warp) for each in (a, b)]
    build.all(CopyCommit)
    build.all(CopyWait)
    build.all(Barrier)
    fragment = Fragment(shape.m, shape.n, shape.k, held)
    for row in range(0, rows, shape.m):
        for column in range(0, columns, shape.n):
            total = build(FragmentZero, returns=fragment)
            for step in range(0, depth, shape.k):
                corners = [(row, step), (step, column)]
                parts = [
                    build(
                        LoadMatrix,
                        tile,
                        *map(build.index, corner[::-1] if transpose else corner),
                        returns=fragment,
                        transpose=transpose,
                    )
                    for tile, corner in zip(tiles, corners, strict=True)
                ]
                total = build(MmaSync, *parts, total, m=shape.m, n=shape.n, k=shape.k)
            build.all(FragmentStore, total, c, build.index(row), build.index(column))
    smem = (m * k + k * n) * held.storage_bytes + 32
    return tile_kernel("tss_kernel_product", (a, b, c), build, smem, target)


def lowering_numbers(held: Any, shape: tuple[int, int], salt: int) -> Any:
    """Numbers that are held exactly and whose sums are rounded: far apart in size."""
    flat = np.arange(shape[0] * shape[1], dtype=np.int64) * 37 + salt
    if held.kind == "int":
        return ((flat % 251) - 125).astype(held.carrier).reshape(shape)
    if held.bits == 8:
        return (((flat % 15) - 7) * 0.25).astype(held.carrier).reshape(shape)
    if held.bits == 64:
        return ((flat * 40503 % 100003 - 50000) / 7.0).reshape(shape)
    return (((flat % 201) - 100) * np.where(flat % 3 == 0, 64.0, 0.0625)).astype(held.carrier).reshape(shape)


def folded(a: Any, b: Any, held: Any) -> Any:
    """The left fold over ascending k, each product and sum rounded in the accumulator."""
    number = held.accumulator.carrier.type
    made = np.zeros((a.shape[0], b.shape[1]), held.accumulator.carrier)
    with np.errstate(all="ignore"):
        for row in range(a.shape[0]):
            for column in range(b.shape[1]):
                total = number(0)
                for k in range(a.shape[1]):
                    total = number(total + number(number(a[row, k]) * number(b[k, column])))
                made[row, column] = total
    return made


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("target", "shape"), CASES, ids=lambda each: str(each).replace(" of ", "-"))
def test_every_shape_multiplies_as_the_fold(target: str, shape: MmaShape, transpose: bool, tools: Any) -> None:
    """Rows of shared tiles begin at multiples of 16 bytes, so that shapes of shorter rows are used once."""
    held, target_ = shape.dtype, target_of(target)
    least = 16 // held.storage_bytes
    sizes = (shape.m, shape.n, shape.k)
    used = (2 * shape.m, shape.n, 2 * shape.k) if min(sizes) >= least else sizes
    m, n, k = extents = tuple(-(-size // least) * least for size in used)
    made = matrix_product(target, shape, extents, used, transpose)
    lowered = to_target(Module("m", {made.name: made}, PLACE), target_).functions[made.name]
    verify_target_kernel(lowered, target_)
    a, b = lowering_numbers(held, (m, k), 3), lowering_numbers(held, (k, n), 11)
    given = [Array(held, np.ascontiguousarray(each.T if transpose else each)) for each in (a, b)]
    c = Array(held.accumulator, np.zeros((m, n), held.accumulator.carrier))
    found = run_kernel(lowered, (*given, c), target_)[2].values[: used[0], : used[1]]
    assert found.tolist() == folded(a[: used[0], : used[2]], b[: used[2], : used[1]], held).tolist()
    if not transpose:
        code = tools.assembly(llvm_text(lowered, target_), target_)
        assert ("mma.sync" if target.startswith("sm") else "v_mfma") in code


@pytest.mark.parametrize(("target", "instruction"), [("sm_90", "shfl.sync.down"), ("gfx90a", "ds_bpermute_b32")])
def test_a_shuffle_becomes_the_vendors(target: str, instruction: str, tools: Any) -> None:
    """LANG-08.2-09, LANG-08.2-12: lane i gets what lane i + 5 holds; the last five keep their own."""
    build = TileBuild(PLACE, "t")
    warp = target_of(target).warp
    x, y = (Value(name, Memref((warp,), DTYPES["fp64"])) for name in "xy")
    lane = build(ThreadId, axis="x")
    build.all(Store, build(ShuffleSync, build(Load, x, lane), delta=5), y, lane)
    made = tile_kernel("tss_kernel_shuffle", (x, y), build, 0, target)
    lowered = to_target(Module("m", {made.name: made}, PLACE), target_of(target)).functions[made.name]
    given = Array(DTYPES["fp64"], np.arange(warp, dtype=np.float64))
    found = run_kernel(lowered, (given, given), target_of(target))[1].values.tolist()
    assert found == [float(i + 5 if i + 5 < warp else i) for i in range(warp)]
    assert instruction in tools.assembly(llvm_text(lowered, target_of(target)), target_of(target))
