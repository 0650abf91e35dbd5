"""Files that are opened only if they are plain: no link, pipe, device or folder stands in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["opened_plain"]


def opened_plain(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """A plain file, opened without following a link or waiting for a pipe. Raises `OSError`."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return os.fdopen(descriptor, "rb" if flags == os.O_RDONLY else "ab")
