"""`tessera-reference` at each level of IR: lower, print, run --at, verify --ir, compare-levels."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera_reference.cli import main
from tessera_reference.commands import run as command
from tessera_reference.ir.diagnostics import Diagnostic, Location, Rejection, Span
from tessera_reference.levels.comparison import Comparison, Difference

PROGRAM = """module m {
  func product(A: tensor<MxKxfp32>, B: tensor<KxNxfp32>) -> tensor<MxNxfp32> { return A @ B; }
  func double(x: tensor<4xfp32>) -> tensor<4xfp32> { return x + x; }
}
"""
LISTINGS = Path(__file__).resolve().parents[2] / "examples" / "collectives" / "listings.mlir"
LEVELS = ("graph", "schedule", "tile", "target")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two programs and three inputs, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.tsr").write_text(PROGRAM)
    (tmp_path / "d.tsr").write_text(PROGRAM.replace(PROGRAM.splitlines()[1], ""))
    np.save("a.npy", np.float32([[1, 2, 3], [4, 5, 6]]))
    np.save("b.npy", np.float32([[1, 0], [0, 1], [1, 1]]))
    np.save("x.npy", np.float32([1, 2, 3, 4]))
    return tmp_path


INPUTS = ("--input", "A=a.npy", "--input", "B=b.npy")
PRODUCT = "r0 tensor<2x2xfp32>\n[[ 4.  5.]\n [10. 11.]]\n"
SHAPES = ("--function", "product", "--shape", "A=2x3", "--shape", "B=3x2")


@pytest.mark.parametrize("level", LEVELS)
def test_a_function_runs_at_every_level(capsys: pytest.CaptureFixture[str], level: str) -> None:
    options = ("--at", level, "--target", "gfx942", "--tile", "16x16x4", "--depth", "3")
    assert main(["run", "p.tsr", "--function", "product", *INPUTS, *options]) == 0
    assert capsys.readouterr().out == PRODUCT


def test_the_trace_of_a_schedule_shows_tiles_in_their_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--at", "schedule", "--tile", "2x2x1", "--depth", "2", "--trace")
    assert main(["run", "p.tsr", "--function", "product", *INPUTS, *options]) == 0
    assert capsys.readouterr().out.splitlines()[:-3] == [
        "nest 0 stage tile [0, 0, 0] in buffer 0",
        "nest 0 stage tile [0, 0, 1] in buffer 1",
        "nest 0 compute tile [0, 0, 0] in buffer 0",
        "nest 0 stage tile [0, 0, 2] in buffer 0",
        "nest 0 compute tile [0, 0, 1] in buffer 1",
        "nest 0 compute tile [0, 0, 2] in buffer 0",
        "nest 0 store tile [0, 0]",
    ]


def test_what_is_lowered_has_a_file_for_every_level(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", "d.tsr", "--to", "target", "--dump-dir", "out/ir"]) == 0
    assert capsys.readouterr().out == ""
    written = {path.name: path.read_text() for path in (files / "out" / "ir").iterdir()}
    assert sorted(written) == [f"m.{level}.mlir" for level in sorted(LEVELS)]
    assert '"tessera.target.kernel"' in written["m.target.mlir"]
    for level in LEVELS:
        assert main(["lower", "d.tsr", "--to", level]) == 0
        assert capsys.readouterr().out == written[f"m.{level}.mlir"]
        assert main(["verify", f"out/ir/m.{level}.mlir", "--ir", level]) == 0
        capsys.readouterr()
        assert main(["run", f"out/ir/m.{level}.mlir", "--input", "x=x.npy"]) == 0
        assert capsys.readouterr().out == "r0 tensor<4xfp32>\n[2. 4. 6. 8.]\n"
    assert main(["run", "out/ir/m.tile.mlir", "--at", "schedule", "--input", "x=x.npy"]) == 2
    assert "expected one of tile, target, native" in capsys.readouterr().err


def test_ir_text_is_printed_formatted_and_lowered_from_its_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", "d.tsr", "--to", "target", "--dump-dir", "ir"]) == 0
    written = {level: Path(f"ir/m.{level}.mlir").read_text() for level in LEVELS}
    for place, level in enumerate(LEVELS):
        assert main(["fmt", f"ir/m.{level}.mlir", "--check"]) == 0
        assert main(["print", f"ir/m.{level}.mlir"]) == 0
        assert capsys.readouterr().out == written[level]
        for lower in LEVELS[place:]:
            assert main(["lower", f"ir/m.{level}.mlir", "--to", lower]) == 0
            assert capsys.readouterr().out == written[lower]
    assert main(["lower", "ir/m.tile.mlir", "--to", "graph"]) == 2
    assert "ir/m.tile.mlir is Tile IR, which nothing raises to Graph IR" in capsys.readouterr().err
    Path("two.mlir").write_text(2 * written["graph"])
    assert main(["verify", "two.mlir"]) == 2
    assert "module: @m is declared twice" in capsys.readouterr().err


def test_a_program_is_printed_in_utf_8_whatever_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    program = 'module m {\n  func f() {\n    assert(true, "été"); // été\n  }\n}\n'
    Path("e.tsr").write_text(program, encoding="utf-8")
    for name in ("fmt", "print"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert main([name, "e.tsr"]) == 0
        assert "été".encode() in stream.buffer.getvalue()  # type: ignore[attr-defined]  # bytes in memory


PLANS = {
    "futures": ["tessera.collective.reduce_scatter(%grad)", "await(%f) after 0", "return(%shard) after 1"],
    "backward": ["matmul(%a_k, %b_k)", "all_reduce(%dw_k_prev)", "await(%ar_fut) after 1", "return(%dw_k, %dw_km1)"],
    "overlap": ["matmul(%x, %y)", "scale after by %eta after 0", "await(%f) after 1", "return(%out) after 2"],
    "pair": ["(%grads)", "await(%f_rs)", "multiply(%shard)", "(%weights_sharded)", "await(%f_ag)", "return(%W)"],
}


@pytest.mark.parametrize("function", PLANS)
def test_the_listings_of_the_collectives_document_have_plans(capsys: pytest.CaptureFixture[str], function: str) -> None:
    """COLL 2.1, 2.3, 9.1 and 9.2, from a file."""
    assert main(["plan", str(LISTINGS), "--function", function]) == 0
    units = capsys.readouterr().out.splitlines()
    assert len(units) == len(PLANS[function])
    for unit, part in zip(units, PLANS[function], strict=True):
        assert part in unit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["listings.mlir"], "which function? use --function"),
        (["listings.mlir", "--function", "pair", "--depth", "0"], "--depth is 0, and at least 1"),
        (["d.tsr", "--ir", "tile"], "d.tsr is Tile IR; plans are made of Graph IR"),
    ],
)
def test_plans_that_cannot_be_made(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    Path("listings.mlir").write_text(LISTINGS.read_text())
    assert main(["lower", "d.tsr", "--to", "tile"]) == 0
    Path("d.tsr").write_text(capsys.readouterr().out)
    assert main(["plan", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [("print", "--level"), ("lower", "--to")])
def test_open_shapes_are_told_or_given(capsys: pytest.CaptureFixture[str], command: tuple[str, str]) -> None:
    name, option = command
    assert main([name, "p.tsr", option, "tile"]) == 2
    assert "@product has extents that are not known" in capsys.readouterr().err
    assert main([name, "p.tsr", option, "tile", *SHAPES]) == 0
    printed = capsys.readouterr().out
    assert "grid = [1, 1, 1]" in printed
    assert "@double" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lower", "p.tsr", "--to", "tile", "--target", "sm_91"), "no target 'sm_91'; there is sm_80, sm_90"),
        (("verify", "p.tsr", "--ir", "tile", "--target", "sm_91"), "no target 'sm_91'"),
        (("lower", "p.tsr", "--tile", "16x16"), "--tile is '16x16', not numbers such as 16x16x16"),
        (("lower", "p.tsr", "--tile", "16x0x16"), "--tile is '16x0x16'"),
        (("lower", "p.tsr", "--tile", "16 x 16 x 16"), "--tile is '16 x 16 x 16'"),
        (("lower", "p.tsr", "--depth", "0"), "--depth is 0, and at least 1"),
        (("lower", "p.tsr", "--shape", "A=2x3"), "which function? use --function; there is m.product, m.double"),
        (("lower", "p.tsr", "--function", "product", "--shape", "A"), "--shape 'A' is not of the form NAME=2x3"),
        (
            ("lower", "p.tsr", "--function", "product", "--shape", "A=2xk"),
            "--shape A is '2xk', not numbers such as 2x3",
        ),
        (("lower", "p.tsr", "--function", "product", "--shape", "C=2x3"), "--shape C: product takes A, B"),
        (("lower", "d.tsr", "--dump-dir", "d.tsr/x"), "d.tsr/x: Not a directory"),
        (("lower", "d.tsr", "--to", "ptx", "--target", "gfx942"), "gfx942 takes no ptx: it is amd's"),
        (("compare-levels", "p.tsr", "none"), "no function 'none'; there is m.product, m.double"),
        (("compare-levels", "p.tsr", "product", "--input", "A@1=a.npy"), "input A@1: every rank is given the same"),
        (("compare-levels", "p.tsr", "product"), "input A is missing: expected tensor<MxKxfp32>"),
    ],
)
def test_bad_options(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["rum"], "error: tessera-reference: unknown value rum; expected one of run, "),
        (["rum"], "; did you mean run?\n"),
        (["lower", "d.tsr", "--to", "ptxx"], "error: --to: unknown value ptxx; expected one of graph, "),
        (["lower"], "error: tessera-reference lower: the following arguments are required: "),
    ],
)
def test_arguments_that_are_misspelt(capsys: pytest.CaptureFixture[str], arguments: list[str], error: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    printed = capsys.readouterr().err
    assert (end.value.code, printed.count("\n")) == (2, 1)
    assert error in printed


def test_a_tool_that_is_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is within the reference, so that the exit code is not that of one beyond it."""
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert main(["lower", "d.tsr", "--to", "ptx"]) == 2
    install = "pip install 'tessera-conformance[llvm]'"
    assert capsys.readouterr().err == f"error: llvmlite: not installed; this needs it; {install}\n"


