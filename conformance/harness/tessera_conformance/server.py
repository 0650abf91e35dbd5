"""Serves a Python adapter over the line protocol: one JSON-RPC 2.0 message a line on standard input and output.

Only methods that the interface declares reach the adapter: its other attributes are private. Anything the adapter
prints goes to standard error, so that it cannot break the stream.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, BinaryIO

from tessera_conformance.adapter import Adapter, MalformedAnswer, invoke
from tessera_conformance.interface import interface
from tessera_conformance.protocol import MALFORMED_ANSWER, METHOD_NOT_FOUND, Unsupported, write_outcome
from tessera_conformance.tensors import MalformedTensor, from_wire, to_wire

_encoded = json.JSONEncoder(separators=(",", ":")).encode
"""Made once: `json.dumps` would make an encoder for each of many small answers."""
_decoded = json.JSONDecoder().decode
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603


def serve(adapter: Adapter, requests: Iterable[bytes] | None = None, responses: BinaryIO | None = None) -> int:
    """Answer requests until `session.close` or the end of input; returns the exit code."""
    requests = requests or sys.stdin.buffer
    responses = responses or sys.stdout.buffer
    exchange: Path | None = None
    with redirect_stdout(sys.stderr):
        for line in requests:
            request, answer = _read(line)
            if answer is None:
                if request["method"] == "session.open" and request["params"].get("exchange"):
                    exchange = Path(request["params"]["exchange"])
                answer = _answer(adapter, request, exchange)
            responses.write(_encoded(answer).encode() + b"\n")
            responses.flush()
            if request.get("method") == "session.close":
                break
    return 0


def _read(line: bytes) -> tuple[dict[str, Any], dict[str, Any] | None]:
    try:
        request = _decoded(line.decode())
    except (ValueError, RecursionError) as error:
        return {}, _error(None, PARSE_ERROR, f"not JSON that can be read: {error}")
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return {}, _error(None, INVALID_REQUEST, "expected a JSON-RPC request object with a method")
    if not isinstance(request.get("params", {}), dict):
        return {}, _error(request.get("id"), INVALID_PARAMS, "expected params to be an object")
    return {"id": None, "params": {}} | request, None


def _answer(adapter: Adapter, request: dict[str, Any], exchange: Path | None) -> dict[str, Any]:
    identifier, method = request["id"], request["method"]
    try:
        if method == "session.open":
            return _result(identifier, dict(adapter.hello()))
        if method == "session.close":
            return _result(identifier, {"returned": {}})
        declared = method in interface().methods
        outcome = invoke(adapter, method, from_wire(request["params"])) if declared else Unsupported(method)
        if isinstance(outcome, Unsupported) and outcome.feature == method:
            return _error(identifier, METHOD_NOT_FOUND, f"this adapter does not implement {method}")
        return _result(identifier, to_wire(write_outcome(outcome), exchange))
    except MalformedTensor as error:
        return _error(identifier, INVALID_PARAMS, str(error))
    except MalformedAnswer as error:
        return _error(identifier, MALFORMED_ANSWER, str(error))
    except Exception as error:
        traceback.print_exc()
        return _error(identifier, INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def _result(identifier: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": result}


def _error(identifier: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}
