"""Programs and kernels of a loaded module: grids, errors, opaque pointers, caches, and ranks that meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.fatbin import Fatbin, read
from tessera_reference.abi.status import Failure, Status
from tessera_reference.compilation import executables
from tessera_reference.compilation.executables import as_bytes, configured, executable_from, executables_of, specialise
from tessera_reference.compilation.extents import as_kernel
from tessera_reference.compilation.images import compile_module
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Function, Module
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SCALED = """module m {
  kernel scaled(X: tensor<MxNxfp32>, Y: tensor<MxNxfp32>, M: int32, N: int64, by: fp32) { Y = X * by; }
  kernel total(X: tensor<6xint32>, d: int32, Y: tensor<6xint32>) { Y = X / d; }
  kernel nothing() { }
}
"""
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def arguments(build: Any, rows: int = 2, columns: int = 3) -> dict[str, Any]:
    return {
        "X": build.array("fp32", X),
        "Y": build.array("fp32", np.zeros((2, 3))),
        "M": build.array("int32", rows),
        "N": build.array("int64", columns),
        "by": build.array("fp32", 0.5),
    }


@pytest.fixture(scope="module")
def fatbin() -> Fatbin:
    return read(compile_module(SCALED, ["sm_90", "gfx942"]))


def test_a_payload_that_is_something_else_is_refused(fatbin: Fatbin) -> None:
    entry = fatbin.metadata.kernel("scaled")
    assert entry is not None
    with pytest.raises(Rejection):
        executable_from(b"nonsense", entry, "sm_90")
    with pytest.raises(Failure, match="no kernel scaled"):
        executable_from(specialise(fatbin, "nothing", "sm_90"), entry, "sm_90")


def test_an_error_of_the_running_program_is_a_rejection(build: Any, fatbin: Fatbin) -> None:
    given = {"X": build.array("int32", range(6)), "Y": build.array("int32", range(6))}
    made = executables_of(fatbin, "total", "sm_90")
    assert made.run({**given, "d": build.array("int32", -2)})["Y"].values.tolist() == [0, 0, -1, -1, -2, -2]
    with pytest.raises(Rejection) as caught:
        made.run({**given, "d": build.array("int32", 0)})
    assert caught.value.diagnostics[0].phase == "execute"
    assert "zero" in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("kernel", "target", "extents", "status"),
    [
        ("scale", "sm_90", {}, Status.TESS_ERR_INVALID_VALUE),
        ("scaled", "sm_80", {"M": 2, "N": 3}, Status.TESS_ERR_ARCH_MISMATCH),
        ("total", "gfx90a", {}, Status.TESS_ERR_ARCH_MISMATCH),
        ("scaled", "sm_90", {"M": 2}, Status.TESS_ERR_INVALID_VALUE),
        ("scaled", "sm_90", {"M": -1, "N": 3}, Status.TESS_ERR_INVALID_VALUE),
    ],
)
def test_what_is_not_in_the_module_is_refused(
    fatbin: Fatbin, kernel: str, target: str, extents: dict[str, int], status: Status
) -> None:
    for attempt in (executables_of, specialise):
        with pytest.raises(Failure) as caught:
            attempt(fatbin, kernel, target, extents)
        assert caught.value.status == status


def test_a_target_that_only_the_image_knows_is_refused(fatbin: Fatbin) -> None:
    strange = replace(fatbin, targets=("sm_7000", *fatbin.targets))
    with pytest.raises(Failure) as caught:
        executables_of(strange, "nothing", "sm_7000")
    assert caught.value.status == Status.TESS_ERR_ARCH_MISMATCH


@pytest.mark.parametrize(
    ("grid", "block", "shared", "said"),
    [
        ((0, 1, 1), (0, 0, 0), 0, "0 blocks along x"),
        ((1, 1, -1), (0, 0, 0), 0, "-1 blocks along z"),
        ((1 << 31, 1, 1), (0, 0, 0), 0, "blocks along x"),
        ((1, 1, 1), (0, -1, 0), 0, "a block of 0x-1x0 threads"),
        ((1, 1, 1), (1025, 1, 1), 0, "1025 threads"),
        ((1, 1, 1), (0, 0, 0), 232449, "shmemBytes is 232449"),
        ((1, 1, 1), (0, 0, 0), -1, "shmemBytes is -1"),
    ],
)
def test_a_configuration_that_shows_to_be_wrong_is_refused(
    fatbin: Fatbin, grid: Any, block: Any, shared: int, said: str
) -> None:
    made = executables_of(fatbin, "nothing", "sm_90")
    with pytest.raises(Failure, match=said) as caught:
        made.require_configuration(grid, block, shared)
    assert caught.value.status == Status.TESS_ERR_INVALID_VALUE
    made.require_configuration((1, 1, 1), (1024, 1, 1), 232448)
    if shared == 0:
        with pytest.raises(Failure, match=said):
            made.run({}, grid, block)


def test_arguments_are_those_of_the_entry(build: Any, fatbin: Fatbin) -> None:
    made = executables_of(fatbin, "scaled", "sm_90", {"M": 2, "N": 3})
    good = arguments(build)
    wrong = [
        {name: each for name, each in good.items() if name != "by"},
        {**good, "more": good["by"]},
        {**good, "X": build.array("fp32", [1, 2, 3])},
        {**good, "X": build.array("fp64", X)},
    ]
    for given in wrong:
        with pytest.raises(Failure) as caught:
            made.run(given)
        assert caught.value.status == Status.TESS_ERR_INVALID_VALUE


def test_a_launch_on_other_bits_computes_anew(build: Any) -> None:
    """Results of small launches are kept: by bits, dtype and shape, so that what is equal but not the same is apart."""
    fatbin = build.compiled("module m { kernel k(X: tensor<2xfp32>, Y: tensor<2xfp32>) { Y = 1.0 / X; } }")
    made = executables_of(fatbin, "k", "sm_90")

    def quotients(*values: float) -> list[float]:
        given = {"X": build.array("fp32", values), "Y": build.array("fp32", [0, 0])}
        return list(made.run(given)["Y"].values.tolist())

    for _ in range(2):
        assert quotients(0.0, 2.0) == [np.inf, 0.5]
        assert quotients(-0.0, 2.0) == [-np.inf, 0.5]
        assert quotients(4.0, 2.0) == [0.25, 0.5]


def test_what_is_kept_of_launches_is_bounded(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fatbin = build.compiled("module m { kernel k(X: tensor<2xfp32>, Y: tensor<2xfp32>) { Y = X + X; } }")
    made = executables_of(fatbin, "k", "sm_90")
    runs = []
    monkeypatch.setattr(executables, "execute", lambda *given, **named: runs.append(given) or execute(*given, **named))

    def doubled(number: float) -> float:
        given = {"X": build.array("fp32", [number, 0.0]), "Y": build.array("fp32", [0, 0])}
        return float(made.run(given)["Y"].values[0])

    assert [doubled(index) for index in (*range(executables.MOST_KEPT), 0)] == [
        *range(0, 2 * executables.MOST_KEPT, 2),
        0,
    ]
    assert len(runs) == executables.MOST_KEPT
    assert [doubled(executables.MOST_KEPT), doubled(0)] == [2 * executables.MOST_KEPT, 0]
    assert len(runs) == executables.MOST_KEPT + 2  # the oldest made room


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
def kernels_fatbin(build: Any) -> Fatbin:
    found = build.compiled(MODULE, ("sm_90", "gfx942"), at="tile")
    assert isinstance(found, Fatbin)
    return found


def test_the_entry_of_a_tile_kernel(kernels_fatbin: Fatbin) -> None:
    """The public name is the symbol without its prefix, the grid the launch's; a name that C has not is not used."""
    (entry,) = kernels_fatbin.metadata.kernels
    assert (entry.name, entry.module, entry.level, entry.grid, entry.block) == ("scale", "m", "tile", None, (32, 1, 1))
    assert (entry.shared_bytes, entry.dynamic_shared) == (64, True)
    found = [
        (parameter.name, parameter.type, parameter.dtype, parameter.shape, parameter.written)
        for parameter in entry.parameters
    ]
    assert found == [
        ("x", "ptr", "fp32", (4, 32), False),
        ("p1", "ptr", "fp32", (4, 32), True),
        ("scale", "fp32", None, None, False),
    ]
    assert kernels_fatbin.section("graph-ir") is None


