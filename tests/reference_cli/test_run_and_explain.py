"""`tessera-reference run` on kernels and meshes, its trace, and `explain`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tessera_reference.cli import main

PROGRAM = """module m {
  mesh g = mesh<axes=[dp], shape=[2]>;
  func total(X: tensor<2xfp32>) -> tensor<2xfp32> { return dist.all_reduce(X, axis=dp, op="sum"); }
  kernel double(A: tensor<2xfp32>, B: tensor<2xfp32>) { B = A + A; }
  func count(n: int32) -> int32 {
    let s: int32 = 0;
    for (i in 0:n) { s = s + i; }
    return s;
  }
}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program and three inputs, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.tsr").write_text(PROGRAM)
    np.save("a.npy", np.float32([1, 2]))
    np.save("b.npy", np.float32([10, 20]))
    np.save("n.npy", np.int32(3))
    return tmp_path


def test_a_kernel_is_shown_by_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.tsr", "--function", "double", "--input", "A=a.npy", "--input", "B=b.npy"]) == 0
    assert capsys.readouterr().out == "A tensor<2xfp32>\n[1. 2.]\nB tensor<2xfp32>\n[2. 4.]\n"


def test_an_output_of_a_kernel_is_named_by_its_parameter() -> None:
    files = ["--input", "A=a.npy", "--input", "B=b.npy", "--output", "B=out.npy"]
    assert main(["run", "p.tsr", "--function", "double", *files]) == 0
    assert np.load("out.npy").tolist() == [2, 4]


def test_each_rank_has_inputs_and_outputs_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--input", "X@0=a.npy", "--input", "X@1=b.npy"]
    assert main(["run", "p.tsr", "--function", "total", *inputs]) == 0
    assert capsys.readouterr().out == "r0@0 tensor<2xfp32>\n[11. 22.]\nr0@1 tensor<2xfp32>\n[11. 22.]\n"
    assert main(["run", "p.tsr", "--function", "total", *inputs, "--output", "r0@1=out.npy"]) == 0
    assert np.load("out.npy").tolist() == [11, 22]


def test_an_input_without_a_rank_is_that_of_every_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.tsr", "--function", "total", "--input", "X=a.npy"]) == 0
    assert capsys.readouterr().out == "r0 tensor<2xfp32>\n[2. 4.]\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "X@2=a.npy"], "error: input X@2: there are ranks 0 to 1"),
        (["--input", "X@1=a.npy", "--input", "X@1=b.npy"], "error: input X@1 is given twice"),
        (["--input", "X@one=a.npy"], "error: 'X@one=a.npy' is not of the form NAME=FILE.npy"),
        (["--input", "X@1=a.npy"], "error: input X of rank 0 is missing: expected tensor<2xfp32>"),
        (["--input", "X=a.npy", "--output", "r0@5=o.npy"], "error: output r0@5: there are ranks 0 to 1"),
    ],
)
def test_refused_ranks(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(["run", "p.tsr", "--function", "total", *options]) == 2
    assert capsys.readouterr().err.strip() == message


def test_the_trace_shows_every_turn_of_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.tsr", "--function", "count", "--input", "n=n.npy", "--trace"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:-2]].count("tessera.graph.add") == 3
    assert lines[-2:] == ["r0 int32", "3"]
    added = [line for line in lines if "graph.add" in line]
    assert added[0].startswith("7:26 tessera.graph.add %")
    assert len({line.split()[-1] for line in added}) == 3, "sums of 0, 1 and 3 have digests of their own"


def test_explain_names_operations_effects_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "p.tsr"]) == 0
    out = capsys.readouterr().out
    assert "mesh @g: mesh<axes=[dp], shape=[2]>, 2 ranks" in out
    assert "kernel @double(A: tensor<2xfp32>, B: tensor<2xfp32>)" in out
    assert "   1 x tessera.graph.all_reduce: " in out
    assert "effects: communication; line 3; " in out


UNTIDY = "module m {\n func f( x:fp32 )->fp32{ // why\n return x+1.0 ;}}"
TIDY = "module m {\n  func f(x: fp32) -> fp32 { // why\n    return x + 1.0;\n  }\n}\n"


def test_fmt_prints_checks_and_writes(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "u.tsr").write_text(UNTIDY)
    assert main(["fmt", "u.tsr"]) == 0
    assert capsys.readouterr().out == TIDY
    assert main(["fmt", "--check", "u.tsr"]) == 1
    assert main(["fmt", "--write", "u.tsr"]) == 0
    assert (files / "u.tsr").read_text() == TIDY
    assert main(["fmt", "--check", "u.tsr"]) == 0
    assert capsys.readouterr().out == ""


def test_fmt_refuses_what_is_no_program(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "u.tsr").write_text("module m {")
    assert main(["fmt", "--write", "u.tsr"]) == 2
    assert "error[syntax]: " in capsys.readouterr().err
    assert (files / "u.tsr").read_text() == "module m {"


def test_bytes_that_are_no_text_are_named_by_their_place(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "u.tsr").write_bytes(b"module m {\n  \xff}")
    assert main(["verify", "u.tsr"]) == 2
    assert "  --> u.tsr:2:3\n" in capsys.readouterr().err


def test_print_shows_the_tree_or_the_ir(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["print", "p.tsr", "--level", "ast"]) == 0
    end = len(PROGRAM.splitlines()[2]) + 1
    assert f"FunctionDecl 3:3-3:{end} name='total'" in capsys.readouterr().out
    assert main(["print", "p.tsr"]) == 0
    assert '"tessera.graph.all_reduce"(%X)' in capsys.readouterr().out
