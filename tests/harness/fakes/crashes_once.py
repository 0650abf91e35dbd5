"""Dies in its first call after a fresh installation; the file named by CRASH_ONCE remembers that it has."""

import os
import sys
from pathlib import Path

from speaker import converse, result, send


def answer(request: dict) -> None:
    memory = Path(os.environ["CRASH_ONCE"])
    if not memory.exists():
        memory.touch()
        sys.exit(3)
    send(result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}))


converse(answer)