def test_a_grid_beyond_the_buffer_is_an_error_of_the_kernel(build: Any, kernels_fatbin: Fatbin) -> None:
    with pytest.raises(Rejection) as caught:
        executables_of(kernels_fatbin, "scale", "sm_90").run(given(build), (5, 1, 1))
    assert caught.value.diagnostics[0].phase == "execute"


def test_shared_memory_of_the_launch_comes_on_top(kernels_fatbin: Fatbin) -> None:
    made = executables_of(kernels_fatbin, "scale", "gfx942")
    made.require_configuration((1, 1, 1), (0, 0, 0), 65536 - 64)
    with pytest.raises(Failure):
        made.require_configuration((1, 1, 1), (0, 0, 0), 65536 - 63)


def test_one_kernel_is_made_for_one_configuration(kernels_fatbin: Fatbin) -> None:
    made = executables_of(kernels_fatbin, "scale", "sm_90")
    kernel = made.kernel  # type: ignore[attr-defined]  # of a tile kernel
    assert configured(kernel, (2, 1, 1), (8, 1, 1)) is configured(kernel, (2, 1, 1), (8, 1, 1))
    assert configured(kernel, (2, 1, 1), (8, 1, 1)).attributes["block"] == (8, 1, 1)


@pytest.mark.parametrize("change", [{"x": (3, 32)}, {"p1": (128,)}, {"scale": (1,)}])
def test_arguments_have_the_shapes_of_the_entry(build: Any, kernels_fatbin: Fatbin, change: dict[str, Any]) -> None:
    arguments = given(build) | {name: build.array("fp32", np.zeros(shape)) for name, shape in change.items()}
    with pytest.raises(Failure) as caught:
        executables_of(kernels_fatbin, "scale", "sm_90").run(arguments)
    assert caught.value.status == Status.TESS_ERR_INVALID_VALUE


