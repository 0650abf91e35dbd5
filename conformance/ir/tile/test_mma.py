"""Matrix instructions: which products are added in which order, and what is rounded when (language spec, 7.1, 7.2, 10).

`Product` stages two matrices in shared memory and folds over their k, one instruction after another.
"""

from __future__ import annotations

import random
from operator import mul

import pytest

from tessera_conformance.arithmetic import NodeArithmetic
from tessera_conformance.arithmetic.replay import matmul
from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer, fragment
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, WARPS, buffers_after, fails
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.exact import ACCUMULATORS
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

pytestmark = [feature("tile-ir-text"), clause("LANG-07.2-03")]

SHAPES = [
    ("sm_80", "bf16", 16, 16, 16),
    ("sm_80", "fp16", 32, 8, 16),
    ("sm_80", "tf32", 16, 8, 8),
    ("sm_80", "fp64", 8, 8, 4),
    ("sm_80", "int8", 8, 8, 16),
    ("sm_90", "bf16", 8, 32, 16),
    ("sm_90", "bf16", 16, 8, 8),
    ("sm_90", "fp16", 16, 8, 16),
    ("sm_90", "tf32", 16, 16, 8),
    ("sm_90", "fp64", 16, 8, 16),
    ("sm_90", "int8", 16, 8, 32),
    ("sm_90", "fp8_e4m3", 16, 8, 32),
    ("sm_90", "fp8_e5m2", 16, 8, 32),
    ("gfx90a", "fp32", 16, 16, 4),
    ("gfx90a", "bf16", 32, 32, 8),
    ("gfx90a", "int8", 16, 16, 16),
    ("gfx942", "fp16", 16, 16, 16),
    ("gfx942", "tf32", 16, 16, 8),
    ("gfx942", "fp64", 16, 16, 4),
    ("gfx942", "int8", 16, 16, 32),
]
"""Instructions of the targets: of NVIDIA mma.sync and wmma, of AMD the MFMA (AMB-LANG-62)."""


