"""Closes standard output in the middle of a call and lives on."""

import os
import time

from speaker import converse


def answer(request: dict) -> None:
    os.close(1)
    time.sleep(3600)


converse(answer)
