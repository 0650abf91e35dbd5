"""What goes wrong at pointers, and what control flow and registers do."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Block, Instruction
from tessera_reference.ir.types import Value, Vector
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations import memory
from tessera_reference.target_ir.operations.llvm import Add, ICmp, Mul, SDiv, Select
from tessera_reference.target_ir.operations.memory import AddressOf, GetElementPtr
from tessera_reference.target_ir.operations.vendors import (
    Barrier,
    BPermute,
    CopyAsync,
    CopyCommit,
    CopyWait,
    ShuffleDown,
)


def failure(kernels: Any, made: Any, *arguments: Any) -> str:
    """What the one diagnostic says."""
    with pytest.raises(Rejection) as caught:
        kernels.run(made, *arguments)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.phase == "execute"
    return diagnostic.message


def test_an_access_outside_a_buffer_names_the_lane(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        build.store(build.load(x, build(Add, build.thread(), build.constant(1)), kernels.fp32), x, build.thread())

    made = kernels.kernel({"x": kernels.buffer}, body, block=(4, 1, 1))
    message = failure(kernels, made, kernels.array("fp32", [1.0] * 4))
    assert "out of bounds" in message and "(3, 0, 0)" in message


def test_a_vector_begins_at_a_multiple_of_its_bytes(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        build.store(build.load(x, build.constant(2), Vector(4, DTYPES["fp32"])), x, build.constant(4))

    made = kernels.kernel({"x": kernels.buffer}, body, block=(1, 1, 1))
    assert "aligned to 16" in failure(kernels, made, kernels.array("fp32", [0.0] * 8))


def test_memory_is_of_one_dtype(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        build.store(build.load(x, build.thread(), kernels.int32), x, build.thread())

    made = kernels.kernel({"x": kernels.buffer}, body, block=(4, 1, 1))
    assert "holds fp32" in failure(kernels, made, kernels.array("fp32", [0.0] * 4))


def test_two_threads_on_one_element_race(kernels: Any) -> None:
    def body(build: Any, x: Any) -> None:
        build.store(build.constant(1.0, "fp32"), x, build.constant(0))

    made = kernels.kernel({"x": kernels.buffer}, body, block=(2, 1, 1))
    assert "race" in failure(kernels, made, kernels.array("fp32", [0.0]))


def staged(kernels: Any, wait: bool, barrier: bool) -> Any:
    """Each lane copies an element to shared memory and reads its neighbour's."""

    def body(build: Any, x: Any, y: Any) -> None:
        shared = build(AddressOf, global_name="tile", elements=32, elem_type=DTYPES["fp32"])
        lane = build.thread()
        to, from_ = (build(GetElementPtr, each, lane, elem_type=DTYPES["fp32"]) for each in (shared, x))
        build.all(CopyAsync, to, from_, size=4)
        build.all(CopyCommit)
        if wait:
            build.all(CopyWait, n=0)
        if barrier:
            build.all(Barrier)
        last = build(Mul, build.constant(-1), lane)
        build.store(build.load(shared, build(Add, last, build.constant(31)), kernels.fp32), y, lane)

    return kernels.kernel({"x": kernels.buffer, "y": kernels.buffer}, body, smem=128)


def test_copies_are_seen_after_a_wait_and_a_barrier(kernels: Any) -> None:
    numbers = [float(each) for each in range(32)]
    x = kernels.array("fp32", numbers)
    assert kernels.run(staged(kernels, True, True), x, x)[1].values.tolist() == numbers[::-1]
    for wait, barrier in ((False, True), (True, False)):
        assert "copies to" in failure(kernels, staged(kernels, wait, barrier), x, x)


def test_shuffles_of_both_vendors_read_later_lanes(kernels: Any) -> None:
    """NVIDIA's by a distance, the last lanes keeping their own; AMD's by four times the lane."""

    def down(build: Any, x: Any) -> None:
        build.store(build(ShuffleDown, build.load(x, build.thread(), kernels.int32), delta=3), x, build.thread())

    def permuted(build: Any, x: Any) -> None:
        index = build(Add, build(Mul, build.thread(), build.constant(-4)), build.constant(252))
        build.store(build(BPermute, index, build.load(x, build.thread(), kernels.int32)), x, build.thread())

    x = kernels.array("int32", list(range(64)))
    made = kernels.kernel({"x": kernels.buffer}, down, block=(64, 1, 1))
    expected = [lane + 3 if lane % 32 < 29 else lane for lane in range(64)]
    assert kernels.run(made, x)[0].values.tolist() == expected
    made = kernels.kernel({"x": kernels.buffer}, permuted, block=(64, 1, 1), target="gfx942")
    assert kernels.run(made, x)[0].values.tolist() == list(range(63, -1, -1))


def branching(kernels: Any) -> Any:
    """y[i] = sum of 0 .. i-1 for even lanes by a loop, -1 for odd ones."""

    def body(build: Any, y: Any, n: Any) -> None:
        lane = build.thread()
        half = build(SDiv, lane, build.constant(2))
        even = build(ICmp, build(Mul, half, build.constant(2)), lane, predicate="eq")
        build.store(looped(kernels, build, lane, n, even), y, lane)

    return kernels.kernel({"y": kernels.buffer, "n": kernels.int32}, body, block=(8, 1, 1))


def looped(kernels: Any, build: Any, lane: Any, n: Any, even: Any) -> Any:
    index, total = Value("i", kernels.int32), Value("total", kernels.int32)
    zero, one = build.constant(0), build.constant(1)
    inside = kernels.Build("nvidia", "b")
    below = inside(ICmp, index, lane, predicate="slt")
    add = kernels.Build("nvidia", "t")
    more = add(Add, total, index)
    chosen = inside.value(kernels.int32)
    branch = Instruction(
        memory.If(below.type, (kernels.int32,)),
        (below,),
        (chosen,),
        build.location,
        (Block((), tuple(add.instructions), (more,), "yield"), Block((), (), (total,), "yield")),
    )
    region = Block((index, total), (*inside.instructions, branch), (chosen,), "yield")
    made = build.value(kernels.int32)
    loop = memory.For(start=n.type, stop=n.type, step=n.type, carried=(kernels.int32,))
    build.instructions.append(Instruction(loop, (zero, n, one, zero), (made,), build.location, (region,)))
    return build(Select, even, made, build.constant(-1))


def test_loops_and_branches_under_a_mask(kernels: Any) -> None:
    y = kernels.array("int32", [0] * 8)
    found = kernels.run(branching(kernels), y, kernels.array("int32", 100))[0].values.tolist()
    assert found == [0, -1, 1, -1, 6, -1, 15, -1]


def test_the_place_of_a_thread(kernels: Any) -> None:
    """Each thread writes 100 * block + thread along y, to its own place; x counts fastest."""

    def body(build: Any, y: Any) -> None:
        block, x, row = build.block_id(1), build.thread(0), build.thread(1)
        place = build(Add, build(Add, x, build(Mul, row, build.constant(2))), build(Mul, block, build.constant(6)))
        build.store(build(Add, build(Mul, block, build.constant(100)), row), y, place)

    for target in ("sm_80", "gfx90a"):
        made = kernels.kernel({"y": kernels.buffer}, body, block=(2, 3, 1), grid=(1, 2, 1), target=target)
        found = kernels.run(made, kernels.array("int32", [0] * 12))[0].values.tolist()
        assert found == [0, 0, 1, 1, 2, 2, 100, 100, 101, 101, 102, 102]
