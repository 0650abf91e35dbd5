"""The levels behind one interface: specializing, lowering, comparing, ranks, and texts of several modules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import UnknownFunction
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.diagnostics import Diagnostic, Location, Rejection, Span
from tessera_reference.ir.module import Function, Module
from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels import comparison
from tessera_reference.levels.comparison import Comparison, Difference, compare_levels, first_difference
from tessera_reference.levels.emission import emit_all
from tessera_reference.levels.execution import (
    EXECUTIONS,
    LEVELS,
    Execution,
    Level,
    Options,
    executable,
    execute_at,
    execute_on_mesh_at,
    for_shapes,
    lower,
    specialized,
)
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.schedule import execution
from tessera_reference.schedule.execution import Event
from tessera_reference.schedule.nests import Nest
from tessera_reference.target_ir.emission import host
from tessera_reference.target_ir.emission.host import NativeLaunch
from tessera_reference.tile import interpreter

SM_90, GFX942 = target_of("sm_90"), target_of("gfx942")
PROGRAM = """module m {
  mesh g = mesh<axes=[dp], shape=[2]>;
  func half(X: tensor<MxNxfp32>) -> tensor<MxNxfp32> { return X * 0.5; }
  func f(A: tensor<MxKxfp32>, B: tensor<KxNxfp32>, b: fp32 = 1.0) -> tensor<MxNxfp32> { return half(A @ B) + b; }
  func everywhere(X: tensor<Nxfp32>) -> tensor<Nxfp32> { return dist.all_reduce(X + X, axis=dp, op="sum"); }
  func other(X: tensor<?xfp32>) -> tensor<?xfp32> { return -X; }
}
"""


def program() -> Module:
    (module,) = compile_source(PROGRAM).modules
    return module


def fp32(values: Any) -> Array:
    return Array(dtype("fp32"), np.asarray(values, np.float32))


INPUTS = {"A": fp32([[1, 2, 3], [4, 5, 6]]), "B": fp32([[1, 0], [0, 1], [1, 1]])}
RESULT = [[3.0, 3.5], [6.0, 6.5]]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("target", [SM_90, GFX942], ids=lambda target: target.name)
def test_open_shapes_calls_and_defaults(level: Level, target: Any) -> None:
    (result,) = execute_at(level, program(), "f", INPUTS, target, Options(tile=(16, 16, 16), depth=2))
    assert result.values.tolist() == RESULT


def test_machine_code_gives_the_same_bits_on_one_rank_and_on_many() -> None:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    (result,) = execute_at("native", program(), "f", INPUTS, SM_90)
    assert result.values.tolist() == RESULT
    inputs = [{"X": fp32([1, 2])}, {"X": fp32([10, 20])}]
    results = execute_on_mesh_at("native", program(), "everywhere", inputs, SM_90)
    assert [result.values.tolist() for (result,) in results] == [[22.0, 44.0]] * 2
    made = executable(for_shapes(program(), program().functions["other"], {"X": (4,)}), "native", SM_90)
    launches = [each.operation for each in made.functions["other"].body.walk()]
    assert [type(launch) for launch in launches] == [NativeLaunch]


def test_a_specialized_program_has_only_what_runs_and_no_open_dimensions() -> None:
    made = specialized(program(), "f", INPUTS)
    assert sorted(made.functions) == ["f", "half"]
    types = [str(value.type) for function in made.functions.values() for value in function.parameters]
    assert types == ["tensor<2x2xfp32>", "tensor<2x3xfp32>", "tensor<3x2xfp32>", "fp32"]
    shapes = for_shapes(program(), program().functions["other"], {"X": (5,)})
    assert str(shapes.functions["other"].results[0]) == "tensor<5xfp32>"


@pytest.mark.parametrize("level", LEVELS)
def test_what_cannot_be_run_is_refused_alike_at_every_level(level: Level) -> None:
    with pytest.raises(UnknownFunction, match="no function 'g'; there is half, f, everywhere, other"):
        execute_at(level, program(), "g", {}, SM_90)
    with pytest.raises(InputMismatch, match="K is 3 in A"):
        execute_at(level, program(), "f", INPUTS | {"B": fp32([[1, 2]])}, SM_90)
    with pytest.raises(InputMismatch, match="input A is missing"):
        execute_at(level, program(), "f", {}, SM_90)


def devices(module: Module) -> list[str]:
    return sorted({function.device for function in module.functions.values()})


def test_each_level_holds_what_it_is_named_for() -> None:
    special = specialized(program(), "f", INPUTS)
    lowered = {level: lower(special, level, SM_90) for level in LEVELS}
    assert lowered["graph"] is special
    assert [devices(lowered[level]) for level in LEVELS] == [[""], [""], ["", "tile"], ["", "target"]]
    scheduled = [each.operation.name for each in lowered["schedule"].functions["f"].body.walk()]
    assert "tessera.schedule.tile" in scheduled


@pytest.mark.parametrize("level", ["tile", "target"])
def test_open_shapes_have_no_kernels(level: Level) -> None:
    assert lower(program(), "schedule", SM_90).functions
    with pytest.raises(Rejection, match="@half has extents that are not known") as refused:
        lower(program(), level, SM_90)
    assert refused.value.diagnostics[0].phase == "lower"


@pytest.mark.parametrize("level", LEVELS)
def test_each_rank_of_a_mesh_has_inputs_of_its_own(level: Level) -> None:
    inputs = [{"X": fp32([1, 2])}, {"X": fp32([10, 20])}]
    results = execute_on_mesh_at(level, program(), "everywhere", inputs, SM_90)
    assert [result.values.tolist() for (result,) in results] == [[22.0, 44.0]] * 2


def refusal(level: Level, inputs: Sequence[dict[str, Array]]) -> Exception:
    with pytest.raises((Rejection, InputMismatch)) as refused:
        execute_on_mesh_at(level, program(), "everywhere", inputs, SM_90)
    return refused.value


@pytest.mark.parametrize("level", LEVELS)
def test_ranks_that_bring_different_shapes_are_refused(level: Level) -> None:
    refusal(level, [{"X": fp32([1, 2])}, {"X": fp32([1, 2, 3])}])
    assert "one set of inputs for each of the 2 ranks" in str(refusal(level, [{"X": fp32([1])}]))
    refusal(level, [])


def test_the_observer_is_the_levels_own() -> None:
    told: list[Any] = []
    execute_at("schedule", program(), "f", INPUTS, SM_90, events=told.append)
    assert {type(each) for each in told} == {Event}
    names: list[str] = []
    execute_at("tile", program(), "f", INPUTS, SM_90, observer=lambda each, _: names.append(each.operation.name))
    assert "tessera.tile.launch" in names


COMPARISON_PROGRAM = """module m {
  func f(A: tensor<MxKxfp32>, B: tensor<KxNxfp32>, n: int32) -> tensor<MxNxfp32> {
    let S: tensor<MxNxfp32> = op.softmax(A @ B);
    for (i in 0:n) {
      S = S + S;
    }
    return S;
  }
}
"""
COMPARISON_SM_90 = target_of("sm_90")


def comparison_program() -> Module:
    (module,) = compile_source(COMPARISON_PROGRAM, "p.tsr").modules
    return module


def array(name: str, values: Any) -> Array:
    held = dtype(name)
    return Array(held, np.asarray(values, held.carrier))


COMPARISON_INPUTS = {
    "A": array("fp32", [[1, 2, 3], [0.5, -1, 4]]),
    "B": array("fp32", [[1, 0], [0.25, 1], [-1, 2]]),
    "n": array("int32", 3),
}


def compared(options: Options | None = None, levels: Sequence[Execution] = LEVELS) -> Comparison:
    return compare_levels(comparison_program(), "f", COMPARISON_INPUTS, COMPARISON_SM_90, options, levels)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_levels_that_agree(target: str) -> None:
    found = compare_levels(comparison_program(), "f", COMPARISON_INPUTS, target_of(target), Options(depth=3))
    assert found == Comparison(tuple(LEVELS))
    assert found.agree


def test_machine_code_is_compared_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    assert compared(levels=EXECUTIONS).levels == EXECUTIONS
    (doubling,) = (name for name in kernels() if name.endswith("_2"))
    right = host.run_native

    def run_native(kernel: Function, arguments: Any) -> tuple[Array, ...]:
        results = right(kernel, arguments)
        return (*results[:-1], *changed(results[-1:], 2)) if kernel.name == doubling else results

    monkeypatch.setattr(host, "run_native", run_native)
    found = compared(Options(fuse=False), EXECUTIONS)
    assert found.levels == LEVELS
    assert found.difference is not None
    assert (found.difference.level, found.difference.operation) == ("native", f"add in @{doubling}")


def changed(results: Sequence[Array], place: int) -> tuple[Array, ...]:
    """The results, the sign of one element of the first turned."""
    first, *others = results
    values = first.values.copy()
    values.reshape(-1)[place] = -values.reshape(-1)[place]
    return (Array(first.dtype, values), *others)


def wrong_kernels(level: str, kernel: str, run: int, place: int) -> Callable[..., tuple[Array, ...]]:
    """`run_kernel`, which does one run of one kernel of a level wrong."""
    right, runs = interpreter.run_kernel, [0]

    def run_kernel(function: Function, *arguments: Any, **settings: Any) -> tuple[Array, ...]:
        results = right(function, *arguments, **settings)
        if (function.device, function.name) != (level, kernel):
            return results
        runs[0] += 1
        return (*results[:-1], *changed(results[-1:], place)) if (runs[0] - 1) % 3 == run else results

    return run_kernel


def bits(value: float) -> str:
    return np.float32(value).tobytes()[::-1].hex()


@pytest.mark.parametrize("level", ["tile", "target"])
def test_a_wrong_kernel_is_named_with_its_element(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """The loop's third turn doubles S for the third time; its element [1, 0] gets the wrong sign."""
    expected = compared_values()
    (adds,) = (name for name in kernels() if name.endswith("_2"))
    monkeypatch.setattr(interpreter, "run_kernel", wrong_kernels(level, adds, run=2, place=2))
    found = compared(Options(fuse=False))
    assert found.levels == LEVELS[: LEVELS.index(level)]
    difference = found.difference
    assert difference is not None
    assert (difference.level, difference.operation) == (level, f"add in @{adds}")
    assert (difference.location.filename, difference.location.span.line) == ("p.tsr", 5)
    assert difference.index == (1, 0)
    assert difference.expected == bits(expected[1][0])
    assert difference.found == bits(-expected[1][0])
    assert f"{level}: add in @{adds} at p.tsr:5:11: %S" in str(difference)
    assert str(difference).endswith(f"[1, 0] is {bits(-expected[1][0])}, expected {bits(expected[1][0])}")


