"""A host that looks at the memory which its requests leave (D5 to D7; feature device-memory-probe).

A case makes one with `host_of(impl, check)`, or with `opened_host` for a machine of a known size. Places and addresses
come from what the endpoint tells of itself; cases use the first 512 KiB of a memory, and its last bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .elements import filled
from .exchange import Completion, Host, Pair, pair_of
from .messages import ABSENT, Machine, Memory, Message, Place

__all__ = ["BACKGROUND", "Answered", "MemoryHost", "end_of", "frame_of", "host_of", "opened_host", "order_of"]

Number: TypeAlias = int | float | Decimal | None
Buffers: TypeAlias = Mapping[Pair, bytes]

BACKGROUND = 0xA5
"""The byte with which a case fills memory before it writes, so that untouched bytes are seen to be."""
LITERAL = "literal number "
PROBED = 1 << 18
"""Bytes that are looked at in one call."""


class Answered(NamedTuple):
    """The answers to some requests: completions in the order of the requests, pairs in the order of the answers."""

    completions: Sequence[Completion]
    order: Sequence[Pair]
    sinks: Mapping[Pair, bytes]


class MemoryHost(Host):
    """Fills, copies, reads, and compares memory with the bytes that a case expects."""

    # Messages

    def fill(
        self, place: Place, pa: int, nbytes: int, kind: str = "fill_u8", value: Number = BACKGROUND, **members: Any
    ) -> Message:
        """A MemoryWrite of a pattern; without a value, the pattern has none."""
        pattern = {"pattern_kind": kind} if value is None else {"pattern_kind": kind, "value": value}
        return self.write(place, **{"dst_pa": pa, "nbytes": nbytes, "pattern": pattern, **members})

    def copy_in(self, place: Place, pa: int, nbytes: int) -> Message:
        """A MemoryWrite of the buffer that the host shares under its ids (AMB-HIO-41)."""
        return self.write(place, dst_pa=pa, nbytes=nbytes, src_kind="host_buffer_ref", pattern=ABSENT)

    def read_back(self, place: Place, pa: int, nbytes: int, **members: Any) -> Message:
        """A MemoryRead of these bytes."""
        return self.read(place, **{"src_pa": pa, "nbytes": nbytes, **members})

    # Exchanges

    def send(self, *messages: Message, seed: int | None = None, buffers: Buffers | None = None) -> Answered:
        """Send requests with different ids, as many at a time as the endpoint keeps; each is answered once."""
        depth = self.machine.queue_depth or len(messages)
        parts = [messages[first : first + depth] for first in range(0, len(messages), depth)]
        answered = [self.together(*part, seed=seed, buffers=buffers) for part in parts]
        return Answered(
            [completion for answer in answered for completion in answer.completions],
            [pair for answer in answered for pair in answer.order],
            {pair: data for answer in answered for pair, data in answer.sinks.items()},
        )

    def together(self, *messages: Message, seed: int | None = None, buffers: Buffers | None = None) -> Answered:
        """Send requests with different ids without waiting; each is answered once (AMB-HIO-12, -22)."""
        options: dict[str, Any] = {} if seed is None else {"seed": seed}
        if buffers is not None:
            options["buffers"] = [
                {"correlation_id": pair[0], "request_id": pair[1], "data": data.hex()} for pair, data in buffers.items()
            ]
        answers = self.exchange(*(frame_of(message) for message in messages), **options)
        order = [pair for pair, _ in answers.responses]
        pairs = [pair_of(message) for message in messages]
        self.check.equal(sorted(order), sorted(pairs), "the ids of the responses are those of the requests")
        by_pair = dict(answers.responses)
        return Answered([by_pair[pair] for pair in pairs], order, answers.sinks)

    def done(self, *messages: Message, seed: int | None = None, buffers: Buffers | None = None) -> Answered:
        """Send requests, which all succeed."""
        answered = self.send(*messages, seed=seed, buffers=buffers)
        for message, completion in zip(messages, answered.completions, strict=True):
            what = f"success of {message['msg_type']} {message['request_id']} ({completion['error_code']})"
            self.check.equal(completion["ok"], True, what)
        return answered

    def fails(self, message: Message, why: str, buffers: Buffers | None = None) -> str:
        """Send a request alone, which fails or is refused; its error code."""
        completion = self.send(message, buffers=buffers).completions[0]
        self.check.equal(completion["ok"], False, f"success of {why}")
        return str(completion["error_code"])

    def fail(self, *places: Place) -> None:
        """From now on these PEs fail, and no others."""
        self.check.returns(self.impl.host_io.fail(places=[dict(place) for place in places]), "faults are set")

    # Memory

    def bytes_of(self, place: Place, pa: int, nbytes: int) -> bytes:
        """Bytes of a PE's memory, looked at without a message."""
        parts = []
        for start in range(pa, pa + nbytes, PROBED):
            size = min(PROBED, pa + nbytes - start)
            seen = self.impl.host_io.memory(place=dict(place), pa=start, nbytes=size)
            parts.append(bytes.fromhex(self.check.returns(seen, "memory can be looked at")["data"]))
        return b"".join(parts)

    def holds(self, place: Place, pa: int, expected: bytes, what: str) -> None:
        """Memory has these bytes; a failure shows the first that differ."""
        found = self.bytes_of(place, pa, len(expected))
        if found == expected:
            self.check.true(True, what)
            return
        pairs = zip(found, expected, strict=False)
        first = next((at for at, (one, two) in enumerate(pairs) if one != two), len(found))
        near = slice(max(0, first - 8), first + 24)
        where = f"{what}: bytes from {pa + near.start:#x} at {dict(place)}, of which {pa + first:#x} is the first wrong"
        self.check.equal(found[near].hex(" "), expected[near].hex(" "), where)

    def painted(self, place: Place, pa: int, nbytes: int) -> bytearray:
        """Fill memory with the background; the same bytes, in which a case follows what it writes."""
        self.done(self.fill(place, pa, nbytes))
        return bytearray(filled("fill_u8", BACKGROUND, nbytes))

    @property
    def base(self) -> int:
        """Return the address of the first memory; cases that need some memory, and no special one, use it."""
        return self.machine.memories[0].base

    def spread(self, number: int) -> list[Place]:
        """At most so many PEs, far apart in the order of places."""
        ordered = sorted(self.machine.places, key=order_of)
        number = min(number, len(ordered))
        return [ordered[index * (len(ordered) - 1) // max(1, number - 1)] for index in range(number)]


def host_of(impl: Implementation, check: Check) -> MemoryHost:
    """A host of the endpoint as it is."""
    told = check.returns(impl.host_io.describe(), "the endpoint tells what it has")
    return MemoryHost(impl, check, Machine.of(told))


def opened_host(
    impl: Implementation, check: Check, sips: int = 2, cubes: int = 2, pes: int = 4, queue_depth: int = 64
) -> MemoryHost:
    """A host of a new endpoint with so many PEs; needs the feature endpoint-control."""
    size = {"sips": sips, "cubes": cubes, "pes": pes, "queue_depth": queue_depth}
    check.returns(impl.host_io.open(machine=size), "an endpoint of another size opens")
    host = host_of(impl, check)
    check.equal(len(host.machine.places), sips * cubes * pes, "the number of PEs")
    return host


def end_of(memory: Memory) -> int:
    """The first address behind a memory."""
    return memory.base + memory.bytes


def order_of(place: Place) -> tuple[int, int, int]:
    """By which places are ordered: SIP, cube, PE."""
    return place["sip"], place["cube"], place["pe"]


def frame_of(message: Message) -> str:
    """The text of a message; a `Decimal` stands in it with all its digits."""
    text = json.dumps(message, default=lambda number: f"{LITERAL}{number}")
    return re.sub(f'"{LITERAL}([^"]*)"', r"\1", text)
