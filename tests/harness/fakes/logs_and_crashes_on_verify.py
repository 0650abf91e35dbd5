"""Writes every source it is given to the file named by LOG, and dies in `language.verify`."""

import os
import sys

from speaker import converse, result, send


def answer(request: dict) -> None:
    with open(os.environ["LOG"], "a", encoding="utf-8") as log:
        log.write(request["params"]["source"] + "\n")
    if request["method"] == "language.verify":
        sys.exit(9)
    send(result(request, {"returned": {"modules": []}}))


converse(answer)
