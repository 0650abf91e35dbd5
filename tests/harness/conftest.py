"""Shared by the tests of the harness: where the fakes are and how a session with one is opened."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tessera_conformance.session import Session
from tessera_conformance.transports.rpc import RpcTransport

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def fake_command() -> Callable[[str], str]:
    """The command line that starts a fake."""
    return lambda name: f"{sys.executable} {FAKES / name}.py"


@pytest.fixture
def fake_session(fake_command: Callable[[str], str]) -> Iterator[Callable[..., Session]]:
    """Opens sessions with fakes, and closes them when the test ends."""
    opened: list[Session] = []

    def open_session(name: str, deadline: float = 10.0, start_deadline: float = 10.0) -> Session:
        opened.append(Session(RpcTransport(fake_command(name)), deadline, start_deadline))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()
