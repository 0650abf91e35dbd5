"""After a case a library without `tessxReset` is empty, or its process is started anew; nothing is freed under it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tessera_conformance.observations import Returned, Unsupported
from tessera_conformance.session import Session

AXES = {"tp": 0, "pp": 0, "dp": 1, "ep": 0}
COPIED = 1 << 16


def asked(session: Session, function: str, **given: Any) -> Any:
    observation = session.call(f"runtime.{function}", given)
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


@pytest.mark.parametrize("fresh", ["", ",fresh=1"])
@pytest.mark.parametrize("refuses", ["never", "parts", "always"])
def test_no_case_finds_what_another_left(build, opened, monkeypatch, refuses, fresh):
    """A library ends its context always, only without parts, or never."""
    monkeypatch.setenv("REFUSE", refuses)
    session = opened(build("refusing"), fresh)
    for _ in range(3):
        assert lives(session) == (0, 0)
        work(session)
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


# What an export claims

UNCLAIMED = """[capabilities]
last-error = "unsupported"
"""


@pytest.mark.parametrize("fresh", ["", ",fresh=1"])
def test_a_description_unclaims_what_an_export_claims(build, opened, tmp_path, fresh):
    """The method is then not answered, in the first case as in the next."""
    library = build("refusing")
    claims = opened(library).open()
    assert claims.has("last-error")
    path = tmp_path / "description.toml"
    path.write_text(UNCLAIMED, encoding="utf-8")
    session = opened(library, f",description={path}{fresh}")
    assert not session.open().has("last-error")
    for _ in range(2):
        assert session.call("runtime.tessxLastError", {}) == Unsupported("runtime.tessxLastError")
        assert session.reset() is None
