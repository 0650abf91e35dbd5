"""Memory of a kernel: buffers and shared tiles, how they are indexed, what an access must not do (7.1, 7.2, 8.3)."""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer
from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    WARPS,
    buffers_after,
    fails,
    verified,
)
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

pytestmark = feature("tile-ir-text")

DTYPES = sorted(name for name, format_ in ELEMENT_FORMATS.items() if format_.words == 1)
NUMBERS = [7 * i - 50 for i in range(32)]


def fails_naming(impl, check, kernel, line, *numbers, **inputs):
    """The kernel fails at this line; the message there names the lane and the place, as numbers (AMB-LANG-251)."""
    rejection = fails(impl, check, kernel, line, **inputs)
    entries = [entry for entry in rejection.diagnostics if entry.line == line]
    said = " ".join([entry.message for entry in entries] + [operand for entry in entries for operand in entry.operands])
    actual = [int(number) for number in re.findall(r"(?<![\w.])-?\d+", said)]
    check.reading("AMB-LANG-251", "the line alone", not actual)
    check.true(all(number in actual for number in numbers), f"lane and place are named: {numbers}", said)


@clause("LANG-07.1-02", "LANG-08.3-01")
def test_a_memref_is_indexed_in_row_major_order(impl, check):
    """A 2x3x4 buffer becomes, element by element, one of 4x2x3."""
    kernel = KernelText({"x": buffer("int32", 2, 3, 4), "y": buffer("int32", 4, 2, 3)}, block=(4, 3, 2))
    place = [kernel.index("thread_id", axis) for axis in "zyx"]
    kernel.store(kernel.load(kernel["x"], *place), kernel["y"], place[2], place[0], place[1])
    x = [[[100 * i + 10 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
    y = [[[x[i][j][k] for j in range(3)] for i in range(2)] for k in range(4)]
    check.bits(buffers_after(impl, check, kernel, x=tensor_of("int32", x))[1], tensor_of("int32", y))


@clause("LANG-07.1-02", "LANG-07.2-01", "LANG-08.3-01")
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_of_every_dtype_holds_what_is_stored(impl, check, dtype):
    """From a buffer through a shared tile into another buffer, last element first: every bit is kept."""
    kernel = KernelText({"x": buffer(dtype, 32), "y": buffer(dtype, 32)}, smem_bytes=256)
    tile, lane = kernel.allocate(dtype, 32), kernel.index("thread_id")
    kernel.store(kernel.load(kernel["x"], lane), tile, kernel.compute("subtract", kernel.constant(31), lane))
    kernel.barrier()
    kernel.store(kernel.load(tile, lane), kernel["y"], lane)
    bits = 8 * ELEMENT_FORMATS[dtype].word_bytes
    words = [i % 2 if dtype == "bool" else 0x9E3779B97F4A7C15 * (i + 1) >> 7 & (1 << bits) - 1 for i in range(32)]
    x, y = (Tensor.from_words(dtype, (32,), codes) for codes in (words, words[::-1]))
    after = buffers_after(impl, check, kernel, x=x)
    check.bits(after[0], x, "the buffer that is only read")
    check.bits(after[1], y, "the buffer that is written")


@clause("LANG-07.1-02", "LANG-07.2-01")
def test_allocations_are_memories_of_their_own(impl, check):
    """Two shared tiles of other shapes, and two buffers: what one is given the others do not have."""
    kernel = KernelText({"y": buffer("int32", 3, 32)}, smem_bytes=384)
    flat, square, last = kernel.allocate("int32", 32), kernel.allocate("int32", 4, 8), kernel.allocate("int32", 32, 1)
    lane, zero = kernel.index("thread_id"), kernel.constant(0)
    eight = kernel.constant(8)
    row = kernel.compute("divide", lane, eight)
    column = kernel.compute("subtract", lane, kernel.compute("multiply", row, eight))
    places = [(flat, (lane,)), (square, (row, column)), (last, (lane, zero))]
    for factor, (tile, place) in enumerate(places):
        kernel.store(kernel.compute("multiply", lane, kernel.constant(factor + 1)), tile, *place)
    for number, (tile, place) in enumerate(places):
        kernel.store(kernel.load(tile, *place), kernel["y"], kernel.constant(number), lane)
    expected = [[factor * i for i in range(32)] for factor in (1, 2, 3)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-07.2-01", "LANG-08.3-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_shared_memory_is_of_one_block_and_global_memory_of_all(impl, check, target):
    """Four blocks leave their numbers in shared memory, where each finds its own, and in one buffer."""
    lanes = WARPS[target]
    kernel = KernelText({"y": buffer("int32", 4, lanes)}, grid=(4, 1, 1), block=(lanes, 1, 1), smem_bytes=512,
                        target=target)  # fmt: skip
    tile, lane, block = kernel.allocate("int32", lanes), kernel.index("thread_id"), kernel.index("block_id")
    number = kernel.compute("add", kernel.compute("multiply", block, kernel.constant(1000)), lane)
    kernel.store(number, tile, lane)
    kernel.barrier()
    other = kernel.compute("subtract", kernel.constant(lanes - 1), lane)
    kernel.store(kernel.load(tile, other), kernel["y"], block, lane)
    expected = [[1000 * number + lanes - 1 - i for i in range(lanes)] for number in range(4)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-08.3-01")
def test_a_value_is_private_to_its_lane(impl, check):
    """No other lane changes what a lane computes from its number; scalars of the launch are the same in all."""
    kernel = KernelText({"y": buffer("int32", 32), "n": "int32"})
    lane = kernel.index("thread_id")
    first = kernel.compute("multiply", lane, kernel["n"])
    kernel.compute("add", first, kernel["n"])
    kernel.store(kernel.compute("subtract", first, lane), kernel["y"], lane)
    after = buffers_after(impl, check, kernel, n=tensor_of("int32", 5))
    check.bits(after[0], tensor_of("int32", [4 * i for i in range(32)]))


# Places outside


OUTSIDE = {
    "load": (32, 1, 31, 32),
    "store": (32, 1, 31, 32),
    "shared-load": (32, 1, 31, 32),
    "shared-store": (32, 1, 31, 32),
    "load-below": (32, -1, 0, -1),
    "store-far": (32, 1000, 0, 1000),
}
"""Extent, shift, and the first lane that is outside with its index; the twin of a shift is 0."""


def shifted(name, shift, extent=32):
    """Each lane accesses the element at its number and a shift, in one of the memories; the operation's line."""
    kernel = KernelText({"x": buffer("int32", extent), "y": buffer("int32", 32)}, smem_bytes=4 * extent)
    lane = kernel.index("thread_id")
    tile = kernel.allocate("int32", extent)
    kernel.store(kernel.load(kernel["x"], lane), tile, lane)
    kernel.barrier()
    place = kernel.compute("add", lane, kernel.constant(shift))
    if "load" in name:
        value = kernel.load(tile if "shared" in name else kernel["x"], place)
        line = kernel.line
    else:
        value = kernel.load(tile, lane)
        kernel.barrier()
        kernel.store(lane, tile if "shared" in name else kernel["y"], place)
        line = kernel.line
    kernel.store(value, kernel["y" if "load" in name else "x"], lane)
    return kernel, line


@clause("LANG-08.3-01", "LANG-07.1-02")
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_access_outside_its_memory_is_an_error(impl, check, name):
    """An element too far fails at the operation, which names lane and index; without the shift all is well."""
    extent, shift, lane, place = OUTSIDE[name]
    inputs = {"x": tensor_of("int32", NUMBERS), "y": tensor_of("int32", [0] * 32)}
    kernel, line = shifted(name, shift, extent)
    fails_naming(impl, check, kernel, line, lane, place, **inputs)
    kernel, _ = shifted(name, 0, extent)
    buffers_after(impl, check, kernel, **inputs)


@clause("LANG-08.3-01", "LANG-07.2-01")
@pytest.mark.parametrize("memory", ["global", "shared"])
def test_an_index_belongs_to_its_dimension(impl, check, memory):
    """Column 8 of a row of 8 is outside, though the next row follows in memory; column 7 is inside."""
    for column in (8, 7):
        kernel = KernelText({"x": buffer("int32", 4, 8), "y": buffer("int32", 1)}, block=(1, 1, 1), smem_bytes=128)
        tile, one, at = kernel.allocate("int32", 4, 8), kernel.constant(1), kernel.constant(column)
        kernel.store(one, tile, kernel.constant(2), kernel.constant(0))
        kernel.store(one, tile, one, kernel.constant(7))
        value = kernel.load(kernel["x"] if memory == "global" else tile, one, at)
        line = kernel.line
        kernel.store(value, kernel["y"], kernel.constant(0))
        inputs = {"x": tensor_of("int32", [[1] * 8] * 4)}
        if column == 8:
            fails_naming(impl, check, kernel, line, 0, 1, 8, **inputs)
        else:
            check.bits(buffers_after(impl, check, kernel, **inputs)[1], tensor_of("int32", [1]))


@clause("LANG-08.3-01")
def test_a_lane_that_is_not_active_accesses_nothing(impl, check):
    """A mask keeps 12 of 32 lanes from accessing memory that has no element for them."""
    for bound in (32, 20):
        kernel = KernelText({"x": buffer("int32", 20), "y": buffer("int32", 20)})
        lane = kernel.index("thread_id")
        inside = kernel.compute("less", lane, kernel.constant(bound))
        lines = []

        def move(kernel=kernel, lane=lane, lines=lines):
            value = kernel.load(kernel["x"], lane)
            lines.append(kernel.line)
            kernel.store(value, kernel["y"], lane)
            return ()

        kernel.branch(inside, move)
        x = tensor_of("int32", NUMBERS[:20])
        if bound == 32:
            fails_naming(impl, check, kernel, lines[0], 20, x=x)
        else:
            check.bits(buffers_after(impl, check, kernel, x=x)[1], x)


# What nothing has written


@clause("LANG-07.2-01", "LANG-08.3-01")
@pytest.mark.parametrize("written", [31, 32], ids=["all-but-one", "all"])
def test_shared_memory_begins_uninitialised(impl, check, written):
    """Lanes read what their neighbour wrote; where lane 31 writes nothing, lane 30 reads what is not there."""
    kernel = KernelText({"y": buffer("int32", 32)}, smem_bytes=128)
    tile, lane = kernel.allocate("int32", 32), kernel.index("thread_id")
    writes = kernel.compute("less", lane, kernel.constant(written))
    kernel.branch(writes, lambda: kernel.store(lane, tile, lane))
    kernel.barrier()
    other = kernel.compute("add", lane, kernel.constant(1))
    place = kernel.compute("select", kernel.compute("less", other, kernel.constant(32)), other, lane)
    value = kernel.load(tile, place)
    line = kernel.line
    kernel.store(value, kernel["y"], lane)
    if written == 31:
        fails_naming(impl, check, kernel, line, 30, 31)
    else:
        expected = [*range(1, 32), 31]
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-07.2-01", "LANG-08.3-01")
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_block_does_not_find_what_another_left(impl, check, blocks):
    """Only block 0 of the grid writes to shared memory; as the only block it may read it, but block 1 may not."""
    kernel = KernelText({"y": buffer("int32", blocks, 32)}, grid=(blocks, 1, 1), smem_bytes=128)
    tile, lane, block = kernel.allocate("int32", 32), kernel.index("thread_id"), kernel.index("block_id")
    first = kernel.compute("equal", block, kernel.constant(0))
    kernel.branch(first, lambda: kernel.store(lane, tile, lane))
    value = kernel.load(tile, lane)
    line = kernel.line
    kernel.store(value, kernel["y"], block, lane)
    if blocks == 2:
        fails(impl, check, kernel, line)
    else:
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [[*range(32)]]))


@clause("LANG-08.3-01")
@pytest.mark.parametrize("given", [False, True], ids=["left-out", "given"])
def test_a_buffer_that_is_left_out_begins_uninitialised(impl, check, given):
    """A kernel that adds to a buffer runs where it is given one; one that is left out has nothing to add to."""
    kernel = KernelText({"y": buffer("int32", 32)})
    lane = kernel.index("thread_id")
    value = kernel.load(kernel["y"], lane)
    line = kernel.line
    kernel.store(kernel.compute("add", value, lane), kernel["y"], lane)
    if given:
        after = buffers_after(impl, check, kernel, y=tensor_of("int32", NUMBERS))
        check.bits(after[0], tensor_of("int32", [8 * i - 50 for i in range(32)]))
    else:
        fails_naming(impl, check, kernel, line, 0)


@clause("LANG-08.3-01")
@pytest.mark.parametrize("extent", [33, 32], ids=["one-more", "whole"])
def test_a_buffer_that_is_left_out_is_to_be_filled(impl, check, extent):
    """A result with an element that no lane wrote is an error; with as many as lanes it is not (AMB-LANG-209)."""
    kernel = KernelText({"y": buffer("int32", extent)})
    lane = kernel.index("thread_id")
    kernel.store(lane, kernel["y"], lane)
    if extent == 33:
        fails(impl, check, kernel)
    else:
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [*range(32)]))


# What the verifier sees


def accessing(case, legal):
    """A kernel with one access, whose operands or types are legal or not."""
    kernel = KernelText({"x": buffer("int32", 4, 32), "y": buffer("bf16", 32)}, smem_bytes=256)
    lane, zero = kernel.index("thread_id"), kernel.constant(0)
    if case == "index-count":
        kernel.load(kernel["x"], *((zero, lane) if legal else (lane,)))
    elif case == "index-type":
        index = lane if legal else kernel.compute("cast", lane, gives="int64", dtype="int64")
        kernel.load(kernel["x"], zero, index)
    elif case == "element-type":
        kernel.op("tessera.tile.load", kernel["x"], zero, lane, gives="int32" if legal else "fp32")
    elif case == "stored-type":
        kernel.store(kernel.constant(1.0, "bf16" if legal else "fp32"), kernel["y"], lane)
    elif case == "stored-index-count":
        kernel.store(zero, kernel["x"], *((zero, lane) if legal else (zero, zero, lane)))
    elif case == "memory":
        kernel.op("tessera.tile.load", kernel["y"] if legal else lane, lane, gives="bf16" if legal else "int32")
    elif case == "shared":
        place = "shared" if legal else "global"
        kernel.op("tessera.tile.shared.alloc", gives=f"memref<32xint32>[addrspace={place}]")
    elif case == "shared-memref":
        kernel.op("tessera.tile.shared.alloc", gives="memref<32xint32>[addrspace=shared]" if legal else "int32")
    elif case == "address-space":
        kernel.op("tessera.tile.shared.alloc", gives=f"memref<32xint32>[addrspace={'shared' if legal else 'private'}]")
    elif case == "dtype":
        kernel.op("tessera.tile.shared.alloc", gives=f"memref<32xint3{2 if legal else 3}>[addrspace=shared]")
    return kernel


REFUSED = {
    "index-count": ("types", "shapes"),
    "index-type": ("types",),
    "element-type": ("types",),
    "stored-type": ("types",),
    "stored-index-count": ("types", "shapes"),
    "memory": ("types",),
    "shared": ("types", "tile"),
    "shared-memref": ("types", "tile"),
    "address-space": ("types", "tile", "syntax"),
    "dtype": ("types", "syntax"),
}


@clause("LANG-07.1-02", "LANG-07.2-01", "LANG-08.3-01")
@pytest.mark.parametrize("case", REFUSED)
def test_an_access_that_does_not_fit_its_memory_is_refused(impl, check, case):
    """Indices, elements and address spaces are those of the memref; its twin that differs in one of them verifies."""
    check.accepts(verified(impl, accessing(case, True).module, "tile"))
    kernel = accessing(case, False)
    check.rejects(verified(impl, kernel.module, "tile"), category=REFUSED[case], at_line=kernel.line)


@clause("LANG-07.1-02", "LANG-08.3-01")
def test_a_parameter_is_no_shared_memory(impl, check):
    """Buffers that a launch passes are in global memory; one in shared memory is refused."""
    for space, legal in (("global", True), ("shared", False)):
        observation = verified(impl, KernelText({"x": f"memref<4xfp32>[addrspace={space}]"}).module, "tile")
        accepts_if(check, legal, observation, category=("tile", "types"))


@clause("LANG-03.1-04", "LANG-11-02", "LANG-07.1-02")
@pytest.mark.parametrize("extent", ["?", "N"], ids=["unknown", "named"])
def test_extents_of_a_memref_are_numbers(impl, check, extent):
    """An unknown or named extent is refused in a kernel, whether of a buffer or of a shared tile (AMB-LANG-49)."""
    for written, legal in (("4", True), (extent, False)):
        parameter = KernelText({"x": f"memref<{written}x8xfp32>[addrspace=global]"})
        tile = KernelText({}, smem_bytes=128)
        tile.op("tessera.tile.shared.alloc", gives=f"memref<{written}x8xfp32>[addrspace=shared]")
        for kernel in (parameter, tile):
            observation = verified(impl, kernel.module, "tile")
            accepts_if(check, legal, observation, category=("shapes", "types"))
