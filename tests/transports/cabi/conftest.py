"""C libraries compiled for a test, and sessions with them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

SOURCES = Path(__file__).parent
GCC = shutil.which("gcc")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile one of the sources to a library, with some macros; each once."""
    if GCC is None:
        pytest.skip("needs a C compiler to build the libraries: apt-get install gcc")
    pytest.importorskip("cffi", reason="needs cffi: pip install 'tessera-conformance[cabi]'")
    folder, built = tmp_path_factory.mktemp("libraries"), {}

    def compile_once(source: str, *macros: str) -> Path:
        key = "-".join((source, *macros))
        if key not in built:
            built[key] = folder / f"lib{key.lower()}.so"
            flags = [f"-D{macro}" for macro in macros]
            command = [GCC, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", *flags, "-o", str(built[key])]
            subprocess.run([*command, str(SOURCES / f"{source}.c")], check=True)
        return built[key]

    return compile_once


@pytest.fixture
def opened() -> Iterator[Callable[..., Session]]:
    """A session with a library; closed at the end."""
    sessions: list[Session] = []

    def open_session(library: Path, options: str = "", **settings: Any) -> Session:
        session = Session(locate(f"cabi:{library}{options}"), **settings)
        sessions.append(session)
        return session

    yield open_session
    for session in sessions:
        session.close()
