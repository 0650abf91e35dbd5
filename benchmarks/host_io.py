"""Messages between host and IO_CPU: validation beside the validators of JSON Schema, requests beside plain JSON."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import request_of

SCHEMA = Path(__file__).parents[1] / "schemas" / "host_io.schema.json"
REQUESTS = 1000
SHARDS = 4096
ROUNDS = 9
ENVELOPE = {"correlation_id": "c", "request_id": "r", "target_device": "sip:0"}
WRITE = {
    "msg_type": "MemoryWrite",
    **ENVELOPE,
    "dst_sip": 0,
    "dst_cube": 1,
    "dst_pe": 2,
    "dst_pa": 4096,
    "nbytes": 1024,
    "src_kind": "pattern",
    "pattern": {"pattern_kind": "fill_fp32", "value": 1.5},
}


def launch(shards: int) -> dict[str, Any]:
    """A launch that fills so many shards on sixteen PEs."""
    placed = [
        {"sip": i % 2, "cube": i // 2 % 2, "pe": i // 4 % 4, "pa": 4096 * i, "nbytes": 64, "offset_bytes": 64 * i}
        for i in range(shards)
    ]
    tags = {"deploy_sip": 0, "deploy_cube": 0, "deploy_pe": 0, "nbytes_code": 0}
    tensor = {"arg_kind": "tensor", "tensor_pa_map": {"shards": placed}}
    scalar = {"arg_kind": "scalar", "dtype": "i32", "value": 7}
    return {
        "msg_type": "KernelLaunch",
        **ENVELOPE,
        "kernel_ref": {"name": "fill", "kind": "builtin", **tags},
        "args": [tensor, scalar],
    }


def measure() -> list[Outcome]:
    """All figures."""
    return [
        validation("jsonschema", fast=False),
        validation("fastjsonschema", fast=True),
        requests("host_io writes", WRITE),
        requests("host_io launches of 2 shards", launch(2)),
        wide_launch(),
        over_a_socket(),
    ]


def validation(peer_name: str, fast: bool) -> Outcome:
    """A launch of two arguments with all checks and its typed message, against the peer's verdict on the schema."""
    name = f"host_io check and type, {'fast' if fast else 'plain'}"
    if find_spec(peer_name) is None:
        return NotMeasured(name, f"pip install {peer_name}, or 'tessera-conformance[host-io]'")
    message, verdict = launch(1), _peer(peer_name)

    def ours() -> None:
        for _ in range(200):
            request_of(message, fast=fast)

    def peers() -> None:
        for _ in range(200):
            verdict(message)

    mine, peer = (seconds / 200 for seconds in in_turns(ours, peers, ROUNDS))
    return Measurement(name, mine, peer_name, peer, mine * 1e6, "us", 250 if not fast else 50)


def _peer(name: str) -> Callable[[Any], object]:
    """A validator of the published schema, made once."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema = {"$ref": "#/$defs/kernel_launch", "$defs": schema["$defs"]}
    if name == "fastjsonschema":
        import fastjsonschema

        draft = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
        return fastjsonschema.compile(draft, use_default=False)
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema).is_valid


def requests(name: str, message: dict[str, Any]) -> Outcome:
    """Frames in and frames out, against JSON read and written."""
    frames = [json.dumps({**message, "request_id": str(number)}) for number in range(REQUESTS)]
    endpoint = Endpoint()

    def ours() -> None:
        answers = endpoint.exchange(frames)
        assert '"ok":true' in answers[-1]

    mine, peer = in_turns(ours, lambda: [json.dumps(json.loads(frame)) for frame in frames], ROUNDS)
    return Measurement(name, mine, "json alone", peer, REQUESTS / mine, "1/s", 5000, at_least=True)


def wide_launch() -> Outcome:
    """One launch of many shards, from frame to frame."""
    frame, endpoint = json.dumps(launch(SHARDS)), Endpoint()

    def ours() -> None:
        (answer,) = endpoint.exchange([frame])
        assert '"ok":true' in answer

    mine, peer = in_turns(ours, lambda: json.dumps(json.loads(frame)), ROUNDS)
    return Measurement(f"host_io launch of {SHARDS} shards", mine, "json alone", peer, mine * 1e3, "ms", 200)


def over_a_socket() -> Outcome:
    """Requests of one host to an endpoint in a process of its own, all sent before an answer is waited for."""
    count = 10 * REQUESTS
    frames = "".join(f"{json.dumps({**WRITE, 'request_id': str(number)})}\n" for number in range(count)).encode()
    endpoint = Endpoint()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as connection:
        path = f"{folder}/io.sock"
        command = [sys.executable, "-m", "tessera_reference.cli", "host-io", "serve", "--unix", path]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None and server.stdout.readline().startswith(b"listening")
            connection.connect(path)

            def ours() -> None:
                sending = threading.Thread(target=connection.sendall, args=(frames,))
                sending.start()
                missing = count
                while missing:
                    missing -= connection.recv(1 << 18).count(b"\n")
                sending.join()

            mine, peer = in_turns(ours, lambda: endpoint.exchange(frames.splitlines()), 5, time.perf_counter)
            server.terminate()
    return Measurement(
        "host_io writes over a socket", mine, "in process", peer, count / mine, "1/s", 3000, at_least=True
    )
