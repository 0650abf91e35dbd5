"""Writes megabytes to standard error before each answer, which is fine."""

import sys

from speaker import converse, result, send


def answer(request: dict) -> None:
    sys.stderr.write("warning: slow path\n" * 200_000)
    send(result(request, {"rejected": {"code": "syntax", "phase": "parse", "message": "no"}}))


converse(answer)
