"""Kernels of Tile IR: limits of a run, the words of errors, races, orders of blocks, and launches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection, UnsupportedConstruct
from tessera_reference.ir.module import Block
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import TooLarge
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix
from tessera_reference.tile.interpreter import run_kernel
from tessera_reference.tile.operations import Barrier, CopyAsync, ShuffleSync


def test_a_bound_that_differs_between_threads_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.loop(0, t, 1, lambda i: ())
    found = k.fails(None)
    assert found.category == "tile"
    assert "stop differs between threads: 0, and 1 in thread (1, 0, 0) of block (0, 0, 0)" in found.message


def test_an_active_lane_that_divides_by_zero_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.branch(k.less(k.constant(3), t), lambda: k.over(t, k.minus(t, 20)) and ())
    found = k.fails(None)
    assert found.category == "numerics"
    assert found.message == "divide: integer division by zero"


def test_a_loop_that_does_not_end_is_refused_before_it_begins(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 1 << 30, 1, lambda i: k.add(i, 1) and ())
    found = k.fails(None, steps=10_000)
    assert found.message.startswith("for: a launch runs at most 10000 instructions")


def test_a_kernel_that_does_not_end_is_stopped_where_it_is(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 100, 1, lambda i: k.loop(0, 100, 1, lambda j: k.add(j, 1) and ()) and ())
    found = k.fails(None, steps=10_000)
    assert found.message.startswith(("add: ", "for: "))
    assert "at most 10000 instructions" in found.message


def test_an_empty_loop_is_counted_too(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 1 << 30, 1, lambda i: ())
    assert "for: a launch runs at most 10000" in k.fails(None, steps=10_000).message


def test_a_grid_that_could_not_end_is_refused_before_it_begins(kernel):
    k = kernel(kernel.buffer("int32", 1), grid=(1 << 30, 60000, 1))
    k.thread()
    assert "thread_id: a launch runs at most" in k.fails(None).message


def test_regions_nested_deeper_than_this_machine_goes_are_not_called_wrong(kernel):
    k = kernel(kernel.buffer("int32", 1))
    k.branch(k.less(k.thread(), 32), lambda: ())
    innermost = k.build.instructions.pop()
    for _ in range(20_000):
        outer = replace(innermost, regions=(Block((), (innermost,), (), "yield"), innermost.regions[1]))
        innermost = outer
    k.build.instructions.append(innermost)
    with pytest.raises(UnsupportedConstruct, match="deep_regions"):
        run_kernel(k.function, [kernel.array("int32", [0])], k.target)


def test_a_buffer_that_is_given_and_written_is_not_changed_for_its_giver(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.store(k.add(k.load(k[0], t), 1), k[0], t)
    given = kernel.array("int32", [5] * 32)
    assert k.result(given) == [6] * 32
    assert given.values.tolist() == [5] * 32


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


def test_a_result_that_is_not_wholly_written_is_an_error_that_names_an_element(kernel):
    k = kernel(kernel.buffer("int32", 5, 8))
    t = k.thread()
    k.store(t, k[0], k.over(t, 8), k.rest(t, 8))
    found = k.fails(None)
    assert found.category == "tile"
    assert found.message == "@tss_kernel_k: %p0[4, 0] was never written, nor 7 more"


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


def test_filling_a_buffer_that_others_have_just_read_is_a_race(kernel):
    """The barrier that keeps a ring of buffers apart is missing."""
    case = Copied(kernel)
    case.copy()
    case.k.all(Barrier)
    case.take()
    case.copy()
    found = case.k.fails(kernel.array("int32", NUMBERS), None)
    assert found.message.startswith("cp.async: race: thread (0, 0, 0) of block (0, 0, 0) writes %v0[0], which thread")


def test_a_copy_of_what_another_block_writes_is_a_race(kernel):
    k = kernel(kernel.buffer("int32", 4), grid=(2, 1, 1), block=(1, 1, 1))
    tile, b = k.allocate("int32", 4), k.block_id()
    k.branch(
        k.equal(b, 0),
        lambda: k.store(b, k[0], 1),
        lambda: k.all(CopyAsync, k[0], tile, bytes=16) and (),
    )
    assert "cp.async: race" in k.fails(kernel.array("int32", [0] * 4)).message


def test_a_mask_of_32_lanes_does_not_do_for_64(kernel):
    for target, runs in (("sm_90", True), ("gfx90a", False)):
        k = kernel(kernel.buffer("int32", 1), block=(64, 1, 1), target=target)
        k(ShuffleSync, k.thread(), delta=1, mask=0xFFFFFFFF)
        if runs:
            k.run(kernel.array("int32", [0]))
        else:
            assert "outside the mask" in k.fails(kernel.array("int32", [0])).message


@pytest.mark.parametrize("attributes", [{"delta": -1}, {"delta": 1, "mask": -1}, {"delta": 1, "mask": 1 << 64}])
def test_a_negative_delta_and_a_mask_of_too_many_lanes_are_refused(kernel, attributes):
    k = kernel(kernel.buffer("int32", 1))
    with pytest.raises(Refusal):
        k(ShuffleSync, k.thread(), **attributes)


KERNEL = """\
  "tessera.tile.kernel"() ({
  ^bb0(%x: memref<4x32xfp32>[addrspace=global], %y: memref<4x32xfp32>[addrspace=global], %scale: fp32):
    %b = "tessera.tile.block_id"() {axis = "x"} : () -> int32
    %t = "tessera.tile.thread_id"() {axis = "x"} : () -> int32
    %s = "tessera.tile.shared.alloc"() : () -> memref<32xfp32>[addrspace=shared]
    %v = "tessera.tile.load"(%x, %b, %t) : (memref<4x32xfp32>[addrspace=global], int32, int32) -> fp32
    "tessera.tile.store"(%v, %s, %t) : (fp32, memref<32xfp32>[addrspace=shared], int32) -> ()
    "tessera.tile.barrier"() {label = "filled"} : () -> ()
    %n = "tessera.tile.shfl.sync"(%v) {delta = 1, mask = 0xffffffff} : (fp32) -> fp32
    %zero = "tessera.graph.constant"() {value = 0} : () -> int32
    %two = "tessera.graph.constant"() {value = 2} : () -> int32
    %one = "tessera.graph.constant"() {value = 1} : () -> int32
    %sum = "tessera.tile.for"(%zero, %two, %one, %n) ({
    ^bb0(%i: int32, %total: fp32):
      %more = "tessera.graph.multiply"(%total, %scale) : (fp32, fp32) -> fp32
      "tessera.graph.yield"(%more) : (fp32) -> ()
    }) : (int32, int32, int32, fp32) -> fp32
    %c = "tessera.graph.less"(%t, %two) : (int32, int32) -> bool
    %r = "tessera.tile.if"(%c) ({
      "tessera.graph.yield"(%sum) : (fp32) -> ()
    }, {
      %w = "tessera.tile.load"(%s, %zero) : (memref<32xfp32>[addrspace=shared], int32) -> fp32
      "tessera.graph.yield"(%w) : (fp32) -> ()
    }) : (bool) -> fp32
    "tessera.tile.store"(%r, %y, %b, %t) : (fp32, memref<4x32xfp32>[addrspace=global], int32, int32) -> ()
    "tessera.graph.return"() : () -> ()
  }) {sym_name = "tss_kernel_k", function_type = (memref<4x32xfp32>[addrspace=global], \
memref<4x32xfp32>[addrspace=global], fp32) -> (), grid = [4, 1, 1], block = [32, 1, 1], smem_bytes = 128, \
target = "sm_90"} : () -> ()
"""
HOST = """\
  "tessera.graph.func"() ({
  ^bb0(%a: tensor<4x32xfp32>, %f: fp32):
    %y = "tessera.tile.launch"(%a, %f) {kernel = "tss_kernel_k"} : (tensor<4x32xfp32>, fp32) -> tensor<4x32xfp32>
    %z = "tessera.tile.launch"(%y, %f) {kernel = "tss_kernel_k"} : (tensor<4x32xfp32>, fp32) -> tensor<4x32xfp32>
    "tessera.graph.return"(%z) : (tensor<4x32xfp32>) -> ()
  }) {sym_name = "f", function_type = (tensor<4x32xfp32>, fp32) -> (tensor<4x32xfp32>)} : () -> ()
