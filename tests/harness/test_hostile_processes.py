"""A process that answers too much, or leaves others behind, costs the harness neither its time nor its machine."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.observations import Fault
from tessera_conformance.protocol import METHOD_NOT_FOUND
from tessera_conformance.server import serve
from tessera_conformance.session import Session
from tessera_conformance.terminal.interruptions import Interrupted
from tessera_conformance.transports.rpc import RpcTransport

from .processes import is_alive, pids_in

OpenSession = Callable[..., Session]


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("nested", "outputs["),
        ("many", "is not of type 'tensor'"),
        ("too many", "an answer of more than 2000000 values"),
        ("too deep", "not JSON"),
        ("a long integer", "not JSON"),
        ("a file of holes", "more than any tensor of the suite has"),
    ],
)
def test_an_answer_that_is_too_much_is_a_protocol_error(
    fake_session: OpenSession, tmp_path: Path, kind: str, detail: str
) -> None:
    session = fake_session("sends_too_much")
    began = time.process_time()
    asked = {"source": kind, "function": str(tmp_path / "holes.bin"), "inputs": {}}
    observation = session.call("language.execute", asked)
    assert time.process_time() - began < 5
    assert isinstance(observation, Fault)
    assert (observation.kind, detail in observation.detail) == ("protocol_error", True), observation.detail[:500]
    assert len(observation.detail) < 1000


def test_an_answer_that_is_read_after_the_deadline_is_a_hang(
    fake_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = fake_session("returns_nothing", deadline=0.5)
    session.open()
    monkeypatch.setattr("json.loads", lambda text: time.sleep(0.6) or {"jsonrpc": "2.0", "id": 2, "result": {}})
    observation = session.call("language.parse", {"source": ""})
    assert isinstance(observation, Fault)
    assert observation.kind == "hang"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started whom")
def test_what_an_implementation_started_ends_with_it(fake_session: OpenSession) -> None:
    """Also in a session of its own, as an orphan, and without the environment that it was given."""
    observation = fake_session("leaves_daemons").call("language.parse", {"source": ""})
    assert isinstance(observation, Fault)
    assert observation.kind == "crash"
    (line,) = (each for each in observation.stderr.splitlines() if each.startswith("pids "))
    pids = [int(each) for each in line.split()[1:]]
    assert len(pids) == 3
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_call_that_is_interrupted_ends_the_process(fake_command: Callable[[str], str], tmp_path: Path) -> None:
    """It is at work, and would not hear that it is to close."""
    session = Session(RpcTransport(f"{fake_command('waits')} {tmp_path}"), deadline=300)
    session.open()

    def interrupt(number: int, frame: object) -> None:
        if pids_in(tmp_path):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Interrupted(number)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with pytest.raises(Interrupted):
            session.call("language.parse", {"source": ""})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (pid,) = pids_in(tmp_path)
    ended = not is_alive(pid)
    session.close()
    assert ended


def test_other_children_of_the_harness_live_on(fake_session: OpenSession) -> None:
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    before = subprocess.Popen(sleeping, start_new_session=True)
    session = fake_session("hangs", deadline=0.2)
    session.open()
    during = subprocess.Popen(sleeping)
    try:
        session.call("language.parse", {"source": ""})
        session.close()
        assert (before.poll(), during.poll()) == (None, None)
    finally:
        before.kill()
        during.kill()
        before.wait()
        during.wait()


def test_two_sessions_do_not_end_each_other(fake_command: Callable[[str], str]) -> None:
    first, second = (Session(RpcTransport(fake_command("splits_a_message_over_writes"))) for _ in range(2))
    assert not isinstance(first.open(), Fault)
    assert not isinstance(second.open(), Fault)
    first.close()
    assert not isinstance(second.call("language.parse", {"source": ""}), Fault)
    second.close()


class Busy:
    """An adapter with more attributes than methods of the protocol."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hello(self) -> dict[str, object]:
        return {}

    def language_parse(self, **params: object) -> dict[str, object]:
        self.asked.append("language.parse")
        return {"modules": []}

    def delete_everything(self, **params: object) -> dict[str, object]:
        self.asked.append("delete.everything")
        return {}


@pytest.mark.parametrize("method", ["delete.everything", "delete_everything", "hello", ".__init__", "language.tidy"])
def test_serve_answers_declared_methods_alone(method: str) -> None:
    adapter, answers = Busy(), io.BytesIO()
    asked = [{"jsonrpc": "2.0", "id": number, "method": name} for number, name in enumerate((method, "language.parse"))]
    serve(adapter, io.BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in asked)), answers)
    refused, answered = map(json.loads, answers.getvalue().splitlines())
    assert refused["error"]["code"] == METHOD_NOT_FOUND
    assert answered["result"] == {"returned": {"modules": []}}
    assert adapter.asked == ["language.parse"]
