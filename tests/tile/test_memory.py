"""Loads and stores: bounds, what was never written, and who may touch one element without a barrier."""

from __future__ import annotations

import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.numerics.errors import TooLarge
from tessera_reference.tile.operations import Barrier


def test_a_kernel_computes_from_buffers_and_scalars(kernel):
    """out[r, c] = x[c, r] * a + b, one block a row."""
    types = [kernel.buffer("fp32", 4, 3), kernel.buffer("fp32", 3, 4), kernel.scalar("fp32"), kernel.scalar("fp32")]
    k = kernel(*types, grid=(3, 1, 1), block=(4, 1, 1))
    row, column = k.block_id(), k.thread()
    k.store(k.add(k.times(k.load(k[0], column, row), k[2]), k[3]), k[1], row, column)
    x = [[float(3 * i + j) for j in range(3)] for i in range(4)]
    given = kernel.array("fp32", x)
    before, after = k.run(given, None, kernel.array("fp32", 2.0), kernel.array("fp32", -1.0))
    assert after.values.tolist() == [[2 * x[c][r] - 1 for c in range(4)] for r in range(3)]
    assert before.values.tolist() == x


def test_a_buffer_that_is_given_and_written_is_not_changed_for_its_giver(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.store(k.add(k.load(k[0], t), 1), k[0], t)
    given = kernel.array("int32", [5] * 32)
    assert k.result(given) == [6] * 32
    assert given.values.tolist() == [5] * 32


def test_a_store_casts_nothing_and_takes_an_index_for_each_dimension(kernel):
    k = kernel(kernel.buffer("bf16", 4, 4))
    half, t = k.constant(0.5, "fp32"), k.thread()
    with pytest.raises(Refusal) as caught:
        k.store(half, k[0], t, t)
    assert (caught.value.category, caught.value.clause) == ("types", "LANG-03.1-05")
    for wrong in ((t,), (t, t, t), (half, t)):
        with pytest.raises(Refusal):
            k.load(k[0], *wrong)


def test_a_buffer_of_rank_0_is_one_element(kernel):
    k = kernel(kernel.buffer("bf16"), kernel.buffer("bf16"), block=(1, 1, 1))
    k.store(k.load(k[0]), k[1])
    assert k.result(kernel.array("bf16", 1.5), None) == 1.5


@pytest.mark.parametrize(("shift", "place"), [(1, "%p0[1, 4]"), (-1, "%p0[1, -1]")])
def test_an_index_out_of_bounds_names_the_thread_and_the_element(kernel, shift, place):
    """Four threads of row 1: the last one goes too far right, or the first too far left."""
    k = kernel(kernel.buffer("fp32", 2, 4), kernel.buffer("fp32", 4), grid=(3, 1, 1), block=(4, 1, 1))
    t = k.thread()
    k.load(k[0], k.constant(1), k.add(t, shift))
    line = k.line
    found = k.fails(kernel.array("fp32", [[0.0] * 4] * 2), None)
    lane = 3 if shift == 1 else 0
    assert found.message == (
        f"load: thread ({lane}, 0, 0) of block (0, 0, 0) goes to {place}, out of bounds: the shape is [2, 4]"
    )
    assert (found.category, found.span.line) == ("tile", line)


def test_an_index_out_of_bounds_in_an_inactive_lane_is_none(kernel):
    k = kernel(kernel.buffer("int32", 5), kernel.buffer("int32", 32))
    t = k.thread()
    (value,) = k.branch(k.less(t, 5), lambda: k.load(k[0], t), lambda: k.constant(9))
    k.store(value, k[1], t)
    assert k.result(kernel.array("int32", [4, 3, 2, 1, 0]), None) == [4, 3, 2, 1, 0] + [9] * 27


def test_shared_memory_begins_uninitialised_in_every_block(kernel):
    """The first block writes it; the second, which runs the same memory, must not see that."""
    k = kernel(kernel.buffer("int32", 2, 32), grid=(2, 1, 1))
    tile, t, b = k.allocate("int32", 32), k.thread(), k.block_id()
    k.branch(k.equal(b, 0), lambda: k.store(t, tile, t))
    k.store(k.load(tile, t), k[0], b, t)
    found = k.fails(None)
    assert "thread (0, 0, 0) of block (1, 0, 0) reads %v0[0], which nothing has written" in found.message


def test_a_result_that_the_kernel_reads_before_it_writes_is_uninitialised(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.load(k[0], t)
    assert "reads %p0[0], which nothing has written" in k.fails(None).message


def test_a_result_that_is_not_wholly_written_is_an_error_that_names_an_element(kernel):
    k = kernel(kernel.buffer("int32", 5, 8))
    t = k.thread()
    k.store(t, k[0], k.over(t, 8), k.rest(t, 8))
    found = k.fails(None)
    assert found.category == "tile"
    assert found.message == "@tss_kernel_k: %p0[4, 0] was never written, nor 7 more"


def test_threads_share_what_a_barrier_orders(kernel):
    """A reversal through shared memory."""
    k = kernel(kernel.buffer("int32", 32), kernel.buffer("int32", 32))
    tile, t = k.allocate("int32", 32), k.thread()
    k.store(k.load(k[0], t), tile, t)
    k.all(Barrier)
    k.store(k.load(tile, k.minus(k.constant(31), t)), k[1], t)
    assert k.result(kernel.array("int32", range(32)), None) == list(range(31, -1, -1))


def test_without_the_barrier_it_is_a_race(kernel):
    k = kernel(kernel.buffer("int32", 32))
    tile, t = k.allocate("int32", 32), k.thread()
    k.store(t, tile, t)
    k.load(tile, k.minus(k.constant(31), t))
    found = k.fails(None)
    assert found.category == "tile"
    assert found.message == (
        "load: race: thread (0, 0, 0) of block (0, 0, 0) reads %v0[31], which thread (31, 0, 0) of block (0, 0, 0) "
        "writes without a barrier between"
    )
    assert found.clause == "LANG-08.3-02"


def test_writing_over_what_another_thread_has_read_is_a_race(kernel):
    k = kernel(kernel.buffer("int32", 32))
    tile, t = k.allocate("int32", 32), k.thread()
    k.store(t, tile, t)
    k.all(Barrier)
    k.load(tile, 3)
    k.store(t, tile, t)
    found = k.fails(None)
    assert found.message.startswith("store: race: thread (3, 0, 0) of block (0, 0, 0) writes %v0[3], which several")


def test_an_earlier_reader_is_not_forgotten_for_a_later_one(kernel):
    """Lane t writes the element that it was the last to read; lane 31 - t read it before."""
    k = kernel(kernel.buffer("int32", 32))
    tile, t = k.allocate("int32", 32), k.thread()
    k.store(t, tile, t)
    k.all(Barrier)
    k.load(tile, t)
    place = k.minus(k.constant(31), t)
    k.load(tile, place)
    k.store(t, tile, place)
    assert "store: race: thread (0, 0, 0) of block (0, 0, 0) writes %v0[31], which several" in k.fails(None).message


def test_a_thread_may_reuse_its_own_element_and_many_may_read_one(kernel):
    k = kernel(kernel.buffer("int32", 32))
    tile, t = k.allocate("int32", 32), k.thread()
    k.store(t, tile, t)
    k.store(k.add(k.load(tile, t), 1), tile, t)
    k.all(Barrier)
    both = k.add(k.load(tile, 7), k.load(tile, t))
    k.all(Barrier)
    k.store(both, tile, t)
    k.store(k.load(tile, t), k[0], t)
    assert k.result(None) == [8 + t + 1 for t in range(32)]


def test_two_threads_that_write_one_element_at_once_race_even_with_one_value(kernel):
    k = kernel(kernel.buffer("int32", 16))
    t = k.thread()
    k.store(k.constant(1), k[0], k.over(t, 2))
    found = k.fails(None)
    assert "race: thread (0, 0, 0) of block (0, 0, 0) writes %p0[0], which thread (1, 0, 0)" in found.message


def test_threads_of_a_block_race_in_global_memory_too(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.store(t, k[0], t)
    k.load(k[0], 5)
    assert "reads %p0[5], which thread (5, 0, 0) of block (0, 0, 0) writes without a barrier" in k.fails(None).message


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("what", ["writes after a write", "reads after a write", "writes after a read"])
def test_blocks_that_share_an_element_race_in_any_order(kernel, order, what):
    """Element 0 is shared by blocks 0 and 2, of which at least one writes."""
    k = kernel(kernel.buffer("int32", 4), grid=(3, 1, 1), block=(1, 1, 1))
    b = k.block_id()

    def touch(block: int, access: str) -> None:
        one = (lambda: k.store(b, k[0], 0)) if access == "write" else (lambda: k.load(k[0], 0) and ())
        k.branch(k.equal(b, block), lambda: one() or ())

    touch(0, "read" if what == "writes after a read" else "write")
    touch(2, "read" if what == "reads after a write" else "write")
    found = k.fails(kernel.array("int32", [1, 2, 3, 4]), order=order)
    first, second = (0, 2) if order == "forward" else (2, 0)
    assert f"race: thread (0, 0, 0) of block ({second}, 0, 0)" in found.message
    assert f"which thread (0, 0, 0) of block ({first}, 0, 0)" in found.message
    assert found.message.endswith("in another block")


def test_a_block_that_writes_what_it_and_another_have_read_races(kernel):
    k = kernel(kernel.buffer("int32", 1), grid=(2, 1, 1), block=(1, 1, 1))
    value, b = k.load(k[0], 0), k.block_id()
    k.branch(k.equal(b, 1), lambda: k.store(value, k[0], 0))
    found = k.fails(kernel.array("int32", [5]))
    assert "block (1, 0, 0) writes %p0[0], which thread (0, 0, 0) of block (0, 0, 0) reads" in found.message


def test_blocks_that_only_read_an_element_share_it(kernel):
    k = kernel(kernel.buffer("int32", 3), kernel.buffer("int32", 1), grid=(3, 1, 1), block=(1, 1, 1))
    b = k.block_id()
    k.store(k.load(k[0], b), k[0], b)
    k.load(k[1], 0)
    k.branch(k.less(b, 0), lambda: k.store(b, k[1], 0))
    assert k.run(kernel.array("int32", [7, 8, 9]), kernel.array("int32", [1]))[0].values.tolist() == [7, 8, 9]


@pytest.mark.parametrize("order", ["forward", "reverse", [3, 1, 5, 0, 4, 2]])
def test_the_order_of_blocks_changes_nothing(kernel, order):
    k = kernel(kernel.buffer("fp32", 6, 32), kernel.buffer("fp32", 6, 32), grid=(3, 2, 1))
    t, b = k.thread(), k.add(k.times(k.block_id("y"), 3), k.block_id("x"))
    tile = k.allocate("fp32", 32)
    k.store(k.load(k[0], b, t), tile, t)
    k.all(Barrier)
    k.store(k.add(k.load(tile, t), k.load(tile, 0)), k[1], b, t)
    x = [[float(100 * b + t) for t in range(32)] for b in range(6)]
    assert k.result(kernel.array("fp32", x), None, order=order) == [[v + row[0] for v in row] for row in x]


def test_a_launch_that_does_not_fit_says_what_it_needs(kernel):
    k = kernel(kernel.buffer("fp64", 1 << 40))
    with pytest.raises(TooLarge, match=r"launch: 35184372088832 bytes of buffers are too many"):
        k.run(None)


def test_an_order_that_leaves_a_block_out_is_none(kernel):
    k = kernel(kernel.buffer("int32", 32), grid=(2, 1, 1))
    with pytest.raises(ValueError, match="no order of 2 blocks"):
        k.run(kernel.array("int32", [0] * 32), order=[0, 0])
