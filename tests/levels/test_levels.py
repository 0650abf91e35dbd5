"""The levels behind one interface: machine code, wrong kernels named, and texts of several modules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import UnknownFunction
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.operation import Function, Module
from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels import comparison
from tessera_reference.levels.comparison import Comparison, compare_levels
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
)
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.target_ir.emission import host
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


def test_machine_code_gives_the_same_bits_on_one_rank_and_on_many() -> None:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    (result,) = execute_at("native", program(), "f", INPUTS, SM_90)
    assert result.values.tolist() == RESULT
    inputs = [{"X": fp32([1, 2])}, {"X": fp32([10, 20])}]
    results = execute_on_mesh_at("native", program(), "everywhere", inputs, SM_90)
    assert [result.values.tolist() for (result,) in results] == [[22.0, 44.0]] * 2
    made = executable(for_shapes(program(), program().functions["other"], {"X": (4,)}), "native", SM_90)
    launches = [instruction.operation for instruction in made.functions["other"].body.walk()]
    assert [type(launch) for launch in launches] == [NativeLaunch]


@pytest.mark.parametrize("level", LEVELS)
def test_what_cannot_be_run_is_refused_alike_at_every_level(level: Level) -> None:
    with pytest.raises(UnknownFunction, match="no function 'g'; there is half, f, everywhere, other"):
        execute_at(level, program(), "g", {}, SM_90)
    with pytest.raises(InputMismatch, match="K is 3 in A"):
        execute_at(level, program(), "f", INPUTS | {"B": fp32([[1, 2]])}, SM_90)
    with pytest.raises(InputMismatch, match="input A is missing"):
        execute_at(level, program(), "f", {}, SM_90)


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


def test_machine_code_is_compared_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    assert compared(levels=EXECUTIONS).levels == EXECUTIONS
    (doubling,) = (name for name in kernels() if name.endswith("_2"))
    right = host.run_native

    def run_native(kernel: Function, arguments: Any) -> tuple[Array, ...]:
        results = right(kernel, arguments)
        return (*results[:-1], *changed(results[-1:], 2)) if kernel.name == doubling else results

    monkeypatch.setattr(host, "run_native", run_native)
    actual = compared(Options(fuse=False), EXECUTIONS)
    assert actual.levels == LEVELS
    assert actual.difference is not None
    assert (actual.difference.level, actual.difference.operation) == ("native", f"add in @{doubling}")


def changed(results: Sequence[Array], place: int) -> tuple[Array, ...]:
    """The results, the sign of one element of the first turned."""
    first, *others = results
    values = first.values.copy()
    values.reshape(-1)[place] = -values.reshape(-1)[place]
    return (Array(first.dtype, values), *others)


def kernels() -> list[str]:
    special = comparison.specialized(comparison_program(), "f", COMPARISON_INPUTS)
    tiled = comparison.lower(special, "tile", COMPARISON_SM_90, Options(fuse=False))
    return [name for name, function in tiled.functions.items() if function.device]


SOURCE = """
module m { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A * A; } }
module n { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A + A; } }
"""


def emitted(to: str, target: str) -> str:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    return emit_all(compile_source(SOURCE).modules, to, target_of(target), Options())


def test_ptxas_takes_them_together(tmp_path: Path) -> None:
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed: it is part of the CUDA toolkit")
    (tmp_path / "kernels.ptx").write_text(emitted("ptx", "sm_90"), encoding="utf-8")
    command = [tool, "-arch=sm_90", "-c", "kernels.ptx", "-o", "kernels.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
