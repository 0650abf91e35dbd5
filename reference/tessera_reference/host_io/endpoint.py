"""The endpoint: requests arrive as frames, responses leave as frames, and a journal keeps them (D1 to D4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ..mesh.engine import Choices, FirstCome
from ..mesh.trace import Names, Record, RecordKind, chrome_trace, trace_text
from .frames import ErrorCode, InvalidFrame, Request, RequestFailed, element_bytes, read_frame, request_of, write_frame
from .launches import launch
from .machine import CONTROL, Branch, Journey, Machine, MachineSize, Place, components, traced
from .messages import KernelLaunch, MemoryRead, MemoryWrite

# The requests that an endpoint has answered and still keeps, with their journeys.


Pair: TypeAlias = tuple[str, str]
"""The ids that match a response to its request (AMB-HIO-12)."""

MOST_KEPT = 16 << 20
"""The characters of frames whose requests are kept by default; older ones are dropped."""


class Answered(NamedTuple):
    """A request that was answered, and its journey."""

    request: Request
    journey: Journey
    characters: int


class Journal:
    """The last answered requests by their ids; of a pair that was used again, the later one."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[Pair, Answered] = {}
        self._characters = 0

    def __iter__(self) -> Iterator[Answered]:
        return iter(self._kept.values())

    def get(self, pair: Pair) -> Answered | None:
        """Return the request of a pair, or None if it is not known."""
        return self._kept.get(pair)

    def add(self, answered: Answered) -> None:
        """Keep a request, and drop the oldest ones beyond the limit."""
        pair = answered.request.correlation_id, answered.request.request_id
        self._drop(pair)
        self._kept[pair] = answered
        self._characters += answered.characters
        while self._characters > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, pair: Pair) -> None:
        before = self._kept.pop(pair, None)
        self._characters -= 0 if before is None else before.characters


# The answered requests as a trace in the Chrome format (`schemas/trace.schema.json`; Verification).
#
# Requests do not overlap in time, so they are drawn one after the other, in the order of their answers. A PE is a
# process, as is the host with the components before the PEs; a component is a row.


def timeline(machine: Machine, answered: Iterable[Answered]) -> str:
    """Return the text of the trace."""
    devices = {place: number for number, place in enumerate(machine.places())}
    names = Names({number: str(place) for place, number in devices.items()}, dict(enumerate(components())))
    rows = {name: number for number, name in enumerate(components())}
    records: list[Record] = []
    now = 0
    for request, journey, _ in answered:
        trace = traced(journey)
        name = f"{request.msg_type} {request.correlation_id} {request.request_id}"
        for hop in (*trace.path, *trace.branches):
            device = 0 if hop.place is None else devices[hop.place]
            work: RecordKind = "kernel" if isinstance(request, KernelLaunch) else "copy"
            kind, times = "host" if hop.place is None else work, (now, now + hop.start, now + hop.end)
            records.append(Record(kind, name, rows[hop.component], device, device, *times, hop.bytes))
        now += trace.latency
    return trace_text(chrome_trace(records, names))


# The endpoint: requests arrive as frames, responses leave as frames (D1 to D4; AMB-HIO-48, -50, -51, -55).
#
# A request acts on memory when it arrives, so that effects have the order of arrival; its response waits for its
# completion, in any order. Requests that are malformed, repeated or too many are answered at once and do nothing.


MOST_BYTES = 1 << 20
"""The most bytes of a frame; after a longer one a connection is closed (AMB-HIO-55)."""
MOST_SUNK = 1 << 24
"""The bytes that reads transfer to the host together; further reads are modelled and not transferred."""
LONGEST_ID = 256


@dataclass(frozen=True)
class Pending:
    """A request that has acted and waits for its completion."""

    answered: Answered
    failure: RequestFailed | None
    sunk: bytes | None


