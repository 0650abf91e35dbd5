"""Files and streams that are not what they should be: exit code 2, one sentence, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tessera_reference.cli import main

PROGRAM = "module m { func f(A: tensor<2xfp32>) -> tensor<2xfp32> { return A; } }"


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
    (directory / "p.tsr").write_text(PROGRAM)
    command = [sys.executable, "-m", "tessera_reference.cli", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=not streams, text=True, check=False, **streams)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_input_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """In process, for speed: what would be a traceback is an exception here."""
    (tmp_path / "p.tsr").write_text(PROGRAM)
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
