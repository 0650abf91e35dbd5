"""A kernel's state at its entry: buffers, scalars of their own width, and the thread's position (8.1 and 16)."""

from __future__ import annotations

import math
import operator
from itertools import product

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, buffers_after
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

pytestmark = feature("target-ir-text")

POINTER = "!llvm.ptr<1>"
WORDS = {
    "int32": (0x00000001, 0x12345678, 0x80000000, 0xFFFFFFFE),
    "int64": (0x0000000000000001, 0x123456789ABCDEF0, 0xFFFFFFFF00000000, 0x0000000100000000, 0x8000000080000000),
    "fp32": (0x3F800001, 0x80000000, 0x7F7FFFFF, 0x00000001),
    "fp64": (0x3FF0000000000001, 0x7FEFFFFFFFFFFFFF, 0x8000000000000000, 0x0000000000000001, 0x41F0000000100000),
}
"""Codes of scalars, whose halves both differ where they have 64 bits."""


def scalar(dtype, word):
    """A scalar of this code."""
    return Tensor.from_words(dtype, (), [word])


def blank(dtype, count=2):
    """A buffer of zeros."""
    return tensor_of(dtype, [0] * count)


def kernel_of(parameters, target="sm_90", **attributes):
    """A kernel of one thread, unless more are asked for."""
    return KernelText(parameters, level="target", target=target, **{"block": (1, 1, 1), **attributes})


@clause("LANG-08.1-03")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("dtype", WORDS)
def test_a_scalar_arrives_at_its_own_width(impl, check, dtype, target):
    """All of its bits; the element behind the one that is written stays as it is."""
    kernel = kernel_of({"y": POINTER, "s": dtype}, target)
    kernel.op("llvm.store", kernel["s"], kernel["y"])
    for word in WORDS[dtype]:
        actual = buffers_after(impl, check, kernel, y=blank(dtype), s=scalar(dtype, word))
        check.bits(actual[0], Tensor.from_words(dtype, (2,), [word, 0]))


@clause("LANG-08.1-03", "LANG-16-03")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    "order",
    [("int32", "int64", "fp32", "fp64"), ("fp64", "fp32", "int64", "int32"), ("fp32", "int32", "fp64", "int64")],
    ids="-".join,
)
def test_scalars_of_different_widths_stand_side_by_side(impl, check, order, target):
    """Each scalar arrives in its place, behind scalars of any width."""
    parameters = {**{f"y{dtype}": POINTER for dtype in order}, **{f"s{dtype}": dtype for dtype in order}}
    kernel = kernel_of(parameters, target)
    for dtype in order:
        kernel.op("llvm.store", kernel[f"s{dtype}"], kernel[f"y{dtype}"])
    given = {f"y{dtype}": blank(dtype, 1) for dtype in order}
    scalars = {f"s{dtype}": scalar(dtype, WORDS[dtype][1]) for dtype in order}
    actual = buffers_after(impl, check, kernel, **given, **scalars)
    for dtype, buffer in zip(order, actual, strict=True):
        check.bits(buffer, Tensor.from_words(dtype, (1,), [WORDS[dtype][1]]), f"the scalar of {dtype}")


@clause("LANG-08.1-03")
@pytest.mark.parametrize(
    ("dtype", "operation", "a", "b", "result"),
    [
        ("int64", "llvm.add", 0x00000000FFFFFFFF, 1, 0x0000000100000000),
        ("int32", "llvm.add", 0xFFFFFFFF, 1, 0),
        ("int64", "llvm.mul", 0x0000000100000001, 3, 0x0000000300000003),
        ("fp64", "llvm.fadd", 0x3FF0000000000000, 0x3CB0000000000000, 0x3FF0000000000001),
        ("fp32", "llvm.fadd", 0x3F800000, 0x34000000, 0x3F800001),
        ("fp32", "llvm.fadd", 0x4B800000, 0x3F800000, 0x4B800000),
        ("fp64", "llvm.fadd", 0x4170000000000000, 0x3FF0000000000000, 0x4170000010000000),
    ],
    ids=["carry", "wraps", "high-half", "ulp-of-fp64", "ulp-of-fp32", "fp32-rounds", "fp64-does-not"],
)
def test_scalars_compute_at_their_own_width(impl, check, dtype, operation, a, b, result):
    """2**32 - 1 and 1 are 2**32 of 64 bits and 0 of 32; 2**24 and 1 are one more in fp64 only."""
    kernel = kernel_of({"y": POINTER, "a": dtype, "b": dtype})
    kernel.op("llvm.store", kernel.op(operation, kernel["a"], kernel["b"], gives=dtype), kernel["y"])
    actual = buffers_after(impl, check, kernel, y=blank(dtype, 1), a=scalar(dtype, a), b=scalar(dtype, b))
    check.bits(actual[0], Tensor.from_words(dtype, (1,), [result]))


