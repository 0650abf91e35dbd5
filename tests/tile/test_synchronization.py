"""Barriers of a block and shuffles of a warp."""

from __future__ import annotations

import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.tile.operations import Barrier, ShuffleSync

WIDTHS = pytest.mark.parametrize(("target", "width"), [("sm_90", 32), ("gfx90a", 64)])


def test_a_barrier_that_part_of_the_block_does_not_reach_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 1), block=(8, 8, 1))
    k.branch(k.less(k.thread("y"), 3), lambda: k.all(Barrier))
    found = k.fails(kernel.array("int32", [0]))
    assert found.category == "tile"
    assert found.message == (
        "barrier: 24 of 64 threads come to the barrier: thread (0, 3, 0) of block (0, 0, 0) does not"
    )


def test_a_barrier_in_a_branch_that_all_take_is_none_of_that(kernel):
    k = kernel(kernel.buffer("int32", 1))
    k.branch(k.less(k.thread(), 32), lambda: k.all(Barrier, label="here"))
    k.run(kernel.array("int32", [0]))


@WIDTHS
@pytest.mark.parametrize("delta", [0, 1, 5, 31])
def test_a_lane_reads_another_one_further_on_in_its_warp(kernel, target, width, delta):
    """Lanes beyond the end keep their own; 128 threads are several warps."""
    k = kernel(kernel.buffer("int32", 128), block=(128, 1, 1), target=target)
    t = k.thread()
    k.store(k(ShuffleSync, k.times(t, 10), delta=delta), k[0], t)
    expected = [10 * (t + delta if t % width + delta < width else t) for t in range(128)]
    assert k.result(None) == expected


@WIDTHS
def test_a_warp_adds_itself_up(kernel, target, width):
    """The usual tree: halves are folded onto each other; lane 0 has the sum."""
    k = kernel(kernel.buffer("int32", 2), block=(2 * width, 1, 1), target=target)
    t = k.thread()
    total, delta = k.times(t, t), width // 2
    while delta:
        total = k.add(total, k(ShuffleSync, total, delta=delta))
        delta //= 2
    k.branch(k.equal(k.rest(t, width), 0), lambda: k.store(total, k[0], k.over(t, width)))
    squares = [t * t for t in range(2 * width)]
    assert k.result(None) == [sum(squares[:width]), sum(squares[width:])]


def test_reading_a_lane_that_is_not_active_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 1))
    t = k.thread()
    k.branch(k.less(t, 8), lambda: k(ShuffleSync, t, delta=2) and ())
    found = k.fails(kernel.array("int32", [0]))
    assert found.category == "tile"
    assert found.message == (
        "shfl.sync: thread (6, 0, 0) of block (0, 0, 0) reads lane 8 of its warp, which is not active"
    )


def test_lanes_of_a_branch_may_exchange_among_themselves(kernel):
    """Lanes 28 to 31: the first three read the next, the last keeps its own."""
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    (value,) = k.branch(k.less(k.constant(27), t), lambda: k(ShuffleSync, t, delta=1), lambda: k.constant(-1))
    k.store(value, k[0], t)
    assert k.result(None) == [-1] * 28 + [29, 30, 31, 31]


def test_a_mask_names_the_lanes_that_take_part(kernel):
    k = kernel(kernel.buffer("int32", 1))
    t = k.thread()
    k.branch(k.less(t, 8), lambda: k(ShuffleSync, t, delta=0, mask=0xFF) and ())
    k.branch(k.less(t, 8), lambda: k(ShuffleSync, t, delta=0, mask=0x7F) and ())
    found = k.fails(kernel.array("int32", [0]))
    assert found.span.line == k.line - 1
    assert "thread (7, 0, 0) of block (0, 0, 0) reads lane 7 of its warp, which is outside the mask" in found.message


def test_reading_a_lane_outside_the_mask_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 1))
    t = k.thread()
    k.branch(k.less(t, 8), lambda: k(ShuffleSync, t, delta=1, mask=0xFF) and ())
    found = k.fails(kernel.array("int32", [0]))
    assert "thread (7, 0, 0) of block (0, 0, 0) reads lane 8 of its warp, which is outside the mask" in found.message


def test_a_mask_of_32_lanes_does_not_do_for_64(kernel):
    for target, runs in (("sm_90", True), ("gfx90a", False)):
        k = kernel(kernel.buffer("int32", 1), block=(64, 1, 1), target=target)
        k(ShuffleSync, k.thread(), delta=1, mask=0xFFFFFFFF)
        if runs:
            k.run(kernel.array("int32", [0]))
        else:
            assert "outside the mask" in k.fails(kernel.array("int32", [0])).message


def test_a_thread_that_does_not_exist_is_not_active(kernel):
    """The last of 40 threads is lane 7 of a warp that has no lane 8."""
    k = kernel(kernel.buffer("int32", 1), block=(40, 1, 1))
    k(ShuffleSync, k.thread(), delta=1)
    found = k.fails(kernel.array("int32", [0]))
    assert "thread (39, 0, 0) of block (0, 0, 0) reads lane 8 of its warp, which is not active" in found.message


@pytest.mark.parametrize("attributes", [{"delta": -1}, {"delta": 1, "mask": -1}, {"delta": 1, "mask": 1 << 64}])
def test_a_negative_delta_and_a_mask_of_too_many_lanes_are_refused(kernel, attributes):
    k = kernel(kernel.buffer("int32", 1))
    with pytest.raises(Refusal):
        k(ShuffleSync, k.thread(), **attributes)
