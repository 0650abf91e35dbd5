"""Modules at Tile IR: names of kernels, the host function, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection, UnsupportedConstruct
from tessera_reference.ir.operation import Instruction, Module
from tessera_reference.ir.targets import target_of
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.schedule.lowering import to_schedule
from tessera_reference.tile.interpreter import Launch
from tessera_reference.tile.lowering import to_tile

SM_90 = target_of("sm_90")

PROGRAM = """
module m {
  func g(x: tensor<5x7xbf16>, y: tensor<7x9xbf16>) -> tensor<5x9xbf16> { return op.relu(op.matmul(x, y)); }
  func f(x: tensor<5x7xbf16>, y: tensor<7x9xbf16>, c: bf16) {
    let z: tensor<5x9xbf16> = g(x, y) * c;
    for (i in 0:3) { z = z + op.softmax(z); }
    let s: fp32 = op.sum(op.cast(z[1], dtype=fp32), axis=0);
    return z, s * 2.0;
  }
}
"""


def tile(source: str) -> Module:
    return to_tile(to_schedule(compile_source(source, "t.tsr").module, SM_90), SM_90)


def launches(module: Module, name: str) -> list[Instruction]:
    return [
        instruction for instruction in module.functions[name].body.walk() if isinstance(instruction.operation, Launch)
    ]


def test_the_host_function_keeps_its_meaning(programs: Any) -> None:
    graph = compile_source(PROGRAM, "t.tsr").module
    shapes = {"x": (5, 7), "y": (7, 9), "c": ()}
    inputs = {name: programs.numbers("bf16", shape, place) for place, (name, shape) in enumerate(shapes.items())}
    expected, actual = (execute(module, "f", inputs) for module in (graph, tile(PROGRAM)))
    assert [array.to_bits() for array in expected] == [array.to_bits() for array in actual]


def test_symbols_that_are_taken_are_left_alone() -> None:
    source = "module m {{ func f(x: tensor<3xfp32>) {{ return x + x; }} func {}(x: tensor<3xfp32>) {{ return x; }} }}"
    lowered = tile(source.format("tss_kernel_f_0"))
    (launch,) = launches(lowered, "f")
    assert launch.operation.attributes["kernel"] not in ("tss_kernel_f_0", "")
    assert str(launch.operation.attributes["kernel"]).startswith("tss_kernel_f_0")
    verify(lowered)


@pytest.mark.parametrize("extent", ["N", "?"])
def test_extents_that_are_not_known_are_refused(extent: str) -> None:
    with pytest.raises(Rejection) as caught:
        tile(f"module m {{ func f(x: tensor<{extent}x3xfp32>) {{ return x + x; }} }}")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.category == "shapes"
    assert diagnostic.phase == "lower"
    assert "known extents before Tile IR" in diagnostic.requirement
    assert "give inputs" in diagnostic.remedy


def test_kernels_whose_indices_int32_does_not_hold_are_unsupported() -> None:
    """The last tile of 4,096 elements ends at 2**31; one element more needs another tile."""
    source = "module m {{ kernel v(A: tensor<{}xint8>) {{ A = A + A; }} }}"
    assert tile(source.format(2**31)).functions
    with pytest.raises(UnsupportedConstruct, match="more_than_2147483648_elements"):
        tile(source.format(2**31 + 1))


def test_tiles_without_room_are_refused() -> None:
    """The stages take all of a block's shared memory but 512 bytes; the accumulators need 8 KiB, whatever k is."""
    source = """module m { func f(x: tensor<16x16xbf16>, y: tensor<16x2016xbf16>) {
      let z: tensor<16x2016xbf16> = op.matmul(x, y);
      schedule.tile(z, m=16, n=2016, k=16);
      schedule.pipeline(z, depth=1);
      return z; } }"""
    gfx942 = target_of("gfx942")
    scheduled = to_schedule(compile_source(source, "t.tsr").module, gfx942)
    with pytest.raises(Rejection) as caught:
        to_tile(scheduled, gfx942)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.category == "schedule"
    assert diagnostic.phase == "lower"
    assert diagnostic.clause == "LANG-07.3-03"


@pytest.mark.parametrize(("loop", "has_kernels"), [("", True), ("for (i in 0:2) { y = y * x; }", False)])
def test_a_gradient_behind_a_loop_stays_with_the_host(loop: str, has_kernels: bool) -> None:
    """One on a single path becomes kernels as any product does (AMB-LANG-214)."""
    body = f"let y: tensor<3xfp32> = x * x; {loop} return op.grad(op.sum(y, axis=0), x);"
    lowered = tile(f"module m {{ func f(x: tensor<3xfp32>) {{ {body} }} }}")
    assert any(function.device for function in lowered.functions.values()) == has_kernels
