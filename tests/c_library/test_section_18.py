"""Section 18's program, as it is printed, against libtessera: compilers, ways to link, places, memcheck (RT-18-01)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.locations import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.source import digest

from .conftest import PROGRAMS, Sample, flags, tool

pytestmark = pytest.mark.slow

SOURCE = PROGRAMS / "section_18.c"
CMAKE = f"""cmake_minimum_required(VERSION 3.13)
project(sample C)
find_package(Tessera 1.0 REQUIRED)
add_executable(sample "{SOURCE}")
target_link_libraries(sample PRIVATE Tessera::tessera)
"""


def output_of(command: list[str], **options: object) -> bytes:
    """What a command writes to its standard output, where it succeeds and says nothing else."""
    done = subprocess.run(command, capture_output=True, timeout=900, **options)  # type: ignore[call-overload]
    assert (done.returncode, done.stderr) == (0, b"")
    return bytes(done.stdout)


def test_the_program_is_the_printed_one() -> None:
    """Between the two lines of dashes stand the lines whose digest the clause has."""
    lines = SOURCE.read_text(encoding="utf-8").split("/* -------- */\n")[1].splitlines()
    assert digest(lines) == load_registry(clauses_directory()).clause("RT-18-01").source


def test_the_program_gives_the_right_bits(compiled: Callable[..., Path], sample: Sample) -> None:
    """From the root of the file system and without any environment variable."""
    command = [str(compiled("section_18")), str(sample.image), str(sample.inputs)]
    assert output_of(command, cwd="/", env={}) == sample.output


def test_the_program_runs_in_an_environment_for_another_python(
    compiled: Callable[..., Path], sample: Sample, tmp_path: Path
) -> None:
    """Variables and modules that would mislead an interpreter do not reach this one; clang compiled it."""
    (tmp_path / "numpy.py").write_text("raise SystemExit('the wrong numpy')")
    misleading = {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "nowhere", "LC_ALL": "none"}
    command = [str(compiled("section_18", "clang")), str(sample.image), str(sample.inputs)]
    assert output_of(command, cwd=tmp_path, env=os.environ | misleading) == sample.output


def test_a_library_that_was_moved_is_found_and_finds_its_python(
    libtessera: Path, sample: Sample, tmp_path: Path
) -> None:
    """By pkg-config and by CMake, with which the program is linked here."""
    cmake, moved = tool("cmake"), tmp_path / "moved"
    shutil.copytree(libtessera, moved)
    assert f"-L{moved}/lib/pkgconfig/../../lib" in flags(moved)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    build = tmp_path / "build"
    configured = [cmake, "-S", str(tmp_path), "-B", str(build), f"-DCMAKE_PREFIX_PATH={moved}"]
    subprocess.run(configured, check=True, capture_output=True)
    subprocess.run([cmake, "--build", str(build)], check=True, capture_output=True)
    assert output_of([str(build / "sample"), str(sample.image), str(sample.inputs)], env={}) == sample.output


def test_memcheck_finds_no_error(compiled: Callable[..., Path], sum_sample: Sample) -> None:
    """The suppressions say why what they hide is no error of ours. No code here changes while it runs."""
    suppressions = Path(__file__).parent / "valgrind.supp"
    options = ["--quiet", "--error-exitcode=9", "--leak-check=no", "--keep-stacktraces=none"]
    options += ["--smc-check=none", f"--suppressions={suppressions}"]
    command = [tool("valgrind"), *options, str(compiled("section_18")), str(sum_sample.image), str(sum_sample.inputs)]
    assert output_of(command, env={"OPENBLAS_NUM_THREADS": "1", "PATH": os.defpath}) == sum_sample.output
