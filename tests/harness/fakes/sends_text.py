"""Lets a log line slip onto standard output; claims the documents that are named, or the usual one."""

import sys

from speaker import HELLO, converse, result, send


def answer(request: dict) -> None:
    send("INFO: compiling ...")
    send(result(request, {"returned": {"modules": []}}))


converse(answer, HELLO | {"documents": sys.argv[1:] or HELLO["documents"]})
