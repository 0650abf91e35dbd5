"""Asynchronous copies: what they move, and who may see it when (language spec, 7.2; AMB-LANG-64, AMB-LANG-201).

A copy is visible to its own lane after the wait for its group, to other lanes after a barrier as well; a barrier alone
finishes what no group holds.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer, shared
from tessera_conformance.chapters.ir.kit.level_programs import (
    BOTH_VENDORS,
    buffers_after,
    executed_text,
    fails,
    runs_if,
    verified,
)
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

pytestmark = [feature("tile-ir-text"), clause("LANG-07.2-04")]

COUNT = 128
NUMBERS = [3 * i - 100 for i in range(COUNT)]


class Copying(KernelText):
    """32 lanes, each of which copies four int32 of 128 into a shared tile, and takes four `shift` elements on."""

    def __init__(self, shift=64, target="sm_90", tiles=1):
        self.shift = shift
        parameters = {"x": buffer("int32", tiles * COUNT), "y": buffer("int32", tiles * COUNT)}
        super().__init__(parameters, smem_bytes=4 * COUNT * tiles, target=target)
        self.tiles = [self.allocate("int32", COUNT) for _ in range(tiles)]
        four, self.bounds = self.constant(4), [self.constant(COUNT * number) for number in range(tiles + 1)]
        self.first = self.compute("multiply", self.index("thread_id"), four)
        moved = self.compute("add", self.first, self.constant(shift))
        inside = self.compute("less", moved, self.constant(COUNT))
        back = self.compute("subtract", moved, self.constant(COUNT))
        self.other = self.compute("select", inside, moved, back)
        self.last = self.constant(COUNT - 4)
        self.ahead = [self.constant(i) for i in range(4)]

    def fetch(self, number=0):
        """Copy one part of the buffer into a tile."""
        source = self.compute("add", self.first, self.bounds[number])
        self.copy(self["x"], self.tiles[number], source, self.first)
        self.critical = self.line

    def take(self, number=0):
        """Read the tile elsewhere, and write what is there; the first access is the critical operation."""
        for i in range(4):
            place = self.compute("add", self.other, self.ahead[i])
            value = self.load(self.tiles[number], place)
            self.critical = self.critical if i else self.line
            here = self.compute("add", self.compute("add", self.first, self.ahead[i]), self.bounds[number])
            self.store(value, self["y"], here)

    @property
    def expected(self):
        """Return the expected contents of the second buffer."""
        whole = NUMBERS[: len(self.tiles) * COUNT]
        return tensor_of("int32", [whole[(i + self.shift) % COUNT] for i in range(COUNT)])


X = {"x": tensor_of("int32", NUMBERS)}


def performed(steps, shift, target="sm_90"):
    """A kernel that does these things one after another."""
    kernel = Copying(shift, target)
    for step in steps.split():
        {
            "copy": kernel.fetch,
            "commit": kernel.commit,
            "wait": kernel.wait,
            "one-pending": lambda: kernel.wait(1),
            "barrier": kernel.barrier,
            "take": kernel.take,
        }[step]()
        if step == "take":
            break
    return kernel


OTHERS, OWN = 64, 0
VISIBLE = {
    "wait-and-barrier": ("copy commit wait barrier take", OTHERS),
    "barrier-of-no-group": ("copy barrier take", OTHERS),
    "own-after-the-wait": ("copy commit wait take", OWN),
    "own-after-a-barrier": ("copy barrier take", OWN),
    "two-waits": ("copy commit one-pending wait barrier take", OTHERS),
    "barrier-then-wait-then-barrier": ("copy commit barrier wait barrier take", OTHERS),
}
EARLY = {
    "at-once": ("copy take", OTHERS),
    "own-at-once": ("copy take", OWN),
    "no-wait": ("copy commit take", OTHERS),
    "own-without-a-wait": ("copy commit take", OWN),
    "no-barrier": ("copy commit wait take", OTHERS),
    "barrier-only": ("copy commit barrier take", OTHERS),
    "own-barrier-only": ("copy commit barrier take", OWN),
    "barrier-before-the-wait": ("copy commit barrier wait take", OTHERS),
    "still-pending": ("copy commit one-pending barrier take", OTHERS),
    "no-group-no-barrier": ("copy wait take", OTHERS),
}


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(("steps", "shift"), VISIBLE.values(), ids=VISIBLE)
def test_copied_bytes_are_visible_after_wait_and_barrier(impl, check, steps, shift, target):
    """Other lanes need both, or a barrier where there is no group; the lane that copied only its wait."""
    kernel = performed(steps, shift, target)
    check.bits(buffers_after(impl, check, kernel, **X)[1], kernel.expected)


@pytest.mark.parametrize(("steps", "shift"), EARLY.values(), ids=EARLY)
def test_copied_bytes_are_not_visible_before(impl, check, steps, shift):
    """Reading them without the wait, without the barrier or between the two is an error at the load (AMB-LANG-64)."""

    def perform(steps):
        kernel = performed(steps, shift)
        answer = executed_text(impl, kernel.module, kernel.level, "sm_90", kernel.name, **X)
        return kernel, answer, isinstance(answer, Returned) and answer.value["outputs"][-1] == kernel.expected

    kernel, answer, seen = perform(steps)
    check.reading("AMB-LANG-64", "synchronous copy", seen and perform("copy take")[2])
    check.rejects(answer, category="tile", phase="execute", at_line=kernel.critical)


@pytest.mark.parametrize(
    ("groups", "pending", "number"),
    [
        pytest.param(2, 1, 0, id="finished"),
        pytest.param(2, 1, 1, id="pending"),
        *((groups, pending, groups - pending - 1) for groups in (3, 4) for pending in (1, 2, 3) if pending < groups),
        *((groups, pending, groups - pending) for groups in (3, 4) for pending in (1, 2, 3) if pending < groups),
    ],
)
def test_a_wait_may_leave_the_newest_groups_under_way(impl, check, groups, pending, number):
    """The newest that may be pending are there after another wait only, those before them at once (AMB-LANG-64)."""
    kernel = Copying(tiles=groups)
    for tile in range(groups):
        kernel.fetch(tile)
        kernel.commit()
    kernel.wait(pending)
    kernel.barrier()
    kernel.take(number)
    critical = kernel.critical
    kernel.wait()
    kernel.barrier()
    for tile in range(groups):
        if tile != number:
            kernel.take(tile)
    x = tensor_of("int32", [*range(groups * COUNT)])
    if number >= groups - pending:
        kernel.critical = critical
        fails(impl, check, kernel, x=x)
    else:
        expected = [part * COUNT + (i + 64) % COUNT for part in range(groups) for i in range(COUNT)]
        check.bits(buffers_after(impl, check, kernel, x=x)[1], tensor_of("int32", expected))


@pytest.mark.parametrize("by", ["store", "copy"])
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "at-once"])
def test_bytes_under_way_are_not_to_be_overwritten(impl, check, by, ordered):
    """A store or a copy to bytes that are being copied is an error; after wait and barrier none (AMB-LANG-64)."""
    kernel = Copying(OWN)
    kernel.fetch()
    if ordered:
        kernel.commit()
        kernel.wait()
        kernel.barrier()
    if by == "store":
        places = [kernel.compute("add", kernel.first, ahead) for ahead in kernel.ahead]
        critical = kernel.line + 1
        for place in places:
            kernel.store(place, kernel.tiles[0], place)
    else:
        kernel.copy(kernel["x"], kernel.tiles[0], kernel.first, kernel.compute("subtract", kernel.last, kernel.first))
        critical = kernel.line
    kernel.barrier()
    kernel.take()
    kernel.critical = critical
    if ordered:
        turned = [NUMBERS[COUNT - 4 - i + 2 * (i % 4)] for i in range(COUNT)]
        expected = [*range(COUNT)] if by == "store" else turned
        check.bits(buffers_after(impl, check, kernel, **X)[1], tensor_of("int32", expected))
    else:
        fails(impl, check, kernel, **X)


@pytest.mark.parametrize("ordered", [True, False], ids=["barrier", "none"])
def test_a_tile_is_not_filled_anew_while_others_read_it(impl, check, ordered):
    """The copy for the next turn begins after a barrier behind the last reading; without it that is a race."""
    kernel = Copying()
    kernel.fetch()
    kernel.barrier()
    kernel.take()
    if ordered:
        kernel.barrier()
    kernel.fetch()
    critical = kernel.critical
    kernel.barrier()
    kernel.take()
    kernel.critical = critical
    runs_if(impl, check, ordered, kernel, kernel.expected, **X)


# What is copied


SIZES = [("int8", 4), ("int8", 16), ("bf16", 4), ("bf16", 8), ("bf16", 16), ("fp32", 4), ("fp32", 16), ("fp64", 8),
         ("fp64", 16)]  # fmt: skip


def copied(dtype, size, lanes=16, source_step=1, extent=None, width=None):
    """The first `lanes` of 32 lanes copy `size` bytes each, `source_step` pieces apart, and write what they copied."""
    width = width or {"int8": 1, "bf16": 2, "fp32": 4, "int32": 4, "fp64": 8}[dtype]
    count = size // width
    kernel = KernelText({"x": buffer(dtype, extent or 32 * count), "y": buffer(dtype, 16 * count)}, smem_bytes=512)
    tile, lane = kernel.allocate(dtype, 16 * count), kernel.index("thread_id")
    first = kernel.compute("multiply", lane, kernel.constant(count))
    source = kernel.compute("multiply", first, kernel.constant(source_step))
    lines = []

    def move():
        kernel.copy(kernel["x"], tile, source, first, bytes=size)
        lines.append(kernel.line)
        kernel.commit()
        kernel.wait()
        for i in range(count):
            place = kernel.compute("add", first, kernel.constant(i))
            kernel.store(kernel.load(tile, place), kernel["y"], place)
        return ()

    kernel.branch(kernel.compute("less", lane, kernel.constant(lanes)), move)
    kernel.critical = lines[0]
    return kernel


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_a_lane_copies_as_many_bytes_as_are_said(impl, check, dtype, size):
    """Every second piece of a buffer, by those lanes that are active."""
    kernel = copied(dtype, size, source_step=2)
    count = 16 * size // {"int8": 1, "bf16": 2, "fp32": 4, "fp64": 8}[dtype]
    x = [i % 100 for i in range(2 * count)]
    piece = count // 16
    expected = [x[2 * piece * (i // piece) + i % piece] for i in range(count)]
    check.bits(buffers_after(impl, check, kernel, x=tensor_of(dtype, x))[1], tensor_of(dtype, expected))


def test_without_indices_a_copy_begins_at_the_first_elements(impl, check):
    """Both memrefs are copied from their first elements, whatever their dimensions; the rest of the tile stays."""
    kernel = KernelText({"x": buffer("int32", 2, 4), "y": buffer("int32", 8)}, block=(1, 1, 1), smem_bytes=32)
    tile = kernel.allocate("int32", 8)
    places = [kernel.constant(i) for i in range(8)]
    for place in places:
        kernel.store(kernel.constant(-1), tile, place)
    kernel.barrier()
    kernel.copy(kernel["x"], tile)
    kernel.barrier()
    for place in places:
        kernel.store(kernel.load(tile, place), kernel["y"], place)
    after = buffers_after(impl, check, kernel, x=tensor_of("int32", [[9, 8, 7, 6], [5, 4, 3, 2]]))
    check.bits(after[1], tensor_of("int32", [9, 8, 7, 6, -1, -1, -1, -1]))


@clause("LANG-08.3-01")
@pytest.mark.parametrize("extent", [64, 63], ids=["inside", "one-short"])
def test_a_copy_stays_within_its_memories(impl, check, extent):
    """The last of 16 bytes is inside; where the buffer is one element shorter the last lane's copy is an error."""
    kernel = copied("int32", 16, extent=extent)
    x = tensor_of("int32", [*range(extent)])
    runs_if(impl, check, extent == 64, kernel, x, x=x)


