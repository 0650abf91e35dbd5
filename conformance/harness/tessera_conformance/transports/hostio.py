"""A running IO_CPU endpoint behind a socket, asked in its own frames: `hostio:unix:PATH` or `hostio:tcp:HOST:PORT`.

A line is a frame. Nothing but frames crosses the wire, so that of the area `host_io` there are `exchange`, without
buffers and seeds, and `describe`, which a description answers. Every case has a connection of its own. An endpoint that
dies, hangs or sends what is no JSON object is a fault of its case; the next case connects again (AMB-HIO-58 to -62).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NoReturn

from tessera_conformance.transports import ImplementationUnavailable, TransportFault
from tessera_conformance.transports.hostio_connection import Address, Connection, Ended, connected
from tessera_conformance.transports.hostio_description import LEAST, BadDescription, read_description

LONGEST_FRAME = 1 << 20
"""Bytes; behind a longer frame a connection ends (AMB-HIO-55)."""
LONGEST_ID = 256
SILENCE = 0.5
"""Seconds that frames without readable ids have for an answer, once every request is answered: they need none."""
QUIET = 0.01
"""Seconds in which more answers than frames would be seen."""
DELIVERY_ORDER = "delivery-order"

Pair = tuple[str, str]


class HostIoTransport:
    """Speaks with the endpoint at `ADDRESS` or `ADDRESS,description=FILE`.

    Raises:
        ImplementationUnavailable: the address is none, or the description cannot be read.
    """

    def __init__(self, place: str) -> None:
        self.label = f"hostio:{place}"
        address, _, path = place.partition(",description=")
        self._address = _read_address(address, self.label)
        self._connection: Connection | None = None
        try:
            self._description = read_description(path) if path else LEAST
        except BadDescription as problem:
            remedy = "correct the description; docs/host_io.md has one"
            raise ImplementationUnavailable(self.label, str(problem), remedy) from None

    def start(self, deadline: float) -> Any:
        """Connect, and return the Hello that the description makes."""
        self._connect(time.monotonic() + deadline)
        return self._description.hello()

    def stop(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Answer one method."""
        if self._connection is None:
            raise TransportFault("crash", "the connection is not open")
        limit = time.monotonic() + deadline
        try:
            if method == "session.reset":
                self._connection.require_nothing_unread()
                self._connect(limit)
                return {"returned": {}}
            if method == "host_io.describe":
                return {"returned": self._description.endpoint}
            if method == "host_io.exchange":
                return self._exchange(params, limit)
        except TransportFault:
            self.stop()
            raise
        return _unsupported(method)

    def _connect(self, limit: float) -> None:
        """A new connection instead of the one before."""
        self.stop()
        self._connection = connected(self._address, limit)

    def _exchange(self, params: Mapping[str, Any], limit: float) -> Any:
        """The answers to frames."""
        frames = params["frames"]
        if params.get("buffers"):
            return _unsupported("host-buffer-ref")
        if params.get("seed") is not None:
            return _unsupported(DELIVERY_ORDER)
        if any("\n" in frame for frame in frames):
            return _unsupported("host_io.exchange")  # it would be two frames
        data = [frame.encode("utf-8", "surrogatepass") for frame in frames]
        answers: list[str] = []
        for part in _parts(data):
            answers += self._part(part, limit)
        return {"returned": {"answers": answers}}

    def _part(self, frames: Sequence[bytes], limit: float) -> list[str]:
        """The answers to frames; one that is overlong comes alone, and behind it there is a new connection."""
        assert self._connection is not None
        overlong = len(frames[0]) > LONGEST_FRAME
        unanswered = Counter(pair for each in frames if (pair := _ids(each)) is not None and not overlong)
        answers: list[str] = []
        self._connection.require_nothing_unread()
        self._connection.send(b"".join(each + b"\n" for each in frames))
        try:
            while (found := self._next(len(frames) - len(answers), unanswered, limit)) is not None:
                answers += found
                unanswered -= Counter(pair for each in found if (pair := _ids(each.encode())) is not None)
                if len(answers) > 2 * len(frames) + 1:
                    detail = f"{len(answers)} answers to {len(frames)} frames"
                    raise TransportFault("protocol_error", detail)
        except Ended as end:
            if not overlong and len(answers) < len(frames):
                detail = f"the endpoint ended the connection behind {len(answers)} of {len(frames)} answers: {end}"
                raise TransportFault("crash", detail) from None
        if overlong:
            self._connect(limit)
        return answers

    def _next(self, missing: int, unanswered: Counter[Pair], limit: float) -> list[str] | None:
        """More answers, or None once there will be none. Raises `Ended` and `TransportFault`."""
        assert self._connection is not None
        settled = self._connection.sent and (missing <= 0 or not unanswered)
        remaining = limit - time.monotonic()
        patience = QUIET if missing <= 0 else SILENCE
        found = self._connection.receive(max(0.0, min(remaining, patience) if settled else remaining))
        if found is None and not settled:
            detail = f"{missing} frames are not answered at the deadline, {sum(unanswered.values())} of them requests"
            raise TransportFault("hang", detail)
        return found


def _parts(frames: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The frames in order: every overlong one alone, the others between together."""
    for overlong, group in groupby(frames, lambda each: len(each) > LONGEST_FRAME):
        together = list(group)
        yield from ([each] for each in together) if overlong else [together]


def _ids(frame: bytes) -> Pair | None:
    """The ids of a request or a response; None where an endpoint may be of the opinion that there are none."""
    try:
        value = json.loads(frame, object_pairs_hook=_members, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    ids = [value.get(name) for name in ("correlation_id", "request_id")] if isinstance(value, dict) else []
    texts = [each for each in ids if isinstance(each, str) and 1 <= len(each) <= LONGEST_ID]
    return (texts[0], texts[1]) if len(texts) == 2 else None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member given twice")
    return members


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unsupported(feature: str) -> dict[str, Any]:
    return {"unsupported": {"feature": feature}}


def _read_address(text: str, label: str) -> Address:
    """Where an endpoint listens. Raises `ImplementationUnavailable`."""
    form, _, rest = text.partition(":")
    if form == "unix" and rest and "\0" not in rest:
        return Address(text, path=rest)
    host, _, port = rest.rpartition(":")
    if form == "tcp" and host and port.isascii() and port.isdecimal() and int(port[:6]) < 1 << 16:
        return Address(text, host=host.removeprefix("[").removesuffix("]"), port=int(port))
    remedy = "use hostio:unix:PATH or hostio:tcp:HOST:PORT, with ,description=FILE behind it where there is one"
    raise ImplementationUnavailable(label, f"no address {text!r}", remedy)
