"""Tells its process in a file, and takes a while for every answer."""

import os
import sys
import time
from pathlib import Path

from speaker import converse, result, send


def answer(request: dict) -> None:
    Path(sys.argv[1], f"{os.getpid()}.pids").write_text(str(os.getpid()))
    time.sleep(float(sys.argv[2]))
    send(result(request, {"returned": {"outputs": []}}))


converse(answer)