def test_shapes_that_do_not_fit_are_told_at_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    shapes = ("--function", "product", "--shape", "A=2x3", "--shape", "B=4x2")
    assert main(["lower", "p.tsr", "--to", "tile", *shapes]) == 2
    assert "error[shapes]: " in capsys.readouterr().err


def test_ir_that_does_not_verify_is_shown_with_its_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", "d.tsr", "--to", "tile", "--dump-dir", "."]) == 0
    text = (files / "m.tile.mlir").read_text()
    (files / "bad.mlir").write_text(text.replace("grid = [1, 1, 1], ", ""))
    assert main(["verify", "bad.mlir", "--ir", "tile"]) == 2
    printed = capsys.readouterr().err
    assert "error[tile]: " in printed
    assert "LANG-08.1-04" in printed


@pytest.mark.parametrize("target", ["sm_80", "gfx90a"])
def test_levels_that_agree(capsys: pytest.CaptureFixture[str], target: str) -> None:
    assert main(["compare-levels", "p.tsr", "product", *INPUTS, "--target", target]) == 0
    assert capsys.readouterr().out == f"@product: graph, schedule, tile, target agree on {target}\n"


@pytest.mark.parametrize(
    ("compared", "told"),
    [
        (
            Comparison(
                ("graph", "schedule"),
                Difference("tile", "add in @k", Location("d.tsr", Span(3, 4, 3, 5)), "y", (1,), "00000000", "80000000"),
            ),
            "tile: add in @k at d.tsr:3:4: %y[1] is 80000000, expected 00000000",
        ),
        (
            Comparison(("graph",), failure=Rejection([Diagnostic("tile", "execute", "it stops", Span(1, 1, 1, 2))])),
            "schedule: it stops",
        ),
    ],
)
def test_levels_that_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], compared: Comparison, told: str
) -> None:
    def compare_levels(*arguments: Any) -> Comparison:
        return compared

    monkeypatch.setattr(command, "compare_levels", compare_levels)
    assert main(["compare-levels", "d.tsr", "double", "--input", "x=x.npy"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == told
