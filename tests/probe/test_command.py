"""The command line: what it prints and writes, its exit codes, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tessera_conformance.cli import main


def run(*arguments: str) -> int:
    return main(["probe", "--operation", "sum", "--shape", "24", *arguments])


@pytest.mark.parametrize(("factory", "code"), [("make_fold", 0), ("make_silent", 0), ("make_liar", 1)])
def test_exit_codes(factory: str, code: int, fakes_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--impl=py:known_orders:{factory}") == code
    told = capsys.readouterr()
    assert told.out.startswith("known_orders 1: sum 24 fp32 -> fp32\n")
    words = {"make_fold": "agrees", "make_silent": "nothing declared", "make_liar": "differs from the declaration"}
    assert words[factory] in told.out
    assert told.err == ""


def test_files(fakes_directory: Path, tmp_path: Path) -> None:
    options = [f"--json={tmp_path / 'f.json'}", f"--svg={tmp_path / 'f.svg'}", f"--report={tmp_path / 'all'}"]
    assert run("--impl=py:known_orders:make_liar", *options) == 1
    found = json.loads((tmp_path / "f.json").read_text())
    assert (found["verdict"], found["departures"][0]["aspect"]) == ("differs", "order")
    assert found["tree"].startswith("((((")
    assert (tmp_path / "f.svg").read_text().startswith("<svg")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "sum-24-fp32.json",
        "sum-24-fp32.md",
        "sum-24-fp32.svg",
    ]


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("make_crashing", "ZeroDivisionError"),
        ("make_refusing", "not today"),
        ("make_misshapen", "expected fp32 []"),
        ("make_constant", "nothing can be counted"),
        ("make_nan", "nothing can be counted"),
        ("make_constant", "terms 0 to 23 are 1, all others 0: expected 24, found 0"),
        ("make_nan", "expected 24, found nan"),
        ("Mute", "neither numerics.evaluate nor language.execute is supported"),
        ("make_nobody", "no callable"),
    ],
)
def test_what_cannot_be_probed(
    factory: str, words: str, fakes_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"--impl=py:known_orders:{factory}") == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""


def test_a_hang_ends_at_the_deadline(fakes_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--impl=py:known_orders:make_hanging", "--deadline=0.2") == 2
    assert "no answer within 0.2 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--operation=matmul", "--shape=8x8"], "MxKxN"),
        (["--operation=all_reduce", "--shape=8"], "RANKSxELEMENTS"),
        (["--shape=1"], "1 terms; expected 2 to"),
        (["--shape=0"], "shape 0: expected extents of at least 1"),
        (["--shape=4x0"], "shape 4x0: expected extents of at least 1"),
        (["--operation=matmul", "--shape=0x3x2"], "shape 0x3x2: expected extents of at least 1"),
        (["--axis=1"], "axis 1"),
        (["--shape=24x2", "--element=2"], "element [2]"),
    ],
)
def test_questions_that_make_no_sense(
    arguments: list[str], words: str, fakes_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--impl=py:known_orders:make_fold", *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--shape=8y8", "--dtype=int32", "--operation=dot", "--element=x"])
def test_arguments_that_cannot_be_read(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--impl=py:known_orders:make_fold", argument)
    assert caught.value.code == 2
    assert argument.partition("=")[0] in capsys.readouterr().err
