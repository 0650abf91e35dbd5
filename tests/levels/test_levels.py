"""The front door of the levels: specializing to inputs, lowering level by level, ranks of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import UnknownFunction
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.execution import (
    LEVELS,
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
from tessera_reference.schedule.execution import Event
from tessera_reference.target_ir.emission.host import NativeLaunch

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
    assert [type(each) for each in launches] == [NativeLaunch]


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
    execute_at("schedule", program(), "f", INPUTS, SM_90, observer=told.append)
    assert {type(each) for each in told} == {Event}
    names: list[str] = []
    execute_at("tile", program(), "f", INPUTS, SM_90, observer=lambda each, _: names.append(each.operation.name))
    assert "tessera.tile.launch" in names
