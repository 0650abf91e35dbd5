"""The grid and the blocks of launches, as kernels written in Tile IR find them (runtime specification, 4.5)."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, Value, buffer
from tessera_conformance.chapters.runtime.kit.encoding import packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, opened
from tessera_conformance.chapters.runtime.kit.readings import INVALID, judge_partial_block, rejected
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Observation, Returned

ROOM = 2048
"""The elements of the buffer of the kernels that count threads."""


def linear(kernel: KernelText, ids: str, extents: str) -> Value:
    """The number of a block in its grid, or of a thread in its block, x fastest."""
    x, y, z = (kernel.index(ids, axis) for axis in "xyz")
    width, height = (kernel.index(extents, axis) for axis in "xy")
    row = kernel.compute("add", kernel.compute("multiply", z, height), y)
    return kernel.compute("add", kernel.compute("multiply", row, width), x)


def counting(block: tuple[int, int, int] = (32, 1, 1)) -> str:
    """A kernel in which thread t of block b, of n threads each, writes b + 1 at element b * n + t of its buffer."""
    kernel = KernelText({"marks": buffer("int32", ROOM)}, name="tss_kernel_count", target=None, block=block)
    threads = kernel.index("block_dim", "x")
    for axis in "yz":
        threads = kernel.compute("multiply", threads, kernel.index("block_dim", axis))
    number = linear(kernel, "block_id", "grid_dim")
    place = kernel.compute("add", kernel.compute("multiply", number, threads), linear(kernel, "thread_id", "block_dim"))
    kernel.store(kernel.compute("add", number, kernel.constant(1)), kernel["marks"], place)
    return kernel.module


def marks_of(session: MeshSession, kernel: int, **cfg: Any) -> list[int]:
    """Return the marks of a launch's threads; zeros stand where none wrote."""
    pointer = session.upload(bytes(4 * ROOM))
    session.launch(kernel, packed(("ptr", pointer)), **cfg)
    actual = [int(value) for value in values_of("int32", session.download(pointer, 4 * ROOM))]
    while actual and actual[-1] == 0:
        actual.pop()
    return actual


GRIDS = [(1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 4), (3, 2, 2), (7, 1, 1), (64, 1, 1)]
BLOCKS = [(32, 1, 1), (8, 1, 1), (1, 1, 1), (4, 3, 1), (2, 2, 2), (1, 16, 1), (1, 1, 32)]


@feature("tile-ir-text")
@clause("RT-04.5-17")
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "x".join(map(str, grid)))
def test_a_tile_kernel_runs_on_every_block_of_the_grid(impl, check, grid):
    """Each once, with its own index, and no other (AMB-RT-84)."""
    session = opened(impl, check)
    kernel = session.kernel("count", counting(), at="tile")
    expected = [block + 1 for block in range(prod(grid)) for _ in range(32)]
    check.equal(marks_of(session, kernel, grid=list(grid), block=[32, 1, 1]), expected, "the marks of all threads")


@feature("tile-ir-text")
@clause("RT-04.5-17")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: "x".join(map(str, block)))
def test_a_tile_kernel_runs_on_every_thread_of_the_blocks(impl, check, block):
    """The number of threads is that of the launch, whatever the kernel was written with (AMB-RT-84)."""
    session = opened(impl, check)
    kernel = session.kernel("count", counting(), at="tile")
    expected = [number + 1 for number in range(3) for _ in range(prod(block))]
    check.equal(marks_of(session, kernel, grid=[3, 1, 1], block=list(block)), expected, "the marks of all threads")


@feature("tile-ir-text")
@clause("RT-04.5-17", "RT-04.5-09")
def test_a_launch_leaves_no_grid_behind(impl, check):
    """Launches of one kernel with grids and blocks of their own, one after the other."""
    session = opened(impl, check)
    kernel = session.kernel("count", counting(), at="tile")
    for grid, block in (((2, 1, 1), (4, 1, 1)), ((1, 1, 1), (2, 1, 1)), ((5, 1, 1), (1, 1, 1)), ((2, 1, 1), (4, 1, 1))):
        expected = [number + 1 for number in range(prod(grid)) for _ in range(prod(block))]
        check.equal(marks_of(session, kernel, grid=list(grid), block=list(block)), expected, "the marks of all threads")


