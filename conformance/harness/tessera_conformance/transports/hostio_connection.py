"""A connection to an endpoint on which a line is a frame; it raises a named fault for every failure.

Needs the standard library alone: the scripts that `reproduce` writes contain this text.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, NoReturn

LONGEST_ANSWER = 1 << 20
LONGEST_FRAME = 1 << 20
"""Bytes; an endpoint closes the connection after a longer frame (AMB-HIO-55)."""
LONGEST_ID = 256
RECONNECT = 2.0
"""Seconds within which an endpoint that closed the connection may listen again."""
SILENCE = 0.5
"""Seconds to wait for answers to frames without readable ids, once every request is answered: they need none."""
QUIET = 0.01
"""Seconds to wait for more answers than frames."""

Pair = tuple[str, str]


class Ended(Exception):
    """The endpoint closed the connection."""


class EndpointFault(Exception):
    """The endpoint exited, hung or sent a malformed answer."""

    def __init__(self, kind: Literal["crash", "hang", "protocol_error"], detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Address(NamedTuple):
    """The address of an endpoint; its place is the path of a socket file, or a host and a port."""

    text: str
    place: str | tuple[str, int]

    def connect(self, seconds: float) -> socket.socket:
        """Return a connected socket. Raises `OSError`."""
        if isinstance(self.place, tuple):
            return socket.create_connection(self.place, timeout=seconds)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(seconds)
            connection.connect(self.place)
        except OSError:
            connection.close()
            raise
        return connection


def read_address(text: str) -> Address:
    """Return the address in `unix:PATH` or `tcp:HOST:PORT`. Raises `ValueError`."""
    form, _, rest = text.partition(":")
    if form == "unix" and rest and "\0" not in rest:
        return Address(text, rest)
    host, _, port = rest.rpartition(":")
    if form == "tcp" and host and port.isascii() and port.isdecimal() and int(port[:6]) < 1 << 16:
        return Address(text, (host.removeprefix("[").removesuffix("]"), int(port)))
    raise ValueError(f"no address {text!r}")


def connected(address: Address, limit: float) -> socket.socket:
    """Return a connected socket; a listener may start within a short time.

    Raises `EndpointFault`: there is no listener, or none accepts until `limit`, a time of the monotonic clock.
    """
    patience = min(limit, time.monotonic() + RECONNECT)
    while True:
        now = time.monotonic()
        try:
            return address.connect(max(0.01, limit - now))
        except (TimeoutError, BlockingIOError):
            if now > limit:
                raise EndpointFault("hang", f"{address.text}: the endpoint accepts no connection") from None
        except (OSError, UnicodeError) as error:
            if now > patience:
                reason = getattr(error, "strerror", None) or error
                raise EndpointFault("crash", f"{address.text}: no endpoint listens: {reason}") from None
        time.sleep(0.02)


def _answer(line: bytes) -> str:
    """Return the text of a frame. Raises `EndpointFault`."""
    try:
        text = line.decode("utf-8")
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise EndpointFault("protocol_error", f"an answer is not JSON in UTF-8: {excerpt(line)}") from None
    if not isinstance(value, dict):
        raise EndpointFault("protocol_error", f"an answer is not a JSON object: {excerpt(line)}")
    return text


def excerpt(data: bytes | bytearray) -> str:
    """Return the beginning of some bytes, in quotes."""
    text = bytes(data[:120]).decode(errors="backslashreplace")
    return repr(text) + (" ..." if len(data) > 120 else "")


class Conversation:
    """A connection to an address, with its unsent and unread bytes, and its successors."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._unsent = memoryview(b"")
        self._unread = bytearray()
        self._may_end = False
        """True once a frame was sent after which an endpoint may end the connection (AMB-HIO-55)."""

    @property
    def open(self) -> bool:
        """True while there is a connection."""
        return self._socket is not None

    def connect(self, limit: float) -> None:
        """Replace the connection by a new one. Raises `EndpointFault`."""
        self.close()
        self._socket = connected(self._address, limit)
        self._socket.setblocking(False)
        self._unsent = memoryview(b"")
        self._unread.clear()
        self._may_end = False

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _receive(self, seconds: float) -> list[str] | None:
        """Return the complete answers so far, or None if nothing was received or sent within some time.

        Raises `Ended`: the endpoint closed the connection; or `EndpointFault`: it sent a malformed frame.
        """
        assert self._socket is not None
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
            raise Ended("end of the connection" + (f" within {excerpt(self._unread)}" if self._unread else ""))
        if chunk is None:
            return [] if writable else None
        return self._lines(chunk)

    def _last_words(self) -> bytes:
        """Return the bytes that the endpoint sent before it stopped reading."""
        assert self._socket is not None
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
            raise EndpointFault("protocol_error", f"an answer of more than {LONGEST_ANSWER} bytes: {excerpt(rest)}")
        return [_answer(line) for line in lines]

    def require_nothing_unread(self) -> None:
        """Check that no answer without a request has arrived. Raises `EndpointFault`."""
        try:
            frames = self._receive(0)
        except Ended:
            return
        if frames or self._unread:
            unread = frames[0].encode() if frames else self._unread
            raise EndpointFault("protocol_error", f"an answer without a request: {excerpt(unread)}")

    def exchange(self, frames: Sequence[str], limit: float) -> list[str]:
        """Send frames and return the answers until a time of the monotonic clock. Raises `EndpointFault`."""
        answers: list[str] = []
        for part in parts([frame.encode("utf-8", "surrogatepass") for frame in frames]):
            answers += self._part(part, limit)
        return answers

    def _part(self, frames: Sequence[bytes], limit: float) -> list[str]:
        """Send frames and return the answers; what a frame that ended the connection left is sent on a new one."""
        overlong = len(frames[0]) > LONGEST_FRAME
        pairs = [None if overlong else ids_of(frame) for frame in frames]
        unanswered = Counter(pair for pair in pairs if pair is not None)
        answers: list[str] = []
        self.require_nothing_unread()
        self._unsent = memoryview(b"".join(frame + b"\n" for frame in frames))
        try:
            while (received := self._next(len(frames) - len(answers), unanswered, limit)) is not None:
                answers += received
                unanswered -= Counter(pair for frame in received if (pair := ids_of(frame.encode())) is not None)
                if len(answers) > 2 * len(frames) + 1:
                    detail = f"{len(answers)} answers to {len(frames)} frames"
                    raise EndpointFault("protocol_error", detail)
        except Ended as end:
            again = self._first_to_send_again(pairs, unanswered)
            if again is None and len(answers) < len(frames):
                detail = f"the endpoint ended the connection after {len(answers)} of {len(frames)} answers: {end}"
                raise EndpointFault("crash", detail) from None
            if again is not None:
                self.connect(limit)
                answers += self._part(frames[again:], limit) if unanswered else []
            return answers
        self._may_end = self._may_end or None in pairs
        if overlong:
            self.connect(limit)
        return answers

    def _first_to_send_again(self, pairs: Sequence[Pair | None], unanswered: Counter[Pair]) -> int | None:
        """Return the place of the first unanswered request, if a frame before it may have ended the connection."""
        first = next((place for place, pair in enumerate(pairs) if pair in unanswered), len(pairs))
        return first if self._may_end or None in pairs[:first] else None

    def _next(self, missing: int, unanswered: Counter[Pair], limit: float) -> list[str] | None:
        """Return more answers, or None once there will be none. Raises `Ended` and `EndpointFault`."""
        settled = not self._unsent and (missing <= 0 or not unanswered)
        remaining = limit - time.monotonic()
        patience = QUIET if missing <= 0 else SILENCE
        frames = self._receive(max(0.0, min(remaining, patience) if settled else remaining))
        if frames is None and not settled:
            detail = f"{missing} frames are not answered at the deadline, {sum(unanswered.values())} of them requests"
            raise EndpointFault("hang", detail)
        return frames


def parts(frames: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield the frames in order: every overlong one alone, those between together."""
    for overlong, group in groupby(frames, lambda frame: len(frame) > LONGEST_FRAME):
        together = list(group)
        yield from ([frame] for frame in together) if overlong else [together]


def ids_of(frame: bytes) -> Pair | None:
    """Return the ids of a request or a response; None if an endpoint may regard them as missing."""
    try:
        value = json.loads(frame, object_pairs_hook=_members, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    ids = [value.get(name) for name in ("correlation_id", "request_id")] if isinstance(value, dict) else []
    texts = [id_ for id_ in ids if isinstance(id_, str) and 1 <= len(id_) <= LONGEST_ID]
    return (texts[0], texts[1]) if len(texts) == 2 else None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member given twice")
    return members


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