def test_a_cache_may_keep_what_runs(kernels_fatbin: Fatbin) -> None:
    section = kernels_fatbin.section("target-ir", "sm_90")
    assert section is not None and specialise(kernels_fatbin, "scale", "sm_90") == section.data


def test_a_kernel_that_a_program_launches_is_not_offered_besides(build: Any) -> None:
    """The program is a kernel of its own, with the fixed extents of its text."""
    kernels_fatbin = build.compiled(MODULE.replace(KERNEL, KERNEL + PROGRAM), at="tile")
    (entry,) = kernels_fatbin.metadata.kernels
    assert (entry.name, entry.level, entry.block, entry.shared_bytes) == ("run", "program", (32, 1, 1), 64)
    arguments = {"a": build.array("fp32", np.ones((4, 32))), "f": build.array("fp32", 3)}
    written = executables_of(kernels_fatbin, "run", "sm_90").run(arguments, (9, 1, 1))
    assert written["a"].values.tolist() == np.full((4, 32), 3).tolist()


def test_a_kernel_of_target_ir_that_names_no_target_is_for_the_one_asked_for(build: Any) -> None:
    lowered = build.compiled(MODULE.replace(KERNEL, KERNEL + PROGRAM), at="tile").section("target-ir", "sm_90")
    text = lowered.data.decode()
    assert text.count('target = "sm_90"') == 1
    kernels_fatbin = build.compiled(text.replace(', target = "sm_90"', ""), at="target")
    arguments = {"a": build.array("fp32", np.ones((4, 32))), "f": build.array("fp32", 3)}
    assert executables_of(kernels_fatbin, "run", "sm_90").run(arguments)["a"].values[3, 31] == 3


def test_a_payload_of_a_program_is_no_tile_kernel(build: Any, kernels_fatbin: Fatbin) -> None:
    """As of a cache that holds a kernel of the same name from another module."""
    program = build.compiled("module m { kernel scale(x: tensor<4xfp32>) { x = -x; } }")
    with pytest.raises(Failure, match="no kernel scale"):
        executable_from(specialise(program, "scale", "sm_90"), kernels_fatbin.metadata.kernels[0], "sm_90")


