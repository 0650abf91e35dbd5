"""An endpoint behind a socket: a line is a frame (D3; AMB-HIO-55, -58 to -61).

Every connection has ids and a queue of its own; all of them work on one machine. What has arrived on a connection is
taken whole before it is answered, so that requests that arrive together are unanswered together. While a host does not
read its answers, nothing more is read from it, so that what is kept for a connection is bounded.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from collections.abc import Sequence
from typing import Any

from .connections import closed
from .endpoint import MOST_BYTES, Endpoint
from .frames import write_frame
from .journal import Journal
from .listening import Listener
from .machine import Machine

__all__ = ["CHUNK", "MOST_CONNECTIONS", "Server"]

CHUNK = 1 << 16
"""Bytes that are taken from a connection at a time, and answered before the next."""
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
            await _send(writer, endpoint.exchange(frames[:too_long]))
            if too_long is not None:
                await _refuse(reader, writer, f"a frame of more than {MOST_BYTES} bytes")
                return
            await asyncio.sleep(0)  # others have their turn, even if more has arrived
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
