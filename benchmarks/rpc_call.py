"""A small call through the process transport, against the same call in this process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from measurement import Measurement, in_turns

from tessera_conformance.protocol import Returned
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate

CALLS = 200


def measure() -> Measurement:
    """Median over batches, so that one late wake-up does not decide."""
    tensor = Tensor.from_words("fp32", (4,), [0x3F800000] * 4)
    params = {"source": "", "function": "f", "inputs": {"A": tensor}}
    place = Path(__file__).parent
    serve = f"rpc:env PYTHONPATH={place} {sys.executable} -m tessera_conformance serve py:echo_adapter:Echo"
    sessions = Session(locate(serve)), Session(locate("py:echo_adapter:Echo"))

    def batch(session: Session) -> None:
        for _ in range(CALLS):
            assert isinstance(session.call("language.execute", params), Returned)
        session.exchanges.clear()

    ours, peer = in_turns(lambda: batch(sessions[0]), lambda: batch(sessions[1]), 15, time.perf_counter)
    for session in sessions:
        session.close()
    return Measurement("rpc call", ours / CALLS, "in-process", peer / CALLS, ours / CALLS * 1e6, "us", 150)