"""
MODULE = f'"builtin.module"() ({{\n{KERNEL}{HOST}}}) {{sym_name = "m"}} : () -> ()\n'


def step(rows: list[list[float]], scale: float) -> list[list[float]]:
    return [[row[t + 1] * scale * scale if t < 2 else row[0] for t in range(32)] for row in rows]


def test_a_host_function_launches_a_kernel_on_what_another_launch_has_made():
    module = read_module(MODULE)
    rows = [[float(40 * i + j) for j in range(32)] for i in range(4)]
    inputs = {"a": Array(dtype("fp32"), np.array(rows, "f4")), "f": Array(dtype("fp32"), np.array(0.5, "f4"))}
    (found,) = execute(module, "f", inputs)
    assert found.values.tolist() == step(step(rows, 0.5), 0.5)


def test_the_text_of_kernels_reads_back():
    module = read_module(MODULE)
    text = print_module(module)
    assert print_module(read_module(text)) == text
    assert print_module(read_module(print_module(module, export=True, locations=False))) == text


LAUNCH = '"tessera.tile.launch"(%a, %f) {kernel = "tss_kernel_k"} : (tensor<4x32xfp32>, fp32)'


def test_what_the_host_runs_is_not_launched():
    other = HOST.replace('sym_name = "f"', 'sym_name = "g"')
    text = MODULE.replace(HOST, other + HOST.replace('kernel = "tss_kernel_k"', 'kernel = "g"'))
    with pytest.raises(Rejection, match="there is no kernel @g"):
        read_module(text)


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        (LAUNCH.replace('_k"', '_l"'), "there is no kernel @tss_kernel_l"),
        (LAUNCH.replace("%a, %f", "%f, %a").replace("tensor<4x32xfp32>, fp32", "fp32, tensor<4x32xfp32>"), "is fp32"),
        (LAUNCH.replace("%a, %f", "%a").replace("tensor<4x32xfp32>, fp32", "tensor<4x32xfp32>"), "an argument is"),
    ],
)
def test_a_launch_fits_its_kernel(launch, said):
    with pytest.raises(Rejection) as caught:
        read_module(MODULE.replace(LAUNCH, launch))
    assert any(said in finding.message for finding in caught.value.diagnostics)


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
