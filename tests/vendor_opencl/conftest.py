"""The runtime of `examples/vendor_opencl`, built by its own Makefile, where an engine of OpenCL is installed."""

from __future__ import annotations

import ctypes
import ctypes.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

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
