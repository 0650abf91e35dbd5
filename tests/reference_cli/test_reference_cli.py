"""`tessera-reference` as a program: files in, files out, exit codes, no tracebacks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import mpmath
import numpy as np
import pytest

from tessera_reference.cli import main

ROOT = Path(__file__).parents[2]
ATTENTION = ROOT / "examples" / "attention.tsr"
ATTENTION_BF16 = ROOT / "examples" / "attention_bf16.tsr"


def cli(*arguments: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The program in this process, for speed: what would be a traceback is an exception here."""
    command = list(map(str, arguments))
    given, out, err = io.TextIOWrapper(io.BytesIO(stdin.encode())), io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        code = main(command)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def process(*arguments: object, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """The same as its users start it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "reference")}
    done = subprocess.run(
        [sys.executable, "-m", "tessera_reference.cli", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def operands(tmp_path: Path) -> dict[str, np.ndarray]:
    """Q, K and V of shape (5, 64), with values that bf16 holds exactly."""
    random = np.random.Generator(np.random.PCG64(11))
    made = {name: (random.integers(-64, 64, (5, 64)) / 32).astype(np.float32) for name in "QKV"}
    for name, values in made.items():
        np.save(tmp_path / f"{name}.npy", values)
    return made


INPUTS = ("--input", "Q=Q.npy", "--input", "K=K.npy", "--input", "V=V.npy")


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[list[float]]:
    """Attention in 50 digits."""
    with mpmath.workdps(50):
        rows = []
        for query in q.tolist():
            scores = [mpmath.fdot(query, key) / 8 for key in k.tolist()]
            weights = [mpmath.exp(score) for score in scores]
            total = mpmath.fsum(weights)
            rows.append([float(mpmath.fdot(weights, column) / total) for column in v.T.tolist()])
        return rows


def test_attention_is_close_to_the_exact_result(tmp_path: Path, operands: dict[str, np.ndarray]) -> None:
    done = process("run", ATTENTION, *INPUTS, "--output", "O=O.npy", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = np.load(tmp_path / "O.npy")
    assert (found.dtype, found.shape) == (np.float32, (5, 64))
    assert np.abs(found - np.array(attention(**{n.lower(): x for n, x in operands.items()}))).max() < 4e-6


def test_attention_in_bf16_writes_values_and_codes_of_one_result(
    tmp_path: Path, operands: dict[str, np.ndarray]
) -> None:
    assert cli("run", ATTENTION_BF16, *INPUTS, "--output", "O=O.npy", cwd=tmp_path).returncode == 0
    assert cli("run", ATTENTION_BF16, *INPUTS, "--output", "O:bits=C.npy", cwd=tmp_path).returncode == 0
    values, codes = np.load(tmp_path / "O.npy"), np.load(tmp_path / "C.npy")
    assert (values.dtype, codes.dtype) == (np.float32, np.uint16)
    assert ((codes.astype(np.uint32) << 16).view(np.float32) == values).all()
    assert np.abs(values - np.array(attention(**{n.lower(): x for n, x in operands.items()}))).max() < 0.05


def test_one_hot_attention_is_exact(tmp_path: Path) -> None:
    """Keys far apart make each row of weights a unit vector, so that the result is V's rows, to the bit."""
    keys = np.zeros((3, 64), np.float32)
    keys[[0, 1, 2], [0, 1, 2]] = 256.0
    values = np.arange(192, dtype=np.float32).reshape(3, 64) / 7
    for name, array in (("Q", keys[::-1]), ("K", keys), ("V", values)):
        np.save(tmp_path / f"{name}.npy", array)
    assert cli("run", ATTENTION, *INPUTS, "--output", "O=O.npy", cwd=tmp_path).returncode == 0
    assert np.load(tmp_path / "O.npy").tobytes() == values[::-1].tobytes()


def test_codes_go_in_and_out_unchanged(tmp_path: Path) -> None:
    program = "module m { func f(x: tensor<3xfp8_e4m3>, y: fp16) { return -x, y + y; } }"
    np.save(tmp_path / "x.npy", np.array([0x38, 0x80, 0x7E], np.uint8))
    np.save(tmp_path / "y.npy", np.float64(0.5))
    arguments = ("--input", "x:bits=x.npy", "--input", "y=y.npy", "--output", "r0:bits=a.npy", "--output", "r1=b.npy")
    done = cli("run", "-", *arguments, cwd=tmp_path, stdin=program)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "a.npy").tolist() == [0xB8, 0x00, 0xFE]
    assert np.load(tmp_path / "b.npy") == np.float16(1.0)
    assert np.load(tmp_path / "b.npy").dtype == np.float16


def test_without_outputs_results_are_printed(tmp_path: Path) -> None:
    done = process("run", "-", cwd=tmp_path, stdin="module m { func f() { return 1, 2.5; } }")
    assert (done.returncode, done.stdout) == (0, "r0 int32\n1\nr1 fp32\n2.5\n")