def test_a_kernel_of_another_target_is_refused() -> None:
    text = MODULE.replace("smem_bytes", 'target = "sm_80", smem_bytes')
    assert compile_module(text, ["sm_80"], at="tile")
    with pytest.raises(Rejection, match="is made for sm_80"):
        compile_module(text, ["sm_80", "sm_90"], at="tile")


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
    kernels_fatbin = build.compiled(OPAQUE, at="target")
    (entry,) = kernels_fatbin.metadata.kernels
    found = [(parameter.type, parameter.dtype, parameter.shape, parameter.written) for parameter in entry.parameters]
    assert [each[3] for each in found] == [False, True, False, False]
    assert [each[:3] for each in found] == [("ptr", None, None)] * 3 + [("int32", None, None)]
    arguments = {
        "from": raw("0000803f 000000c0"),
        "to": raw("0100a07f 00000000 00000000 0300c0ff a5"),
        "never": raw("a5"),
        "n": build.array("int32", 1),
    }
    written = executables_of(kernels_fatbin, "twice", "sm_90").run(arguments)
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
    assert [parameter.written for parameter in entry.parameters] == [True, True, True, False]


def test_bytes_that_no_element_changed_stay() -> None:
    before = raw("ff a5 05 00")
    left = Array(dtype("bool"), np.array([True, True, False, True]))
    assert as_bytes(left, before).to_bits() == bytes.fromhex("ff a5 00 01")


SOURCE = """module m {
  func scaled(r0: tensor<3xfp32>, x: fp32) -> tensor<3xfp32> { return r0 * x; }
  func number(A: tensor<3xfp32>) -> fp32 { return 2.0; }
  func early(A: tensor<3xfp32>, b: bool) -> tensor<3xfp32> {
    if (b) { return A; }
    return A + A;
  }
  kernel k(A: tensor<3xfp32>) { A = A + A; }
}
"""


def function(name: str) -> tuple[Module, Function]:
    module = compile_source(SOURCE).module
    return module, module.functions[name]


def test_a_result_is_a_parameter_with_a_name_of_its_own() -> None:
    module, kernel = as_kernel(*function("scaled"))
    assert kernel.kernel
    assert [parameter.name for parameter in kernel.parameters] == ["r0", "x", "r0_"]
    given = np.float32([1, -2, 3])
    fp32 = dtype("fp32")
    inputs = {name: Array(fp32, np.zeros(3, np.float32)) for name in ("r0_",)}
    inputs |= {"r0": Array(fp32, given), "x": Array(fp32, np.float32(2))}
    left = execute(module, "scaled", inputs)
    assert [each.values.tolist() for each in left] == [[1, -2, 3], [2, -4, 6]]


@pytest.mark.parametrize(
    ("name", "problem"), [("number", "a result is fp32"), ("early", "it returns from within a branch or loop")]
)
def test_what_no_kernel_can_be_made_of(name: str, problem: str) -> None:
    with pytest.raises(Rejection, match=f"@{name} cannot be made a kernel: {problem}"):
        as_kernel(*function(name))


PROGRAMS_SOURCE = """module m {
  mesh g = mesh<axes=[dp, tp], shape=[2, 2]>;
  kernel reduced(X: tensor<Nxfp32>, N: int32, S: tensor<Nxfp32>) {
    S = dist.all_reduce(X + X, axis=tp, op="sum");
  }
  kernel alone(X: tensor<2xfp32>) { X = -X; }
}
"""


def programs_given(build: Any, value: float) -> dict[str, Any]:
    return {
        "X": build.array("fp32", [value, 1]),
        "N": build.array("int32", 2),
        "S": build.array("fp32", [0, 0]),
    }


def test_another_number_of_ranks_or_another_mesh_fails(build: Any) -> None:
    made = executables_of(build.compiled(PROGRAMS_SOURCE), "reduced", "sm_90", {"N": 2})
    for ranks, mesh, said in ((3, None, "of 4 ranks, not on 3"), (4, "h", "no mesh 'h'")):
        with pytest.raises(Rejection) as caught:
            made.run_on_mesh([programs_given(build, 1)] * ranks, mesh)
        (found,) = caught.value.diagnostics
        assert said in found.message and (found.category, found.phase) == ("distributed", "execute")


def test_a_kernel_that_meets_nobody_runs_on_as_many_ranks_as_there_are(build: Any) -> None:
    made = executables_of(build.compiled(PROGRAMS_SOURCE), "alone", "sm_90")
    ranks = [{"X": build.array("fp32", [rank, 1])} for rank in range(3)]
    assert [written["X"].values.tolist() for written in made.run_on_mesh(ranks)] == [[0, -1], [-1, -1], [-2, -1]]
    assert not made.needs_mesh
