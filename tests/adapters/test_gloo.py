"""gloo behind the protocol: a process that dies is a crash, and the run goes on."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

from tessera_conformance.dsl import tensor_of
from tessera_conformance.observations import Fault, Returned
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

TOKEN = "TESSERA_TEST_OF_GLOO"
RANKS = 8


@pytest.mark.slow
def test_a_rank_that_dies_is_a_crash_and_the_run_goes_on(at_the_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    monkeypatch.setenv(TOKEN, "1")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.torch_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    asked = {"operation": "all_reduce", "inputs": [tensor_of("fp32", [rank]) for rank in range(RANKS)], "op": "sum"}
    wanted = Returned({"outputs": [tensor_of("fp32", [28])] * RANKS})
    try:
        assert session.call("collectives.run", asked) == wanted
        os.kill(a_rank(), signal.SIGKILL)
        observed = session.call("collectives.run", asked)
        assert isinstance(observed, Fault)
        assert observed.kind == "crash"
        assert "RuntimeError: rank " in observed.detail  # that it has died, or what gloo says of it
        session.reset()
        assert session.call("collectives.run", asked) == wanted
    finally:
        session.close()


@pytest.mark.slow
def test_a_rank_that_does_not_answer_is_named(at_the_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    monkeypatch.setenv(TOKEN, "1")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.torch_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    # send_recv between ranks 0 and 1: the last rank, which is stopped, keeps none of the others waiting
    asked = {"inputs": [tensor_of("fp32", [rank]) for rank in range(RANKS)], "pairs": [[0, 1]]}
    try:
        assert isinstance(session.call("collectives.send_recv", asked), Returned)
        os.kill(a_rank(), signal.SIGSTOP)
        session.deadline = 8.0
        observed = session.call("collectives.send_recv", asked)
        assert isinstance(observed, Fault)
        assert observed.kind == "hang"
        assert "gloo: send_recv waits for ranks [7]" in observed.stderr
    finally:
        session.close()


def a_rank() -> int:
    """The process of the last rank: one that the fork server has started, and has its command."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            variables, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{TOKEN}=1".encode() in variables.split(b"\0") and b"forkserver" in command:
            found.append(int(entry.name))
    if not found:
        pytest.skip("needs /proc, to find the process of a rank")
    assert len(found) == 1 + RANKS
    return max(found)
