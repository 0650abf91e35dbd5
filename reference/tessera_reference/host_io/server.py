"""An endpoint behind a socket (D3; AMB-HIO-55, -58 to -61)."""

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
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

from ..mesh.engine import Choices, FirstCome, Seeded
from .endpoint import MOST_BYTES, Endpoint, Journal
from .frames import write_frame
from .machine import Machine

# The address of an endpoint: a socket file, or a host and a port (AMB-HIO-58).


class AddressProblem(Exception):
    """An address that cannot be read, bound or reached, with the reason."""


class Address(NamedTuple):
    """A socket file, or a host with a port; a listener on port 0 takes any free port."""

    place: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.place}]" if ":" in self.place else self.place
        return f"unix:{self.place}" if self.port is None else f"tcp:{host}:{self.port}"


def read_address(text: str) -> Address:
    """Return the address of `unix:PATH` or `tcp:HOST:PORT`. Raises `AddressProblem`."""
    form, _, rest = text.partition(":")
    if form == "unix" and rest and "\0" not in rest:
        return Address(rest)
    host, _, port = rest.rpartition(":")
    if form == "tcp" and host and port.isascii() and port.isdecimal() and int(port) < 1 << 16:
        return Address(host.removeprefix("[").removesuffix("]"), int(port))
    raise AddressProblem(f"address {text!r}: expected unix:PATH or tcp:HOST:PORT")


# Connections with a frame on each line: opened, and closed once everything is sent.


LONGEST_ANSWER = 1 << 21


async def connect(address: Address) -> tuple[StreamReader, StreamWriter]:
    """Connect to an endpoint. Raises `AddressProblem`."""
    try:
        if address.port is None:
            return await asyncio.open_unix_connection(address.place, limit=LONGEST_ANSWER)
        return await asyncio.open_connection(*address, limit=LONGEST_ANSWER)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AddressProblem(f"{address}: no connection: {reason}") from None


async def closed(writer: StreamWriter) -> None:
    """Close a connection once everything is sent, or the peer has closed it."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


# Listening sockets: for this machine alone unless allowed otherwise, a socket file for its owner alone.


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
            if address.port is None:
                self.socket = socket.socket(socket.AF_UNIX)
                self._bind_file(address.place)
            else:
                *kind, place = _resolved(address, allow_remote)
                self.socket = socket.socket(*kind)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.bind(place)
                self.address = Address(address.place, self.socket.getsockname()[1])
        except (OSError, UnicodeError, AddressProblem) as error:
            self.close()
            raise AddressProblem(f"{address}: {getattr(error, 'strerror', None) or error}") from None

    socket: socket.socket

    def _bind_file(self, path: str) -> None:
        """Bind the socket file; it gets its mode before the socket listens, so nobody can connect earlier."""
        _remove_stale(path)
        self.socket.bind(path)
        os.chmod(path, OWNER_ONLY)
        self._file = _identity(path)

    def close(self) -> None:
        """Close the socket and remove its file, unless another one has taken its place."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                if _identity(self.address.place) == self._file:
                    os.unlink(self.address.place)
        if hasattr(self, "socket"):
            self.socket.close()