@feature("tile-ir-text")
@clause("RT-04.5-09")
@pytest.mark.parametrize("declared", [(32, 1, 1), (8, 2, 2)], ids=["32x1x1", "8x2x2"])
@pytest.mark.parametrize("given", [(0, 0, 0), (4, 0, 0), (0, 2, 0), (0, 0, 2), (4, 2, 0), (0, 1, 1)])
def test_a_zero_in_block_is_chosen_by_the_compiler(impl, check, declared, given):
    """Every block has as many threads, a multiple of what was given; which number is left to it (AMB-RT-08)."""
    session = opened(impl, check)
    kernel = session.kernel("count", counting(declared), at="tile")
    arguments = packed(("ptr", session.upload(bytes(4 * ROOM))))
    answer = session.launching(kernel, arguments, grid=[2, 1, 1], block=list(given))
    judge_partial_block(session, kernel, arguments, given, answer)
    actual = marks_of(session, kernel, grid=[2, 1, 1], block=list(given))
    threads = len(actual) // 2
    check.equal(actual, [1] * threads + [2] * threads, "the marks of all threads")
    extents = dimensions(session, declared, given)
    check.equal(prod(extents), threads, "the threads of a block, which are its extents multiplied")
    kept = [extent for extent, stated in zip(extents, given, strict=True) if stated]
    check.equal(kept, [extent for extent in given if extent], "the extents that were given")


def dimensions(session: MeshSession, declared: tuple[int, int, int], given: tuple[int, int, int]) -> list[int]:
    """The extents of a block, as a kernel finds them."""
    kernel = KernelText({"y": buffer("int32", 3, ROOM)}, name="tss_kernel_extents", target=None, block=declared)
    thread = linear(kernel, "thread_id", "block_dim")
    for place, axis in enumerate("xyz"):
        kernel.store(kernel.index("block_dim", axis), kernel["y"], kernel.constant(place), thread)
    pointer = session.upload(bytes(12 * ROOM))
    extents = session.kernel("extents", kernel.module, at="tile")
    session.launch(extents, packed(("ptr", pointer)), block=list(given))
    return [int(value) for value in values_of("int32", session.download(pointer, 12 * ROOM))[::ROOM]]


@feature("tile-ir-text")
@clause("RT-04.5-18")
@pytest.mark.parametrize("hint", [0, 64, 4096])
def test_a_kernel_with_shared_memory_takes_no_hint(impl, check, hint):
    """The kernel has its declared bytes beside any hint (AMB-RT-09): threads exchange numbers in 128 bytes."""
    kernel = KernelText({"y": buffer("int32", 32)}, name="tss_kernel_turn", target=None, smem_bytes=128)
    tile, thread = kernel.allocate("int32", 32), kernel.index("thread_id")
    kernel.store(thread, tile, thread)
    kernel.barrier()
    last = kernel.compute("subtract", kernel.constant(31), thread)
    kernel.store(kernel.load(tile, last), kernel["y"], thread)
    session = opened(impl, check)
    pointer = session.upload(bytes(128))
    turned = session.kernel("turn", kernel.module, at="tile")

    def launching(size: int) -> Observation:
        return session.launching(turned, packed(("ptr", pointer)), block=[32, 1, 1], shmemBytes=size)

    answer = launching(hint)
    if 0 < hint < 128 and rejected(answer, INVALID):
        check.reading("AMB-RT-09", "shmemBytes replaces the declaration", isinstance(launching(128), Returned))
    check.returns(answer, "tessLaunch succeeds")
    check.equal(values_of("int32", session.download(pointer, 128)), list(range(31, -1, -1)), "what the threads wrote")
