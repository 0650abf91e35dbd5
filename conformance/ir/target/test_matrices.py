"""The lane of each element at Target IR: mma.sync, ldmatrix and mfma (language spec, 8.2).

The tables are those of the vendors' documents, written out by hand. Values are small integers, exact in every dtype
and in every order of addition: the rounding of hardware within one instruction is not judged (AMB-LANG-223).
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import buffers_after, fails, verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.chapters.ir.kit.target_kernels import LDS, POINTER, TargetKernel
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = feature("target-ir-text")


class LaneVectors(TargetKernel):
    """A kernel of one warp, each lane of which reads and writes vectors that lie side by side in the buffers."""

    def share(self, buffer, count, dtype):
        """Return the positions of a lane's `count` elements."""
        begin = self.integers("mul", self.thread, count)
        return self.op("llvm.getelementptr", self[buffer], begin, gives=POINTER, elem_type=dtype)

    def read(self, buffer, count, dtype):
        """A lane's elements as a vector."""
        return self.op("llvm.load", self.share(buffer, count, dtype), gives=f"vector<{count}x{dtype}>")

    def write(self, value, buffer, count, dtype):
        """Write a lane's elements."""
        self.op("llvm.store", value, self.share(buffer, count, dtype))


# Where the elements of lane t are. Lanes of NVIDIA count in groups of four: g is the group, p the place in it.
# PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": a0..a7 are the elements of A in
#   row g for i in 0, 1, 4, 5 and g + 8 for i in 2, 3, 6, 7; column 2p + (i & 1), 8 more for i >= 4;
#   b0..b3 of B: row 2p + (i & 1), 8 more for i >= 2; column g;
#   c0..c3: row g, 8 more for i >= 2; column 2p + (i & 1).
# mma.m16n8k8 has the first half of A and B.
# mma.m16n8k32 of 8-bit elements: a0..a15: row g for i in 0..3 and 8..11, else g + 8; column 4p + (i & 3), 16 more for
#   i >= 8; b0..b7: row 4p + (i & 3), 16 more for i >= 4; column g; c as above.
# mma.m8n8k4 of fp64: a0: row g, column p; b0: row p, column g; c0, c1: row g, column 2p + i.
# AMD matrix instruction calculator, v_mfma_f32_16x16x16_bf16_1k and _f16: l = t % 16, q = t // 16.
#   A: row l, column 4q + i; B: row 4q + i, column l; C: row 4q + i, column l.
# v_mfma_f32_32x32x8_*: l = t % 32, q = t // 32; A and B as above; C has 16: row 8 (i // 4) + 4q + i % 4, column l.
# v_mfma_f32_16x16x4_f32: A: row l, column q; B: row q, column l; C as that of 16x16x16.
# v_mfma_f64_16x16x4_f64: A and B as that; C: row q + 4i, column l.

HIGH = (0, 0, 8, 8, 0, 0, 8, 8)
"""Rows below the group of a0 to a7."""

