"""Loops and branches of a kernel, and where a thread is (language spec, 1, 7, 8.2; AMB-LANG-192).

A loop is the same for all threads of a block; a branch is taken by each lane for itself.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText, buffer
from tessera_conformance.chapters.ir.kit.level_programs import WARPS, buffers_after, executed_text, fails, verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = feature("tile-ir-text")

LARGEST = 2**31 - 1


def number(kernel, place, extents):
    """A place of three coordinates as one number, x fastest."""
    x, y, z = place
    row = kernel.compute("add", kernel.compute("multiply", z, kernel.constant(extents[1])), y)
    return kernel.compute("add", kernel.compute("multiply", row, kernel.constant(extents[0])), x)


# Where a thread is


@clause("LANG-08.1-07", "LANG-08.1-08", "LANG-08.2-03")
def test_blocks_and_threads_have_places_along_three_axes(impl, check):
    """In a grid of 2x3x2 blocks of 4x2x3 threads every one writes its places and the extents, x being the fastest."""
    grid, block = (2, 3, 2), (4, 2, 3)
    kernel = KernelText({"y": buffer("int32", 12, 24, 12)}, grid=grid, block=block)
    what = [[kernel.index(name, axis) for axis in "xyz"] for name in ("block_id", "thread_id", "grid_dim", "block_dim")]
    place = number(kernel, what[0], grid), number(kernel, what[1], block)
    for column, value in enumerate(coordinate for line in what for coordinate in line):
        kernel.store(value, kernel["y"], *place, kernel.constant(column))
    expected = [
        [[bx, by, bz, x, y, z, *grid, *block] for z in range(3) for y in range(2) for x in range(4)]
        for bz in range(2)
        for by in range(3)
        for bx in range(2)
    ]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-07.2-06", "LANG-08.2-03")
@pytest.mark.parametrize("target", WARPS)
@pytest.mark.parametrize("block", [(192, 1, 1), (8, 4, 4), (3, 5, 7)], ids=["line", "box", "odd"])
def test_lanes_are_numbered_along_x_first_in_warps_of_the_target(impl, check, block, target):
    """Threads counted with x fastest are lanes 0, 1, ... of warp 0, then of warp 1 (AMB-LANG-63)."""
    threads = block[0] * block[1] * block[2]
    kernel = KernelText({"y": buffer("int32", threads, 2)}, block=block, target=target)
    place = number(kernel, [kernel.index("thread_id", axis) for axis in "xyz"], block)
    kernel.store(kernel.lane(), kernel["y"], place, kernel.constant(0))
    kernel.store(kernel.warp(), kernel["y"], place, kernel.constant(1))
    width = WARPS[target]
    expected = [[i % width, i // width] for i in range(threads)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-08.2-03")
@pytest.mark.parametrize("name", ["block_id", "thread_id", "block_dim", "grid_dim"])
def test_an_axis_is_x_y_or_z(impl, check, name):
    """Another axis is refused, and so is none."""
    for attributes in ({"axis": "z"}, {"axis": "w"}, {}):
        kernel = KernelText({})
        kernel.op(f"tessera.tile.{name}", gives="int32", **attributes)
        observation = verified(impl, kernel.module, "tile")
        accepts_if(check, attributes == {"axis": "z"}, observation, category="types", at_line=kernel.line)


# Constants


@clause("LANG-08.2-03")
def test_constants_plus_zero_and_minus_zero_of_a_kernel_keep_their_signs(impl, check):
    """In 128 blocks of 32 threads the first 16 write 0.0, the others -0.0, which are equal but have different bits."""
    blocks, threads = 128, 32
    kernel = KernelText({"y": buffer("fp32", blocks, threads)}, grid=(blocks, 1, 1), block=(threads, 1, 1))
    place, thread = kernel.index("block_id"), kernel.index("thread_id")
    zeros = [kernel.constant(zero, "fp32") for zero in (0.0, -0.0)]
    first = kernel.compute("less", thread, kernel.constant(16))
    (zero,) = kernel.branch(first, lambda: zeros[:1], lambda: zeros[1:])
    kernel.store(zero, kernel["y"], place, thread)
    expected = [[0.0] * 16 + [-0.0] * 16] * blocks
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("fp32", expected))


# Loops


RANGES = {
    "up": ((0, 5, 1), [0, 1, 2, 3, 4]),
    "step": ((3, 10, 3), [3, 6, 9]),
    "below": ((-2, 1, 1), [-2, -1, 0]),
    "down": ((5, 0, -2), [5, 3, 1]),
    "down-to-the-stop": ((6, 0, -3), [6, 3]),
    "empty": ((4, 4, 1), []),
    "backwards": ((5, 4, 1), []),
    "one": ((7, 9, 100), [7]),
    "last": ((LARGEST - 1, LARGEST, 1), [LARGEST - 1]),
}


@clause("LANG-01-06", "LANG-08.2-03")
@pytest.mark.parametrize(("bounds", "turns"), RANGES.values(), ids=RANGES)
def test_a_loop_counts_from_start_to_stop_and_carries_values(impl, check, bounds, turns):
    """Lane t takes 3 * total + index + t each turn, and counts the turns; stop is excluded (AMB-LANG-29)."""
    kernel = KernelText({"y": buffer("int32", 32, 2)})
    lane, zero, one, three = kernel.index("thread_id"), kernel.constant(0), kernel.constant(1), kernel.constant(3)

    def turn(index, total, count):
        grown = kernel.compute("add", kernel.compute("multiply", total, three), kernel.compute("add", index, lane))
        return grown, kernel.compute("add", count, one)

    actual = kernel.loop(*map(kernel.constant, bounds), turn, lane, zero)
    for column, value in enumerate(actual):
        kernel.store(value, kernel["y"], lane, kernel.constant(column))
    expected = []
    for t in range(32):
        total = t
        for index in turns:
            total = (3 * total + index + t + 2**31) % 2**32 - 2**31
        expected.append([total, len(turns)])
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-01-06", "LANG-08.2-03")
def test_loops_and_branches_nest(impl, check):
    """Lane t sums i * j over i < 4, j < i where i + j is no more than t."""
    kernel = KernelText({"y": buffer("int32", 32)})
    lane, zero, one = kernel.index("thread_id"), kernel.constant(0), kernel.constant(1)

    def outer(i, total):
        def inner(j, total):
            few = kernel.compute("less_equal", kernel.compute("add", i, j), lane)
            product = kernel.compute("multiply", i, j)
            return kernel.branch(few, lambda: [kernel.compute("add", total, product)], lambda: [total])

        return kernel.loop(zero, i, one, inner, total)

    (total,) = kernel.loop(zero, kernel.constant(4), one, outer, zero)
    kernel.store(total, kernel["y"], lane)
    expected = [sum(i * j for i in range(4) for j in range(i) if i + j <= t) for t in range(32)]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-08.2-03")
@pytest.mark.parametrize("bound", ["start", "stop", "step"])
def test_the_bounds_of_a_loop_are_the_same_in_the_block(impl, check, bound):
    """A bound that differs from lane to lane is an error; one that is computed alike in all lanes is none."""
    for alike in (True, False):
        kernel = KernelText({"y": buffer("int32", 32)})
        lane, one = kernel.index("thread_id"), kernel.constant(1)
        computed = kernel.compute("add", kernel.index("block_dim") if alike else lane, one)
        bounds = {"start": one, "stop": kernel.constant(100), "step": one, bound: computed}
        line = kernel.line + 1
        kernel.loop(*bounds.values(), lambda index: ())
        kernel.store(lane, kernel["y"], lane)
        if alike:
            check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [*range(32)]))
        else:
            fails(impl, check, kernel, line)


@clause("LANG-08.2-03")
@pytest.mark.parametrize("bound", ["start", "stop", "step"])
def test_the_bounds_of_a_loop_are_the_same_in_all_warps(impl, check, bound):
    """A bound that is the same within each warp and differs between warps is an error (AMB-LANG-207)."""
    for alike in (True, False):
        kernel = KernelText({"y": buffer("int32", 96)}, block=(96, 1, 1))
        lane, one = kernel.index("thread_id"), kernel.constant(1)
        computed = kernel.compute("add", kernel.index("grid_dim") if alike else kernel.warp(), one)
        bounds = {"start": one, "stop": kernel.constant(5), "step": one, bound: computed}
        line = kernel.line + 1
        kernel.loop(*bounds.values(), lambda index: ())
        kernel.store(lane, kernel["y"], lane)
        if alike:
            check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [*range(96)]))
        else:
            fails(impl, check, kernel, line)


@clause("LANG-08.2-03")
@pytest.mark.parametrize("step", [0, 1])
def test_a_loop_takes_steps(impl, check, step):
    """A step of 0 is an error; of category numerics as in Graph IR, or of the kernel (AMB-LANG-29)."""
    kernel = KernelText({"y": buffer("int32", 32)})
    lane, zero = kernel.index("thread_id"), kernel.constant(0)
    (total,) = kernel.loop(zero, kernel.constant(3), kernel.constant(step), lambda i, total: [lane], zero)
    kernel.store(total, kernel["y"], lane)
    if step:
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [*range(32)]))
    else:
        observation = executed_text(impl, kernel.module, "tile")
        check.rejects(observation, category=("numerics", "tile"), phase="execute")


@clause("LANG-08.2-03")
@pytest.mark.parametrize("turns", [LARGEST, 30], ids=["for-ever", "long"])
def test_a_kernel_that_does_not_end_is_stopped(impl, check, turns):
    """Two loops of 2**31 - 1 turns each end with an error that names an operation of theirs; two of 30 are run."""
    kernel = KernelText({"y": buffer("int32", 1)}, block=(1, 1, 1))
    zero, one, stop = kernel.constant(0), kernel.constant(1), kernel.constant(turns)
    first = kernel.line + 1

    def inner(index, total):
        return [kernel.compute("add", total, one)]

    (total,) = kernel.loop(zero, stop, one, lambda index, total: kernel.loop(zero, stop, one, inner, total), zero)
    last = kernel.line
    kernel.store(total, kernel["y"], zero)
    if turns == 30:
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", [900]))
    else:
        observation = executed_text(impl, kernel.module, "tile")
        actual = check.rejects(observation, category="tile", phase="execute")
        lines = [entry.line for entry in actual.diagnostics]
        check.true(any(line and first <= line <= last for line in lines), "an operation of the loops is named", lines)


# Branches


@clause("LANG-08.2-03", "LANG-01-06")
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["then", "otherwise"])
def test_a_branch_in_branches_is_for_the_lanes_of_all_of_them(impl, check, depth, elsewhere):
    """The condition at each depth is one bit of the lane; only lanes with all of them write, and count.

    With `otherwise` the inner branch stands on the other side, for lanes with none of these bits.
    """
    kernel = KernelText({"y": buffer("int32", 32), "z": buffer("int32", 32)})
    lane, zero, one = kernel.index("thread_id"), kernel.constant(0), kernel.constant(1)
    bits, rest = [], lane
    for _ in range(depth):
        half = kernel.compute("divide", rest, kernel.constant(2))
        odd = kernel.compute("subtract", rest, kernel.compute("multiply", half, kernel.constant(2)))
        bits.append(kernel.compute("equal", odd, one))
        rest = half
    kernel.store(zero, kernel["y"], lane)

    def inside(level):
        if level == depth:
            kernel.store(kernel.constant(7), kernel["y"], lane)
            return [kernel.constant(100)]
        sides = [lambda: inside(level + 1), lambda: [kernel.constant(level)]]
        return kernel.branch(bits[level], *(sides[::-1] if elsewhere else sides))

    (count,) = inside(0)
    kernel.store(count, kernel["z"], lane)
    written, counted = [], []
    for number in range(32):
        left = [level for level in range(depth) if (number >> level & 1) == elsewhere]
        written.append(0 if left else 7)
        counted.append(left[0] if left else 100)
    after = buffers_after(impl, check, kernel)
    check.bits(after[0], tensor_of("int32", written))
    check.bits(after[1], tensor_of("int32", counted))


def taken_by(kernel, lane, what):
    """A condition of each lane, and which of 32 lanes take it."""
    compare, bound = {"some": ("less", 10), "all": ("less", 32), "none": ("less", 0), "one": ("equal", 17)}[what]
    taken = [i == bound if compare == "equal" else i < bound for i in range(32)]
    return kernel.compute(compare, lane, kernel.constant(bound)), taken


@clause("LANG-01-06", "LANG-08.2-03")
@pytest.mark.parametrize("what", ["some", "all", "none", "one"])
def test_a_branch_runs_each_side_in_the_lanes_that_take_it(impl, check, what):
    """Each side stores and yields; a lane has what its own side did."""
    kernel = KernelText({"y": buffer("int32", 3, 32)})
    lane, ten = kernel.index("thread_id"), kernel.constant(10)
    rows = [kernel.constant(row) for row in range(3)]
    condition, taken = taken_by(kernel, lane, what)

    def side(row, name):
        def run():
            kernel.store(kernel.constant(row + 1), kernel["y"], rows[0], lane)
            return kernel.compute(name, ten, lane), kernel.constant(row)

        return run

    actual = kernel.branch(condition, side(0, "add"), side(1, "subtract"))
    for row, value in zip(rows[1:], actual, strict=True):
        kernel.store(value, kernel["y"], row, lane)
    expected = [
        [1 if in_first else 2 for in_first in taken],
        [10 + i if in_first else 10 - i for i, in_first in enumerate(taken)],
        [0 if in_first else 1 for in_first in taken],
    ]
    check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))


@clause("LANG-08.2-03")
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "not"])
def test_what_a_lane_does_not_run_does_not_fail_for_it(impl, check, guarded):
    """Lane 0 must not divide by its number, and does not where it takes the other side."""
    kernel = KernelText({"y": buffer("int32", 32)})
    lane = kernel.index("thread_id")
    condition = kernel.compute("greater" if guarded else "greater_equal", lane, kernel.constant(0))
    lines = []

    def divided():
        value = kernel.compute("divide", kernel.constant(100), lane)
        lines.append(kernel.line)
        return [value]

    (value,) = kernel.branch(condition, divided, lambda: [kernel.constant(-1)])
    kernel.store(value, kernel["y"], lane)
    if guarded:
        expected = [-1, *(100 // i for i in range(1, 32))]
        check.bits(buffers_after(impl, check, kernel)[0], tensor_of("int32", expected))
    else:
        fails(impl, check, kernel, lines[0], "numerics")


# What the verifier sees


REGIONS = {
    "bound-type": "for",
    "carried-type": "for",
    "carried-count": "for",
    "condition": "if",
    "yields": "if",
    "memory": "for",
}


def regional(case, legal):
    """A kernel with one loop or branch, legal or not."""
    kernel = KernelText({"x": buffer("int32", 4), "n": "int64"}, smem_bytes=16)
    zero, one, real = kernel.constant(0), kernel.constant(1), kernel.constant(1.0, "fp32")
    true = kernel.constant(True, "bool")
    if case == "bound-type":
        kernel.loop(zero, one if legal else kernel["n"], one, lambda index: ())
    elif case == "carried-type":
        kernel.loop(zero, one, one, lambda index, carried: [carried if legal else real], zero)
    elif case == "carried-count":
        kernel.loop(zero, one, one, lambda index, carried: [carried] if legal else [carried, carried], zero)
    elif case == "condition":
        kernel.branch(true if legal else one, lambda: [one], lambda: [zero])
    elif case == "yields":
        kernel.branch(true, lambda: [one], lambda: [zero if legal else real])
    elif case == "memory":
        kernel.loop(zero, one, one, lambda index, carried: [carried], zero if legal else kernel["x"])
    return kernel


@clause("LANG-01-06")
@pytest.mark.parametrize("case", REGIONS)
def test_loops_and_branches_are_verified(impl, check, case):
    """Bounds are int32, conditions bool, regions yield the values that are carried, and no memory."""
    check.accepts(verified(impl, regional(case, True).module, "tile"))
    check.rejects(verified(impl, regional(case, False).module, "tile"), category="types")


@clause("LANG-01-06")
@pytest.mark.parametrize("construct", ["loop", "branch"])
def test_a_region_of_a_kernel_yields_and_does_not_return(impl, check, construct):
    """A thread that left by a return in a region would leave the others alone (AMB-LANG-207)."""
    kernel = KernelText({"x": buffer("int32", 4)})
    zero, one = kernel.constant(0), kernel.constant(1)
    if construct == "loop":
        kernel.loop(zero, one, one, lambda index: ())
    else:
        kernel.branch(kernel.constant(True, "bool"), tuple)
    check.accepts(verified(impl, kernel.module, "tile"))
    leaving = kernel.module.replace("tessera.graph.yield", "tessera.graph.return", 1)
    check.rejects(verified(impl, leaving, "tile"), category=("tile", "types"))
