"""The client: responses belong to requests by their ids; and the command that sends a file."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from served import Served, frames

from tessera_reference.cli import main
from tessera_reference.host_io.errors import InvalidFrame
from tessera_reference.host_io.server import AddressProblem, BlockingClient, Client, ConnectionEnded, read_address

Build = Callable[..., dict[str, Any]]
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
    ids = [{name: each[name] for name in ("correlation_id", "request_id")} for each in requests]
    return [each | {"completion": COMPLETION} for each in ids]


def test_responses_in_any_order_belong_to_their_requests(memory_write: Build) -> None:
    """Backwards, and with a response between them that belongs to no request."""
    requests = [memory_write(correlation_id=f"{n % 3}", request_id=f"{n // 3}") for n in range(30)]

    def backwards(found: list[dict[str, Any]]) -> bytes:
        return frames(
            [*responses(found)[:14:-1], {"refused": "x"}, *responses([memory_write()]), *responses(found)[14::-1]]
        )

    with endpoint(backwards, 30) as address, BlockingClient(read_address(address)) as client:
        assert client.exchange(requests) == responses(requests)


def test_an_endpoint_answers_a_client(served: Served, memory_write: Build, memory_read: Build) -> None:
    with BlockingClient(read_address(served.address)) as client:
        assert client.request(memory_write())["completion"] == COMPLETION
        answers = client.exchange([memory_read(request_id=str(number), nbytes=number) for number in range(3)])
        assert [each["completion"]["ok"] for each in answers] == [False, True, True]


def test_many_clients_at_once(served: Served, memory_write: Build) -> None:
    requests = [memory_write(request_id=str(number)) for number in range(100)]

    async def all_of_them() -> list[list[dict[str, Any]]]:
        clients = [await Client.open(read_address(served.address)) for _ in range(30)]
        answers = await asyncio.gather(*(each.exchange(requests) for each in clients))
        for each in clients:
            await each.close()
        return answers

    assert asyncio.run(all_of_them()) == [responses(requests)] * 30


def test_a_client_does_not_use_a_pair_twice_at_once(served: Served, memory_write: Build) -> None:
    with BlockingClient(read_address(served.address)) as client:
        with pytest.raises(ValueError, match="'r' of 'c' is not answered yet"):
            client.exchange([memory_write(), memory_write()])
        with pytest.raises(InvalidFrame):
            client.request(memory_write(request_id=3))


def test_what_the_endpoint_told_last_is_told(memory_write: Build) -> None:
    told = endpoint(lambda found: b'{"refused":"too long"}\n', 1)
    with told as address, BlockingClient(read_address(address)) as client:
        for _ in range(2):
            with pytest.raises(ConnectionEnded, match=r'ended the connection; it told: {"refused":"too long"}'):
                client.request(memory_write())


def test_an_endpoint_that_is_killed(serve: Callable[..., Served], memory_write: Build) -> None:
    served = serve("--tcp", "127.0.0.1:0")
    with BlockingClient(read_address(served.address)) as client:
        assert client.request(memory_write())["completion"] == COMPLETION
        served.end(signal.SIGKILL)
        with pytest.raises(ConnectionEnded):
            client.request(memory_write())
    with pytest.raises(AddressProblem, match=r"tcp:127\.0\.0\.1:\d+: no connection: "):
        BlockingClient(read_address(served.address))


def test_send_prints_the_answers(served: Served, memory_write: Build, tmp_path: Path, capsysbinary: Any) -> None:
    """Far more than a socket holds, so that answers have to be read while frames are sent."""
    path, (form, _, rest) = tmp_path / "requests.jsonl", served.address.partition(":")
    requests = [memory_write(request_id=f"{number}") for number in range(5000)]
    path.write_bytes(frames([*requests, b"x"]).rstrip(b"\n"))
    assert main(["host-io", "send", str(path), f"--{form}", rest]) == 0
    told = capsysbinary.readouterr()
    answers = [json.loads(each) for each in told.out.splitlines()]
    assert [each for each in answers if "refused" not in each] == responses(requests)
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
