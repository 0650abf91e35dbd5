"""Knows no method but the session's: JSON-RPC error -32601."""

import json

from speaker import converse, send


def answer(request: dict) -> None:
    error = {"code": -32601, "message": "method not found"}
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))


converse(answer)