class Product(KernelText):
    """A kernel of one warp: C, m by n, is A times B, in as many steps as their k, `depth`, has fragments.

    Where the rows of B would not be aligned it lies transposed in shared memory. What the last fragments have beyond
    the depth is filled with zeros.
    """

    def __init__(self, target, dtype, m, n, k, depth, accum=None, width=None):
        self.type, self.shape = fragment(dtype, m, n, k), {"m": m, "n": n, "k": k}
        self.accum, self.stated = accum or ACCUMULATORS[dtype], {"accum": accum} if accum else {}
        self.width = WARPS[target]
        parameters = {"a": buffer(dtype, m, depth), "b": buffer(dtype, depth, n), "c": buffer(self.accum, m, n)}
        super().__init__(parameters, block=(width or self.width, 1, 1), smem_bytes=32768, target=target)
        self.dtype, self.depth, self.room = dtype, depth, -(-depth // k) * k
        self.transposed = n * ELEMENT_FORMATS[dtype].word_bytes % 16 != 0
        self.zero, self.nothing = self.constant(0), self.constant(0, dtype)
        self.tiles = self.staged(self["a"], m, self.room), self.staged(self["b"], self.room, n, self.transposed)
        self.barrier()

    def staged(self, memory, rows, columns, transposed=False):
        """A shared tile with what is in a buffer, and zeros beyond; all lanes copy."""
        tile = self.allocate(self.dtype, *((columns, rows) if transposed else (rows, columns)))
        thread, extent, depth = self.index("thread_id"), self.constant(columns), self.constant(self.depth)

        def copy(start):
            place = self.compute("add", start, thread)
            row = self.compute("divide", place, extent)
            column = self.compute("subtract", place, self.compute("multiply", row, extent))
            along = row if memory.name == "%b" else column
            inside = self.compute("less", along, depth)
            (value,) = self.branch(inside, lambda: [self.load(memory, row, column)], lambda: [self.nothing])
            self.store(value, tile, *((column, row) if transposed else (row, column)))
            return ()

        self.loop(self.zero, self.constant(rows * columns), self.constant(self.width), copy)
        return tile

    def loaded(self, step):
        """The fragments of A and B at a step along k."""
        at = self.constant(step * self.shape["k"])
        a = self.op("tessera.tile.ldmatrix", self.tiles[0], self.zero, at, gives=self.type)
        corner, attributes = ((self.zero, at), {"transpose": True}) if self.transposed else ((at, self.zero), {})
        return a, self.op("tessera.tile.ldmatrix", self.tiles[1], *corner, gives=self.type, **attributes)

    def begun(self):
        """An accumulator of zeros."""
        return self.op("tessera.tile.fragment.zero", gives=self.type, **self.stated)

    def multiplied(self, a, b, c):
        """One instruction."""
        return self.op("tessera.tile.mma.sync", a, b, c, gives=self.type, **self.shape, **self.stated)

    def finished(self):
        """The whole kernel."""
        total = self.begun()
        for step in range(self.room // self.shape["k"]):
            total = self.multiplied(*self.loaded(step), total)
        self.op("tessera.tile.fragment.store", total, self["c"], self.zero, self.zero)
        return self


def any_numbers(dtype, rows, columns, seed):
    """A matrix whose significands have all their bits, of magnitudes from 2**-3 to 2**3 and both signs.

    Numbers of fp8 have all magnitudes of normal numbers: sums of the few bits of their products would be exact.
    """
    draw = random.Random(seed)
    layout = ELEMENT_FORMATS[dtype]
    if not layout.is_float:
        return Tensor.from_words(dtype, (rows, columns), [draw.randrange(256) for _ in range(rows * columns)])
    bias = (1 << layout.exponent_bits - 1) - 1
    sign = 1 << layout.exponent_bits + layout.fraction_bits
    exponents = (1 - bias, bias) if layout.word_bytes == 1 else (-3, 2)
    words = [
        draw.choice((0, sign)) | (bias + draw.randint(*exponents)) << layout.fraction_bits | draw.getrandbits(
            layout.fraction_bits
        )
        for _ in range(rows * columns)
    ]  # fmt: skip
    return Tensor.from_words(dtype, (rows, columns), words)


def judge(impl, check, kernel, a, b, what="the product"):
    """The kernel's accumulators are the fold over ascending k, product and sum rounded."""
    if kernel.accum == "int32":
        columns = [*zip(*numbers(b), strict=True)]
        expected = tensor_of("int32", [[sum(map(mul, row, column)) for column in columns] for row in numbers(a)])
    else:
        expected = matmul(a, b, Tree("fold"), NodeArithmetic(kernel.accum), out=kernel.accum)
    check.bits(buffers_after(impl, check, kernel, a=a, b=b)[2], expected, what)


def numbers(tensor):
    """The rows of a matrix of int8."""
    width = tensor.shape[1]
    values = [word - 256 if word > 127 else word for word in tensor.data]
    return [values[start : start + width] for start in range(0, len(values), width)]


def row_of(dtype, m, depth, *rows):
    """A matrix of m rows of which some begin so, and are 0 for the rest."""
    filled = [[*row, *[0] * (depth - len(row))] for row in rows]
    return tensor_of(dtype, filled + [[0] * depth] * (m - len(rows)))


def column(check, impl, kernel, a, b):
    """The first column of the result, as words."""
    actual = buffers_after(impl, check, kernel, a=a, b=b)[2]
    check.equal((actual.dtype, actual.shape), (kernel.accum, (kernel.shape["m"], kernel.shape["n"])), "dtype and shape")
    return actual.words().reshape(actual.shape)[:, 0].tolist()


@level("strict")
@clause("LANG-07.1-01", "LANG-07.2-02")
@pytest.mark.parametrize(("target", "dtype", "m", "n", "k"), SHAPES)
def test_products_are_added_over_ascending_k(impl, check, target, dtype, m, n, k):
    """Two instructions one after another give the bits of one fold, of operands with all their bits (AMB-LANG-34)."""
    a, b = any_numbers(dtype, m, 2 * k, 3), any_numbers(dtype, 2 * k, n, 5)
    judge(impl, check, Product(target, dtype, m, n, k, 2 * k).finished(), a, b)


TAILS = [
    ("sm_90", "bf16", 16, 16, 16, 1),
    ("sm_90", "bf16", 16, 16, 16, 19),
    ("sm_90", "int8", 16, 8, 32, 33),
    ("gfx942", "bf16", 32, 32, 8, 15),
    ("gfx942", "fp64", 16, 16, 4, 5),
]


@level("strict")
@pytest.mark.parametrize(("target", "dtype", "m", "n", "k", "depth"), TAILS)
def test_zeros_beyond_a_tail_of_k_change_nothing(impl, check, target, dtype, m, n, k, depth):
    """A depth that is no multiple of k, filled up with zeros, gives the fold over the depth."""
    a, b = any_numbers(dtype, m, depth, 7), any_numbers(dtype, depth, n, 11)
    judge(impl, check, Product(target, dtype, m, n, k, depth).finished(), a, b)


BIG = 2.0**24


@level("strict")
@pytest.mark.parametrize(
    ("target", "dtype", "shape"),
    [("sm_90", "bf16", (16, 16, 16)), ("sm_90", "tf32", (16, 8, 8)), ("gfx942", "fp32", (16, 16, 4))],
)
def test_the_order_shows_where_numbers_cancel(impl, check, target, dtype, shape):
    """Sums of 2**24, 1, 1 and -2**24 in fp32: 2**24 + 1 is 2**24 again, and -2**24 + 1 is exact."""
    m, n, k = shape
    rows = [
        ([BIG, 1, -BIG], 0x00000000),
        ([1, BIG, -BIG], 0x00000000),
        ([BIG, -BIG, 1], 0x3F800000),
        ([BIG, 1, 1, -BIG], 0x00000000),
        ([1, 1, BIG, -BIG], 0x40000000),
        ([1, BIG, 1, -BIG], 0x00000000),
    ]
    kernel = Product(target, dtype, m, n, k, 4).finished()
    a, b = row_of(dtype, m, 4, *(row for row, _ in rows)), tensor_of(dtype, [[1] * n] * 4)
    check.equal(column(check, impl, kernel, a, b)[: len(rows)], [word for _, word in rows], "the words of fp32")


@level("strict")
def test_what_is_accumulated_comes_first(impl, check):
    """After an instruction that gives 2**24, one that adds 1 sixteen times leaves it there: not 2**24 + 16."""
    kernel = Product("sm_90", "bf16", 16, 16, 16, 32).finished()
    a, b = row_of("bf16", 16, 32, [BIG, *[0] * 15, *[1] * 16]), tensor_of("bf16", [[1] * 16] * 32)
    check.equal(column(check, impl, kernel, a, b)[0], 0x4B800000, "2**24 in fp32")


@level("strict")
@pytest.mark.parametrize(("target", "k"), [("sm_90", 16), ("gfx942", 16)])
def test_an_accumulator_is_not_rounded_between_steps(impl, check, target, k):
    """256, then 1 more, then -256: 257 is no bf16, but the accumulator has it (AMB-LANG-34)."""
    kernel = Product(target, "bf16", 16, 16, k, 3 * k).finished()
    row = [0] * (3 * k)
    row[0], row[k], row[2 * k] = 256, 1, -256
    a, b = row_of("bf16", 16, 3 * k, row), tensor_of("bf16", [[1] * 16] * (3 * k))
    check.equal(column(check, impl, kernel, a, b)[0], 0x3F800000, "1 in fp32")


@level("strict")
def test_a_product_is_rounded_before_it_is_added(impl, check):
    """In fp64, (1 + 2**-52)**2 - (1 + 2**-51): the product is rounded to 1 + 2**-51, so that nothing is left."""
    for target, shape in (("sm_90", (8, 8, 4)), ("gfx942", (16, 16, 4))):
        m, n, k = shape
        kernel = Product(target, "fp64", m, n, k, 4).finished()
        a = row_of("fp64", m, 4, [-1, 1 + 2**-52], [1 + 2**-52, -1])
        b = tensor_of("fp64", [[1 + 2**-51] * n, [1 + 2**-52] * n, [0] * n, [0] * n])
        actual = column(check, impl, kernel, a, b)[:2]
        # row 1: (1 + 2**-52)(1 + 2**-51) is rounded to 1 + 3 * 2**-52, and 1 + 2**-52 is taken from it
        check.equal(actual, [0, 0x3CC0000000000000], "0 and 2**-51")


@level("strict")
@pytest.mark.parametrize("accum", ["fp16", "fp32"])
def test_products_and_sums_are_rounded_to_the_accumulator(impl, check, accum):
    """fp16 may accumulate in fp16: 2048 + 1 is 2048 there, and 2049 in fp32."""
    kernel = Product("sm_90", "fp16", 16, 16, 16, 16, accum).finished()
    a = row_of("fp16", 16, 16, [2048, 1], [33, 1], [1, 2048, 1])
    b = tensor_of("fp16", [[1] * 16, [33] * 16, [1] * 16] + [[0] * 16] * 13)
    actual = column(check, impl, kernel, a, b)[:3]
    # 2048 + 33; 33 + 33; 1 + 2048 * 33 + 1, beyond fp16, which overflows
    words = {"fp16": [0x6810, 0x5420, 0x7C00], "fp32": [0x45021000, 0x42840000, 0x47840100]}[accum]
    check.equal(actual, words, "the words of the accumulator")
    a, b = any_numbers("fp16", 16, 8, 13), any_numbers("fp16", 8, 8, 17)
    judge(impl, check, Product("sm_90", "fp16", 16, 8, 8, 8, accum).finished(), a, b)


@level("strict")
def test_operands_of_tf32_are_rounded_to_ten_bits(impl, check):
    """1 + 2**-11 is a tie and becomes 1, 1 + 3 * 2**-11 becomes 1 + 2**-9; both to nearest even."""
    kernel = Product("sm_90", "tf32", 16, 8, 8, 8).finished()
    a, b = row_of("tf32", 16, 8, [1 + 2**-11], [1 + 3 * 2**-11], [2]), tensor_of("tf32", [[1] * 8] * 8)
    actual = column(check, impl, kernel, a, b)[:3]
    check.equal(actual, [0x3F800000, 0x3F804000, 0x40000000], "1, 1 + 2**-9 and 2 in fp32")


def test_integers_accumulate_in_32_bits(impl, check):
    """-128 times -128, 64 times, is 2**20, at any level."""
    for target, shape in (("sm_90", (16, 8, 32)), ("gfx942", (16, 16, 32))):
        m, n, k = shape
        kernel = Product(target, "int8", m, n, k, 2 * k).finished()
        a, b = tensor_of("int8", [[-128] * (2 * k)] * m), tensor_of("int8", [[-128] * n] * (2 * k))
        check.bits(buffers_after(impl, check, kernel, a=a, b=b)[2], tensor_of("int32", [[2**20] * n] * m))


@level("strict")
def test_infinities_nans_and_zeros(impl, check):
    """inf times 0 is NaN, inf - inf too; a sum of products -0 begins with +0 and stays there."""
    kernel = Product("sm_90", "bf16", 16, 16, 16, 16).finished()
    one, zero, inf, minus = 0x3F80, 0x0000, 0x7F80, 0x8000
    rows = [[inf, zero], [inf, one], [one | minus, inf | minus], [minus, minus], [one, minus]]
    words = [word for row in rows for word in (*row, *[zero] * 14)] + [zero] * (16 * 11)
    a = Tensor.from_words("bf16", (16, 16), words)
    b = Tensor.from_words("bf16", (16, 16), [zero, one] * 8 + [one] * 240)
    expected = matmul(a, b, Tree("fold"), NodeArithmetic("fp32"), out="fp32")
    check.bits(buffers_after(impl, check, kernel, a=a, b=b)[2], expected)


@level("strict")
def test_a_loop_carries_an_accumulator(impl, check):
    """The steps along k as turns of a loop, whose corner moves with the index."""
    kernel = Product("sm_90", "bf16", 16, 16, 16, 64)

    def turn(index, total):
        at = kernel.compute("multiply", index, kernel.constant(16))
        a = kernel.op("tessera.tile.ldmatrix", kernel.tiles[0], kernel.zero, at, gives=kernel.type)
        b = kernel.op("tessera.tile.ldmatrix", kernel.tiles[1], at, kernel.zero, gives=kernel.type)
        return [kernel.multiplied(a, b, total)]

    (total,) = kernel.loop(kernel.zero, kernel.constant(4), kernel.constant(1), turn, kernel.begun())
    kernel.op("tessera.tile.fragment.store", total, kernel["c"])
    judge(impl, check, kernel, any_numbers("bf16", 16, 64, 19), any_numbers("bf16", 64, 16, 23))


# Who takes part


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("what", ["mma", "store"])
def test_a_matrix_instruction_is_one_of_the_whole_warp(impl, check, target, what):
    """In a branch that all lanes take it is one; one lane that stays away is an error, reported there."""
    for missing in (0, 1):
        kernel = Product(target, "bf16", 16, 16, 16, 16)
        a, b = kernel.loaded(0)
        start = kernel.begun()
        lines = []
        there = kernel.compute("less", kernel.index("thread_id"), kernel.constant(kernel.width - missing))

        def run(kernel=kernel, a=a, b=b, start=start, lines=lines):
            total = kernel.multiplied(a, b, start)
            lines.append(kernel.line)
            kernel.op("tessera.tile.fragment.store", total, kernel["c"])
            return ()

        def store(kernel=kernel, start=start, lines=lines):
            kernel.op("tessera.tile.fragment.store", start, kernel["c"])
            lines.append(kernel.line)
            return ()

        kernel.branch(there, run if what == "mma" else store)
        inputs = {"a": tensor_of("bf16", [[1] * 16] * 16), "b": tensor_of("bf16", [[2] * 16] * 16)}
        if missing:
            fails(impl, check, kernel, lines[0], **inputs)
        else:
            expected = tensor_of("fp32", [[32 if what == "mma" else 0] * 16] * 16)
            check.bits(buffers_after(impl, check, kernel, **inputs)[2], expected)


@pytest.mark.parametrize("lanes", [64, 48], ids=["two-warps", "one-and-a-half"])
def test_a_warp_that_the_block_has_in_part_takes_no_matrix_instruction(impl, check, lanes):
    """Each of two warps writes a matrix of its own; where the second has half its lanes it cannot."""
    type_ = fragment("bf16", 16, 16, 16)
    kernel = KernelText({"c": buffer("fp32", 32, 16)}, block=(lanes, 1, 1))
    zero = kernel.op("tessera.tile.fragment.zero", gives=type_)
    row = kernel.compute("multiply", kernel.warp(), kernel.constant(16))
    kernel.op("tessera.tile.fragment.store", zero, kernel["c"], row, kernel.constant(0))
    if lanes == 64:
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("fp32", [[0] * 16] * 32))
    else:
        fails(impl, check, kernel, kernel.line)


@clause("LANG-08.3-01")
@pytest.mark.parametrize("corner", [(17, 16), (16, 17), (-1, 0)], ids=["below", "beside", "above"])
def test_a_fragment_is_stored_within_its_memory(impl, check, corner):
    """A corner from which the matrix would leave a 32x32 buffer is an error, also where the next row follows on."""
    for at in ((16, 16), corner):
        kernel = KernelText({"c": buffer("fp32", 32, 32)})
        zero = kernel.op("tessera.tile.fragment.zero", gives=fragment("bf16", 16, 16, 16))
        kernel.op("tessera.tile.fragment.store", zero, kernel["c"], *map(kernel.constant, at))
        c = tensor_of("fp32", [[1] * 32] * 32)
        if at == (16, 16):
            expected = [[0 if i >= 16 and j >= 16 else 1 for j in range(32)] for i in range(32)]
            check.bits(buffers_after(impl, check, kernel, c=c)[0], tensor_of("fp32", expected))
        else:
            fails(impl, check, kernel, kernel.line, c=c)


@clause("LANG-08.3-01")
def test_a_fragment_is_stored_within_one_matrix_of_its_memory(impl, check):
    """A corner from which it would leave the first of two 24x16 matrices is an error (AMB-LANG-206)."""
    for row in (8, 9):
        kernel = KernelText({"c": buffer("fp32", 2, 24, 16)})
        zero = kernel.op("tessera.tile.fragment.zero", gives=fragment("bf16", 16, 16, 16))
        kernel.op("tessera.tile.fragment.store", zero, kernel["c"], *map(kernel.constant, (0, row, 0)))
        c = tensor_of("fp32", [[[1] * 16] * 24] * 2)
        if row == 8:
            first = [[0 if i >= 8 else 1] * 16 for i in range(24)]
            check.bits(buffers_after(impl, check, kernel, c=c)[0], tensor_of("fp32", [first, [[1] * 16] * 24]))
        else:
            fails(impl, check, kernel, kernel.line, c=c)
