"""Kernels of Tile and Target IR: their names and entries, the grid and blocks of a launch, opaque pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.fatbin import Fatbin
from tessera_reference.abi.status import Failure, Status
from tessera_reference.compilation.executables import as_bytes, configured, executable_from, executables_of, specialise
from tessera_reference.compilation.images import compile_module
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

MEMREF = "memref<4x32xfp32>[addrspace=global]"
KERNEL = f"""\
  "tessera.tile.kernel"() ({{
  ^bb0(%x: {MEMREF}, %y.out: {MEMREF}, %scale: fp32):
    %b = "tessera.tile.block_id"() {{axis = "x"}} : () -> int32
    %t = "tessera.tile.thread_id"() {{axis = "x"}} : () -> int32
    %v = "tessera.tile.load"(%x, %b, %t) : ({MEMREF}, int32, int32) -> fp32
    %w = "tessera.graph.multiply"(%v, %scale) : (fp32, fp32) -> fp32
    "tessera.tile.store"(%w, %y.out, %b, %t) : (fp32, {MEMREF}, int32, int32) -> ()
    "tessera.graph.return"() : () -> ()
  }}) {{sym_name = "tss_kernel_scale", function_type = ({MEMREF}, {MEMREF}, fp32) -> (), grid = [4, 1, 1], \
block = [32, 1, 1], smem_bytes = 64, dynamic_smem = true}} : () -> ()
"""
MODULE = f'"builtin.module"() ({{\n{KERNEL}}}) {{sym_name = "m"}} : () -> ()\n'

PROGRAM = """\
  "tessera.graph.kernel"() ({
  ^bb0(%a: tensor<4x32xfp32>, %f: fp32):
    %y = "tessera.tile.launch"(%a, %f) {kernel = "tss_kernel_scale"} : (tensor<4x32xfp32>, fp32) -> tensor<4x32xfp32>
    "tessera.graph.return"(%y) : (tensor<4x32xfp32>) -> ()
  }) {sym_name = "run", function_type = (tensor<4x32xfp32>, fp32) -> (tensor<4x32xfp32>)} : () -> ()
"""


def given(build: Any) -> dict[str, Array]:
    return {
        "x": build.array("fp32", np.arange(128).reshape(4, 32)),
        "p1": build.array("fp32", np.full((4, 32), -1)),
        "scale": build.array("fp32", 2),
    }


@pytest.fixture
def fatbin(build: Any) -> Fatbin:
    found = build.compiled(MODULE, ("sm_90", "gfx942"), at="tile")
    assert isinstance(found, Fatbin)
    return found


def test_the_entry_of_a_tile_kernel(fatbin: Fatbin) -> None:
    """The public name is the symbol without its prefix, the grid the launch's; a name that C has not is not used."""
    (entry,) = fatbin.metadata.kernels
    assert (entry.name, entry.module, entry.level, entry.grid, entry.block) == ("scale", "m", "tile", None, (32, 1, 1))
    assert (entry.shared_bytes, entry.dynamic_shared) == (64, True)
    found = [(each.name, each.type, each.dtype, each.shape, each.written) for each in entry.parameters]
    assert found == [
        ("x", "ptr", "fp32", (4, 32), False),
        ("p1", "ptr", "fp32", (4, 32), True),
        ("scale", "fp32", None, None, False),
    ]
    assert fatbin.section("graph-ir") is None


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_it_runs_on_the_grid_and_the_blocks_of_the_launch(build: Any, fatbin: Fatbin, target: str) -> None:
    made = executables_of(fatbin, "scale", target)
    whole = 2 * np.arange(128).reshape(4, 32)
    assert made.run(given(build), (4, 1, 1))["p1"].values.tolist() == whole.tolist()
    expected = np.full((4, 32), -1)
    expected[:3, :8] = whole[:3, :8]
    written = made.run(given(build), (3, 1, 1), (8, 1, 1))
    assert {name: each.values.tolist() for name, each in written.items()} == {"p1": expected.tolist()}


def test_a_grid_beyond_the_buffer_is_an_error_of_the_kernel(build: Any, fatbin: Fatbin) -> None:
    with pytest.raises(Rejection) as caught:
        executables_of(fatbin, "scale", "sm_90").run(given(build), (5, 1, 1))
    assert caught.value.diagnostics[0].phase == "execute"


def test_a_grid_that_no_device_takes_is_refused(build: Any, fatbin: Fatbin) -> None:
    with pytest.raises(Failure, match="65536 blocks along y") as caught:
        executables_of(fatbin, "scale", "sm_90").run(given(build), (1, 65536, 1))
    assert caught.value.status == Status.TESS_ERR_INVALID_VALUE


