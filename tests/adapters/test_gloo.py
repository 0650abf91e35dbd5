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


@pytest.mark.slow
def test_a_rank_that_dies_is_a_crash_and_the_run_goes_on(at_the_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: pip install torch")
    monkeypatch.setenv(TOKEN, "1")
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.torch_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    asked = {"operation": "all_reduce", "inputs": [tensor_of("fp32", [rank]) for rank in range(8)], "op": "sum"}
    wanted = Returned({"outputs": [tensor_of("fp32", [28])] * 8})
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


def a_rank() -> int:
    """The process of some rank: one that was spawned, and is not the one that answers."""
    for entry in Path("/proc").iterdir():
        try:
            variables, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{TOKEN}=1".encode() in variables.split(b"\0") and b"spawn_main" in command:
            return int(entry.name)
    pytest.skip("needs /proc, to find the process of a rank")