def _identity(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino


def _remove_stale(path: str) -> None:
    """Remove a socket file without a listener. Raises `AddressProblem` for any other file."""
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


def _resolved(address: Address, allow_remote: bool) -> tuple[int, int, int, Any]:
    """Return family, kind, protocol and place of a socket. Raises `OSError`, `UnicodeError` or `AddressProblem`."""
    addresses = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, place = addresses[0]
    if not (allow_remote or ipaddress.ip_address(str(place[0]).partition("%")[0]).is_loopback):
        raise AddressProblem("other machines reach it: name a loopback address, or add --allow-remote")
    return family, kind, protocol, place


# An endpoint behind a socket: a line is a frame (D3; AMB-HIO-55, -58 to -61).
#
# Every connection has its own ids and queue; all of them work on one machine. A request is answered before the next one
# of its connection is taken, so that completions do not depend on how bytes are divided (HIO-D4-07), and other
# connections have their turn in between. With a seed, answers wait until the queue is full or no more requests come,
# and leave in an order of the seed. While a host does not read its answers, nothing more is read from it, which bounds
# the memory of a connection.


CHUNK = 1 << 16
"""The bytes that are read from a connection at a time, and answered before the next."""
MOST_UNSENT = 1 << 20
"""The bytes of unread answers beyond which nothing more is taken from the connection."""
MOST_CONNECTIONS = 256
GRACE = 1.0
"""The seconds in which answers may still be read when the server ends."""
LINGER = 2.0
"""The seconds for which a host's bytes are dropped, so that it can read why the connection ends."""


class Server:
    """A server of one machine to many connections.

    With a `seed` answers leave out of order. The data of reads are appended to `reads`, a line of JSON for each.
    """

    def __init__(self, machine: Machine, seed: int | None = None, reads: TextIO | None = None) -> None:
        self._machine = machine
        self._seed = seed
        self._reads = reads
        self._open: dict[asyncio.Task[Any], StreamWriter] = {}

    async def serve(self, listener: Listener, stop: asyncio.Event) -> None:
        """Answer connections until `stop` is set; then send remaining answers, as far as hosts read them in time."""
        asyncio.get_running_loop().set_exception_handler(_tell)
        start: Any = asyncio.start_unix_server if listener.socket.family == socket.AF_UNIX else asyncio.start_server
        server = await start(self._connected, sock=listener.socket, limit=CHUNK)
        await stop.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        closings = [asyncio.create_task(closed(writer)) for writer in self._open.values()]
        if closings:
            await asyncio.wait(closings, timeout=GRACE)
        for writer in self._open.values():
            writer.transport.abort()
        await asyncio.gather(*closings)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection, from its first byte to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            if len(self._open) > MOST_CONNECTIONS:
                await _refuse(reader, writer, f"{MOST_CONNECTIONS} connections are open already")
            else:
                await self._converse(reader, writer)
            await closed(writer)
        except ConnectionError:
            pass  # the host has disconnected
        except asyncio.CancelledError:
            return  # the server ends, and closes its connections
        except Exception as error:
            print(f"host-io serve: a connection failed: {error!r}", file=sys.stderr, flush=True)
        writer.close()
        del self._open[task]

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer frames until the host sends no more, or one that is too long."""
        writer.transport.set_write_buffer_limits(high=MOST_UNSENT)
        endpoint = Endpoint(machine=self._machine, journal=Journal(0))
        most = 0 if self._seed is None else self._machine.size.queue_depth - 1
        choices: Choices = FirstCome() if self._seed is None else Seeded(self._seed)
        rest = b""
        while chunk := await reader.read(CHUNK):
            *frames, rest = (rest + chunk).split(b"\n")
            too_long = next((place for place, text in enumerate((*frames, rest)) if len(text) > MOST_BYTES), None)
            for frame in frames[:too_long]:
                refusal = endpoint.submit(frame)
                await _send(writer, [] if refusal is None else [refusal])
                await _send(writer, self._completed(endpoint, choices, most))
                await asyncio.sleep(0)  # other connections have their turn
            await _send(writer, self._completed(endpoint, choices, 0))
            if too_long is not None:
                await _refuse(reader, writer, f"a frame of more than {MOST_BYTES} bytes")
                return
        if rest:
            await _send(writer, [write_frame({"refused": "the connection ended within a frame"})])

    def _completed(self, endpoint: Endpoint, choices: Choices, most: int) -> list[str]:
        """Return responses of requests until at most `most` wait; write the data of reads to the file."""
        if self._reads is None:
            return endpoint.drain(choices, most)
        buffers = endpoint.share({})
        answers = endpoint.drain(choices, most)
        for (correlation, request), data in buffers.items():
            line = {"correlation_id": correlation, "request_id": request, "data": data.hex()}
            print(json.dumps(line), file=self._reads, flush=True)
        return answers


async def _send(writer: StreamWriter, answers: Sequence[str]) -> None:
    """Write answers, and wait until most of them are read. Raises `ConnectionError`."""
    if answers:
        writer.write("".join(f"{answer}\n" for answer in answers).encode())
        await writer.drain()


async def _refuse(reader: StreamReader, writer: StreamWriter, reason: str) -> None:
    """Send the reason why the connection ends, and drop further bytes until the host ends it, too.

    A connection that is closed with unread bytes is reset, and the host might lose the answers before.
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
    """Report an error of the event loop, such as a connection that cannot be accepted for lack of a descriptor."""
    if isinstance(context.get("exception"), ConnectionError):
        return  # the host has disconnected
    reason = context.get("exception") or context["message"]
    print(f"host-io serve: {reason}", file=sys.stderr, flush=True)
