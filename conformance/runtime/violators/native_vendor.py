"""The defects of the native runtime of `examples/vendor_c`, called through its C interface.

`defects.toml` lists them, each with the clause that it breaks. The library's own Makefile builds it once; an
environment variable of the process that loads it enables one defect. The reference's compiler makes the images.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from tessera_conformance.strength import Violation
from tessera_conformance.transports import Transport
from tessera_conformance.transports.cabi.transport import CabiTransport
from tessera_conformance.transports.locate import CompilingTransport, DirectTransport, ImplementationCompiler
from tessera_reference.adapter import make

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "examples" / "vendor_c"
BUILD = ROOT / "build" / "vendor_c"
DEFECTS = SOURCES / "defects.toml"

LEVEL = "deterministic"
"""The numerics level that the library declares."""


def missing() -> str:
    """Return the tools that this machine lacks to build the library."""
    tools = [name for name in ("make", os.environ.get("CC", "gcc")) if shutil.which(name) is None]
    return f"no {' and no '.join(tools)} on PATH (apt-get install gcc make)" if tools else ""


@cache
def library() -> Path:
    """Return the library, rebuilt if its sources have changed; processes take turns."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-C", str(SOURCES), f"BUILD={BUILD}", f"CC={os.environ.get('CC', 'gcc')}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return BUILD / "lib" / "libacme_tessera.so"


@cache
def shared_transport() -> Transport:
    """Return the transport to the library: each defect has a process of its own, and all share the images."""
    compiler = ImplementationCompiler("reference", lambda: DirectTransport(make, "reference"))
    return CompilingTransport(CabiTransport(str(library())), compiler)


def broken(name: str, delay: int) -> Callable[[], AbstractContextManager[Transport]]:
    """Return a function that runs the library with a defect; its work waits `delay` microseconds before it runs."""

    @contextmanager
    def running() -> Iterator[Transport]:
        switched = {"ACME_DEFECT": name, **({"ACME_DELAY": str(delay)} if delay else {})}
        transport = shared_transport()
        with mock.patch.dict(os.environ, switched):
            try:
                yield transport
            finally:
                transport.stop()

    return running


def defects() -> list[Violation]:
    """Return the violations of the table; none if the examples are absent."""
    if not DEFECTS.is_file():
        return []
    rows = tomllib.loads(DEFECTS.read_text(encoding="utf-8"))["defect"]
    lacking = missing()
    return [
        Violation(row["name"], row["clause"], row["what"], broken(row["name"], row.get("delay", 0)), LEVEL, lacking)
        for row in rows
        if "sanitizer" not in row and "reading" not in row
    ]


VIOLATIONS = defects()
