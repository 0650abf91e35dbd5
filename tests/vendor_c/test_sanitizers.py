"""The native runtime under the sanitizers of the compiler: threads on one runtime, and a sample of the suite.

Defects that no call shows prove that the sanitizers look.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from .conftest import ROOT
from .test_defect_table import ROWS
from .test_library import LIBRARY

PROGRAM = "module m { kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; } }"
RUNTIMES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1",
}
"""The interpreter that loads the library leaks, and would be told so; the program in C is looked at for leaks."""
SAMPLE = ("test_streams.py", "test_events.py", "test_stream_order.py", "test_profiling.py", "test_launches.py")
ONE_OF_MANY = {
    "copy_reads_one_byte_more": "test_copies.py",
    "error_noted_without_the_lock": "test_launches.py",
    "priority_overflows": "test_streams.py",
}
"""Where a defect of a sanitizer shows."""


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", RUNTIMES)
def test_sanitizers_find_nothing_but_what_is_switched_on(
    build: Callable[..., Path], sanitizers: str, tmp_path: Path
) -> None:
    found = runtime_of(sanitizers)
    folder = build(sanitizers)
    assert "done" in threads(folder, sanitizers, tmp_path)
    environment = {**os.environ, **SETTINGS, "LD_PRELOAD": str(found)}
    done = sample(folder, environment, tmp_path, *SAMPLE)
    assert done.returncode == 0, done.stdout[-4000:]
    for row in ROWS:
        if row.get("sanitizer") == sanitizers:
            switched = {**environment, "ACME_DEFECT": row["name"]}
            done = sample(folder, switched, tmp_path, ONE_OF_MANY[row["name"]])
            assert done.returncode == 1, row["name"]
            assert "crash" in done.stdout, row["name"]


def runtime_of(sanitizers: str) -> Path:
    """The sanitizer's runtime, which a process that loads the library has to have from its start."""
    name = RUNTIMES[sanitizers]
    told = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout
    path = Path(told.strip())
    if not path.is_absolute():
        pytest.skip(f"gcc has no {name}: apt-get install libgcc-12-dev")
    return path


def threads(folder: Path, sanitizers: str, scratch: Path) -> str:
    """What `threads.c` prints, built under the same sanitizers."""
    image, source, program = scratch / "digit.fatbin", scratch / "digit.tsr", scratch / "threads"
    source.write_text(PROGRAM, encoding="utf-8")
    compile_image = [sys.executable, "-m", "tessera_reference", "compile", str(source), "-o", str(image)]
    subprocess.run(compile_image, check=True, capture_output=True)
    places = [f"-I{folder / 'include'}", f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}"]
    options = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizers}", "-pthread", *places]
    source_c = Path(__file__).with_name("threads.c")
    subprocess.run(["gcc", *options, str(source_c), "-o", str(program), "-lacme_tessera"], check=True)
    options_of_run = {**SETTINGS, "ASAN_OPTIONS": "detect_leaks=1"}
    command = [str(program), str(image)]
    done = subprocess.run(command, env={**os.environ, **options_of_run}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sample(
    folder: Path, environment: Mapping[str, str], scratch: Path, *files: str
) -> subprocess.CompletedProcess[str]:
    """A run of some files of the suite, stopped at the first case that counts against the library."""
    paths = [f"conformance/runtime/{name}" for name in files]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *paths, f"--impl=cabi:{folder / LIBRARY}"]
    command.append(f"--report-dir={scratch / 'report'}")
    return subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True, check=False)
