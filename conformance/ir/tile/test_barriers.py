"""Barriers of a block, and races: accesses that nothing orders (language spec, 7.2, 8.3)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer
from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    WARPS,
    buffers_after,
    fails,
    runs_if,
    verified,
)
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = feature("tile-ir-text")

LANES = 128
"""Four warps of 32 lanes, or two of 64."""


class ExchangeKernel(KernelText):
    """A kernel of several warps whose lanes exchange values: a shared tile with one int32 for each lane."""

    def __init__(self, target="sm_90", lanes=LANES, grid=(1, 1, 1), **buffers):
        parameters = buffers or {"y": buffer("int32", lanes)}
        super().__init__(parameters, grid=grid, block=(lanes, 1, 1), smem_bytes=4 * lanes, target=target)
        self.lanes = lanes
        self.tile = self.allocate("int32", lanes)
        self.lane_number = self.index("thread_id")

    def opposite(self):
        """The lane that is as far from the other end."""
        return self.compute("subtract", self.constant(self.lanes - 1), self.lane_number)

    def next(self):
        """The lane behind this one, round the end."""
        other = self.compute("add", self.lane_number, self.constant(1))
        inside = self.compute("less", other, self.constant(self.lanes))
        return self.compute("select", inside, other, self.constant(0))


def exchange(kernel, ordered, place_of):
    """Each lane writes its element and reads another one."""
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    place = place_of()
    if ordered:
        kernel.barrier()
    value = kernel.load(kernel.tile, place)
    kernel.mark()
    kernel.store(value, kernel["y"], kernel.lane_number)


def write_then_read(kernel, ordered):
    """Each lane writes its element and reads the opposite one."""
    exchange(kernel, ordered, kernel.opposite)
    return [kernel.lanes - 1 - i for i in range(kernel.lanes)]


def write_then_read_next(kernel, ordered):
    """Each lane writes its element and reads that of its neighbour, mostly in its own warp."""
    exchange(kernel, ordered, kernel.next)
    return [(i + 1) % kernel.lanes for i in range(kernel.lanes)]


def read_then_write(kernel, ordered):
    """Each lane reads its neighbour's element, and writes its own anew."""
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    place = kernel.next()
    kernel.barrier()
    value = kernel.load(kernel.tile, place)
    if ordered:
        kernel.barrier()
    kernel.store(value, kernel.tile, kernel.lane_number)
    kernel.mark()
    kernel.store(kernel.load(kernel.tile, kernel.lane_number), kernel["y"], kernel.lane_number)
    return [(i + 1) % kernel.lanes for i in range(kernel.lanes)]


def write_twice(kernel, ordered):
    """Each lane writes its element, and then another lane does."""
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    place, double = kernel.opposite(), kernel.compute("add", kernel.lane_number, kernel.lane_number)
    if ordered:
        kernel.barrier()
    kernel.store(double, kernel.tile, place)
    kernel.mark()
    kernel.barrier()
    kernel.store(kernel.load(kernel.tile, kernel.lane_number), kernel["y"], kernel.lane_number)
    return [2 * (kernel.lanes - 1 - i) for i in range(kernel.lanes)]


def write_together(kernel, ordered):
    """All lanes write element 0 at once, or one of them does."""
    zero = kernel.constant(0)
    first = kernel.compute("less", kernel.lane_number, kernel.constant(1 if ordered else 2))
    lines = []

    def write():
        kernel.store(kernel.constant(7), kernel.tile, zero)
        lines.append(kernel.line)
        return ()

    kernel.branch(first, write)
    kernel.critical = lines[0]
    kernel.barrier()
    kernel.store(kernel.load(kernel.tile, zero), kernel["y"], kernel.lane_number)
    return [7] * kernel.lanes


def in_turns(kernel, ordered):
    """Every turn of a loop shifts the elements by one lane; the barrier behind the reading is in the loop."""
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    place = kernel.next()
    lines = []

    def turn(index):
        kernel.barrier()
        value = kernel.load(kernel.tile, place)
        if ordered:
            kernel.barrier()
        kernel.store(value, kernel.tile, kernel.lane_number)
        lines.append(kernel.line)
        return ()

    kernel.loop(kernel.constant(0), kernel.constant(3), kernel.constant(1), turn)
    kernel.critical = lines[0]
    kernel.store(kernel.load(kernel.tile, kernel.lane_number), kernel["y"], kernel.lane_number)
    return [(i + 3) % kernel.lanes for i in range(kernel.lanes)]


