"""Where a thread is: threads are counted with x fastest, and every 32 or 64 of them are a warp."""

from __future__ import annotations

import pytest

from tessera_reference.tile.operations import BlockDim, GridDim, LaneId, WarpId


def test_a_thread_has_a_place_in_its_block_and_the_block_one_in_the_grid(kernel):
    grid, extents = (2, 3, 2), (3, 2, 4)
    k = kernel(kernel.buffer("int32", 12, 24, 6), grid=grid, block=extents)
    places = {axis: (k.block_id(axis), k.thread(axis)) for axis in "xyz"}
    block = k.add(k.times(k.add(k.times(places["z"][0], 3), places["y"][0]), 2), places["x"][0])
    lane = k.add(k.times(k.add(k.times(places["z"][1], 2), places["y"][1]), 3), places["x"][1])
    for column, value in enumerate([*(each for pair in places.values() for each in pair)]):
        k.store(value, k[0], block, lane, column)
    found = k.result(None)
    for z in range(2):
        for y in range(3):
            for x in range(2):
                for tz in range(4):
                    for ty in range(2):
                        for tx in range(3):
                            row = found[(z * 3 + y) * 2 + x][(tz * 2 + ty) * 3 + tx]
                            assert row == [x, tx, y, ty, z, tz]


def test_extents_are_those_of_the_launch(kernel):
    k = kernel(kernel.buffer("int32", 1, 6), grid=(1, 1, 1), block=(1, 1, 1))
    for column, value in enumerate(k(kind, axis=axis) for kind in (BlockDim, GridDim) for axis in "xyz"):
        k.store(value, k[0], 0, column)
    assert k.result(None) == [[1, 1, 1, 1, 1, 1]]
    k = kernel(kernel.buffer("int32", 24, 6), grid=(1, 1, 1), block=(2, 3, 4))
    lane = k.add(k.times(k.add(k.times(k.thread("z"), 3), k.thread("y")), 2), k.thread("x"))
    for column, value in enumerate(k(kind, axis=axis) for kind in (BlockDim, GridDim) for axis in "xyz"):
        k.store(value, k[0], lane, column)
    assert k.result(None) == [[2, 3, 4, 1, 1, 1]] * 24


@pytest.mark.parametrize(("target", "width"), [("sm_90", 32), ("gfx90a", 64)])
def test_lanes_and_warps_follow_the_width_of_the_target(kernel, target, width):
    k = kernel(kernel.buffer("int32", 160, 2), block=(16, 10, 1), target=target)
    place = k.add(k.times(k.thread("y"), 16), k.thread("x"))
    k.store(k(LaneId), k[0], place, 0)
    k.store(k(WarpId), k[0], place, 1)
    assert k.result(None) == [[lane % width, lane // width] for lane in range(160)]
