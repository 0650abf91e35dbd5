"""Connections to an endpoint: frames in any pieces, duplicates, floods, clients, and random sessions."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, Served, codes, frames

from tessera_reference.cli import main
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.machine import Machine
from tessera_reference.host_io.server import Address, Listener, Server, closed, connect

Build = Callable[..., dict[str, Any]]
LONGEST = 1 << 20
TOO_LONG = f"a frame of more than {LONGEST} bytes"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_frame_may_come_in_pieces(served: Served, memory_write: Build, size: int) -> None:
    data = frames([memory_write(debug_label="\u00e9"), memory_write(request_id="\U0001f600")])
    with served.connect() as wire:
        for first in range(0, len(data), size):
            wire.socket.sendall(data[first : first + size])
        assert [line["request_id"] for line in wire.lines(2)] == ["r", "\U0001f600"]


def test_many_requests_may_be_unanswered(served: Served, memory_write: Build) -> None:
    """10,000 are sent before the first answer is read."""
    with served.connect() as wire:
        data = frames(memory_write(request_id=str(number)) for number in range(10_000))
        sending = threading.Thread(target=wire.socket.sendall, args=(data,))
        sending.start()
        answers = wire.lines(10_000)
        sending.join()
    assert [answer["request_id"] for answer in answers] == [str(number) for number in range(10_000)]
    assert codes(answers) == [None] * 10_000


@pytest.mark.sampled(2)
@pytest.mark.parametrize("writes", [1, 2, 7, 100])
def test_completions_do_not_depend_on_how_bytes_are_cut(
    serve: Callable[..., Served], memory_write: Build, writes: int
) -> None:
    """A hundred requests beyond the depth of the queue, some with the same ids, in a number of writes (HIO-D4-07)."""
    served = serve("--tcp", "127.0.0.1:0", "--queue-depth", "3", "--machine", "1x2x3")
    messages = [memory_write(request_id=str(number % 90), nbytes=64 * (number % 4)) for number in range(100)]
    with served.connect() as wire:
        for first in range(0, 100, -(-100 // writes)):
            wire.send(*messages[first : first + -(-100 // writes)])
        answers = wire.lines(100)
    assert [answer["request_id"] for answer in answers] == [message["request_id"] for message in messages]
    assert codes(answers) == ["INVALID_MESSAGE" if number % 4 == 0 else None for number in range(100)]


def test_a_connection_has_its_turn_between_the_requests_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory_write: Build, kernel_launch: Build
) -> None:
    """A write that is sent while the first of 100 launches runs is answered before the last of them."""
    order: list[str] = []
    submit = Endpoint.submit

    async def session() -> None:
        address, stop = Address(str(tmp_path / "s")), asyncio.Event()
        listener = Listener(address)
        listener.socket.listen()
        serving = asyncio.create_task(Server(Machine()).serve(listener, stop))
        (answers, launching), (reader, writing) = await connect(address), await connect(address)
        writing.write(frames([memory_write()]))
        await reader.readline()

        def recorded(self: Endpoint, frame: str | bytes) -> str | None:
            if not order:
                writing.write(frames([memory_write(request_id="write")]))
            order.append(json.loads(frame)["request_id"])
            return submit(self, frame)

        monkeypatch.setattr(Endpoint, "submit", recorded)
        launching.write(frames(kernel_launch("nop", request_id=str(number)) for number in range(100)))
        for _ in range(100):
            await answers.readline()
        await closed(launching)
        await closed(writing)
        stop.set()
        await serving
        listener.close()

    asyncio.run(session())
    assert order.index("write") < 50


def test_a_frame_may_be_as_long_as_the_limit(served: Served, memory_write: Build) -> None:
    longest = frames([memory_write()]).rstrip(b"\n").ljust(LONGEST)
    assert len(longest) == LONGEST
    with served.connect() as wire:
        assert codes(wire.ask(longest, memory_write(request_id="2"))) == [None, None]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n{}\n"], ids=["unended", "ended", "with more behind"])
@pytest.mark.parametrize("size", [LONGEST + 1, 5 * LONGEST])
def test_a_frame_that_is_too_long_ends_the_connection(
    served: Served, memory_write: Build, size: int, end: bytes
) -> None:
    """Frames before it are answered, frames behind it are ignored, and other connections go on."""
    with served.connect() as other, served.connect() as wire:
        wire.socket.sendall(frames([memory_write()]) + b"x" * size + end)
        assert codes(wire.until_the_end()) == [None, TOO_LONG]
        assert codes(other.ask(memory_write())) == [None]


def test_a_host_that_sends_on_is_cut_off(served: Served, memory_write: Build) -> None:
    """One that goes on behind the refusal, without an end."""
    with served.connect() as wire:
        wire.flood(b"x" * (1 << 16), PATIENCE)
    with served.connect() as other:
        assert codes(other.ask(memory_write())) == [None]


def test_a_connection_that_ends_within_a_frame(served: Served, memory_write: Build) -> None:
    with served.connect() as wire:
        wire.socket.sendall(frames([memory_write(), memory_write(request_id="2")])[:-10])
        assert codes(wire.rest()) == [None, "the connection ended within a frame"]


def test_hosts_that_leave_disturb_nobody(served: Served, memory_write: Build) -> None:
    """Within a frame, with answers unread, with a reset, and at once."""
    data = frames(memory_write(request_id=str(number)) for number in range(500))
    for number in range(40):
        wire = served.connect()
        if number % 4:
            wire.socket.sendall(data[: len(data) // number])
        if number % 2 and wire.socket.family != socket.AF_UNIX:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wire.close()
    with served.connect() as other:
        assert codes(other.ask(memory_write())) == [None]


def test_a_host_that_does_not_read_is_not_read_from(served: Served, memory_write: Build) -> None:
    """Memory stays bounded, others are served, and every frame that was sent is answered once it reads."""
    label = "x" * 100
    block = frames(memory_write(request_id=str(number), debug_label=label) for number in range(100))
    with served.connect() as slow, served.connect() as other:
        before = served.rss()
        sent = slow.flood(block, 0.5)
        assert served.rss() - before < 32 << 20
        assert codes(other.ask(memory_write())) == [None]
        whole = sent // len(block) * 100 + block[: sent % len(block)].count(b"\n")
        assert len(slow.lines(whole)) == whole


def test_more_connections_than_are_kept_are_refused(serve: Callable[..., Served], memory_write: Build) -> None:
    served = serve("--tcp", "127.0.0.1:0")
    wires = [served.connect() for _ in range(256)]
    assert all(codes(wire.ask(memory_write())) == [None] for wire in wires)
    with served.connect() as one_more:
        assert codes(one_more.rest()) == ["256 connections are open already"]
    with wires.pop() as leaving:
        leaving.rest()
    with served.connect() as another:
        assert codes(another.ask(memory_write())) == [None]
    for wire in wires:
        wire.close()


COMPLETION = {"ok": True, "error_code": None, "error_message": None}


@contextmanager
def endpoint(answer: Callable[[list[dict[str, Any]]], bytes], count: int) -> Iterator[str]:
    """An endpoint that reads so many frames, sends what a function makes of them, and ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                connection.sendall(answer([json.loads(lines.readline()) for _ in range(count)]))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def responses(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = [{name: request[name] for name in ("correlation_id", "request_id")} for request in requests]
    return [id_ | {"completion": COMPLETION} for id_ in ids]


def test_answers_leave_in_an_order_of_the_seed(serve: Callable[..., Served], memory_write: Build) -> None:
    """Each request has its answer, however the bytes are cut, and no queue is full."""
    requests = [memory_write(request_id=str(number)) for number in range(200)]
    orders = set()
    for seed, size in ((1, 1 << 20), (2, 1 << 20), (2, 700)):
        data = frames(requests)
        with serve("--tcp", "127.0.0.1:0", "--seed", str(seed), "--queue-depth", "16").connect() as wire:
            for first in range(0, len(data), size):
                wire.socket.sendall(data[first : first + size])
            answers = wire.lines(200)
        assert sorted(answers, key=lambda answer: int(answer["request_id"])) == responses(requests)
        orders.add(tuple(answer["request_id"] for answer in answers))
    assert len(orders) > 1
    assert tuple(map(str, range(200))) not in orders


def test_a_pe_fails_and_reads_reach_a_file(
    serve: Callable[..., Served], memory_write: Build, memory_read: Build, tmp_path: Path
) -> None:
    path = tmp_path / "reads.jsonl"
    served = serve("--tcp", "127.0.0.1:0", "--fail", "0.1.3", "--reads", str(path))
    with served.connect() as wire:
        read = memory_read(request_id="7", nbytes=8)
        assert codes(wire.ask(memory_write(), memory_write(request_id="2", dst_pe=3))) == [None, "PE_FAULT"]
        assert codes(wire.ask(read, memory_read(dst_kind="discard"))) == [None, None]
    data = 2 * "04030201"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"correlation_id": read["correlation_id"], "request_id": "7", "data": data}
    ]


