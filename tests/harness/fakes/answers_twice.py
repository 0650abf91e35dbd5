"""Sends every answer twice."""

from speaker import converse, result, send


def answer(request: dict) -> None:
    send(result(request, {"unsupported": {"feature": "thought"}}) + "\n" + result(request, {"returned": {}}))


converse(answer)
