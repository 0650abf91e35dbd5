"""Faults of a library are the verdict of their call; after a case nothing of it is left."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tessera_conformance.protocol import Fault, Rejected, Returned, Unsupported
from tessera_conformance.session import Session
from tessera_conformance.transports.rpc import RpcTransport

VERSION = Returned({"major": 1, "minor": 2, "patch": 3})
ENDS = [
    ("segfault", "signal SIGSEGV in tessGetVersion"),
    ("abort", "signal SIGABRT in tessGetVersion"),
    ("exit", "exit code 0 in tessGetVersion"),
    ("quit", "exit code 0 in tessGetVersion"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("how", "said"), ENDS)
def test_a_process_that_ends_is_a_crash_with_the_function_named(build, opened, monkeypatch, how, said):
    session = opened(build("misbehaving"))
    monkeypatch.setenv("MISBEHAVE", how)
    observation = session.call("runtime.tessGetVersion", {})
    assert isinstance(observation, Fault)
    assert (observation.kind, observation.reproducible) == ("crash", True)
    assert observation.detail.endswith(said)
    monkeypatch.delenv("MISBEHAVE")
    assert session.call("runtime.tessGetVersion", {}) == VERSION


def test_a_process_that_serves_a_library_leaves_no_folder_when_it_is_ended(build, monkeypatch, tmp_path):
    """It is ended for the crash of what it had started, and cannot remove the folder that it exchanged files in."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MISBEHAVE", "segfault")
    served = f"{sys.executable} -m tessera_conformance serve cabi:{build('misbehaving')} --compiler=reference"
    session = Session(RpcTransport(served))
    observation = session.call("runtime.tessGetVersion", {})
    assert isinstance(observation, Fault)
    assert "signal SIGSEGV" in observation.detail
    session.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["hang", "spin"])
def test_a_call_that_does_not_end_is_a_hang(build, opened, monkeypatch, how):
    session = opened(build("misbehaving"), deadline=0.5)
    monkeypatch.setenv("MISBEHAVE", how)
    started = time.monotonic()
    observation = session.call("runtime.tessGetVersion", {})
    assert isinstance(observation, Fault)
    assert observation.kind == "hang"
    assert observation.detail == "runtime.tessGetVersion: no answer within 0.5 s in tessGetVersion"
    assert time.monotonic() - started < 10
    monkeypatch.delenv("MISBEHAVE")
    session.deadline = 10.0
    assert session.call("runtime.tessGetVersion", {}) == VERSION


def test_what_a_library_prints_or_reads_does_not_touch_the_protocol(build, opened, monkeypatch):
    monkeypatch.setenv("MISBEHAVE", "print")
    session = opened(build("misbehaving"))
    assert session.call("runtime.tessGetVersion", {}) == VERSION
    assert session.call("runtime.tessGetVersion", {}) == VERSION


def test_a_handle_that_is_none_is_the_crash_of_the_call_that_uses_it(build, opened, monkeypatch):
    monkeypatch.setenv("MISBEHAVE", "corrupt")
    session = opened(build("misbehaving"))
    assert session.call("runtime.tessInit", {}) == Returned({"context": 0xDEAD0})
    observation = session.call("runtime.tessShutdown", {"context": 0xDEAD0})
    assert isinstance(observation, Fault)
    assert observation.detail.endswith("signal SIGSEGV in tessShutdown")


def test_a_reset_that_crashes_names_the_function(build, opened, monkeypatch):
    monkeypatch.setenv("MISBEHAVE", "reset")
    session = opened(build("misbehaving"))
    session.call("runtime.tessInit", {})
    fault = session.reset()
    assert isinstance(fault, Fault)
    assert fault.detail.endswith("signal SIGABRT in tessShutdown")


def test_a_status_that_is_none_is_said(build, opened, monkeypatch):
    monkeypatch.setenv("MISBEHAVE", "status")
    observation = opened(build("misbehaving")).call("runtime.tessGetVersion", {})
    assert isinstance(observation, Rejected)
    assert observation.code == "the status 77, which is none of tessStatus_t"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no json", "tessxDevices gave no JSON"),
        ("no object", "tessxDevices gave no JSON object: '[1]'"),
        ("no devices", "runtime.tessxDevices: devices"),
        ("grow", "tessxDevices needed more than"),
        ("huge", "tessxDevices says that it needs 18446744073709551615 bytes"),
    ],
)
def test_what_no_answer_can_be_made_of_is_a_protocol_error(build, opened, monkeypatch, how, said):
    monkeypatch.setenv("MISBEHAVE", how)
    session = opened(build("misbehaving"))
    observation = session.call("runtime.tessxDevices", {})
    assert isinstance(observation, Fault)
    assert observation.kind == "protocol_error"
    assert said in observation.detail
    assert session.call("runtime.tessGetVersion", {}) == VERSION


