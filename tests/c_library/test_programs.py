"""Programs in C that use libtessera: handles, memory, threads, the environment, extensions, the table of functions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import PROGRAMS, STRICT, tool

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "c_library"
OPTIONS = {"arithmetic": ("-frounding-math",)}


@pytest.mark.parametrize("name", ["handles", "memory", "threads", "arithmetic", "environment", "extensions"])
def test_the_program_finds_everything_as_expected(compiled: Callable[..., Path], name: str) -> None:
    done = subprocess.run([compiled(name, "gcc", *OPTIONS.get(name, ()))], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_loads_the_library_locally(libtessera: Path, tmp_path: Path) -> None:
    """It is not linked with it, and asks for the table of functions."""
    program = tmp_path / "table"
    include = f"-I{libtessera / 'include'}"
    subprocess.run([tool("gcc"), *STRICT, include, str(PROGRAMS / "table.c"), "-o", str(program), "-ldl"], check=True)
    done = subprocess.run([program, libtessera / "lib/libtessera.so"], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def interpreter_says(compiled: Callable[..., Path], **environment: str) -> tuple[int, str]:
    """The exit code of a program whose library cannot start, and what is on its standard error."""
    done = subprocess.run([compiled("dead")], capture_output=True, text=True, env=environment, timeout=300)
    return done.returncode, done.stderr


def test_a_dead_interpreter_is_not_initialized(compiled: Callable[..., Path]) -> None:
    """Every call says so, and one line says why."""
    code, said = interpreter_says(compiled, TESSERA_PYTHON="/nowhere/python")
    assert code == 0, said
    assert said == "libtessera: TESSERA_PYTHON is /nowhere/python, which cannot be run; expected the path of a Python\n"


def test_a_python_without_the_reference(compiled: Callable[..., Path], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    code, said = interpreter_says(compiled, TESSERA_PYTHON=str(tmp_path / "bare/bin/python"))
    assert code == 0, said
    assert len(said.splitlines()) == 1
    assert "cannot import _cffi_backend (No module named '_cffi_backend'); expected a Python" in said


def test_what_is_no_python(compiled: Callable[..., Path]) -> None:
    """A program that can be run, but is no interpreter near any standard library."""
    code, said = interpreter_says(compiled, TESSERA_PYTHON="/bin/false")
    assert code == 0, said
    assert "libtessera: " in said


def test_the_example_in_rust(libtessera: Path, tmp_path: Path) -> None:
    program = tmp_path / "all_reduce"
    linked = [f"-Lnative={libtessera / 'lib'}", f"-Clink-arg=-Wl,-rpath,{libtessera / 'lib'}"]
    subprocess.run([tool("rustc"), *linked, str(EXAMPLES / "all_reduce.rs"), "-o", str(program)], check=True)
    assert subprocess.run([program], capture_output=True, text=True, timeout=300).stdout == "[11.0, 22.0, 33.0, 44.0]\n"


def test_the_example_in_go(libtessera: Path, tmp_path: Path) -> None:
    go = tool("go", "golang-go")
    environment = {
        "PATH": f"{Path(go).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "PKG_CONFIG_PATH": str(libtessera / "lib/pkgconfig"),
        "CGO_LDFLAGS_ALLOW": "-Wl,-rpath.*",
    }
    program = tmp_path / "all_reduce"
    command = [go, "build", "-o", str(program), str(EXAMPLES / "all_reduce.go")]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    assert subprocess.run([program], capture_output=True, text=True, timeout=300).stdout == "[11 22 33 44]\n"