def test_verify_and_lower(tmp_path: Path) -> None:
    done = cli("verify", ATTENTION, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{ATTENTION}: ok, 1 function\n")
    done = cli("lower", ATTENTION, "--to", "graph", cwd=tmp_path)
    assert done.returncode == 0
    assert '"tessera.graph.softmax"(%scores) {axis = -1, accum = "fp32"}' in done.stdout


def test_a_warning_does_not_stop(tmp_path: Path) -> None:
    program = "module m { func f(A: tensor<2x2xfp32>) { return A + A @ A; } }"
    done = cli("verify", "-", cwd=tmp_path, stdin=program)
    assert done.returncode == 0
    assert "warning[syntax]" in done.stderr


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("module m { func f( { } }", ["error[syntax]", "--> -:1:20"]),
        ("module m { func f(a: fp32) -> int32 { return a; } }", ["error[types]", "--> -:1:46"]),
        ("module m { func f() { return 1 / 0; } }", ["error[numerics]", "division by zero", "--> -:1:30"]),
        ("module m { func f() {} func g() {} }", ["use --function", "m.f, m.g"]),
        ("module m {}", ["use --function", "none"]),
    ],
)
def test_bad_programs(tmp_path: Path, program: str, words: list[str]) -> None:
    done = (process if "{ func f( {" in program else cli)("run", "-", cwd=tmp_path, stdin=program)
    assert (done.returncode, done.stdout) == (2, "")
    for word in words:
        assert word in done.stderr


def test_a_program_beyond_the_reference_is_not_a_bad_one(tmp_path: Path) -> None:
    done = process(
        "verify", "-", cwd=tmp_path, stdin="module m { func f(x: tensor<4xfp32>) { op.sum(x, axis=0, accum=fp64); } }"
    )
    assert (done.returncode, done.stderr) == (3, "unsupported: -:1:40: op.sum.accum is not supported yet\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "input a is missing: expected tensor<2xbf16>"),
        (("--input", "a=none.npy"), "input a: none.npy: No such file"),
        (("--input", "a=p.tsr"), "input a: p.tsr is no .npy file of numbers"),
        (("--input", "a=text.npy"), "input a: text.npy is no .npy file of numbers"),
        (("--input", "a=long.npy"), "input a: expected tensor<2xbf16>, given tensor<3xbf16>"),
        (("--input", "a=fine.npy"), "input a: 0.1 at [1] is not a value of bf16"),
        (("--input", "a=ints.npy"), "input a: expected tensor<2xbf16>, the file holds int64 of shape [2]"),
        (
            ("--input", "a:bits=good.npy"),
            "input a: expected codes of tensor<2xbf16> as uint16, the file holds float32 of shape [2]",
        ),
        (("--input", "b=good.npy"), "input b is not a parameter; f takes a"),
        (("--input", "a"), "'a' is not of the form NAME=FILE.npy"),
        (("--input", "a=good.npy", "--input", "a=good.npy"), "input a is given twice"),
        (("--input", "a=good.npy", "--output", "x=no/o.npy"), "output no/o.npy: No such file"),
        (("--input", "a=good.npy", "--output", "x=o.npy", "--output", "y=o.npy"), "f returns one value"),
        (("--function", "g"), "no function 'g'; there is m.f"),
    ],
)
def test_bad_inputs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    """In process, for speed: what would be a traceback is an exception here."""
    (tmp_path / "p.tsr").write_text("module m { func f(a: tensor<2xbf16>) { return a; } }")
    for name, array in {
        "good": np.array([1, 2], np.float32),
        "long": np.array([1, 2, 3], np.float32),
        "fine": np.array([1, 0.1]),
        "ints": np.array([1, 2]),
        "text": np.array(["a", "b"]),
    }.items():
        np.save(tmp_path / f"{name}.npy", array)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "p.tsr", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_unreadable_programs(tmp_path: Path) -> None:
    (tmp_path / "bytes.tsr").write_bytes(b"\xff\xfe")
    assert cli("verify", "none.tsr", cwd=tmp_path).returncode == 2
    assert "not UTF-8" in cli("verify", "bytes.tsr", cwd=tmp_path).stderr


def test_the_scale_of_the_example_is_what_it_claims() -> None:
    assert "* 0.125" in ATTENTION.read_text()
    assert Fraction("0.125") ** 2 == Fraction(1, 64)


def test_other_subcommands_are_not_imported() -> None:
    """Most of them take longer to import than `fmt` takes to run."""
    program = (
        "import sys; from tessera_reference.cli import main; "
        "main(['fmt', sys.argv[1]]); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(ATTENTION)], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "tessera_reference.commands.fmt" in imported
    assert imported.isdisjoint({"tessera_reference.commands.compile", "tessera_reference.runtime"})


def test_a_module_that_is_no_subcommand_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lowering-options", "no-such-command"):
        with pytest.raises(SystemExit) as ended:
            main([name])
        assert ended.value.code == 2
        assert "expected one of run, verify, fmt" in capsys.readouterr().err
