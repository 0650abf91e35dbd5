"""`tessera-reference` as a program: run, explain, fmt, serve, files in and out, exit codes, no tracebacks."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from tessera_conformance.protocol import Hello, Rejected, Returned
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate
from tessera_reference.cli import main

ROOT = Path(__file__).parents[2]
ATTENTION = ROOT / "examples" / "attention.tsr"


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


def test_other_subcommands_are_not_imported() -> None:
    """Most of them take longer to import than `fmt` takes to run."""
    program = (
        "import sys; from tessera_reference.cli import main; "
        "main(['fmt', sys.argv[1]]); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(ATTENTION)], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "tessera_reference.commands.check" in imported
    assert imported.isdisjoint({"tessera_reference.commands.images", "tessera_reference.runtime"})


def test_inspect_starts_without_the_compiler() -> None:
    program = (
        "import sys; from tessera_reference.cli import main; "
        "main(['inspect', '/dev/null']); print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "the size of the image is 0" in done.stderr
    imported = set(done.stdout.split())
    assert imported.isdisjoint({"tessera_reference.compilation", "tessera_reference.kernel_machine"})


def test_a_module_that_is_no_subcommand_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lowering-options", "no-such-command"):
        with pytest.raises(SystemExit) as ended:
            main([name])
        assert ended.value.code == 2
        assert "expected one of run, verify, fmt" in capsys.readouterr().err


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


EXPECTED = [
    ([11, 22], 0, "r0@1: the bits of mine.npy are those of the reference\n"),
    ([11, 23], 1, "r0@1[1]: mine.npy has 23.0 (41b80000), expected 22.0 (41b00000); 1 of 2 elements differ\n"),
    ([11], 2, ""),
]


@pytest.mark.parametrize(("numbers", "code", "said"), EXPECTED)
def test_results_of_another_are_compared_and_values_written(capsys, numbers, code, said) -> None:
    np.save("mine.npy", np.float32(numbers))
    given = ["--input", "X@0=a.npy", "--input", "X@1=b.npy", "--expect", "r0@1=mine.npy", "--values", "values"]
    assert main(["run", "p.tsr", "--function", "total", *given]) == code
    assert capsys.readouterr().out == said
    assert [np.load(path).tolist() for path in sorted(Path("values").glob("*@1.npy"))] == [[11, 22]]


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


FILES_PROGRAM = "module m { func f(A: tensor<2xfp32>) -> tensor<2xfp32> { return A; } }"


def header(text: str) -> bytes:
    """A version 1 .npy file that is only a header."""
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()


BROKEN = {
    "empty": b"",
    "zip": b"PK\x03\x04garbage",
    "huge-shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000000000000000000, 3), }"),
    "cut-header": header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,"),
    "cut-data": header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + b"abc",
    "text": b"1.0 2.0\n",
}


def run(directory: Path, *arguments: str, **streams: object) -> subprocess.CompletedProcess[str]:
    (directory / "p.tsr").write_text(FILES_PROGRAM)
    command = [sys.executable, "-m", "tessera_reference.cli", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=not streams, text=True, check=False, **streams)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_input_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """In process, for speed: what would be a traceback is an exception here."""
    (tmp_path / "p.tsr").write_text(FILES_PROGRAM)
    (tmp_path / "a.npy").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "p.tsr", "--input", "A=a.npy"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1, told
    assert told.startswith("error: input A: a.npy ")


def test_a_wrong_dtype_names_what_was_expected_and_given(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 1), np.int32))
    done = run(tmp_path, "run", "p.tsr", "--input", "A=a.npy")
    assert done.stderr == "error: input A: expected tensor<2xfp32>, the file holds int32 of shape [3, 1]\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_a_full_disk(tmp_path: Path) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = run(tmp_path, "lower", "p.tsr", stdout=full, stderr=subprocess.PIPE, env=buffered)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "standard output" in done.stderr


DOUBLE = "module m { func f(A: tensor<2xbf16>) -> tensor<2xbf16> { return A + A; } }"
ONE_TWO = Tensor.from_words("bf16", (2,), [0x3F80, 0x4000])


def test_serve_answers_as_in_process():
    direct = Session(locate("reference"))
    served = Session(locate(f"rpc:{sys.executable} -m tessera_reference.cli serve"))
    try:
        assert isinstance(served.open(), Hello)
        assert served.open() == direct.open()
        requests = [
            ("language.execute", {"source": DOUBLE, "function": "f", "inputs": {"A": ONE_TWO}}),
            ("language.execute", {"source": DOUBLE, "function": "g", "inputs": {}}),
            ("language.parse", {"source": "module m {"}),
            ("language.lower", {"source": DOUBLE, "to": "graph"}),
            ("language.compile", {"source": DOUBLE}),
        ]
        answers = [served.call(*request) for request in requests]
        assert answers == [direct.call(*request) for request in requests]
        assert answers[0] == Returned({"outputs": [Tensor.from_words("bf16", (2,), [0x4000, 0x4080])]})
        assert isinstance(answers[1], Rejected)
    finally:
        served.close()


def test_a_large_tensor_crosses_as_a_file():
    served = Session(locate(f"rpc:{sys.executable} -m tessera_reference.cli serve"))
    large = Tensor.from_words("bf16", (65536,), [0x3F80] * 65536)
    source = DOUBLE.replace("2xbf16", "65536xbf16")
    try:
        answer = served.call("language.execute", {"source": source, "function": "f", "inputs": {"A": large}})
        assert answer == Returned({"outputs": [Tensor.from_words("bf16", (65536,), [0x4000] * 65536)]})
    finally:
        served.close()


HOSTILE = {
    "values": ("[", "[],", 12_000_000, "0]"),
    "objects": ("[", '{"a":0},', 3_000_000, "0]"),
    "a wide text": ('{"a": "\U0001f600', "x", 80_000_000, '"}'),
    "a long text": ("", "x", 80_000_000, ""),
    "lines": ("", "\n", 80_000_000, ""),
    "signs": ("", ";", 1_000_000, ""),
    "nested": ("", "[", 100_000, ""),
}
"""The beginning of a text, what is repeated in it how often, and its end."""


@pytest.mark.sampled(3)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak memory of a program")
@pytest.mark.slow
@pytest.mark.parametrize("content", HOSTILE)
def test_a_hostile_file_is_an_error_within_bounds(tmp_path: Path, content: str) -> None:
    """Each command that reads a file of another refuses it in a sentence, within 512 MiB and seconds."""
    path = tmp_path / "hostile.json"
    start, repeated, count, end = HOSTILE[content]
    path.write_text(start + repeated * count + end, encoding="utf-8")
    for words in ("wsp inspect", "wsp explain", "explain", "verify"):
        done = subprocess.run(
            [sys.executable, "-c", BOUNDED, *words.split(), str(path)], capture_output=True, text=True
        )
        code, error = done.returncode, done.stderr
        assert (code, error.count("Traceback"), error.startswith("error")) == (2, 0, True), (words, error[-500:])


BOUNDED = """
import re, sys, time
from pathlib import Path
from tessera_reference.cli import main
code = main(sys.argv[1:])
peak = int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1])
sys.exit(code if peak < 512 << 10 and time.process_time() < 10 else f"{peak} kB, {time.process_time()} s")
"""
