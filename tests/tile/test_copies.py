"""Asynchronous copies: what they move, and when who may see it (AMB-LANG-64, AMB-LANG-201)."""

from __future__ import annotations

import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.tile.operations import Barrier, CopyAsync, CopyCommit, CopyWait

NUMBERS = [3 * i for i in range(128)]


class Copied:
    """A kernel of 32 threads, each copying four int32 of 128, and reading `shift` elements on."""

    def __init__(self, kernel, shift: int = 64) -> None:
        self.kernel = kernel
        self.k = k = kernel(kernel.buffer("int32", 128), kernel.buffer("int32", 128))
        self.tile, self.t = k.allocate("int32", 128), k.thread()
        self.first = k.times(self.t, 4)
        self.other = k.rest(k.add(self.first, shift), 128)
        self.shift = shift

    def copy(self) -> None:
        self.k.all(CopyAsync, self.k[0], self.tile, self.first, self.first, bytes=16)

    def take(self) -> None:
        for i in range(4):
            self.k.store(self.k.load(self.tile, self.k.add(self.other, i)), self.k[1], self.k.add(self.first, i))

    def succeeds(self) -> None:
        expected = [NUMBERS[(i + self.shift) % 128] for i in range(128)]
        assert self.k.result(self.kernel.array("int32", NUMBERS), None) == expected

    def fails(self) -> str:
        found = self.k.fails(self.kernel.array("int32", NUMBERS), None)
        assert (found.category, found.clause) == ("tile", "LANG-07.2-04")
        return found.message


def test_after_a_wait_and_a_barrier_all_threads_see_the_bytes(kernel):
    case = Copied(kernel)
    case.copy()
    case.k.all(CopyCommit)
    case.k.all(CopyWait)
    case.k.all(Barrier)
    case.take()
    case.succeeds()


def test_after_a_wait_the_thread_that_copied_sees_them(kernel):
    case = Copied(kernel, shift=0)
    case.copy()
    case.k.all(CopyCommit)
    case.k.all(CopyWait)
    case.take()
    case.succeeds()


def test_without_groups_a_barrier_is_enough(kernel):
    """The specification's own operations have no wait: the bytes are visible after the next barrier."""
    case = Copied(kernel)
    case.copy()
    case.k.all(Barrier)
    case.take()
    case.succeeds()


@pytest.mark.parametrize("shift", [0, 64])
def test_reading_at_once_is_early_for_everyone(kernel, shift):
    case = Copied(kernel, shift)
    case.copy()
    case.k.all(CopyCommit)
    case.take()
    assert case.fails().endswith("copies to, without a wait and a barrier between")


def test_a_barrier_without_a_wait_does_not_finish_a_group(kernel):
    case = Copied(kernel)
    case.copy()
    case.k.all(CopyCommit)
    case.k.all(Barrier)
    case.take()
    assert case.fails() == (
        "load: thread (0, 0, 0) of block (0, 0, 0) reads %v0[64], which thread (16, 0, 0) of block (0, 0, 0) copies "
        "to, without a wait and a barrier between"
    )


def test_a_wait_without_a_barrier_is_not_enough_for_others(kernel):
    case = Copied(kernel)
    case.copy()
    case.k.all(CopyCommit)
    case.k.all(CopyWait)
    case.take()
    assert case.fails().endswith("thread (16, 0, 0) of block (0, 0, 0) copies to, without a barrier between")


def test_a_wait_leaves_the_newest_groups_on_their_way(kernel):
    """Two groups; waiting until one is pending finishes the first alone."""
    k = kernel(kernel.buffer("int32", 2, 128), kernel.buffer("int32", 2, 128))
    tiles, t = [k.allocate("int32", 128) for _ in range(2)], k.thread()
    first = k.times(t, 4)
    for number, tile in enumerate(tiles):
        k.all(CopyAsync, k[0], tile, k.constant(number), first, first, bytes=16)
        k.all(CopyCommit)
    for number, tile in enumerate(tiles):
        k.all(CopyWait, pending=1 - number)
        k.all(Barrier)
        for i in range(4):
            place = k.add(first, i)
            k.store(k.load(tile, k.minus(k.constant(127), place)), k[1], k.constant(number), place)
    x = [NUMBERS, [-each for each in NUMBERS]]
    assert k.result(kernel.array("int32", x), None) == [row[::-1] for row in x]


def test_the_group_that_is_pending_is_not_finished(kernel):
    k = kernel(kernel.buffer("int32", 128))
    tiles, t = [k.allocate("int32", 128) for _ in range(2)], k.thread()
    for tile in tiles:
        k.all(CopyAsync, k[0], tile, k.times(t, 4), k.times(t, 4), bytes=16)
        k.all(CopyCommit)
    k.all(CopyWait, pending=1)
    k.all(Barrier)
    k.load(tiles[0], 5)
    k.load(tiles[1], 5)
    found = k.fails(kernel.array("int32", NUMBERS))
    assert found.span.line == k.line
    assert found.message.endswith("without a wait and a barrier between")


