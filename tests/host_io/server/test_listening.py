"""Where an endpoint listens, who may connect, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from served import Served, codes, frames

from tessera_reference.cli import main
from tessera_reference.host_io.server import AddressProblem, Listener, TcpAddress, read_address

Build = Callable[..., dict[str, Any]]
Serve = Callable[..., Served]


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What `serve` says when it does not begin."""
    assert main(["host-io", "serve", *options]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ") and told.err.count("\n") == 1
    return told.err


def test_a_socket_file_is_for_its_owner_alone(of_unix: Served) -> None:
    path = Path(of_unix.address.removeprefix("unix:"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.is_socket()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(serve: Serve, tmp_path: Path, memory_write: Build, number: signal.Signals) -> None:
    """With a connection that waits, and one whose answers nobody reads; what was answered can still be read."""
    path = tmp_path / "io.sock"
    served = serve("--unix", str(path))
    with served.connect() as waits, served.connect() as slow:
        slow.flood(frames([memory_write()]) * 1000, 0.5)
        waits.send(memory_write())
        assert codes(waits.lines(1)) == [None]
        assert served.end(number) == (0, "")
        assert waits.until_the_end() == []
    assert not path.exists()


def test_a_file_that_an_endpoint_left_is_replaced(serve: Serve, tmp_path: Path, memory_write: Build) -> None:
    path = tmp_path / "io.sock"
    assert serve("--unix", str(path)).end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert path.is_socket()
    with serve("--unix", str(path)).connect() as wire:
        assert codes(wire.ask(memory_write())) == [None]


def test_two_endpoints_do_not_share_a_file(of_unix: Served, memory_write: Build, capsys: Any) -> None:
    path = of_unix.address.removeprefix("unix:")
    assert refused(capsys, "--unix", path) == f"error: unix:{path}: another endpoint listens there\n"
    with of_unix.connect() as wire:
        assert codes(wire.ask(memory_write())) == [None]


def test_another_file_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "notes"
    path.write_text("keep")
    assert "there is a file that is no socket" in refused(capsys, "--unix", str(path))
    assert path.read_text() == "keep"


def test_a_file_of_another_endpoint_stays(tmp_path: Path) -> None:
    """An endpoint that ends removes its own file only."""
    path = str(tmp_path / "io.sock")
    first = Listener(read_address(f"unix:{path}"))
    os.unlink(path)
    second = Listener(read_address(f"unix:{path}"))
    first.close()
    assert os.path.exists(path)
    second.close()
    assert not os.path.exists(path)


def test_two_endpoints_do_not_share_a_port(of_tcp: Served, capsys: Any) -> None:
    assert "Address already in use" in refused(capsys, "--tcp", of_tcp.address.removeprefix("tcp:"))


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_other_machines_are_let_in_by_name_only(host: str, capsys: Any) -> None:
    assert "other machines reach it: name a loopback address, or add --allow-remote" in refused(
        capsys, "--tcp", f"{host}:0"
    )


def test_other_machines_are_let_in(serve: Serve, memory_write: Build) -> None:
    served = serve("--tcp", "0.0.0.0:0", "--allow-remote")
    with served.connect() as wire:
        assert codes(wire.ask(memory_write())) == [None]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--unix", ""], "expected unix:PATH or tcp:HOST:PORT"),
        (["--unix", "no/such/folder/io.sock"], "No such file or directory"),
        (["--unix", "x" * 300], "path too long"),
        (["--tcp", "localhost"], "expected unix:PATH or tcp:HOST:PORT"),
        (["--tcp", ":80"], "expected unix:PATH or tcp:HOST:PORT"),
        (["--tcp", "127.0.0.1:65536"], "expected unix:PATH or tcp:HOST:PORT"),
        (["--tcp", "127.0.0.1:-1"], "expected unix:PATH or tcp:HOST:PORT"),
        (["--tcp", "127.0.0.1:0", "--machine", "2x2"], "expected three counts such as 2x2x4"),
        (["--tcp", "127.0.0.1:0", "--machine", "0x2x4"], "expected three counts such as 2x2x4"),
        (["--tcp", "127.0.0.1:0", "--machine", "999x999x999"], "of at most 65536 PEs"),
        (["--tcp", "127.0.0.1:0", "--queue-depth", "0"], "--queue-depth 0: expected at least 1"),
        (["--tcp", "127.0.0.1:0", "--description", "no/such/folder/io.json"], "No such file or directory"),
    ],
    ids=lambda each: " ".join(each)[:50] if isinstance(each, list) else "",
)
def test_what_cannot_be_served_is_told(options: list[str], problem: str, capsys: Any) -> None:
    assert problem in refused(capsys, *options)


@pytest.mark.parametrize("text", ["unix:a:b", "tcp:127.0.0.1:80", "tcp:[::1]:80", "tcp:localhost:0"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(read_address(text)) == text


def test_the_host_of_an_address_may_have_colons() -> None:
    assert read_address("tcp:[::1]:80") == TcpAddress("::1", 80)
    with pytest.raises(AddressProblem, match="expected unix:PATH or tcp:HOST:PORT"):
        read_address("http://localhost:80")


def test_the_description_is_of_the_machine(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "io.json"
    serve("--tcp", "127.0.0.1:0", "--machine", "1x2x3", "--queue-depth", "5", "--description", str(path))
    told = json.loads(path.read_text())
    assert told["devices"] == [{"name": "sip:0", "sip": 0}]
    assert [(each["sip"], each["cube"], each["pe"]) for each in told["places"]] == [
        *((0, 0, 0), (0, 0, 1), (0, 0, 2)),
        *((0, 1, 0), (0, 1, 1), (0, 1, 2)),
    ]
    assert told["queue_depth"] == 5
    assert {each["kind"] for each in told["memories"]} == {"HBM", "TCM"}
