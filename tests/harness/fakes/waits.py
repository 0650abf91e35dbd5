"""Tells its process in a file of a folder, and answers once the folder has a file `go`."""

import os
import sys
import time
from pathlib import Path

from speaker import converse, result, send


def answer(request: dict) -> None:
    Path(sys.argv[1], f"{os.getpid()}.pids").write_text(str(os.getpid()))
    while not Path(sys.argv[1], "go").exists():
        time.sleep(0.02)
    send(result(request, {"returned": {"outputs": []}}))


converse(answer)
