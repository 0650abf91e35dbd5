"""Kernels in which ranks meet: run on every rank of the module's mesh."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.compilation.executables import executables_of
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.types import Mesh

SOURCE = """module m {
  mesh g = mesh<axes=[dp, tp], shape=[2, 2]>;
  kernel reduced(X: tensor<Nxfp32>, N: int32, S: tensor<Nxfp32>) {
    S = dist.all_reduce(X + X, axis=tp, op="sum");
  }
  kernel alone(X: tensor<2xfp32>) { X = -X; }
}
"""


def given(build: Any, value: float) -> dict[str, Any]:
    return {
        "X": build.array("fp32", [value, 1]),
        "N": build.array("int32", 2),
        "S": build.array("fp32", [0, 0]),
    }


def test_every_rank_has_the_sum_of_its_group(build: Any) -> None:
    made = executables_of(build.compiled(SOURCE), "reduced", "sm_90", {"N": 2})
    assert made.needs_mesh
    assert made.meshes == {"g": Mesh(("dp", "tp"), (2, 2))}
    ranks = [given(build, value) for value in (1, 10, 100, 1000)]
    sums = [written["S"].values.tolist() for written in made.run_on_mesh(ranks)]
    assert sums == [[22, 4], [22, 4], [2200, 4], [2200, 4]]
    assert [list(written) for written in made.run_on_mesh(ranks, "g")] == [["S"]] * 4
    assert made.run(ranks[1])["S"].values.tolist() == [40, 4]


def test_another_number_of_ranks_or_another_mesh_fails(build: Any) -> None:
    made = executables_of(build.compiled(SOURCE), "reduced", "sm_90", {"N": 2})
    for ranks, mesh, said in ((3, None, "of 4 ranks, not on 3"), (4, "h", "no mesh 'h'")):
        with pytest.raises(Rejection) as caught:
            made.run_on_mesh([given(build, 1)] * ranks, mesh)
        (found,) = caught.value.diagnostics
        assert said in found.message and (found.category, found.phase) == ("distributed", "execute")


def test_a_kernel_that_meets_nobody_runs_on_as_many_ranks_as_there_are(build: Any) -> None:
    made = executables_of(build.compiled(SOURCE), "alone", "sm_90")
    ranks = [{"X": build.array("fp32", [rank, 1])} for rank in range(3)]
    assert [written["X"].values.tolist() for written in made.run_on_mesh(ranks)] == [[0, -1], [-1, -1], [-2, -1]]
    assert not made.needs_mesh