COMPARED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "gt": operator.gt,
    "le": operator.le,
    "ge": operator.ge,
}
"""The comparison of each predicate, by its last two letters."""


def judge_comparison(impl, check, name, predicate, codes, numbers):
    """Judge the comparison of each element of a buffer with each; `numbers` are the values of its elements."""
    count, dtype = codes.size, codes.dtype
    kernel = kernel_of({"x": POINTER, "y": POINTER})

    def constant(value):
        return kernel.op("llvm.mlir.constant", gives="int32", value=value)

    def loaded(place):
        at = kernel.op("llvm.getelementptr", kernel["x"], constant(place), gives=POINTER, elem_type=dtype)
        return kernel.op("llvm.load", at, gives=dtype)

    values = [loaded(place) for place in range(count)]
    for place, (a, b) in enumerate(product(values, repeat=2)):
        holds = kernel.op(name, a, b, gives="bool", predicate=predicate)
        at = kernel.op("llvm.getelementptr", kernel["y"], constant(place), gives=POINTER, elem_type="int32")
        kernel.op("llvm.store", kernel.op("llvm.zext", holds, gives="int32"), at)
    expected = [int(COMPARED[predicate[-2:]](a, b)) for a, b in product(numbers, repeat=2)]
    actual = buffers_after(impl, check, kernel, x=codes, y=blank("int32", count**2))
    check.bits(actual[1], tensor_of("int32", expected))


@clause("LANG-08-01")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sgt", "sle", "sge"])
def test_integers_of_any_width_are_compared_with_their_signs(impl, check, predicate, dtype):
    """As the predicates of LLVM have it."""
    numbers = [0, 1, -1, 127, -128]
    judge_comparison(impl, check, "llvm.icmp", predicate, tensor_of(dtype, numbers), numbers)


@clause("LANG-08-01")
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sgt", "sle", "sge"])
def test_bools_are_compared_as_signed_integers_of_one_bit(impl, check, predicate):
    """A bool is an i1, whose true is -1 where signs count: below false, as the predicates of LLVM have it."""
    judge_comparison(impl, check, "llvm.icmp", predicate, tensor_of("bool", [False, True]), [0, -1])


@clause("LANG-08-01")
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize("predicate", ["oeq", "une", "olt", "ogt", "ole", "oge"])
def test_floats_are_compared_in_order_or_unequal(impl, check, predicate, dtype):
    """Of NaN only `une` is true, as the predicates of LLVM have it; zeros of both signs are equal."""
    infinite, sign, quiet = {
        "fp32": (0x7F800000, 1 << 31, 0x7FC00000),
        "fp64": (0x7FF0000000000000, 1 << 63, 0x7FF8000000000000),
    }[dtype]
    codes = Tensor.from_words(dtype, (6,), [0, sign, sign | 1, infinite, infinite | sign, quiet])
    numbers = [0.0, -0.0, -5e-324, math.inf, -math.inf, math.nan]
    judge_comparison(impl, check, "llvm.fcmp", predicate, codes, numbers)


@clause("LANG-16-02", "LANG-08.1-02")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_buffers_come_in_the_order_of_the_parameters(impl, check, target):
    """Whatever their names; each is written in its place, and those that are not keep what they hold."""
    kernel = kernel_of({"z": POINTER, "a": POINTER, "m": POINTER, "n": "int32"}, target)
    kernel.op("llvm.store", kernel.op("llvm.load", kernel["z"], gives="int32"), kernel["m"])
    kernel.op("llvm.store", kernel["n"], kernel["z"])
    given = {"z": tensor_of("int32", [1]), "a": tensor_of("int32", [2, 2]), "m": tensor_of("int32", [3, 3, 3])}
    actual = buffers_after(impl, check, kernel, **given, n=tensor_of("int32", 7))
    expected = ([7], [2, 2], [1, 3, 3])
    for buffer, values in zip(actual, expected, strict=True):
        check.bits(buffer, tensor_of("int32", values))


