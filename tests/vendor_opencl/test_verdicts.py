"""The runtime on OpenCL of `examples/vendor_opencl` against the suite, on one device and on four."""

from __future__ import annotations

import ctypes
import ctypes.util
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "vendor_opencl"
PACKAGES = "apt-get install gcc make ocl-icd-opencl-dev opencl-headers pocl-opencl-icd"


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The library with the checks of its own, or without (0)."""
    lacking = missing()
    if lacking:
        pytest.skip(f"needs {lacking}: {PACKAGES}")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    built: dict[int, Path] = {}

    def build_once(checks: int = 1) -> Path:
        if checks not in built:
            folder = tmp_path_factory.mktemp("vendor-opencl")
            options = [f"BUILD={folder}", f"CHECKS={checks}"]
            subprocess.run(["make", "-s", "-C", str(SOURCES), *options], check=True)
            built[checks] = folder / "lib" / "libtessera_opencl.so"
        return built[checks]

    return build_once


def missing() -> str:
    """Return the missing package; an empty text if an engine has a device."""
    for tool in ("gcc", "make"):
        if shutil.which(tool) is None:
            return tool
    if not Path("/usr/include/CL/cl.h").is_file():
        return "the headers of OpenCL"
    name = ctypes.util.find_library("OpenCL")
    if name is None:
        return "the loader of OpenCL"
    count = ctypes.c_uint(0)
    try:
        status = ctypes.CDLL(name).clGetPlatformIDs(0, None, ctypes.byref(count))
    except OSError as error:
        return f"a loader of OpenCL that can be loaded ({error})"
    return "" if status == 0 and count.value else "an engine of OpenCL"


FILES = [
    f"conformance/runtime/test_{name}.py" for name in ("copies", "events_of_meshes", "launches", "collective_results")
]
"""A sixteenth of what the report is of: `reports/implementations/pocl.md`."""


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(("devices", "passes"), [(1, 90), (4, 200)])
def test_nothing_of_the_files_counts_against_it(
    build: Callable[..., Path], run_suite: Callable[..., Any], tmp_path: Path, devices: int, passes: int
) -> None:
    implementation = f"cabi:{build()},description={SOURCES / 'description.toml'}"
    environment = {"POCL_DEVICES": " ".join(["pthread"] * devices), "POCL_CACHE_DIR": str(tmp_path / "cache")}
    done = run_suite(*FILES, f"--impl={implementation}", environment=environment)
    assert done.exit_code == 0, done.output[-4000:]
    lines = [line for line in done.report.observations if line["disposition"] != "other_reading"]
    verdicts = Counter(line["verdict"] for line in lines)
    assert set(verdicts) <= {"pass", "unsupported", "inapplicable"}
    assert verdicts["pass"] >= passes