class Endpoint:
    """IO_CPU with the machine behind it, and with `share` the buffers that the host shares beside the messages."""

    def __init__(
        self, size: MachineSize | None = None, *, machine: Machine | None = None, journal: Journal | None = None
    ) -> None:
        self.machine = machine or Machine(size)
        self.journal = journal or Journal()
        self._buffers: Mapping[Pair, bytes] = {}
        self._sinks: dict[Pair, bytes] = {}
        self._room_in_sinks = 0
        self._pending: dict[Pair, Pending] = {}

    def share(self, buffers: Mapping[Pair, bytes]) -> Mapping[Pair, bytes]:
        """Share, by their ids, the data that requests with `host_buffer_ref` write from now on (AMB-HIO-41).

        Return the data of reads into `host_sink` from now on, which grows as they are completed, in that order. Without
        `share`, an endpoint transfers nothing.
        """
        self._buffers, self._sinks, self._room_in_sinks = buffers, {}, MOST_SUNK
        return self._sinks

    @property
    def waiting(self) -> list[Pair]:
        """The ids of the requests that wait for their completion, in the order of arrival."""
        return list(self._pending)

    def exchange(self, frames: Iterable[str | bytes], choices: Choices | None = None) -> list[str]:
        """Return the answers to frames that are sent without waiting, in order of completion.

        Completions have the order of arrival, or that of `choices`.
        """
        answers = [answer for frame in frames if (answer := self.submit(frame)) is not None]
        return answers + self.drain(choices or FirstCome())

    def submit(self, frame: str | bytes) -> str | None:
        """Take a frame; return the answer of a refused one, or None until it is completed."""
        try:
            value = _read(frame)
            pair = ids_of(value)
        except InvalidFrame as invalid:
            return write_frame({"refused": str(invalid)[:300]})
        try:
            request = request_of(value)
            self._require_room(pair)
        except RequestFailed as failure:
            return _response(pair, failure)
        self._pending[pair] = self._run(request, pair, len(frame))
        return None

    def drain(self, choices: Choices, most: int = 0) -> list[str]:
        """Complete waiting requests until at most `most` are left, and return their responses."""
        waiting = self.waiting
        answers = []
        while len(waiting) > most:
            chosen = choices.pick(len(waiting)) if len(waiting) > 1 else 0
            answers.append(self.complete(waiting.pop(chosen)))
        return answers

    def complete(self, pair: Pair) -> str:
        """Return the response of a waiting request, whose ids become free again."""
        pending = self._pending.pop(pair)
        self.journal.add(pending.answered)
        if pending.sunk is not None:
            self._sinks[pair] = pending.sunk
        return _response(pair, pending.failure)

    def _require_room(self, pair: Pair) -> None:
        """Require unused ids and a free place in the queue. Raises `RequestFailed`."""
        if pair in self._pending:
            reason = f"{pair[1]!r:.100} of {pair[0]!r:.100} is not answered yet"
            raise RequestFailed(ErrorCode.DUPLICATE_REQUEST, reason, "request_id", "HIO-D3-06")
        depth = self.machine.size.queue_depth
        if len(self._pending) >= depth:
            raise RequestFailed(ErrorCode.QUEUE_FULL, f"{depth} requests are not answered yet")

    def _run(self, request: Request, pair: Pair, characters: int) -> Pending:
        """Execute a request."""
        journey, failure, sunk = Journey(), None, None
        try:
            devices = self.machine.devices()
            if request.target_device not in devices:
                reason = f"is {request.target_device!r:.100}, expected one of {', '.join(devices)}"
                raise RequestFailed(ErrorCode.UNKNOWN_DEVICE, reason, "target_device", "HIO-D3-07")
            match request:
                case MemoryWrite():
                    journey, failure = self._write(request, pair)
                case MemoryRead():
                    journey, failure, sunk = self._read(request)
                case KernelLaunch():
                    journey, failure = launch(self.machine, request)
        except RequestFailed as refused:
            failure = refused
        return Pending(Answered(request, journey, characters), failure, sunk)

    def _write(self, write: MemoryWrite, pair: Pair) -> tuple[Journey, RequestFailed | None]:
        """Fill memory, or copy a buffer of the host to it. Raises `RequestFailed` for a refused request."""
        place = Place(write.dst_sip, write.dst_cube, write.dst_pe)
        self.machine.require(place, write.dst_pa, write.nbytes, write.dst_mem_kind, "dst_pa")
        data = None if write.pattern is not None else self._buffer(pair, write.nbytes)
        there = CONTROL + (0 if data is None else len(data))
        if failure := self.machine.failure_of(place):
            return Journey(there, branches=(Branch(place, None),)), failure
        space = self.machine.space(place)
        if data is not None:
            space.write(write.dst_pa, data)
        elif write.pattern is not None:
            space.fill(write.dst_pa, write.nbytes, element_bytes(write.pattern))
        return Journey(there, branches=(Branch(place, write.nbytes),)), None

    def _buffer(self, pair: Pair, nbytes: int) -> bytes:
        """Return the host's buffer of a request. Raises `RequestFailed` (AMB-HIO-41)."""
        data = self._buffers.get(pair)
        if data is None or len(data) != nbytes:
            available = "none" if data is None else f"one of {len(data)}"
            reason = f"needs a buffer of {nbytes} bytes that the host shares for these ids, there is {available}"
            raise RequestFailed(ErrorCode.UNSUPPORTED, reason, "src_kind", "HIO-D5-30")
        return data

    def _read(self, read: MemoryRead) -> tuple[Journey, RequestFailed | None, bytes | None]:
        """Transfer memory to the host, which keeps or drops it. Raises `RequestFailed` for a refused request."""
        place = Place(read.src_sip, read.src_cube, read.src_pe)
        self.machine.require(place, read.src_pa, read.nbytes, field="src_pa")
        if failure := self.machine.failure_of(place):
            return Journey(branches=(Branch(place, None),)), failure, None
        sunk = None
        if read.dst_kind == "host_sink" and read.nbytes <= self._room_in_sinks:
            sunk = self.machine.space(place).read(read.src_pa, read.nbytes)
            self._room_in_sinks -= read.nbytes
        return Journey(back=CONTROL + read.nbytes, branches=(Branch(place, read.nbytes),)), None, sunk


def ids_of(value: Mapping[str, Any]) -> Pair:
    """Return a request's ids. Raises `InvalidFrame` if no response could repeat them (AMB-HIO-19, AMB-HIO-39)."""
    correlation, request = value.get("correlation_id"), value.get("request_id")
    for name, identifier in (("correlation_id", correlation), ("request_id", request)):
        if not isinstance(identifier, str) or not 1 <= len(identifier) <= LONGEST_ID:
            raise InvalidFrame(f"{name} is no text of 1 to {LONGEST_ID} characters")
    return str(correlation), str(request)


def _read(frame: str | bytes) -> dict[str, Any]:
    """Return the object of a frame of an acceptable size. Raises `InvalidFrame`."""
    size = len(frame.encode("utf-8", "surrogatepass") if isinstance(frame, str) else frame)
    if size > MOST_BYTES:
        raise InvalidFrame(f"{size} bytes, expected at most {MOST_BYTES}")
    return read_frame(frame)


def _response(pair: Pair, failure: RequestFailed | None) -> str:
    completion: dict[str, Any] = {"ok": failure is None, "error_code": None, "error_message": None}
    if failure is not None:
        completion |= {"error_code": failure.code.value, "error_message": str(failure)}
    return write_frame({"correlation_id": pair[0], "request_id": pair[1], "completion": completion})