@pytest.mark.parametrize("count", [1, 16, 4096, 5000])
def test_an_access_far_behind_host_memory_is_a_crash(build, opened, count):
    """At most 16 bytes lie between what was asked for and a page that is not mapped."""
    session = opened(build("steady"))
    actual = session.call("runtime.tessxHostMemory", {"bytes": count})
    assert isinstance(actual, Returned)
    pointer = actual.value["hostPtr"]
    assert pointer % 16 == 0
    assert session.call("runtime.tessxHostRead", {"hostPtr": pointer, "bytes": count}) == Returned(
        {"data": "00" * count}
    )
    source = session.call("runtime.tessxHostMemory", {"bytes": 1 << 16}).value["hostPtr"]
    copy = {"dst": pointer, "src": source, "bytes": count + 16, "kind": 0, "stream": 1}
    observation = session.call("runtime.tessMemcpyAsync", copy)
    assert isinstance(observation, Fault)
    assert observation.detail.endswith("signal SIGSEGV in tessMemcpyAsync")


AXES = {"tp": 0, "pp": 0, "dp": 1, "ep": 0}
COPIED = 1 << 16


def asked(session: Session, function: str, **arguments: Any) -> Any:
    observation = session.call(f"runtime.{function}", arguments)
    assert isinstance(observation, Returned), observation
    return observation.value


def work(session: Session) -> int:
    """A case that leaves everything alive, and a copy queued that runs later; the stream."""
    context = asked(session, "tessInit")["context"]
    mesh = asked(session, "tessMeshCreate", context=context, deviceIds=[0], axes=AXES)["mesh"]
    asked(session, "tessEventCreate")
    stream = asked(session, "tessStreamCreate", mesh=mesh, priority=0)["stream"]
    dst, src = (asked(session, "tessxHostMemory", bytes=COPIED)["hostPtr"] for _ in range(2))
    asked(session, "tessMemcpyAsync", dst=dst, src=src, bytes=COPIED, kind=0, stream=stream)
    return int(stream)


def lives(session: Session) -> tuple[int, int]:
    """The contexts and the parts that live."""
    version = asked(session, "tessGetVersion")
    return version["major"], version["minor"]


@pytest.mark.parametrize("refuses", ["never", "parts", "always", "shared"])
def test_no_case_finds_what_another_left(build, opened, monkeypatch, refuses):
    """A library ends its context always, only without parts, never, or with the last of two users."""
    monkeypatch.setenv("REFUSE", refuses)
    session = opened(build("refusing"))
    for _ in range(3):
        assert lives(session) == (0, 0)
        assert work(session) and work(session)
        assert session.reset() is None
    time.sleep(0.3)  # a copy that still ran would use what was freed
    assert lives(session) == (0, 0)


@pytest.mark.parametrize(("refuses", "calls"), [("parts", 2), ("always", 1)])
def test_the_process_is_started_anew_where_something_stays(build, opened, monkeypatch, refuses, calls):
    monkeypatch.setenv("REFUSE", refuses)
    session = opened(build("refusing"))
    lives(session)
    work(session)
    assert session.reset() is None
    assert asked(session, "tessGetVersion")["patch"] == calls


@pytest.mark.slow
def test_work_that_never_ends_is_no_hang_of_the_clean_up(build, opened, monkeypatch):
    monkeypatch.setenv("REFUSE", "hang")
    session = opened(build("refusing"))
    stream = work(session)
    asked(session, "tessStreamWaitEvent", stream=stream, event=asked(session, "tessEventCreate")["event"])
    assert session.reset() is None
    assert lives(session) == (0, 0)


def test_what_ended_is_not_ended_again(build, opened, monkeypatch):
    """Nor is what ended with its owner."""
    monkeypatch.setenv("REFUSE", "parts")
    session = opened(build("refusing"))
    context = asked(session, "tessInit")["context"]
    mesh = asked(session, "tessMeshCreate", context=context, deviceIds=[0], axes=AXES)["mesh"]
    asked(session, "tessEventDestroy", event=asked(session, "tessEventCreate")["event"])
    asked(session, "tessStreamDestroy", stream=asked(session, "tessStreamCreate", mesh=mesh, priority=0)["stream"])
    assert session.reset() is None
    assert lives(session) == (0, 0)


UNCLAIMED = """[capabilities]
last-error = "unsupported"
"""


def test_a_description_unclaims_what_an_export_claims(build, opened, tmp_path):
    """The method is then not answered, in the first case as in the next."""
    library = build("refusing")
    claims = opened(library).open()
    assert claims.has("last-error")
    path = tmp_path / "description.toml"
    path.write_text(UNCLAIMED, encoding="utf-8")
    session = opened(library, f",description={path}")
    assert not session.open().has("last-error")
    for _ in range(2):
        assert session.call("runtime.tessxLastError", {}) == Unsupported("runtime.tessxLastError")
        assert session.reset() is None