def test_send_prints_the_answers(served: Served, memory_write: Build, tmp_path: Path, capsysbinary: Any) -> None:
    """Far more than a socket holds, so that answers have to be read while frames are sent."""
    path, (form, _, rest) = tmp_path / "requests.jsonl", served.address.partition(":")
    requests = [memory_write(request_id=f"{number}") for number in range(5000)]
    path.write_bytes(frames([*requests, b"x"]).rstrip(b"\n"))
    assert main(["host-io", "send", str(path), f"--{form}", rest]) == 0
    told = capsysbinary.readouterr()
    answers = [json.loads(line) for line in told.out.splitlines()]
    assert [answer for answer in answers if "refused" not in answer] == responses(requests)
    assert len(answers) == 5001
    assert told.err == b""


def test_send_reads_standard_input(of_tcp: Served, memory_write: Build, monkeypatch: Any, capsysbinary: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(frames([memory_write()]))))
    assert main(["host-io", "send", "-", "--tcp", of_tcp.address.removeprefix("tcp:")]) == 0
    assert json.loads(capsysbinary.readouterr().out) == responses([memory_write()])[0]


def test_send_tells_what_was_not_answered(memory_write: Build, tmp_path: Path, capsysbinary: Any) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(frames([memory_write()] * 3))
    with endpoint(lambda found: b"{}\n", 3) as address:
        assert main(["host-io", "send", str(path), "--tcp", address.removeprefix("tcp:")]) == 1
    assert capsysbinary.readouterr().err == b"1 of 3 frames were answered before the endpoint ended the connection\n"


def test_send_tells_what_it_cannot_do(tmp_path: Path, capsys: Any) -> None:
    for file, problem in (("missing.jsonl", "missing.jsonl: No such file"), (__file__, "no connection: ")):
        assert main(["host-io", "send", file, "--unix", str(tmp_path / "io.sock")]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.slow
def test_the_endpoint_is_without_findings() -> None:
    script = Path(__file__).parent / "fuzz_server.py"
    command = [sys.executable, str(script), "--seed=1", "--sessions=6", "--seconds=60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.endswith("\n0 findings\n")
