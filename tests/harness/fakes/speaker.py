"""What every fake does well: read a request a line, answer `session.*`, and leave the rest to the fault it injects.

The faults stand in the sibling files, each named after what it does. Nothing here imports the harness, so that a fake
is also the smallest example of an implementation in another process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

HELLO = {
    "protocol": {"minimum": 1, "maximum": 1},
    "implementation": {"name": "fake", "version": "1.0"},
    "documents": ["language_ir"],
    "capabilities": {},
    "arithmetic": {"level": "strict"},
}


def send(raw: str) -> None:
    sys.stdout.write(raw + "\n")
    sys.stdout.flush()


def result(request: dict[str, Any], value: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value})


def converse(answer: Callable[[dict[str, Any]], None], hello: dict[str, Any] = HELLO) -> None:
    """Answer `session.open`, `session.reset` and `session.close`; hand every other request to `answer`."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "session.open":
            send(result(request, hello))
        elif request["method"].startswith("session."):
            send(result(request, {"returned": {}}))
        else:
            answer(request)
        if request["method"] == "session.close":
            return
