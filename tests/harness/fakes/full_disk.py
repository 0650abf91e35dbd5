"""A pytest plugin under which the disk is full from some moment on, and the implementations to name these moments."""

from __future__ import annotations

import errno
import os
from typing import Any

from echo import Echo

start = plan = observation = finish = Echo


def pytest_configure(config: Any) -> None:
    from tessera_conformance.reports.journal import JournalWriter

    moment = config.option.impl.rpartition(":")[2]

    def full(self: JournalWriter, *arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "report.jsonl")

    setattr(JournalWriter, {"start": "__init__"}.get(moment, moment), full)
