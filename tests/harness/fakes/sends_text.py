"""Lets a log line slip onto standard output."""

from speaker import converse, result, send


def answer(request: dict) -> None:
    send("INFO: compiling ...")
    send(result(request, {"returned": {"modules": []}}))


converse(answer)