def test_filling_a_buffer_that_others_have_just_read_is_a_race(kernel):
    """The barrier that keeps a ring of buffers apart is missing."""
    case = Copied(kernel)
    case.copy()
    case.k.all(Barrier)
    case.take()
    case.copy()
    found = case.k.fails(kernel.array("int32", NUMBERS), None)
    assert found.message.startswith("cp.async: race: thread (0, 0, 0) of block (0, 0, 0) writes %v0[0], which thread")


def test_a_store_into_bytes_on_their_way_is_an_error(kernel):
    case = Copied(kernel)
    case.copy()
    case.k.store(case.t, case.tile, case.first)
    assert "writes %v0[0], which thread (0, 0, 0)" in case.fails()


@pytest.mark.parametrize(("size", "count"), [(4, 2), (8, 4), (16, 8)])
def test_a_copy_moves_whole_elements(kernel, size, count):
    """Of bf16; half of the lanes are masked away."""
    k = kernel(kernel.buffer("bf16", 16 * count), kernel.buffer("bf16", 16 * count))
    tile, t = k.allocate("bf16", 16 * count), k.thread()
    first = k.times(t, count)

    def move() -> None:
        k.all(CopyAsync, k[0], tile, first, first, bytes=size)
        k.all(CopyCommit)
        k.all(CopyWait)
        for i in range(count):
            k.store(k.load(tile, k.add(first, i)), k[1], k.add(first, i))

    k.branch(k.less(t, 16), move)
    x = [float(i) for i in range(16 * count)]
    assert k.result(kernel.array("bf16", x), None) == x


def test_without_indices_a_copy_begins_at_the_first_elements(kernel):
    k = kernel(kernel.buffer("int32", 4), kernel.buffer("int32", 4), block=(1, 1, 1))
    tile = k.allocate("int32", 2, 4)
    k.all(CopyAsync, k[0], tile, bytes=16)
    k.all(Barrier)
    for i in range(4):
        k.store(k.load(tile, 0, i), k[1], i)
    assert k.result(kernel.array("int32", [9, 8, 7, 6]), None) == [9, 8, 7, 6]


@pytest.mark.parametrize(("end", "place"), [("source", "%p0[2]"), ("destination", "%v0[2]")])
def test_a_copy_from_or_to_a_place_that_is_not_aligned_to_its_bytes_is_an_error(kernel, end, place):
    """Lane 1 is 8 bytes off."""
    k = kernel(kernel.buffer("int32", 256))
    tile, t = k.allocate("int32", 256), k.thread()
    odd, even = k.times(t, 2), k.times(t, 4)
    k.all(CopyAsync, k[0], tile, *((odd, even) if end == "source" else (even, odd)), bytes=16)
    found = k.fails(kernel.array("int32", [0] * 256))
    wanted = f"thread (1, 0, 0) of block (0, 0, 0) goes to {place}, byte 8: not aligned to 16 bytes"
    assert found.message == f"cp.async: {wanted}"


def test_a_copy_beyond_the_end_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 66))
    tile, t = k.allocate("int32", 128), k.thread()
    k.branch(k.less(t, 17), lambda: k.all(CopyAsync, k[0], tile, k.times(t, 4), k.times(t, 4), bytes=16) and ())
    found = k.fails(kernel.array("int32", [0] * 66))
    assert "thread (16, 0, 0) of block (0, 0, 0)" in found.message
    assert "out of bounds" in found.message


def test_a_copy_of_what_another_block_writes_is_a_race(kernel):
    k = kernel(kernel.buffer("int32", 4), grid=(2, 1, 1), block=(1, 1, 1))
    tile, b = k.allocate("int32", 4), k.block_id()
    k.branch(
        k.equal(b, 0),
        lambda: k.store(b, k[0], 1),
        lambda: k.all(CopyAsync, k[0], tile, bytes=16) and (),
    )
    assert "cp.async: race" in k.fails(kernel.array("int32", [0] * 4)).message


@pytest.mark.parametrize(
    ("held", "size", "category"), [("bf16", 2, "tile"), ("bf16", 12, "tile"), ("fp64", 4, "tile"), ("int8", 32, "tile")]
)
def test_copies_of_other_sizes_are_refused(kernel, held, size, category):
    k = kernel(kernel.buffer(held, 64))
    with pytest.raises(Refusal) as caught:
        k.all(CopyAsync, k[0], k.allocate(held, 64), bytes=size)
    assert caught.value.category == category


def test_a_copy_goes_from_global_to_shared_memory_of_one_dtype(kernel):
    k = kernel(kernel.buffer("fp32", 64))
    tile = k.allocate("fp32", 64)
    for operands in ((tile, k[0]), (tile, tile), (k[0], k.allocate("int32", 64))):
        with pytest.raises(Refusal):
            k.all(CopyAsync, *operands, bytes=16)
