"""A loaded C library: declarations that cffi loads without reading C, functions, and a record of the one that runs."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

from tessera_conformance.adapter import MalformedAnswer
from tessera_conformance.interface.published import SESSION, CFunction, c_functions, declarations

# The C function a process was in when it ended: a record in a file that this process and the suite's share.
#
# A byte says whether the function had returned, its name follows.


RECORD_NAME = "call"
SIZE = 64
INSIDE, RETURNED = b"\1", b"\2"


def create_record(folder: Path) -> Path:
    """An empty record in a folder."""
    path = folder / RECORD_NAME
    path.write_bytes(bytes(SIZE))
    return path


def opened_record(path: str) -> mmap.mmap:
    """The record for writing."""
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), SIZE)


def described(path: Path) -> str:
    """` in tessLaunch`, ` after tessLaunch had returned`, or nothing where no function was called."""
    try:
        record = path.read_bytes()
    except OSError:
        return ""
    name = record[1:].partition(b"\0")[0].decode(errors="replace")
    if record[:1] == INSIDE:
        return f" in {name}"
    return f" after {name} had returned" if record[:1] == RETURNED else ""


# A loaded C library: its declarations in a form that cffi loads without reading C, and its functions.
#
# Reading C takes a third of the start of a process that loads a library, so the process of the suite does it once.


# The declarations of a library's functions in the form that cffi loads without reading C.
#
# To read C takes a third of the start of a process that loads a library, so the suite's process does it once for all.


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


# A loaded C library: which functions it has, in its table (`tessGetApi`) or exported, and what a call gives.
#
# In the process that `child.py` starts, never in that of the suite: whatever the library does ends this process only.


TABLE = "tessGetApi"
FIRST_CAPACITY = 1 << 16
"""Bytes of a buffer, where the library says what it needs."""
LARGEST_ANSWER = 256 << 20


class Library:
    """The functions of the library at `path`, by name, with the types of a file of `c_types`.

    Raises `OSError` where it cannot be loaded.
    """

    def __init__(self, path: str, types: str, record: mmap.mmap) -> None:
        exported = ctypes.CDLL(path)
        self.functions: Mapping[str, CFunction] = {c_function.name: c_function for c_function in c_functions().values()}
        extensions = [function.name for function in self.functions.values() if function.extension]
        names = {name for name in (*extensions, *SESSION) if hasattr(exported, name)}
        self.ffi = loaded(types)
        self._library = self.ffi.dlopen(path)
        self._record = record
        self._table = self._library.tessGetApi() if hasattr(exported, TABLE) else self.ffi.NULL
        runtime = [function.name for function in self.functions.values() if not function.extension]
        if self._table:
            own = {name: self._from_table(name) for name in runtime}
        else:
            own = {name: getattr(self._library, name) for name in runtime if hasattr(exported, name)}
        self._callables = {name: function for name, function in own.items() if function is not None}
        self._callables |= {name: getattr(self._library, name) for name in names}
        self._records = {name: INSIDE + name.encode().ljust(SIZE - 1, b"\0") for name in self._callables}
        self._buffer = self.ffi.new("char[]", FIRST_CAPACITY)

    def has(self, name: str) -> bool:
        """True if the library has a function."""
        return name in self._callables

    def _from_table(self, name: str) -> Callable[..., int] | None:
        """An entry of the table; one that is beyond its size, or NULL, is not there."""
        offset = self.ffi.offsetof("tessApi", name)
        if offset + self.ffi.sizeof("void*") > self._table.struct_size:
            return None
        entry = getattr(self._table, name)
        return None if entry == self.ffi.NULL else entry

    def call(self, name: str, arguments: Sequence[Any]) -> int:
        """The status that a function gives; the record says that it is inside, should the process end there."""
        function = self._callables[name]
        self._record[:SIZE] = self._records[name]
        status = function(*arguments)
        self._record[:1] = RETURNED
        return status

    def call_for_bytes(self, name: str, arguments: Sequence[Any]) -> tuple[int, bytes]:
        """The status and what a function writes through `out, capacity, needed`, asked again with as much as it needs.

        Raises `MalformedAnswer`: it needs more each time, or more than any answer may have.
        """
        buffer, capacity = self._buffer, FIRST_CAPACITY
        needed = self.ffi.new("size_t*")
        for _ in range(4):
            status = self.call(name, (*arguments, buffer, capacity, needed))
            if status != 0:
                return status, b""
            if needed[0] <= capacity:
                return status, bytes(self.ffi.buffer(buffer, needed[0]))
            if needed[0] > LARGEST_ANSWER:
                raise MalformedAnswer(
                    f"{name} says that it needs {needed[0]} bytes; an answer has {LARGEST_ANSWER} at most"
                )
            capacity = needed[0]
            buffer = self.ffi.new("char[]", capacity)
        raise MalformedAnswer(f"{name} needed more than {capacity} bytes, and more again when it was given them")

    def call_for_text(self, name: str, arguments: Sequence[Any]) -> tuple[int, str]:
        """The same of a text, which ends with a NUL."""
        status, data = self.call_for_bytes(name, arguments)
        return status, data.partition(b"\0")[0].decode(errors="replace")