@clause("LANG-11-14")
@pytest.mark.parametrize(("size", "step"), [(8, 1), (16, 2), (16, 1), (16, 3)])
@pytest.mark.parametrize("end", ["source", "destination"])
def test_both_ends_of_a_copy_are_aligned_to_its_bytes(impl, check, size, step, end):
    """Lane 1 begins `step` elements of int32 on; with as many as are copied it is aligned."""
    for apart in (size // 4, step):
        kernel = KernelText({"x": buffer("int32", 16), "y": buffer("int32", 2)}, block=(2, 1, 1), smem_bytes=64)
        tile, lane = kernel.allocate("int32", 16), kernel.index("thread_id")
        even = kernel.compute("multiply", lane, kernel.constant(size // 4))
        odd = kernel.compute("multiply", lane, kernel.constant(apart))
        places = (odd, even) if end == "source" else (even, odd)
        kernel.copy(kernel["x"], tile, *places, bytes=size)
        line = kernel.line
        kernel.barrier()
        kernel.store(kernel.load(tile, places[1]), kernel["y"], lane)
        x = tensor_of("int32", [*range(16)])
        if apart == size // 4:
            check.bits(buffers_after(impl, check, kernel, x=x)[1], tensor_of("int32", [0, size // 4]))
        else:
            fails(impl, check, kernel, line, x=x)


# What the verifier sees


def stated(case, legal):
    """A kernel with one copy or wait, legal or not."""
    kernel = KernelText({"x": buffer("int32", 64), "h": buffer("bf16", 64), "d": buffer("fp64", 64)}, smem_bytes=1024)
    x, tile, zero = kernel["x"], kernel.allocate("int32", 64), kernel.constant(0)
    half, wide = kernel.allocate("bf16", 64), kernel.allocate("fp64", 64)
    if case.startswith("bytes-"):
        kernel.copy(x, tile, bytes=16 if legal else int(case.removeprefix("bytes-")))
    elif case == "no-bytes":
        kernel.op("tessera.tile.cp.async", x, tile, **({"bytes": 16} if legal else {}))
    elif case == "part-of-an-element":
        kernel.copy(kernel["d"], wide, bytes=8 if legal else 4)
    elif case == "dtypes":
        kernel.copy(kernel["h"], half if legal else tile)
    elif case == "dtypes-of-one-size":
        kernel.copy(kernel["h"], half if legal else kernel.allocate("fp16", 64))
    elif case == "two-bytes-of-bf16":
        kernel.copy(kernel["h"], half, bytes=4 if legal else 2)
    elif case == "direction":
        kernel.copy(*((x, tile) if legal else (tile, x)))
    elif case == "within-global":
        kernel.copy(x, tile if legal else x)
    elif case == "index-count":
        kernel.copy(x, tile, *((zero, zero) if legal else (zero,)))
    elif case == "aligned":
        kernel.copy(x, tile, zero, kernel.constant(4 if legal else 2))
    elif case == "pending":
        kernel.wait(0 if legal else -1)
    elif case == "result":
        kernel.op("tessera.tile.cp.async", x, tile, gives=() if legal else "int32", bytes=16)
    elif case == "commit-operand":
        kernel.op("tessera.tile.cp.async.commit", *(() if legal else (zero,)))
    return kernel


REFUSED = {
    **dict.fromkeys(["bytes-2", "bytes-0", "bytes-12", "bytes-32", "part-of-an-element", "aligned"], ("tile", "types")),
    "two-bytes-of-bf16": ("tile", "types"),
    "dtypes-of-one-size": ("types", "tile"),
    **dict.fromkeys(["no-bytes", "dtypes", "direction", "within-global", "index-count"], ("types", "tile")),
    **dict.fromkeys(["pending", "result", "commit-operand"], ("types", "tile")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_copy_is_verified(impl, check, case):
    """4, 8 or 16 bytes, whole elements, one dtype, from global to shared memory, aligned where that is known."""
    check.accepts(verified(impl, stated(case, True).module, "tile"))
    kernel = stated(case, False)
    check.rejects(verified(impl, kernel.module, "tile"), category=REFUSED[case], at_line=kernel.line)


def test_the_type_of_a_tile_is_that_of_its_memref(impl, check):
    """An operand of another type than its value has is refused; the line is written out to say so."""
    for type_, legal in ((shared("int32", 64), True), (shared("int32", 32), False)):
        kernel = KernelText({"x": buffer("int32", 64)}, smem_bytes=256)
        tile = kernel.allocate("int32", 64)
        types = f"({buffer('int32', 64)}, {type_}) -> ()"
        kernel.raw(f'"tessera.tile.cp.async"(%x, {tile.name}) {{bytes = 16}} : {types}')
        observation = verified(impl, kernel.module, "tile")
        accepts_if(check, legal, observation, category=("types", "shapes"), at_line=kernel.line)


@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_copy_is_accepted_as_section_7_2_prints_it(impl, check, target):
    """`%cp = tessera.tile.cp.async %global, %shared {bytes=...}` and a bare barrier copy as the generic form does; the
    result has no type, and nothing takes it (AMB-LANG-280)."""
    kernel = KernelText(
        {"x": buffer("int32", 4), "y": buffer("int32", 4)}, block=(1, 1, 1), smem_bytes=16, target=target
    )
    tile = kernel.allocate("int32", 4)
    kernel.raw(f"%cp = tessera.tile.cp.async %x, {tile.name} {{bytes=16}}")
    kernel.raw("     tessera.tile.barrier")
    for place in range(4):
        value = kernel.load(tile, kernel.constant(place))
        kernel.store(value, kernel["y"], kernel.constant(3 - place))
    buffers = buffers_after(impl, check, kernel, x=tensor_of("int32", [5, -7, 11, 13]))
    check.bits(buffers[1], tensor_of("int32", [13, 11, -7, 5]))
