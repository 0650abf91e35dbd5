"""Kernels of Tile IR: limits of a run, the words of errors, races, orders of blocks, and launches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection, UnsupportedConstruct
from tessera_reference.ir.module import Block
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import TooLarge
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile.interpreter import run_kernel


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


def test_a_launch_that_does_not_fit_says_what_it_needs(kernel):
    k = kernel(kernel.buffer("fp64", 1 << 40))
    with pytest.raises(TooLarge, match=r"launch: 35184372088832 bytes of buffers are too many"):
        k.run(None)


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
