"""`tessera-reference build-c-library`: what it makes, and the one line that says what is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tessera_reference.c_library import building
from tessera_reference.c_library.building import CannotBuild, build
from tessera_reference.cli import main

from .conftest import tool

FILES = {
    "include/tessera.h",
    "include/tessera_ext.h",
    "lib/cmake/Tessera/TesseraConfig.cmake",
    "lib/cmake/Tessera/TesseraConfigVersion.cmake",
    "lib/libtessera.so",
    "lib/pkgconfig/tessera.pc",
}


@pytest.mark.slow
def test_what_is_made(libtessera: Path) -> None:
    made = {str(each.relative_to(libtessera)) for each in libtessera.rglob("*") if each.is_file()} - {"lock"}
    assert made == FILES


@pytest.mark.slow
def test_every_declared_function_is_exported(libtessera: Path) -> None:
    """And nothing else but what Python needs to find its module."""
    listed = subprocess.run(
        [tool("nm", "binutils"), "-D", "--defined-only", str(libtessera / "lib/libtessera.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    texts = [(libtessera / "include" / name).read_text(encoding="utf-8") for name in ("tessera.h", "tessera_ext.h")]
    declared = set(re.findall(r"^(?:tessStatus_t|const tessApi\*) (tess\w+)\(", "\n".join(texts), re.MULTILINE))
    assert len(declared) > 100
    assert exported - declared <= {"PyInit__tessera"}
    assert declared <= exported


def refused(captured: pytest.CaptureFixture[str], output: Path, *options: str) -> str:
    """The one line of a build that cannot be made."""
    assert main(["build-c-library", "--output", str(output), *options]) == 2
    out, said = captured.readouterr()
    assert out == ""
    return said.removesuffix("\n")


def test_no_compiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "error: nocc is missing; install it (apt-get install gcc), or name another one with --cc"
    assert refused(capsys, tmp_path, "--cc", "nocc") == said


def test_a_compiler_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it said is told, and no library is left behind."""
    assert refused(capsys, tmp_path, "--cc", "false") == "error: false ended with 1: "
    assert not (tmp_path / "lib/libtessera.so").exists()


def test_no_libpython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that is linked into its program alone."""
    known = sysconfig.get_config_var
    monkeypatch.setattr(building.sysconfig, "get_config_var", lambda name: None if "LIB" in name else known(name))
    monkeypatch.setattr(building.sys, "base_prefix", str(tmp_path))
    with pytest.raises(CannotBuild, match=r"^libpython3.\d+.so is missing, .*apt-get install libpython3.\d+-dev, or"):
        build(tmp_path, sys.executable)


def test_no_python_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(CannotBuild, match=r"Python.h is missing; install it: apt-get install python3.\d+-dev"):
        build(tmp_path, sys.executable)


def test_no_cffi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    with pytest.raises(CannotBuild, match=r"^cffi is missing; install it: pip install 'tessera-conformance\[cabi\]'$"):
        build(tmp_path, sys.executable)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "include").write_text("")
    with pytest.raises(CannotBuild, match=r"include"):
        build(tmp_path, sys.executable)