ORDERS = [write_then_read, write_then_read_next, read_then_write, write_twice, write_together, in_turns]


def by_name(functions):
    """Functions as the parameters of cases with their names."""
    return [pytest.param(function, id=function.__name__) for function in functions]


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("order", by_name(ORDERS))
def test_a_barrier_orders_what_threads_do_to_shared_memory(impl, check, order, target):
    """With the barrier each lane finds what the other left; without it the second access is a race, reported there."""
    kernel = ExchangeKernel(target)
    expected = order(kernel, True)
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))
    kernel = ExchangeKernel(target)
    order(kernel, False)
    fails(impl, check, kernel)


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("ordered", [True, False], ids=["barrier", "none"])
def test_lanes_of_one_warp_are_ordered_by_a_barrier_too(impl, check, ordered):
    """A block that is a single warp, or half of one, is no exception."""
    for lanes, target in ((32, "sm_90"), (64, "gfx942"), (32, "gfx942")):
        kernel = ExchangeKernel(target, lanes)
        expected = write_then_read(kernel, ordered)
        runs_if(impl, check, ordered, kernel, tensor_of("int32", expected))


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("order", by_name(ORDERS))
def test_a_barrier_orders_a_block_of_one_warp(impl, check, order):
    """A barrier orders the lanes of one warp as it orders warps; without it there is a race."""
    for ordered in (True, False):
        kernel = ExchangeKernel(lanes=32)
        expected = tensor_of("int32", order(kernel, ordered))
        runs_if(impl, check, ordered, kernel, expected)


def by_block(kernel, number, body):
    """Run the body in one block of the grid alone."""
    kernel.branch(kernel.compute("equal", kernel.block, kernel.constant(number)), body)


@clause("LANG-08.3-02")
@pytest.mark.parametrize("reader", [0, 1, 2])
@pytest.mark.parametrize("writer", [0, 1, 2, None], ids=["0", "1", "2", "none"])
def test_no_barrier_orders_the_blocks_of_a_grid(impl, check, reader, writer):
    """An element that one block reads and another writes is a race, whichever has the lower number; or none writes.

    The block that writes it alone may also read it before.
    """
    kernel = KernelText({"x": buffer("int32", 4), "y": buffer("int32", 3)}, grid=(3, 1, 1), block=(1, 1, 1))
    kernel.block = kernel.index("block_id")
    two = kernel.constant(2)

    def read():
        kernel.store(kernel.load(kernel["x"], two), kernel["y"], kernel.block)
        return ()

    def write():
        kernel.store(kernel.constant(9), kernel["x"], two)
        return ()

    kernel.store(kernel.block, kernel["y"], kernel.block)
    by_block(kernel, reader, read)
    kernel.barrier()
    if writer is not None:
        by_block(kernel, writer, write)
    inputs = {"x": tensor_of("int32", [5, 6, 7, 8])}
    if writer in (reader, None):
        expected = [7 if number == reader else number for number in range(3)]
        check.bits(buffers_after(impl, check, kernel, **inputs)[-1], tensor_of("int32", expected))
    else:
        fails(impl, check, kernel, **inputs)


