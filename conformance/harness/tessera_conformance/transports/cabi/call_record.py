"""The C function a process was in when it ended: a record in a file that this process and the suite's share.

A byte says whether the function had returned, its name follows.
"""

from __future__ import annotations

import mmap
from pathlib import Path

FILE_NAME = "call"
SIZE = 64
INSIDE, RETURNED = b"\1", b"\2"


def create(folder: Path) -> Path:
    """An empty record in a folder."""
    path = folder / FILE_NAME
    path.write_bytes(bytes(SIZE))
    return path


def opened(path: str) -> mmap.mmap:
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
