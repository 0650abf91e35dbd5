"""Running programs of a loaded module: named dimensions, grids, errors of the program, caches of lowered text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.fatbin import Fatbin, read
from tessera_reference.abi.status import Failure, Status
from tessera_reference.compilation import executables
from tessera_reference.compilation.executables import executable_from, executables_of, specialise
from tessera_reference.compilation.images import compile_module
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection

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


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("grid", [(1, 1, 1), (256, 1, 1), (1, 70000, 3)])
def test_any_grid_computes_the_whole_result(build: Any, fatbin: Fatbin, target: str, grid: Any) -> None:
    made = executables_of(fatbin, "scaled", target, {"M": 2, "N": 3})
    written = made.run(arguments(build), grid, (128, 0, 1))
    assert {name: each.values.tolist() for name, each in written.items()} == {"Y": [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]]}
    assert not made.needs_mesh


def test_an_extent_of_zero_is_one(build: Any) -> None:
    fatbin = build.compiled("module m { kernel k(X: tensor<Nxfp32>, Y: tensor<2xfp32>, N: int32) { Y = Y + Y; } }")
    given = {"X": build.array("fp32", []), "Y": build.array("fp32", [1, 2]), "N": build.array("int32", 0)}
    assert executables_of(fatbin, "k", "sm_90", {"N": 0}).run(given)["Y"].values.tolist() == [2.0, 4.0]


def test_what_specialise_gives_is_what_runs(build: Any, fatbin: Fatbin) -> None:
    payload = specialise(fatbin, "scaled", "gfx942", {"M": 2, "N": 3})
    assert b"tensor<2x3xfp32>" in payload and b"rocdl." in payload and b"total" not in payload
    entry = fatbin.metadata.kernel("scaled")
    assert entry is not None
    assert executable_from(payload, entry, "gfx942").run(arguments(build))["Y"].values[1, 2] == 3.0
    assert specialise(fatbin, "scaled", "gfx942", {"M": 2, "N": 3}) == payload


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


def test_zeros_in_a_block_are_the_compilers(fatbin: Fatbin) -> None:
    made = executables_of(fatbin, "nothing", "sm_90")
    assert made.entry.block == (128, 1, 1)
    assert made.block_of((0, 2, 0)) == (128, 2, 1)


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


def test_a_scalar_that_is_tf32_comes_as_fp32(build: Any) -> None:
    fatbin = build.compiled("module m { kernel k(X: tensor<2xtf32>, s: tf32) { X = X * s; } }")
    given = {"X": build.array("tf32", [1.5, 2]), "s": build.array("fp32", 3)}
    written = executables_of(fatbin, "k", "sm_90").run(given)
    assert written["X"].dtype.name == "tf32" and written["X"].values.tolist() == [4.5, 6.0]


def test_one_executable_runs_again_and_again_alike(build: Any) -> None:
    """Random streams begin anew with each launch (AMB-RT-77's numbers, whoever draws before)."""
    fatbin = build.compiled(
        "module m { kernel k(X: tensor<9xfp32>) { X = op.uniform(shape=[9], dtype=fp32, seed=3); } }"
    )
    made = executables_of(fatbin, "k", "sm_90")
    given = {"X": build.array("fp32", np.zeros(9))}
    first = made.run(given)["X"].to_bits()
    assert made.run(given)["X"].to_bits() == first != bytes(36)


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

    assert [doubled(each) for each in (*range(executables.MOST_KEPT), 0)] == [
        *range(0, 2 * executables.MOST_KEPT, 2),
        0,
    ]
    assert len(runs) == executables.MOST_KEPT
    assert [doubled(executables.MOST_KEPT), doubled(0)] == [2 * executables.MOST_KEPT, 0]
    assert len(runs) == executables.MOST_KEPT + 2  # the oldest made room