@clause("LANG-08.1-02")
@pytest.mark.parametrize("dtype", sorted(name for name, format_ in ELEMENT_FORMATS.items() if format_.words == 1))
def test_a_buffer_holds_elements_of_any_dtype(impl, check, dtype):
    """Every element is moved by one, bit for bit; addresses count elements of the dtype."""
    kernel = kernel_of({"x": POINTER, "y": POINTER}, block=(4, 1, 1))
    lane = kernel.op("nvvm.read.ptx.sreg.tid.x", gives="int32")
    one = kernel.op("llvm.mlir.constant", gives="int32", value=1)
    later = kernel.op("llvm.add", lane, one, gives="int32")
    source = kernel.op("llvm.getelementptr", kernel["x"], later, gives=POINTER, elem_type=dtype)
    end = kernel.op("llvm.getelementptr", kernel["y"], lane, gives=POINTER, elem_type=dtype)
    kernel.op("llvm.store", kernel.op("llvm.load", source, gives=dtype), end)
    bits = 8 * ELEMENT_FORMATS[dtype].word_bytes
    words = [i % 2 if dtype == "bool" else 0xD1B54A32D192ED03 * (i + 1) & (1 << bits) - 1 for i in range(5)]
    given, zero = Tensor.from_words(dtype, (5,), words), Tensor.from_words(dtype, (4,), [0] * 4)
    actual = buffers_after(impl, check, kernel, x=given, y=zero)
    check.bits(actual[0], given)
    check.bits(actual[1], Tensor.from_words(dtype, (4,), words[1:]))


# Where a thread is

GRID, BLOCK = (3, 2, 4), (2, 5, 3)
REGISTERS = {
    "sm_90": {
        "thread": "nvvm.read.ptx.sreg.tid",
        "block": "nvvm.read.ptx.sreg.ctaid",
        "block_dim": "nvvm.read.ptx.sreg.ntid",
        "grid_dim": "nvvm.read.ptx.sreg.nctaid",
    },
    "gfx942": {
        "thread": "rocdl.workitem.id",
        "block": "rocdl.workgroup.id",
        "block_dim": "rocdl.workgroup.dim",
        "grid_dim": "rocdl.grid.dim",
    },
}


class Placed(KernelText):
    """A kernel of many blocks, whose threads write to the place that their number is, x fastest, blocks outside."""

    def __init__(self, target):
        super().__init__({"y": POINTER}, level="target", target=target, grid=GRID, block=BLOCK)
        self.registers = REGISTERS[target]

    def where(self, quantity, axis):
        """A register."""
        return self.op(f"{self.registers[quantity]}.{axis}", gives="int32")

    def number(self):
        """Return the number of the thread in the grid."""
        total = self.op("llvm.mlir.constant", gives="int32", value=0)
        extents = [*zip("zyx", reversed(GRID), strict=True), *zip("zyx", reversed(BLOCK), strict=True)]
        for quantity, (axis, extent) in zip(["block"] * 3 + ["thread"] * 3, extents, strict=True):
            factor = self.op("llvm.mlir.constant", gives="int32", value=extent)
            scaled = self.op("llvm.mul", total, factor, gives="int32")
            total = self.op("llvm.add", scaled, self.where(quantity, axis), gives="int32")
        return total

    def leave(self, value):
        """Write a value of each thread."""
        at = self.op("llvm.getelementptr", self["y"], self.number(), gives=POINTER, elem_type="int32")
        self.op("llvm.store", value, at)


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    ("quantity", "axis"),
    [
        pytest.param(quantity, axis, id=f"{quantity}-{axis}", marks=clause(name))
        for quantity, name in (
            ("block", "LANG-08.1-07"),
            ("grid_dim", "LANG-08.1-07"),
            ("thread", "LANG-08.1-08"),
            ("block_dim", "LANG-08.1-08"),
        )
        for axis in "xyz"
    ],
)
def test_a_thread_knows_where_it_is(impl, check, quantity, axis, target):
    """In a grid of 3x2x4 blocks of 2x5x3 threads, along each axis; the components are x, y and z (AMB-LANG-32)."""
    kernel, place = Placed(target), "xyz".index(axis)
    kernel.leave(kernel.where(quantity, axis))
    every = list(product(*map(range, (*reversed(GRID), *reversed(BLOCK)))))
    expected = {"block": lambda identity: identity[2 - place], "thread": lambda identity: identity[5 - place]}
    fixed = {"grid_dim": GRID[place], "block_dim": BLOCK[place]}
    values = [fixed[quantity] if quantity in fixed else expected[quantity](identity) for identity in every]
    actual = buffers_after(impl, check, kernel, y=tensor_of("int32", [-1] * len(every)))
    check.bits(actual[0], tensor_of("int32", values))
