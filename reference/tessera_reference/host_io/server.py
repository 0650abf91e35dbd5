"""An endpoint behind a socket, and clients that talk to it (D3; AMB-HIO-55, -58 to -61)."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
import stat
import sys
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from .endpoint import MOST_BYTES, Endpoint, Journal, Pair, ids_of
from .errors import InvalidFrame
from .frames import write_frame
from .machine import Machine

# Where an endpoint is reached: a socket file, or a host and a port (AMB-HIO-58).


class AddressProblem(Exception):
    """An address that cannot be read, listened on or reached; says which and why."""


@dataclass(frozen=True)
class UnixAddress:
    """A socket file."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True)
class TcpAddress:
    """A host and a port; to listen on port 0 is to listen on any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}"


Address: TypeAlias = UnixAddress | TcpAddress


def read_address(text: str) -> Address:
    """The address of `unix:PATH` or `tcp:HOST:PORT`. Raises `AddressProblem`."""
    form, _, rest = text.partition(":")
    if form == "unix" and rest and "\0" not in rest:
        return UnixAddress(rest)
    host, _, port = rest.rpartition(":")
    if form == "tcp" and host and port.isascii() and port.isdecimal() and int(port) < 1 << 16:
        return TcpAddress(host.removeprefix("[").removesuffix("]"), int(port))
    raise AddressProblem(f"address {text!r}: expected unix:PATH or tcp:HOST:PORT")


# Connections on which a line is a frame: made, and ended once everything is sent.


LONGEST_ANSWER = 1 << 21


async def connect(address: Address) -> tuple[StreamReader, StreamWriter]:
    """A connection to an endpoint. Raises `AddressProblem`."""
    try:
        if isinstance(address, UnixAddress):
            return await asyncio.open_unix_connection(address.path, limit=LONGEST_ANSWER)
        return await asyncio.open_connection(address.host, address.port, limit=LONGEST_ANSWER)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AddressProblem(f"{address}: no connection: {reason}") from None


async def closed(writer: StreamWriter) -> None:
    """Close a connection once everything is sent, or the other side is gone."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


# Sockets to listen on: for this machine alone unless told otherwise, a socket file for its owner alone.


OWNER_ONLY = 0o600


