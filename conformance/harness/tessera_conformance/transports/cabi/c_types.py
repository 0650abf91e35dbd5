"""The declarations of a library's functions in the form that cffi loads without reading C.

To read C takes a third of the start of a process that loads a library, so the suite's process does it once for all.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

from tessera_conformance.interface.c_declarations import declarations

FILE_NAME = "c_types.py"


def create(folder: Path, exported: Collection[str]) -> Path:
    """The declarations of the functions of the runtime and of the extensions among `exported`, in a folder."""
    path = folder / FILE_NAME
    path.write_bytes(_read(frozenset(exported)))
    return path


def loaded(path: str) -> Any:
    """The FFI that has the declarations."""
    return run_path(path)["ffi"]


@cache
def _read(exported: frozenset[str]) -> bytes:
    from cffi import FFI  # the process that loads a library does without it

    ffi = FFI()
    ffi.cdef(declarations(exported))
    ffi.set_source("c_types", None)
    with TemporaryDirectory(prefix="tessera-types-") as folder:
        return Path(ffi.compile(folder)).read_bytes()
