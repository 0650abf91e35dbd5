"""The native runtime of `examples/vendor_c`, built by its own Makefile."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.chapters.runtime.violators.native_vendor import library

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "vendor_c"
TOOLS = ("make", "gcc")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a build, under sanitizers where some are named."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} to build the library: apt-get install {' '.join(missing)}")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    built: dict[str, Path] = {}

    def build_once(sanitizers: str = "") -> Path:
        if not sanitizers:
            return library().parents[1]  # that of the violators
        if sanitizers not in built:
            folder = tmp_path_factory.mktemp("vendor-c")
            options = [f"BUILD={folder}", f"SANITIZE={sanitizers}", "CFLAGS=-O1 -g1"]
            subprocess.run(["make", "-s", "-C", str(SOURCES), *options], check=True)
            built[sanitizers] = folder
        return built[sanitizers]

    return build_once