def test_a_wrong_kernel_may_change_how_often_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second doubling makes the sum negative, and the loop turns until it is no number."""
    source = """module m { func g(x: tensor<2xfp32>) -> tensor<2xfp32> {
      let s: tensor<2xfp32> = x;
      while (op.sum(s, axis=0) < 8.0) { s = s + s; }
      return s;
    } }"""
    (module,) = compile_source(source).modules
    right = interpreter.run_kernel

    def run_kernel(*arguments: Any) -> tuple[Array, ...]:
        results = right(*arguments)
        return (*results[:-1], *changed(results[-1:], 1)) if results[-1].values.tolist() == [4, 8] else results

    monkeypatch.setattr(interpreter, "run_kernel", run_kernel)
    found = compare_levels(module, "g", {"x": array("fp32", [1, 2])}, COMPARISON_SM_90)
    assert found.difference is not None
    assert (found.difference.operation, found.difference.index) == ("add in @tss_kernel_g_1", (1,))
    assert (found.difference.expected, found.difference.found) == (bits(8), bits(-8))


def kernels() -> list[str]:
    special = comparison.specialized(comparison_program(), "f", COMPARISON_INPUTS)
    tiled = comparison.lower(special, "tile", COMPARISON_SM_90, Options(fuse=False))
    return [name for name, function in tiled.functions.items() if function.device]


def compared_values() -> list[list[float]]:
    (result,) = comparison.graph_execution.execute(comparison_program(), "f", COMPARISON_INPUTS)
    return result.values.tolist()


def test_a_wrong_nest_of_schedule_ir_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row operation is wrong, and its difference is told though later ones follow from it."""
    right = execution.execute_nest

    def execute_nest(nest: Nest, *given: Any) -> tuple[Array, ...]:
        results = right(nest, *given)
        return changed(results, 3) if nest.kind == "rows" else results

    monkeypatch.setattr(execution, "execute_nest", execute_nest)
    found = compared()
    assert found.levels == ("graph",)
    assert found.difference is not None
    assert (found.difference.level, found.difference.operation) == ("schedule", "softmax")
    assert found.difference.index == (1, 1)
    assert found.difference.location.span.line == 3