def test_shared_memory_of_the_launch_comes_on_top(fatbin: Fatbin) -> None:
    made = executables_of(fatbin, "scale", "gfx942")
    made.require_configuration((1, 1, 1), (0, 0, 0), 65536 - 64)
    with pytest.raises(Failure):
        made.require_configuration((1, 1, 1), (0, 0, 0), 65536 - 63)


def test_one_kernel_is_made_for_one_configuration(fatbin: Fatbin) -> None:
    made = executables_of(fatbin, "scale", "sm_90")
    kernel = made.kernel  # type: ignore[attr-defined]  # of a tile kernel
    assert configured(kernel, (2, 1, 1), (8, 1, 1)) is configured(kernel, (2, 1, 1), (8, 1, 1))
    assert configured(kernel, (2, 1, 1), (8, 1, 1)).attributes["block"] == (8, 1, 1)


@pytest.mark.parametrize("change", [{"x": (3, 32)}, {"p1": (128,)}, {"scale": (1,)}])
def test_arguments_have_the_shapes_of_the_entry(build: Any, fatbin: Fatbin, change: dict[str, Any]) -> None:
    arguments = given(build) | {name: build.array("fp32", np.zeros(shape)) for name, shape in change.items()}
    with pytest.raises(Failure) as caught:
        executables_of(fatbin, "scale", "sm_90").run(arguments)
    assert caught.value.status == Status.TESS_ERR_INVALID_VALUE


def test_a_cache_may_keep_what_runs(fatbin: Fatbin) -> None:
    section = fatbin.section("target-ir", "sm_90")
    assert section is not None and specialise(fatbin, "scale", "sm_90") == section.data


def test_a_kernel_that_a_program_launches_is_not_offered_besides(build: Any) -> None:
    """The program is a kernel of its own, with the fixed extents of its text."""
    fatbin = build.compiled(MODULE.replace(KERNEL, KERNEL + PROGRAM), at="tile")
    (entry,) = fatbin.metadata.kernels
    assert (entry.name, entry.level, entry.block, entry.shared_bytes) == ("run", "program", (32, 1, 1), 64)
    arguments = {"a": build.array("fp32", np.ones((4, 32))), "f": build.array("fp32", 3)}
    written = executables_of(fatbin, "run", "sm_90").run(arguments, (9, 1, 1))
    assert written["a"].values.tolist() == np.full((4, 32), 3).tolist()


def test_a_kernel_of_target_ir_that_names_no_target_is_for_the_one_asked_for(build: Any) -> None:
    lowered = build.compiled(MODULE.replace(KERNEL, KERNEL + PROGRAM), at="tile").section("target-ir", "sm_90")
    text = lowered.data.decode()
    assert text.count('target = "sm_90"') == 1
    fatbin = build.compiled(text.replace(', target = "sm_90"', ""), at="target")
    arguments = {"a": build.array("fp32", np.ones((4, 32))), "f": build.array("fp32", 3)}
    assert executables_of(fatbin, "run", "sm_90").run(arguments)["a"].values[3, 31] == 3


def test_a_payload_of_a_program_is_no_tile_kernel(build: Any, fatbin: Fatbin) -> None:
    """As of a cache that holds a kernel of the same name from another module."""
    program = build.compiled("module m { kernel scale(x: tensor<4xfp32>) { x = -x; } }")
    with pytest.raises(Failure, match="no kernel scale"):
        executable_from(specialise(program, "scale", "sm_90"), fatbin.metadata.kernels[0], "sm_90")


def test_a_kernel_of_another_target_is_refused() -> None:
    text = MODULE.replace("smem_bytes", 'target = "sm_80", smem_bytes')
    assert compile_module(text, ["sm_80"], at="tile")
    with pytest.raises(Rejection, match="is made for sm_80"):
        compile_module(text, ["sm_80", "sm_90"], at="tile")


def test_an_empty_kernel_leaves_everything(build: Any) -> None:
    lines = [line for line in MODULE.splitlines(keepends=True) if not line.startswith("    %") and "store" not in line]
    fatbin = build.compiled("".join(lines), at="tile")
    assert executables_of(fatbin, "scale", "sm_90").run(given(build), (65535, 65535, 65535)) == {}


