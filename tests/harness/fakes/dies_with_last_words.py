"""Dies in every call, as launchers do when a process of theirs dies: with a message on standard output."""

import sys

from speaker import converse, send


def answer(request: dict) -> None:
    send("BAD TERMINATION")
    send("EXIT CODE: 9")
    sys.exit(9)


converse(answer)