class Listener:
    """A socket that is bound to an address and does not listen yet; `address` has the port that was found for port 0.

    Raises:
        AddressProblem: another endpoint listens there, other machines reach the address and `allow_remote` is false,
            or the system refuses.
    """

    def __init__(self, address: Address, *, allow_remote: bool = False) -> None:
        self.address = address
        self._file: tuple[int, int] | None = None
        try:
            if isinstance(address, UnixAddress):
                self.socket = socket.socket(socket.AF_UNIX)
                self._bind_file(address.path)
            else:
                family, kind, protocol, place = _resolved(address, allow_remote)
                self.socket = socket.socket(family, kind, protocol)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind(place)
                self.address = TcpAddress(address.host, self.socket.getsockname()[1])
        except (OSError, UnicodeError, AddressProblem) as error:
            self.close()
            raise AddressProblem(f"{address}: {getattr(error, 'strerror', None) or error}") from None

    socket: socket.socket

    def _bind_file(self, path: str) -> None:
        """Make the socket file; it gets its mode before the socket listens, until when nobody can connect."""
        _remove_stale(path)
        self.socket.bind(path)
        os.chmod(path, OWNER_ONLY)
        self._file = _identity(path)

    def close(self) -> None:
        """Close the socket and remove its file, unless another one has taken its place."""
        if isinstance(self.address, UnixAddress) and self._file is not None:
            with contextlib.suppress(OSError):
                if _identity(self.address.path) == self._file:
                    os.unlink(self.address.path)
        if hasattr(self, "socket"):
            self.socket.close()


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _remove_stale(path: str) -> None:
    """Remove a socket file on which nobody listens. Raises `AddressProblem` for any other file."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise AddressProblem("there is a file that is no socket")
    with socket.socket(socket.AF_UNIX) as trial:
        trial.setblocking(False)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # it listens, and has not accepted others yet
            pass
    raise AddressProblem("another endpoint listens there")


def _resolved(address: TcpAddress, allow_remote: bool) -> tuple[int, int, int, Any]:
    """Family, kind, protocol and place of a socket. Raises `OSError`, `UnicodeError` or `AddressProblem`."""
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = found[0]
    if not (allow_remote or ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback):
        raise AddressProblem("other machines reach it: name a loopback address, or add --allow-remote")
    return family, kind, protocol, place


# An endpoint behind a socket: a line is a frame (D3; AMB-HIO-55, -58 to -61).
#
# Every connection has ids and a queue of its own; all of them work on one machine. A request is answered before the
# next one of its connection is taken, so that completions do not depend on how bytes are cut (HIO-D4-07), and other
# connections have their turn in between. While a host does not read its answers, nothing more is read from it, so
# that what is kept for a connection is bounded.


CHUNK = 1 << 16
"""Bytes that are read from a connection at a time, and answered before the next."""
MOST_UNSENT = 1 << 20
"""Bytes of answers that wait to be read before nothing more is taken from the connection."""
MOST_CONNECTIONS = 256
GRACE = 1.0
"""Seconds in which answers may still be read when the server ends."""
LINGER = 2.0
"""Seconds for which what a host sends is dropped, so that it can read why the connection ends."""


class Server:
    """Serves one machine to many connections."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[StreamWriter] = set()

    async def serve(self, listener: Listener, stop: asyncio.Event) -> None:
        """Answer connections until `stop` is set; what was answered by then is sent, as far as it is read soon."""
        asyncio.get_running_loop().set_exception_handler(_tell)
        start: Any = asyncio.start_unix_server if listener.socket.family == socket.AF_UNIX else asyncio.start_server
        server = await start(self._connected, sock=listener.socket, limit=CHUNK)
        await stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close_all()

    async def _close_all(self) -> None:
        closings = [asyncio.create_task(closed(each)) for each in self._writers]
        if closings:
            await asyncio.wait(closings, timeout=GRACE)
        for each in self._writers:
            each.transport.abort()
        await asyncio.gather(*closings)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One connection, from its first byte to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if len(self._writers) > MOST_CONNECTIONS:
                await _refuse(reader, writer, f"{MOST_CONNECTIONS} connections are open already")
            else:
                await self._converse(reader, writer)
            await closed(writer)
        except ConnectionError:
            pass  # the host is gone
        except asyncio.CancelledError:
            return  # the server ends, and closes what is open
        except Exception as error:
            print(f"host-io serve: a connection failed: {error!r}", file=sys.stderr, flush=True)
        finally:
            self._tasks.discard(task)
        writer.close()
        self._writers.discard(writer)

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer frames until the host sends no more, or one that is too long."""
        writer.transport.set_write_buffer_limits(high=MOST_UNSENT)
        endpoint = Endpoint(machine=self._machine, journal=Journal(0))
        rest = b""
        while chunk := await reader.read(CHUNK):
            *frames, rest = (rest + chunk).split(b"\n")
            too_long = next((place for place, each in enumerate((*frames, rest)) if len(each) > MOST_BYTES), None)
            for frame in frames[:too_long]:
                await _send(writer, endpoint.exchange([frame]))
                await asyncio.sleep(0)  # other connections have their turn
            if too_long is not None:
                await _refuse(reader, writer, f"a frame of more than {MOST_BYTES} bytes")
                return
        if rest:
            await _send(writer, [write_frame({"refused": "the connection ended within a frame"})])


async def _send(writer: StreamWriter, answers: Sequence[str]) -> None:
    """Write answers, and wait until most of what was written is read. Raises `ConnectionError`."""
    if answers:
        writer.write("".join(f"{each}\n" for each in answers).encode())
        await writer.drain()


async def _refuse(reader: StreamReader, writer: StreamWriter, reason: str) -> None:
    """Say why the connection ends, and drop what still comes until the host ends it, too.

    A connection that is closed with bytes unread is reset, and the host might lose the answers before.
    """
    await _send(writer, [write_frame({"refused": reason})])
    writer.write_eof()
    try:
        async with asyncio.timeout(LINGER):
            while await reader.read(CHUNK):
                pass
    except TimeoutError:
        pass


def _tell(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """A message for what the event loop cannot do, such as to accept a connection without a file descriptor."""
    reason = context.get("exception") or context["message"]
    print(f"host-io serve: {reason}", file=sys.stderr, flush=True)


# The host's side of a connection to an endpoint: frames as they are, or requests with their responses (D3).


Response: TypeAlias = dict[str, Any]


class ConnectionEnded(Exception):
    """The endpoint ended the connection before it answered; says what it told last."""


class Client:
    """Sends requests, any number of which may be unanswered, and matches the responses by their ids."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._unanswered: dict[Pair, asyncio.Future[Response]] = {}
        self._last_words = ""
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, address: Address) -> Self:
        """A client with a connection of its own. Raises `AddressProblem`."""
        return cls(*await connect(address))

    async def request(self, message: Mapping[str, Any]) -> Response:
        """The response of one request.

        Raises:
            InvalidFrame: the message has no two ids.
            ValueError: a request with the same ids is unanswered.
            ConnectionEnded: the endpoint ended the connection before.
        """
        pair = ids_of(message)
        if pair in self._unanswered:
            raise ValueError(f"{pair[1]!r} of {pair[0]!r} is not answered yet")
        if self._receiving.done():
            raise self._ended()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._unanswered[pair] = answer
        with contextlib.suppress(ConnectionError):  # what the endpoint told before decides
            self._writer.write(f"{write_frame(message)}\n".encode())
            await self._writer.drain()
        try:
            return await answer
        finally:
            self._unanswered.pop(pair, None)

    async def exchange(self, messages: Sequence[Mapping[str, Any]]) -> list[Response]:
        """The responses of requests that are sent without waiting, in their order; raises as `request`."""
        return await asyncio.gather(*map(self.request, messages))

    async def close(self) -> None:
        """End the connection; what is unanswered raises `ConnectionEnded`."""
        await closed(self._writer)
        await self._receiving

    async def _receive(self) -> None:
        """Match lines to requests until the connection ends."""
        try:
            while line := await self._reader.readline():
                self._match(line)
        except (ConnectionError, ValueError) as error:
            self._last_words = str(error)
        for answer in self._unanswered.values():
            if not answer.done():
                answer.set_exception(self._ended())

    def _match(self, line: bytes) -> None:
        """Give a response to its request; anything else is what the endpoint told last. Raises `ValueError`."""
        response = json.loads(line)
        try:
            answer = self._unanswered[ids_of(response)]
        except (InvalidFrame, KeyError, AttributeError):
            self._last_words = line.decode().strip()
            return
        if not answer.done():
            answer.set_result(response)

    def _ended(self) -> ConnectionEnded:
        told = f"; it told: {self._last_words:.300}" if self._last_words else ""
        return ConnectionEnded(f"the endpoint ended the connection{told}")


class BlockingClient:
    """A client for code that waits: `with BlockingClient(address) as client: client.request(message)`.

    Raises:
        AddressProblem: nobody listens at the address.
    """

    def __init__(self, address: Address) -> None:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(Client.open(address))
        except AddressProblem:
            self._runner.close()
            raise

    def request(self, message: Mapping[str, Any]) -> Response:
        """As `Client.request`."""
        return self._runner.run(self._client.request(message))

    def exchange(self, messages: Sequence[Mapping[str, Any]]) -> list[Response]:
        """As `Client.exchange`."""
        return self._runner.run(self._client.exchange(messages))

    def close(self) -> None:
        """End the connection."""
        self._runner.run(self._client.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