OPAQUE = """\
"builtin.module"() ({
  "tessera.target.kernel"() ({
  ^bb0(%from: !llvm.ptr<1>, %to: !llvm.ptr<1>, %never: !llvm.ptr<1>, %n: int32):
    %t = "nvvm.read.ptx.sreg.tid.x"() : () -> int32
    %a = "llvm.getelementptr"(%from, %t) {elem_type = "fp32"} : (!llvm.ptr<1>, int32) -> !llvm.ptr<1>
    %v = "llvm.load"(%a) : (!llvm.ptr<1>) -> fp32
    %w = "llvm.fadd"(%v, %v) : (fp32, fp32) -> fp32
    %b = "llvm.getelementptr"(%to, %n) {elem_type = "fp32"} : (!llvm.ptr<1>, int32) -> !llvm.ptr<1>
    %c = "llvm.getelementptr"(%b, %t) {elem_type = "fp32"} : (!llvm.ptr<1>, int32) -> !llvm.ptr<1>
    "llvm.store"(%w, %c) : (fp32, !llvm.ptr<1>) -> ()
    "tessera.graph.return"() : () -> ()
  }) {sym_name = "tss_kernel_twice", function_type = (!llvm.ptr<1>, !llvm.ptr<1>, !llvm.ptr<1>, int32) -> (), \
grid = [1, 1, 1], block = [2, 1, 1], smem_bytes = 0, target = "sm_90"} : () -> ()
}) {sym_name = "m"} : () -> ()
"""


def raw(text: str) -> Array:
    data = bytes.fromhex(text)
    return Array.from_bits(dtype("int8"), (len(data),), data)


def test_opaque_pointers_are_given_bytes(build: Any) -> None:
    """1.0 and -2.0 doubled, one element on; the odd byte behind and NaN of many kinds are left alone."""
    fatbin = build.compiled(OPAQUE, at="target")
    (entry,) = fatbin.metadata.kernels
    found = [(each.type, each.dtype, each.shape, each.written) for each in entry.parameters]
    assert [each[3] for each in found] == [False, True, False, False]
    assert [each[:3] for each in found] == [("ptr", None, None)] * 3 + [("int32", None, None)]
    arguments = {
        "from": raw("0000803f 000000c0"),
        "to": raw("0100a07f 00000000 00000000 0300c0ff a5"),
        "never": raw("a5"),
        "n": build.array("int32", 1),
    }
    written = executables_of(fatbin, "twice", "sm_90").run(arguments)
    assert {name: each.to_bits().hex() for name, each in written.items()} == {
        "to": "0100a07f00000040000080c00300c0ffa5"
    }
    assert written["to"].dtype.name == "int8"


def test_the_dtype_is_that_of_the_accesses_however_addresses_are_counted(build: Any) -> None:
    """Byte 4 of what is read is its second element."""
    text = OPAQUE.replace('(%from, %t) {elem_type = "fp32"}', '(%from, %n) {elem_type = "int8"}')
    made = executables_of(build.compiled(text, at="target"), "twice", "sm_90")
    arguments = {"from": raw("00000000 0000803f"), "to": raw("00" * 24), "never": raw(""), "n": build.array("int32", 4)}
    assert made.run(arguments)["to"].to_bits().hex() == "00" * 16 + "00000040" * 2


def test_elements_may_be_given_as_they_are(build: Any) -> None:
    made = executables_of(build.compiled(OPAQUE, at="target"), "twice", "sm_90")
    halves = {name: build.array("fp32", [1, 2, 3]) for name in ("from", "to", "never")}
    assert made.run({**halves, "n": build.array("int32", 0)})["to"].values.tolist() == [2, 4, 3]


def test_a_store_that_cannot_be_followed_may_write_any_pointer(build: Any) -> None:
    branch = """\
    %one = "llvm.mlir.constant"() {value = 1} : () -> int32
    %less = "llvm.icmp"(%n, %one) {predicate = "slt"} : (int32, int32) -> bool
    %either = "scf.if"(%less) ({
      "tessera.graph.yield"(%c) : (!llvm.ptr<1>) -> ()
    }, {
      "tessera.graph.yield"(%a) : (!llvm.ptr<1>) -> ()
    }) : (bool) -> !llvm.ptr<1>
    "llvm.store"(%w, %either)"""
    text = OPAQUE.replace('    "llvm.store"(%w, %c)', branch)
    (entry,) = build.compiled(text, at="target").metadata.kernels
    assert [each.written for each in entry.parameters] == [True, True, True, False]


def test_bytes_that_no_element_changed_stay() -> None:
    before = raw("ff a5 05 00")
    left = Array(dtype("bool"), np.array([True, True, False, True]))
    assert as_bytes(left, before).to_bits() == bytes.fromhex("ff a5 00 01")
