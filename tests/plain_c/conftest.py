"""The runtime of `examples/plain_c`, built by its own Makefile."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "plain_c"
TOOLS = ("make", "gcc")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The synchronous library, and one whose work waits before it runs."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} to build the library: apt-get install {' '.join(missing)}")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    built = {}
    for name, delay in (("synchronous", 0), ("slow", 3000)):
        folder = tmp_path_factory.mktemp(name)
        subprocess.run(["make", "-s", "-C", str(SOURCES), f"BUILD={folder}", f"DELAY={delay}"], check=True)
        built[name] = folder / "lib" / "libplain.so"
    return built
