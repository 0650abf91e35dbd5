"""Endpoints in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served import Served

Serve: TypeAlias = Callable[..., Served]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts endpoints; those that still run when the test ends are ended, and have had nothing to complain about."""
    started: list[Served] = []

    def start(*options: str) -> Served:
        started.append(Served(*options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            assert server.end() == (0, "")


@pytest.fixture(scope="session")
def of_unix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An endpoint behind a socket file that tests share."""
    found = Served("--unix", str(tmp_path_factory.mktemp("endpoint") / "io.sock"))
    yield found
    assert found.end() == (0, "")


@pytest.fixture(scope="session")
def of_tcp() -> Iterator[Served]:
    """An endpoint behind a port that tests share."""
    found = Served("--tcp", "127.0.0.1:0")
    yield found
    assert found.end() == (0, "")


@pytest.fixture(params=["unix", "tcp"])
def served(request: pytest.FixtureRequest, of_unix: Served, of_tcp: Served) -> Any:
    """A shared endpoint of either kind."""
    return {"unix": of_unix, "tcp": of_tcp}[request.param]
