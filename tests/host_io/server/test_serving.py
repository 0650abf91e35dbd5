"""Places where an endpoint listens, its end, and the suite over its wire, also when the endpoint is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, Served, codes, frames

from tessera_conformance.reports.journal import read
from tessera_reference.cli import main
from tessera_reference.host_io.server import Address, AddressProblem, Listener, _tell, read_address

Build = Callable[..., dict[str, Any]]
Serve = Callable[..., Served]


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return the error message of a `serve` that does not begin."""
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
        (["--tcp", "127.0.0.1:0", "--fail", "0.1"], "--fail 0.1: expected a PE of the machine, such as 0.1.2"),
        (["--tcp", "127.0.0.1:0", "--fail", "9.0.0"], "--fail 9.0.0: expected a PE of the machine"),
        (["--tcp", "127.0.0.1:0", "--reads", "no/such/folder/r"], "no/such/folder/r: No such file or directory"),
        (["--tcp", "127.0.0.1:0", "--description", "no/such/folder/io.json"], "No such file or directory"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_what_cannot_be_served_is_told(options: list[str], problem: str, capsys: Any) -> None:
    assert problem in refused(capsys, *options)


@pytest.mark.parametrize("text", ["unix:a:b", "tcp:127.0.0.1:80", "tcp:[::1]:80", "tcp:localhost:0"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(read_address(text)) == text


def test_the_host_of_an_address_may_have_colons() -> None:
    assert read_address("tcp:[::1]:80") == Address("::1", 80)
    with pytest.raises(AddressProblem, match="expected unix:PATH or tcp:HOST:PORT"):
        read_address("http://localhost:80")


def test_the_description_is_of_the_machine(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "io.json"
    serve("--tcp", "127.0.0.1:0", "--machine", "1x2x3", "--queue-depth", "5", "--description", str(path))
    told = json.loads(path.read_text())
    assert told["devices"] == [{"name": "sip:0", "sip": 0}]
    assert [(place["sip"], place["cube"], place["pe"]) for place in told["places"]] == [
        *((0, 0, 0), (0, 0, 1), (0, 0, 2)),
        *((0, 1, 0), (0, 1, 1), (0, 1, 2)),
    ]
    assert told["queue_depth"] == 5
    assert {memory["kind"] for memory in told["memories"]} == {"HBM", "TCM"}


ROOT = Path(__file__).resolve().parents[3]
HOST_IO = ROOT / "conformance" / "abi" / "host_io"
QUICK = ("test_envelope.py", "test_matching.py")
pytestmark = pytest.mark.skipif(not list(HOST_IO.glob("test_*.py")), reason="the chapter has no cases yet")


def suite(served: Served, tmp_path: Path, *files: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A run of the cases of host_io, or of some files of them, against an endpoint."""
    implementation = f"--impl=hostio:{served.address},description={tmp_path / 'io.json'}"
    places = [str(HOST_IO / file) for file in files] or [str(HOST_IO)]
    options = [implementation, "--deadline=10", f"--report-dir={tmp_path}", *options, *places]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def described(tmp_path: Path) -> tuple[str, str]:
    return "--description", str(tmp_path / "io.json")


def verdicts(tmp_path: Path) -> Counter[str]:
    return Counter(line["verdict"] for line in read(tmp_path / "report.jsonl").observations)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "files"), [pytest.param("unix", (), marks=pytest.mark.slow), ("tcp", QUICK)], ids=["unix", "tcp-part"]
)
def test_nothing_that_crosses_the_wire_fails(
    serve: Callable[..., Served], tmp_path: Path, drawn: Callable[[int], int], form: str, files: tuple[str, ...]
) -> None:
    """Cases that need methods of the protocol are unsupported; the others, a quarter without `--whole`, pass."""
    place = str(tmp_path / "io.sock") if form == "unix" else "127.0.0.1:0"
    part = [] if files else [f"--shard=1/{4 // drawn(4)}"]
    run = suite(serve(f"--{form}", place, *described(tmp_path)), tmp_path, *files, options=part)
    output, _ = run.communicate(timeout=10 * PATIENCE)
    actual = verdicts(tmp_path)
    assert set(actual) <= {"pass", "unsupported", "inapplicable"}, output
    assert actual["pass"] > 20


@pytest.mark.slow
def test_a_run_ends_when_the_endpoint_is_killed(serve: Callable[..., Served], tmp_path: Path) -> None:
    """The cases before have passed, those behind are crashes, and no case is without a verdict."""
    served = serve("--unix", str(tmp_path / "io.sock"), *described(tmp_path))
    run, report = suite(served, tmp_path, "test_matching.py", "test_fields.py"), tmp_path / "report.jsonl"
    limit = time.monotonic() + PATIENCE
    while not (report.exists() and report.read_bytes().count(b'"verdict":"pass"') > 20):
        assert time.monotonic() < limit
        time.sleep(0.02)
    served.end(signal.SIGKILL)
    output, _ = run.communicate(timeout=10 * PATIENCE)
    assert run.returncode == 1
    actual = verdicts(tmp_path)
    assert actual["pass"] > 20 and actual["crash"] > 20, output
    assert set(actual) <= {"pass", "crash", "unsupported", "inapplicable"}, output


def test_a_host_that_resets_its_connection_is_no_message(capsys: pytest.CaptureFixture[str]) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    _tell(loop, {"message": "lost", "exception": ConnectionResetError("reset")})
    _tell(loop, {"message": "no file descriptor"})
    assert capsys.readouterr().err == "host-io serve: no file descriptor\n"
