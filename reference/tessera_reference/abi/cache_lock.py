"""A lock between the processes that use one cache directory; needs the file locks of a POSIX system.

Writers hold it together, and whoever removes files holds it alone; the system lets go of it when a process dies.
Readers need none: an entry appears and disappears as a whole.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .plain_files import opened_plain

__all__ = ["alone", "together"]

_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT


@contextmanager
def together(path: Path) -> Iterator[None]:
    """Hold the lock in the file `path` with other writers; waits while somebody has it alone."""
    with opened_plain(path, _APPENDING) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Try to hold the lock alone, without waiting; gives whether that succeeded."""
    with opened_plain(path, _APPENDING) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
