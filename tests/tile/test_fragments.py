"""Matrix instructions on fragments, against a fold in plain Python, and the races between warps."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.targets import target_of
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.operations import Barrier, WarpId


def fill(k, memory, tile, rows, columns, threads):
    """All threads copy a matrix to shared memory."""
    t = k.thread()
    for first in range(0, rows * columns, threads):
        place = k.add(t, first)
        row, column = k.over(place, columns), k.rest(place, columns)
        k.store(k.load(memory, row, column), tile, row, column)


def matrix(rows, columns, held, start):
    """Small odd numbers, so that nothing is symmetric; halves for floats, whose sums in fp32 round."""
    step = 0.5 if held not in ("int8",) else 1
    spread = 100 if held == "fp16" else 7
    return [
        [step * ((start + 37 * i + 11 * j + (i * j) % 13) % (2 * spread) - spread) for j in range(columns)]
        for i in range(rows)
    ]


def product(k, held, m, n, k_, turns=1, transposed=False, target="sm_90"):
    """A kernel of one warp: C = A B, `turns` steps of k one after another, B stored transposed where asked."""
    depth, threads = turns * k_, target_of(target).warp
    made = k(
        k.buffer(held, m, depth),
        k.buffer(held, n, depth) if transposed else k.buffer(held, depth, n),
        k.buffer(dtype(held).accumulator.name, m, n),
        block=(threads, 1, 1),
        target=target,
    )
    tile_a = made.allocate(held, m, depth)
    tile_b = made.allocate(held, n, depth) if transposed else made.allocate(held, depth, n)
    fill(made, made[0], tile_a, m, depth, threads)
    fill(made, made[1], tile_b, *((n, depth) if transposed else (depth, n)), threads)
    made.all(Barrier)
    type_ = k.fragment(held, m, n, k_)

    def turn(i, c):
        at = made.times(i, k_)
        zero = made.constant(0)
        a = made(LoadMatrix, tile_a, zero, at, returns=type_)
        b = made(LoadMatrix, tile_b, *((zero, at) if transposed else (at, zero)), returns=type_, transpose=transposed)
        return made(MmaSync, a, b, c, m=m, n=n, k=k_)

    (c,) = made.loop(0, turns, 1, turn, made(FragmentZero, returns=type_))
    made.all(FragmentStore, c, made[2])
    return made


def folded(a, b, kind):
    """The product by the canon: for ascending k, acc + round(a * b), rounded."""
    result = []
    for row in a:
        line = []
        for column in zip(*b, strict=True):
            total = kind(0)
            for x, y in zip(row, column, strict=True):
                total = kind(total + kind(kind(x) * kind(y)))
            line.append(total.item())
        result.append(line)
    return result


@pytest.mark.parametrize(
    ("held", "m", "n", "k_", "target"),
    [
        ("bf16", 16, 16, 16, "sm_90"),
        ("fp16", 16, 8, 16, "sm_90"),
        ("fp16", 8, 32, 16, "sm_80"),
        ("int8", 16, 16, 16, "sm_90"),
        ("fp64", 8, 8, 4, "sm_90"),
        ("bf16", 32, 32, 8, "gfx90a"),
        ("fp32", 16, 16, 4, "gfx90a"),
    ],
)
@pytest.mark.parametrize("turns", [1, 3])
def test_products_are_added_in_the_order_of_k(kernel, held, m, n, k_, target, turns):
    k = product(kernel, held, m, n, k_, turns, target=target)
    a, b = matrix(m, turns * k_, held, 3), matrix(turns * k_, n, held, 5)
    kind = {"int32": np.int32, "fp32": np.float32, "fp64": np.float64}[dtype(held).accumulator.name]
    assert k.result(kernel.array(held, a), kernel.array(held, b), None) == folded(a, b, kind)


def test_each_warp_has_its_own_corner(kernel):
    """Four warps, each a quarter of a 32 by 32 product of which A is the identity: B comes back."""
    k = kernel(
        kernel.buffer("bf16", 32, 32), kernel.buffer("bf16", 16, 16), kernel.buffer("fp32", 32, 32), block=(128, 1, 1)
    )
    tile, one = k.allocate("bf16", 32, 32), k.allocate("bf16", 16, 16)
    fill(k, k[0], tile, 32, 32, 128)
    fill(k, k[1], one, 16, 16, 128)
    k.all(Barrier)
    warp, type_ = k(WarpId), kernel.fragment("bf16", 16, 16, 16)
    row, column = k.times(k.over(warp, 2), 16), k.times(k.rest(warp, 2), 16)
    a, b = k(LoadMatrix, one, returns=type_), k(LoadMatrix, tile, row, column, returns=type_)
    k.all(FragmentStore, k(MmaSync, a, b, k(FragmentZero, returns=type_), m=16, n=16, k=16), k[2], row, column)
    x = matrix(32, 32, "bf16", 1)
    identity = [[float(i == j) for j in range(16)] for i in range(16)]
    assert k.result(kernel.array("bf16", x), kernel.array("bf16", identity), None) == x


def test_a_whole_warp_may_stay_away(kernel):
    """Only warp 1 of two works, under a mask."""
    k = kernel(kernel.buffer("fp32", 16, 16), block=(64, 1, 1))
    type_ = kernel.fragment("bf16", 16, 16, 16)
    k.branch(k.equal(k(WarpId), 1), lambda: k.all(FragmentStore, k(FragmentZero, returns=type_), k[0]))
    assert k.result(None) == [[0.0] * 16] * 16


def test_lanes_of_a_warp_agree_on_the_corner(kernel):
    k = kernel(kernel.buffer("fp32", 64, 16))
    zero = k(FragmentZero, returns=kernel.fragment("bf16", 16, 16, 16))
    k.all(FragmentStore, zero, k[0], k.thread(), k.constant(0))
    assert (
        "the corner of fragment.store differs between threads: 0, and 16 in thread (1, 0, 0)" in k.fails(None).message
    )


def test_reading_a_matrix_that_threads_have_just_written_is_a_race(kernel):
    k = kernel(kernel.buffer("bf16", 16, 16))
    tile = k.allocate("bf16", 16, 16)
    fill(k, k[0], tile, 16, 16, 32)
    k(LoadMatrix, tile, returns=kernel.fragment("bf16", 16, 16, 16))
    found = k.fails(kernel.array("bf16", matrix(16, 16, "bf16", 0)))
    assert "ldmatrix: race: warp 0 of block (0, 0, 0) reads %v0[0, 0], which thread (0, 0, 0)" in found.message


def test_two_warps_that_store_one_matrix_race(kernel):
    k = kernel(kernel.buffer("fp32", 16, 16), block=(64, 1, 1))
    k.all(FragmentStore, k(FragmentZero, returns=kernel.fragment("bf16", 16, 16, 16)), k[0])
    assert "race: warp 0 of block (0, 0, 0) writes %p0[0, 0], which warp 1" in k.fails(None).message


def test_a_choice_between_fragments_is_one_for_the_warp(kernel):
    k = kernel(kernel.buffer("fp32", 16, 16))
    type_ = kernel.fragment("bf16", 16, 16, 16)
    zero = k(FragmentZero, returns=type_)
    k.branch(k.less(k.thread(), 7), lambda: zero, lambda: zero)
    assert "the choice of a fragment differs between threads: 1, and 0 in thread (7, 0, 0)" in k.fails(None).message


def test_fragments_of_other_shapes_dtypes_and_sizes_are_refused(kernel):
    k = kernel(kernel.buffer("bf16", 16, 16))
    tile, type_ = k.allocate("bf16", 16, 16), kernel.fragment("bf16", 16, 16, 16)
    a = k(LoadMatrix, tile, returns=type_)
    with pytest.raises(Refusal):  # m, n, k are not those of the fragments
        k(MmaSync, a, a, k(FragmentZero, returns=type_), m=16, n=8, k=16)
    with pytest.raises(Refusal):  # two types
        k(MmaSync, a, a, k(FragmentZero, returns=kernel.fragment("fp16", 16, 16, 16)), m=16, n=16, k=16)
    with pytest.raises(Refusal):  # an accumulator of another kind
        k(FragmentZero, returns=type_, accum=dtype("int32"))
    with pytest.raises(Refusal):  # from global memory
        k(LoadMatrix, k[0], returns=type_)
    with pytest.raises(Refusal):  # of another dtype
        k(LoadMatrix, k.allocate("int8", 16, 16), returns=type_)
    with pytest.raises(Refusal) as caught:  # rows of 12 elements are 24 bytes apart
        k(LoadMatrix, k.allocate("bf16", 16, 12), returns=type_)
    assert caught.value.clause == "LANG-07.3-01"