MMA = {
    "m16n8k16": ("sm_90", (16, 8, 16), ("bf16", "fp16"), {
        "a": lambda t: [(t // 4 + HIGH[i], 2 * (t % 4) + (i & 1) + (8 if i >= 4 else 0)) for i in range(8)],
        "b": lambda t: [(2 * (t % 4) + (i & 1) + (8 if i >= 2 else 0), t // 4) for i in range(4)],
        "c": lambda t: [(t // 4 + (8 if i >= 2 else 0), 2 * (t % 4) + (i & 1)) for i in range(4)],
    }),
    "m16n8k8": ("sm_80", (16, 8, 8), ("bf16", "fp16"), {
        "a": lambda t: [(t // 4 + HIGH[i], 2 * (t % 4) + (i & 1)) for i in range(4)],
        "b": lambda t: [(2 * (t % 4) + i, t // 4) for i in range(2)],
        "c": lambda t: [(t // 4 + (8 if i >= 2 else 0), 2 * (t % 4) + (i & 1)) for i in range(4)],
    }),
    "m16n8k32": ("sm_80", (16, 8, 32), ("int8",), {
        "a": lambda t: [(t // 4 + (8 if i // 4 in (1, 3) else 0), 4 * (t % 4) + (i & 3) + (16 if i >= 8 else 0))
                        for i in range(16)],
        "b": lambda t: [(4 * (t % 4) + (i & 3) + (16 if i >= 4 else 0), t // 4) for i in range(8)],
        "c": lambda t: [(t // 4 + (8 if i >= 2 else 0), 2 * (t % 4) + (i & 1)) for i in range(4)],
    }),
    "m8n8k4": ("sm_80", (8, 8, 4), ("fp64",), {
        "a": lambda t: [(t // 4, t % 4)],
        "b": lambda t: [(t % 4, t // 4)],
        "c": lambda t: [(t // 4, 2 * (t % 4) + i) for i in range(2)],
    }),
}  # fmt: skip

FOURS = {
    "a": lambda t: [(t % 16, 4 * (t // 16) + i) for i in range(4)],
    "b": lambda t: [(4 * (t // 16) + i, t % 16) for i in range(4)],
    "c": lambda t: [(4 * (t // 16) + i, t % 16) for i in range(4)],
}
ONES = {
    "a": lambda t: [(t % 16, t // 16)],
    "b": lambda t: [(t // 16, t % 16)],
    "c": lambda t: [(4 * (t // 16) + i, t % 16) for i in range(4)],
}
WIDE = {
    "a": lambda t: [(t % 32, 4 * (t // 32) + i) for i in range(4)],
    "b": lambda t: [(4 * (t // 32) + i, t % 32) for i in range(4)],
    "c": lambda t: [(8 * (i // 4) + 4 * (t // 32) + i % 4, t % 32) for i in range(16)],
}
MFMA = {
    "f32.16x16x16bf16.1k": ("gfx90a", (16, 16, 16), "bf16", FOURS),
    "f32.16x16x16f16": ("gfx942", (16, 16, 16), "fp16", FOURS),
    "f32.32x32x8bf16.1k": ("gfx942", (32, 32, 8), "bf16", WIDE),
    "f32.32x32x8f16": ("gfx90a", (32, 32, 8), "fp16", WIDE),
    "f32.16x16x4f32": ("gfx90a", (16, 16, 4), "fp32", ONES),
    "f64.16x16x4f64": (
        "gfx942",
        (16, 16, 4),
        "fp64",
        {**ONES, "c": lambda t: [(t // 16 + 4 * i, t % 16) for i in range(4)]},
    ),
}

ACCUMULATORS = {"int8": "int32", "fp64": "fp64"}


def small(rows, columns, salt):
    """Integers from -4 to 4, without a pattern that a transposition or a swap of rows would keep."""
    return [[(5 * row + 3 * column * column + row * column + salt) % 9 - 4 for column in range(columns)]
            for row in range(rows)]  # fmt: skip


def spread(matrix, places, lanes, dtype):
    """A buffer with the elements of each lane side by side."""
    number = int if dtype.startswith("int") else float
    return tensor_of(dtype, [number(matrix[row][column]) for lane in range(lanes) for row, column in places(lane)])


def multiplies(impl, check, target, shape, dtype, tables, instruction, **attributes):
    """Each lane reads its share of A, B and C, and writes that of the result, which is where C's was."""
    (m, n, k), lanes = shape, 64 if target.startswith("gfx") else 32
    accumulator = ACCUMULATORS.get(dtype, "fp32")
    dtypes = {"a": dtype, "b": dtype, "c": accumulator}
    kernel = LaneVectors(target, lanes, buffers="abcd", smem_bytes=0)
    held = {role: len(places(0)) for role, places in tables.items()}
    shares = [kernel.read(role, held[role], dtypes[role]) for role in "abc"]
    made = kernel.op(instruction, *shares, gives=f"vector<{held['c']}x{accumulator}>", **attributes)
    kernel.write(made, "d", held["c"], accumulator)
    a, b, c = small(m, k, 1), small(k, n, 2), small(m, n, 5)
    d = [[c[row][column] + sum(a[row][i] * b[i][column] for i in range(k)) for column in range(n)] for row in range(m)]
    given = {
        role: spread(matrix, tables[role], lanes, dtypes[role]) for role, matrix in zip("abc", (a, b, c), strict=True)
    }
    actual = buffers_after(impl, check, kernel, **given, d=spread(small(m, n, 0), tables["c"], lanes, accumulator))
    check.bits(actual[3], spread(d, tables["c"], lanes, accumulator))


@clause("LANG-08.2-05")
@pytest.mark.parametrize(
    ("target", "shape", "dtype", "tables"),
    [
        pytest.param(target, shape, dtype, tables, id=f"{name}-{dtype}")
        for name, (target, shape, dtypes, tables) in MMA.items()
        for dtype in dtypes
    ],
)
def test_mma_sync_multiplies_what_the_lanes_hold(impl, check, target, shape, dtype, tables):
    """Lanes hold their elements by the tables of the PTX ISA."""
    attributes = dict(zip("mnk", shape, strict=True))
    multiplies(impl, check, target, shape, dtype, tables, "nvvm.mma.sync", **attributes)


@clause("LANG-08.2-10")
@pytest.mark.parametrize("instruction", MFMA)
def test_mfma_multiplies_what_the_lanes_hold(impl, check, instruction):
    """Lanes hold their elements by the equations of AMD's matrix instruction calculator."""
    target, shape, dtype, tables = MFMA[instruction]
    multiplies(impl, check, target, shape, dtype, tables, f"rocdl.mfma.{instruction}")


@clause("LANG-08.2-05", "LANG-11-10")
@pytest.mark.parametrize(
    ("target", "dtype", "shape", "legal"),
    [
        ("sm_90", "bf16", (16, 8, 16), True),
        ("sm_90", "bf16", (16, 8, 32), False),
        ("sm_90", "bf16", (16, 16, 16), False),
        ("sm_90", "bf16", (8, 16, 16), False),
        ("sm_90", "fp32", (16, 8, 16), False),
        ("sm_90", "int32", (16, 8, 16), False),
        ("sm_90", "fp8_e4m3", (16, 8, 32), True),
        ("sm_80", "fp8_e4m3", (16, 8, 32), False),
    ],
    ids=["bf16", "k32", "n16", "m8", "fp32", "int32", "fp8", "fp8-of-another-target"],
)
def test_mma_sync_has_the_shapes_of_the_instruction_set(impl, check, target, dtype, shape, legal):
    """Others are refused; mma.sync of 16x16x16 is none of PTX (AMB-LANG-62), and fp8 is none of sm_80."""
    m, n, k = shape
    kernel = LaneVectors(target, 32, buffers="x", smem_bytes=0)
    types = [f"vector<{m * k // 32}x{dtype}>", f"vector<{k * n // 32}x{dtype}>", f"vector<{m * n // 32}xfp32>"]
    kernel.op(
        "nvvm.mma.sync", *(kernel.op("llvm.mlir.zero", gives=type_) for type_ in types), gives=types[2], m=m, n=n, k=k
    )
    judged(impl, check, kernel, legal, target)


@clause("LANG-08.2-05")
@pytest.mark.parametrize("counts", [(8, 4, 4), (4, 4, 4), (8, 8, 4), (8, 4, 8), (16, 4, 4)], ids=str)
def test_a_lane_holds_its_share_of_an_mma_sync(impl, check, counts):
    """256, 128 and 128 elements are 8, 4 and 4 in each of 32 lanes."""
    kernel = LaneVectors("sm_90", 32, buffers="x", smem_bytes=0)
    types = [f"vector<{count}x{dtype}>" for count, dtype in zip(counts, ("bf16", "bf16", "fp32"), strict=True)]
    zeros = [kernel.op("llvm.mlir.zero", gives=type_) for type_ in types]
    kernel.op("nvvm.mma.sync", *zeros, gives=types[2], m=16, n=8, k=16)
    judged(impl, check, kernel, counts == (8, 4, 4))


@clause("LANG-08.2-10")
@pytest.mark.parametrize(
    ("counts", "target", "legal"),
    [
        ((8, 8, 4), "gfx942", True),
        ((8, 8, 4), "gfx90a", False),
        ((4, 8, 4), "gfx942", False),
        ((8, 8, 16), "gfx942", False),
    ],
    ids=["gfx942", "gfx90a", "a", "c"],
)
def test_an_mfma_is_one_of_its_target(impl, check, counts, target, legal):
    """MI300 multiplies int8 in 16x16x32, MI200 does not; each lane of 64 holds its share."""
    kernel = LaneVectors(target, 64, buffers="x", smem_bytes=0)
    types = [f"vector<{count}x{dtype}>" for count, dtype in zip(counts, ("int8", "int8", "int32"), strict=True)]
    zeros = [kernel.op("llvm.mlir.zero", gives=type_) for type_ in types]
    kernel.op("rocdl.mfma.i32.16x16x32.i8", *zeros, gives=types[2])
    judged(impl, check, kernel, legal, target)


def judged(impl, check, kernel, legal, target="sm_90"):
    """The verifier takes the kernel, or refuses its last operation."""
    observation = verified(impl, kernel.module, "target", target)
    accepts_if(check, legal, observation, category=("tile", "types", "shapes"), at_line=kernel.line)


# ldmatrix


def loading(num, layout="row", stride=8, skew=0, elements=512):
    """Lane t gives the address of element `stride * t + skew`, and writes what it receives."""
    kernel = LaneVectors("sm_90", 32, smem_bytes=2 * elements)
    stated = {"global_name": "tile", "elements": elements, "elem_type": "bf16", "alignment": 16}
    tile = kernel.op("llvm.mlir.addressof", gives=LDS, **stated)
    count = elements // 32
    begin = kernel.integers("mul", kernel.thread, count)
    for place in range(0, count, 8):
        index = kernel.integers("add", begin, place)
        from_ = kernel.op("llvm.getelementptr", kernel["x"], index, gives=POINTER, elem_type="bf16")
        to = kernel.op("llvm.getelementptr", tile, index, gives=LDS, elem_type="bf16")
        kernel.op("llvm.store", kernel.op("llvm.load", from_, gives="vector<8xbf16>"), to)
    kernel.op("nvvm.barrier0")
    row = kernel.integers("add", kernel.integers("mul", kernel.thread, stride), skew)
    address = kernel.op("llvm.getelementptr", tile, row, gives=LDS, elem_type="bf16")
    made = kernel.op("nvvm.ldmatrix", address, gives=f"vector<{2 * num}xbf16>", num=num, layout=layout)
    kernel.critical = kernel.line
    kernel.write(made, "y", 2 * num, "bf16")
    return kernel


def numbered(count):
    """Small numbers, different at different places."""
    return [float(37 * index % 251) for index in range(count)]


@clause("LANG-08.2-06")
@pytest.mark.parametrize("num", [1, 2, 4])
@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize("stride", [8, 16])
def test_ldmatrix_hands_out_8x8_matrices(impl, check, num, layout, stride):
    """Lanes 8j to 8j+7 address the rows of matrix j; lane t receives row t // 4, columns 2 (t % 4) and the next.

    Transposed, it receives column t // 4, rows 2 (t % 4) and the next.
    """
    kernel, x = loading(num, layout, stride), numbered(512)
    expected = []
    for t in range(32):
        for j in range(num):
            for e in range(2):
                row, column = (t // 4, 2 * (t % 4) + e) if layout == "row" else (2 * (t % 4) + e, t // 4)
                expected.append(x[(8 * j + row) * stride + column])
    actual = buffers_after(impl, check, kernel, x=tensor_of("bf16", x), y=tensor_of("bf16", [0.0] * 64 * num))
    check.bits(actual[1], tensor_of("bf16", expected))


@clause("LANG-16-06")
@pytest.mark.parametrize(("stride", "skew"), [(8, 0), (16, 8), (8, 4), (8, 1), (12, 0)])
def test_a_row_of_an_ldmatrix_is_aligned_to_16_bytes(impl, check, stride, skew):
    """Rows at multiples of 8 elements of 16 bits are; others are an error where it executes."""
    kernel, x = loading(4, "row", stride, skew), numbered(1024)
    given = {"x": tensor_of("bf16", x[:512]), "y": tensor_of("bf16", [0.0] * 256)}
    if stride % 8 == 0 and skew % 8 == 0:
        places = [
            (8 * j + t // 4) * stride + skew + 2 * (t % 4) + e for t in range(32) for j in range(4) for e in range(2)
        ]
        check.bits(buffers_after(impl, check, kernel, **given)[1], tensor_of("bf16", [x[place] for place in places]))
    else:
        fails(impl, check, kernel, **given)


@clause("LANG-08.2-06")
@pytest.mark.parametrize(
    ("written", "broken"),
    [
        ("num = 4", "num = 3"),
        ("num = 4", "num = 2"),
        ('layout = "row"', 'layout = "diagonal"'),
        ("-> vector<8xbf16>", "-> vector<4xbf16>"),
        ("-> vector<8xbf16>", "-> vector<8xfp32>"),
    ],
    ids=["three", "two", "layout", "result", "dtype"],
)
def test_ldmatrix_loads_1_2_or_4_matrices_of_16_bit_elements(impl, check, written, broken):
    """It loads as many matrices as its result has elements for."""
    kernel = LaneVectors("sm_90", 32, buffers="x", smem_bytes=512)
    stated = {"global_name": "tile", "elements": 256, "elem_type": "bf16", "alignment": 16}
    tile = kernel.op("llvm.mlir.addressof", gives=LDS, **stated)
    kernel.op("nvvm.ldmatrix", tile, gives="vector<8xbf16>", num=4, layout="row")
    check.accepts(verified(impl, kernel.module, "target"))
    text = kernel.module.replace(written, broken)
    check.true(text != kernel.module, "the text is another one")
    check.rejects(verified(impl, text, "target"), category=("tile", "types"), at_line=kernel.line)