def test_a_level_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Diagnostic("tile", "execute", "it stops", Span(1, 1, 1, 2))

    def run_kernel(*arguments: Any, **settings: Any) -> tuple[Array, ...]:
        raise Rejection([told])

    monkeypatch.setattr(interpreter, "run_kernel", run_kernel)
    found = compared()
    assert found.levels == ("graph", "schedule")
    assert not found.agree
    assert found.failure is not None
    assert found.failure.diagnostics == (told,)


def test_a_host_that_hands_on_something_else_is_named_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No nest is wrong, but the function returns what it was given."""
    right = comparison.executable

    def executable(module: Module, to: Any, *rest: Any) -> Module:
        lowered = right(module, to, *rest)
        if to != "tile":
            return lowered
        function = lowered.functions["g"]
        (given,) = function.parameters
        body = replace(function.body, results=(given,))
        return replace(lowered, functions={**lowered.functions, "g": replace(function, body=body)})

    monkeypatch.setattr(comparison, "executable", executable)
    (module,) = compile_source("module m { func g(x: tensor<2xfp32>) -> tensor<2xfp32> { return -x; } }").modules
    found = compare_levels(module, "g", {"x": array("fp32", [0, 1])}, COMPARISON_SM_90)
    assert found.difference == Difference(
        "tile", "@g", module.functions["g"].location, "r0", (0,), "80000000", "00000000"
    )


@pytest.mark.parametrize(
    ("dtype_name", "expected", "found", "place"),
    [
        ("fp32", [1, 2], [1, 2], None),
        ("fp32", [1, 0.0], [1, -0.0], 1),
        ("fp32", [float("nan"), 2], [float("nan"), 2], None),
        ("int8", [[1, 2], [3, 4]], [[1, 2], [5, 6]], 2),
        ("complex64", [1j, 2], [1j, 2 + 1j], 1),
        ("fp32", [], [], None),
    ],
)
def test_the_first_element_that_differs(dtype_name: str, expected: Any, found: Any, place: int | None) -> None:
    assert first_difference(array(dtype_name, expected), array(dtype_name, found)) == place


def test_a_difference_of_complex_numbers_shows_real_then_imaginary() -> None:
    location = Location("p", Span(1, 2, 1, 3))
    about = Difference("tile", "fft", location, "", (), "", "")
    wrong = comparison._first(about, ["y"], [array("complex64", [1 + 2j])], [array("complex64", [1 - 2j])])
    assert str(wrong) == "tile: fft at p:1:2: %y[0] is 3f800000c0000000, expected 3f80000040000000"


SOURCE = """
module m { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A * A; } }
module n { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A + A; } }
"""


def emitted(to: str, target: str) -> str:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    return emit_all(compile_source(SOURCE).modules, to, target_of(target), Options())


def test_each_kernel_has_a_symbol_of_its_own() -> None:
    text = emitted("llvm", "sm_90")
    assert text.count("target triple") == 1
    assert text.count("define ptx_kernel void @tss_kernel_f_0(") == 1
    assert text.count("define ptx_kernel void @tss_kernel_n_f_0(") == 1


def test_ptxas_takes_them_together(tmp_path: Path) -> None:
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed: it is part of the CUDA toolkit")
    (tmp_path / "kernels.ptx").write_text(emitted("ptx", "sm_90"), encoding="utf-8")
    command = [tool, "-arch=sm_90", "-c", "kernels.ptx", "-o", "kernels.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
