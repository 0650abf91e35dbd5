"""Writes each answer in three pieces with pauses between: slow, but within the protocol."""

import sys
import time

from speaker import converse, result


def answer(request: dict) -> None:
    text = result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}) + "\n"
    for piece in (text[:5], text[5:20], text[20:]):
        sys.stdout.write(piece)
        sys.stdout.flush()
        time.sleep(0.01)


converse(answer)