@clause("LANG-08.3-02", "LANG-07.2-05")
def test_a_thread_needs_no_barrier_for_what_it_did_itself(impl, check):
    """Each lane writes, reads, writes and reads its own element, and all read one that was written before."""
    kernel = ExchangeKernel()
    zero, first = kernel.constant(0), kernel.compute("equal", kernel.lane_number, kernel.constant(0))
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    value = kernel.load(kernel.tile, kernel.lane_number)
    kernel.store(kernel.compute("add", value, value), kernel.tile, kernel.lane_number)
    value = kernel.load(kernel.tile, kernel.lane_number)
    kernel.branch(first, lambda: kernel.store(kernel.constant(1000), kernel.tile, zero))
    kernel.barrier()
    total = kernel.compute("add", kernel.load(kernel.tile, zero), value)
    kernel.store(total, kernel["y"], kernel.lane_number)
    after = buffers_after(impl, check, kernel)
    check.bits(after[0], tensor_of("int32", [1000 + 2 * i for i in range(LANES)]))


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("ordered", [True, False], ids=["barrier", "none"])
def test_a_barrier_orders_global_memory_of_its_block(impl, check, ordered):
    """Lanes exchange elements through a buffer instead of a shared tile."""
    kernel = ExchangeKernel(z=buffer("int32", LANES), y=buffer("int32", LANES))
    kernel.store(kernel.lane_number, kernel["z"], kernel.lane_number)
    place = kernel.opposite()
    if ordered:
        kernel.barrier()
    value = kernel.load(kernel["z"], place)
    kernel.mark()
    kernel.store(value, kernel["y"], kernel.lane_number)
    runs_if(impl, check, ordered, kernel, tensor_of("int32", [*range(LANES)][::-1]))


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("ordered", [True, False], ids=["barrier", "none"])
def test_a_barrier_orders_what_threads_do_to_a_buffer_of_the_caller(impl, check, ordered):
    """Lanes reverse a buffer in place: each reads the opposite element, and then writes its own (AMB-LANG-202)."""
    kernel = ExchangeKernel(x=buffer("int32", LANES))
    value = kernel.load(kernel["x"], kernel.opposite())
    if ordered:
        kernel.barrier()
    kernel.store(value, kernel["x"], kernel.lane_number)
    kernel.mark()
    numbers = [3 * i - 100 for i in range(LANES)]
    runs_if(impl, check, ordered, kernel, tensor_of("int32", numbers[::-1]), x=tensor_of("int32", numbers))


@clause("LANG-08.3-02")
@pytest.mark.parametrize("memory", ["shared", "global"])
def test_a_thread_may_read_its_element_twice_and_then_write_it(impl, check, memory):
    """Two readings of one lane are not readings of two lanes (AMB-LANG-202)."""
    kernel = ExchangeKernel(x=buffer("int32", LANES), y=buffer("int32", LANES))
    place = kernel.tile if memory == "shared" else kernel["x"]
    if memory == "shared":
        kernel.store(kernel.load(kernel["x"], kernel.lane_number), place, kernel.lane_number)
        kernel.barrier()
    first, second = (kernel.load(place, kernel.lane_number) for _ in range(2))
    kernel.store(kernel.compute("add", first, second), place, kernel.lane_number)
    kernel.store(kernel.load(place, kernel.lane_number), kernel["y"], kernel.lane_number)
    after = buffers_after(impl, check, kernel, x=tensor_of("int32", [*range(LANES)]))
    check.bits(after[1], tensor_of("int32", [2 * i for i in range(LANES)]))


# Which threads reach a barrier


@clause("LANG-08.3-02", "LANG-07.2-05")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("who", ["lanes", "warp", "one", "two-branches"])
def test_a_barrier_that_part_of_a_block_reaches_is_an_error(impl, check, who, target):
    """In a branch that some lanes, a whole warp, or all but one take; where every thread takes it, it is none."""
    for everyone in (True, False):
        kernel = ExchangeKernel(target)
        number = kernel.warp() if who == "warp" else kernel.lane_number
        least = {"lanes": 20, "warp": 1, "one": LANES - 1, "two-branches": 64}[who]
        bound = kernel.constant(LANES if everyone else least)
        lines = []

        def wait(kernel=kernel, lines=lines):
            kernel.barrier()
            lines.append(kernel.line)
            return ()

        kernel.branch(kernel.compute("less", number, bound), wait, wait if who == "two-branches" else tuple)
        kernel.critical = lines[0]
        kernel.store(kernel.lane_number, kernel["y"], kernel.lane_number)
        runs_if(impl, check, everyone, kernel, tensor_of("int32", [*range(LANES)]))


# Blocks


@clause("LANG-08.3-02")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_barrier_is_of_one_block_and_no_other(impl, check, target):
    """Only the middle one of three blocks executes a barrier, and does not wait for the others."""
    lanes = WARPS[target]
    kernel = ExchangeKernel(target, lanes, (3, 1, 1), y=buffer("int32", 3, lanes))
    block = kernel.index("block_id")
    middle = kernel.compute("equal", block, kernel.constant(1))
    kernel.store(kernel.lane_number, kernel.tile, kernel.lane_number)
    place = kernel.opposite()

    def exchange():
        kernel.barrier()
        return [kernel.load(kernel.tile, place)]

    (value,) = kernel.branch(middle, exchange, lambda: [kernel.load(kernel.tile, kernel.lane_number)])
    kernel.store(value, kernel["y"], block, kernel.lane_number)
    up = [*range(lanes)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [up, up[::-1], up]))


