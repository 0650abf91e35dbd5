"""A host function that launches kernels of its module, in text."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

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
    """What the kernel does: the first two lanes scale their neighbour twice, the others take the first of the row."""
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


def test_what_fails_in_a_kernel_fails_the_host_function_with_a_diagnostic_of_the_kernel():
    """The kernel that leaves its barrier out."""
    module = read_module(MODULE.replace('    "tessera.tile.barrier"() {label = "filled"} : () -> ()\n', ""))
    rows = np.zeros((4, 32), "f4")
    with pytest.raises(Rejection) as caught:
        execute(module, "f", {"a": Array(dtype("fp32"), rows), "f": Array(dtype("fp32"), np.array(0.5, "f4"))})
    (found,) = caught.value.diagnostics
    assert (found.category, found.phase) == ("tile", "execute")
    assert found.message.startswith("load: race: thread (2, 0, 0) of block (0, 0, 0) reads %s[0], which thread (0, 0,")


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
