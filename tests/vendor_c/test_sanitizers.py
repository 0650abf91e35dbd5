"""The native runtime under the sanitizers of the compiler: threads on one runtime, and a sample of the suite.

Defects that no call shows prove that the sanitizers look.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tessera_reference.compilation.compiler import Compiler

from .conftest import ROOT
from .test_defect_table import ROWS
from .test_library import LIBRARY

THREADS = Path(__file__).with_name("threads.c")
PROGRAM = "module m { kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; } }"
RUNTIMES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1",
}
"""The interpreter that loads the library leaks, and would be told so; the program in C is looked at for leaks."""
SAMPLE = {
    "thread": ("test_streams.py", "test_events.py"),
    "address,undefined": ("test_streams.py", "test_events.py", "test_kernel_arguments.py"),
}
"""Files of the chapter runtime: arguments are read in one thread."""


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", RUNTIMES)
def test_sanitizers_find_nothing_but_what_is_switched_on(
    build: Callable[..., Path], sanitizers: str, tmp_path: Path
) -> None:
    found, folder = runtime_of(sanitizers), build(sanitizers)
    program, image = threads(folder, sanitizers, tmp_path)
    quiet = run(program, image)
    assert quiet.returncode == 0, quiet.stdout + quiet.stderr
    assert "done" in quiet.stdout
    for row in ROWS:
        if row.get("sanitizer") == sanitizers:
            noticed = run(program, image, ACME_DEFECT=row["name"])
            assert noticed.returncode != 0, row["name"]
            assert "Sanitizer" in noticed.stderr or "runtime error" in noticed.stderr, noticed.stderr
    done = sample(folder, SAMPLE[sanitizers], {**SETTINGS, "LD_PRELOAD": str(found)}, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]


def runtime_of(sanitizers: str) -> Path:
    """The sanitizer's runtime, which a process that loads the library has to have from its start."""
    name = RUNTIMES[sanitizers]
    told = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout
    path = Path(told.strip())
    if not path.is_absolute():
        pytest.skip(f"gcc has no {name}: apt-get install libgcc-12-dev")
    return path


def threads(folder: Path, sanitizers: str, scratch: Path) -> tuple[Path, Path]:
    """The program `threads.c`, built under the same sanitizers, and the image that it takes."""
    image, program = scratch / "digit.fatbin", scratch / "threads"
    image.write_bytes(Compiler().image(PROGRAM, ["sm_90"]))
    places = [f"-I{folder / 'include'}", f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}"]
    options = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizers}", "-pthread", *places]
    options += ["-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *options, str(THREADS), "-o", str(program), "-lacme_tessera"], check=True)
    return program, image


def run(program: Path, image: Path, **switched: str) -> subprocess.CompletedProcess[str]:
    """The program's end, whatever it is; here memory that is lost counts, too."""
    environment = {**os.environ, **SETTINGS, "ASAN_OPTIONS": "detect_leaks=1", **switched}
    command = [str(program), str(image)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def sample(
    folder: Path, files: Sequence[str], loading: Mapping[str, str], scratch: Path
) -> subprocess.CompletedProcess[str]:
    """A run of some files of the suite, stopped at the first case that counts against the library.

    Its environment has the sanitizer in the process that loads the library alone: that of the suite would be slower.
    """
    paths = [f"conformance/runtime/{name}" for name in files]
    set_there = shlex.join(["env", *(f"{name}={value}" for name, value in loading.items())])
    served = f"{set_there} {sys.executable} -m tessera_conformance serve cabi:{folder / LIBRARY}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", *paths, f"--impl=rpc:{served}", "--compiler=reference"]
    command += [f"--report-dir={scratch / 'report'}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