@clause("LANG-08.3-02")
@pytest.mark.parametrize("what", ["read", "write", "read-first"])
def test_no_barrier_orders_two_blocks(impl, check, what):
    """Two blocks and one element, which one of them writes: an error, in whichever order they run (AMB-LANG-202)."""
    for shared in (True, False):
        lanes = 32
        kernel = ExchangeKernel("sm_90", lanes, (2, 1, 1), x=buffer("int32", 2, lanes), y=buffer("int32", 2, lanes))
        block = kernel.index("block_id")
        own = kernel.compute("select", kernel.compute("less", block, kernel.constant(1)), block, kernel.constant(1))
        other = kernel.compute("subtract", kernel.constant(1), block)
        place = other if shared and what != "write" else kernel.constant(0) if shared else own
        if what == "read":
            kernel.store(kernel.lane_number, kernel["x"], own, kernel.lane_number)
            kernel.barrier()
            value = kernel.load(kernel["x"], place, kernel.lane_number)
        elif what == "write":
            value = kernel.lane_number
            kernel.store(value, kernel["x"], place, kernel.lane_number)
        else:
            value = kernel.load(kernel["x"], place, kernel.lane_number)
            kernel.barrier()
            kernel.store(kernel.lane_number, kernel["x"], own, kernel.lane_number)
        kernel.store(value, kernel["y"], block, kernel.lane_number)
        x = tensor_of("int32", [[*range(lanes)]] * 2)
        if shared:
            fails(impl, check, kernel, x=x)
        else:
            check.bits(buffers_after(impl, check, kernel, x=x)[1], x)


@clause("LANG-08.3-02")
@pytest.mark.parametrize("writer", [0, 1, 2])
def test_a_block_that_reads_an_element_before_it_writes_it_is_not_ordered_either(impl, check, writer):
    """All three blocks read one element that one of them writes, or each has its own (AMB-LANG-202)."""
    for shared in (False, True):
        kernel = KernelText({"x": buffer("int32", 3), "y": buffer("int32", 3)}, grid=(3, 1, 1), block=(1, 1, 1))
        kernel.block = kernel.index("block_id")
        place = kernel.constant(1) if shared else kernel.block
        kernel.store(kernel.load(kernel["x"], place), kernel["y"], kernel.block)

        def write(kernel=kernel, place=place):
            kernel.store(kernel.constant(9), kernel["x"], place)
            return ()

        by_block(kernel, writer, write)
        x = tensor_of("int32", [5, 6, 7])
        if shared:
            fails(impl, check, kernel, x=x)
        else:
            after = buffers_after(impl, check, kernel, x=x)
            written = [9 if number == writer else 5 + number for number in range(3)]
            check.bits(after[0], tensor_of("int32", written))
            check.bits(after[1], x)


@clause("LANG-08.3-02")
def test_blocks_may_read_what_none_of_them_writes(impl, check):
    """Four blocks read one row, and each writes a row of its own."""
    kernel = ExchangeKernel("sm_90", 32, (2, 2, 1), x=buffer("int32", 32), y=buffer("int32", 2, 2, 32))
    value = kernel.load(kernel["x"], kernel.opposite())
    places = kernel.index("block_id", "y"), kernel.index("block_id", "x"), kernel.lane_number
    kernel.store(value, kernel["y"], *places)
    after = buffers_after(impl, check, kernel, x=tensor_of("int32", [*range(32)]))
    row = [*range(32)][::-1]
    check.bits(after[1], tensor_of("int32", [[row, row], [row, row]]))


# The operation itself


@clause("LANG-07.2-05")
def test_a_barrier_has_no_operands(impl, check):
    """It may have a label; an operand, or a result, is refused (AMB-LANG-84)."""
    for form, legal in (
        ('"tessera.tile.barrier"() : () -> ()', True),
        ('"tessera.tile.barrier"() {label = "staged"} : () -> ()', True),
        ('"tessera.tile.barrier"(%n) : (int32) -> ()', False),
        ('%r = "tessera.tile.barrier"() : () -> int32', False),
        ('"tessera.tile.barrier"() {level = "staged"} : () -> ()', False),
    ):
        kernel = KernelText({"n": "int32"})
        kernel.raw(form)
        observation = verified(impl, kernel.module, "tile")
        accepts_if(check, legal, observation, category="types", at_line=kernel.line)
