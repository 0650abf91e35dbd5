"""The completions of a shell: those of bash are asked for words, those of the others are written."""

from __future__ import annotations

import builtins
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tessera_conformance.cli
import tessera_reference.cli

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "tessera-conformance": tessera_conformance.cli.main,
    "tessera-reference": tessera_reference.cli.main,
}
COMPLETED = [
    ("tessera-conformance", "r", {"run", "reproduce", "report"}),
    ("tessera-conformance", "run --lev", {"--level"}),
    ("tessera-conformance", "run --level d", {"deterministic"}),
    ("tessera-conformance", "clauses sh", {"show"}),
    ("tessera-conformance", "new-adapter --language g", {"go"}),
    ("tessera-reference", "ver", {"verify"}),
    ("tessera-reference", "fmt --c", {"--check"}),
    ("tessera-reference", "fmt prog", {"program.tsr"}),
]


@pytest.mark.parametrize(("program", "typed", "completed"), COMPLETED)
def test_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, typed: str, completed: set[str]
) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    bash = shutil.which("bash")
    assert bash is not None, "every test machine has bash"
    (tmp_path / "program.tsr").touch()
    assert PROGRAMS[program](["completion", "bash"]) == 0
    script = capsys.readouterr().out
    words = [program, *typed.split()]
    asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_{program.replace('-', '_')}"
    told = subprocess.run(
        [bash, "-c", f"{script}\n{asked}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(told.stdout.split()) == completed, told.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_the_other_shells_have_a_script(capsys: pytest.CaptureFixture[str], program: str, shell: str) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    assert PROGRAMS[program](["completion", shell]) == 0
    script = capsys.readouterr().out
    assert program in script and "completion" in script


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_the_extra_the_remedy_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    imported = builtins.__import__

    def without_shtab(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "shtab":
            raise ImportError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_shtab)
    assert PROGRAMS[program](["completion", "bash"]) == 2
    assert "pip install 'tessera-conformance[completion]'" in capsys.readouterr().err
