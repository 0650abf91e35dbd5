"""The skeleton of an adapter works as it is, and `smoke` says what the harness sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.cli import main


def test_the_skeleton_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["new-adapter", "skeleton_adapter.py"]) == 0
    assert main(["smoke", "py:skeleton_adapter:make"]) == 0
    printed = capsys.readouterr().out
    assert "my-implementation 0.1, claims language_ir" in printed
    assert "language.verify        answered that it does not support language.verify" in printed


def test_a_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.py"
    path.write_text("precious")
    assert main(["new-adapter", str(path)]) == 2
    assert path.read_text() == "precious"
    assert "File exists" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fake", "code", "words"),
    [
        ("claims_nothing", 1, "nothing was asked, since nothing is claimed"),
        ("hangs", 1, "no answer within 1 s"),
        ("dies_at_start", 1, "| cannot find libacme.so.3"),
        ("sends_text", 1, "not JSON: 'INFO: compiling ...'"),
        (
            "claims_what_it_lacks",
            0,
            "language.parse         answered that it does not support language.parse: the core of language_ir",
        ),
    ],
)
def test_smoke_says_what_the_harness_sees(
    fake_command: Callable[[str], str], capsys: pytest.CaptureFixture[str], fake: str, code: int, words: str
):
    """Of the faults, each of which is waited for, two questions show that the next one is asked all the same."""
    documents = " host_io wsp" if fake in ("hangs", "sends_text") else ""
    assert main(["smoke", f"rpc:{fake_command(fake)}{documents}", "--deadline=1"]) == code
    printed = capsys.readouterr().out
    assert words in printed
    assert not documents or printed.count(words) == 2


def test_smoke_of_nothing(capsys: pytest.CaptureFixture[str]):
    assert main(["smoke", "rpc:no-such-program"]) == 2
    assert capsys.readouterr().err.startswith("error: rpc:no-such-program: no program no-such-program is on PATH; ")
