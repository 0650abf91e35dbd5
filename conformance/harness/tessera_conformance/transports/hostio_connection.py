"""A connection to an endpoint on which a line is a frame; whatever happens to it is a fault with a name."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass
from typing import Any

from tessera_conformance.transports import TransportFault

LONGEST_ANSWER = 1 << 20
RECONNECT = 2.0
"""Seconds in which an endpoint that ended may listen again."""


class Ended(Exception):
    """The endpoint ended the connection."""


@dataclass(frozen=True)
class Address:
    """Where an endpoint listens; `host` is None for a socket file, `path` for a port."""

    text: str
    path: str | None = None
    host: str | None = None
    port: int = 0

    def connect(self, seconds: float) -> socket.socket:
        """A connected socket. Raises `OSError`."""
        if self.path is None:
            return socket.create_connection((self.host, self.port), timeout=seconds)
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(seconds)
            made.connect(self.path)
        except OSError:
            made.close()
            raise
        return made


def connected(address: Address, limit: float) -> Connection:
    """A new connection; where nobody listens, somebody may within a short time.

    Raises:
        TransportFault: nobody does, or nobody accepts until `limit`, a time of the monotonic clock.
    """
    patience = min(limit, time.monotonic() + RECONNECT)
    while True:
        now = time.monotonic()
        try:
            return Connection(address.connect(max(0.01, limit - now)))
        except (TimeoutError, BlockingIOError):
            if now > limit:
                raise TransportFault("hang", f"{address.text}: the endpoint accepts no connection") from None
        except (OSError, UnicodeError) as error:
            if now > patience:
                reason = getattr(error, "strerror", None) or error
                raise TransportFault("crash", f"{address.text}: no endpoint listens: {reason}") from None
        time.sleep(0.02)


class Connection:
    """A connected socket, what was not sent yet and what was not read yet."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._unsent = memoryview(b"")
        self._unread = bytearray()

    @property
    def sent(self) -> bool:
        """Whether everything was sent."""
        return not self._unsent

    def send(self, data: bytes) -> None:
        """Send bytes, which happens while answers are received."""
        self._unsent = memoryview(data)

    def receive(self, seconds: float) -> list[str] | None:
        """The answers that have come whole, or None when nothing came and nothing could be sent in some time.

        Raises:
            Ended: the endpoint ended the connection.
            TransportFault: it sent what is no frame.
        """
        readable, writable, _ = select.select([self._socket], [self._socket] if self._unsent else [], [], seconds)
        try:
            if writable:
                self._unsent = self._unsent[self._socket.send(self._unsent[: 1 << 16]) :]
            chunk = self._socket.recv(1 << 20) if readable else None
        except BlockingIOError:
            return []
        except OSError as error:
            if not readable and (chunk := self._last_words()):
                return self._lines(chunk)
            raise Ended(error.strerror or str(error)) from None
        if chunk == b"":
            raise Ended("end of the connection" + (f" within {_excerpt(self._unread)}" if self._unread else ""))
        if chunk is None:
            return [] if writable else None
        return self._lines(chunk)

    def _last_words(self) -> bytes:
        """What the endpoint sent before it stopped to read."""
        self._unsent = memoryview(b"")
        try:
            return self._socket.recv(1 << 20)
        except OSError:
            return b""

    def _lines(self, chunk: bytes) -> list[str]:
        self._unread += chunk
        *lines, rest = bytes(self._unread).split(b"\n")
        self._unread = bytearray(rest)
        if len(rest) > LONGEST_ANSWER:
            raise TransportFault("protocol_error", f"an answer of more than {LONGEST_ANSWER} bytes: {_excerpt(rest)}")
        return [_answer(each) for each in lines]

    def require_nothing_unread(self) -> None:
        """The endpoint has sent no more than it was asked. Raises `TransportFault`."""
        try:
            found = self.receive(0)
        except Ended:
            return
        if found or self._unread:
            told = found[0].encode() if found else self._unread
            raise TransportFault("protocol_error", f"an answer that nothing asked for: {_excerpt(told)}")

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def _answer(line: bytes) -> str:
    """The text of a frame. Raises `TransportFault`."""
    try:
        text = line.decode("utf-8")
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise TransportFault("protocol_error", f"an answer is not JSON in UTF-8: {_excerpt(line)}") from None
    if not isinstance(value, dict):
        raise TransportFault("protocol_error", f"an answer is not a JSON object: {_excerpt(line)}")
    return text


def _excerpt(data: bytes | bytearray) -> str:
    text = bytes(data[:120]).decode(errors="backslashreplace")
    return repr(text) + (" ..." if len(data) > 120 else "")
