"""A host that reads the memory after its requests (D5 to D7; feature device-memory-probe).

A case makes one with `host_of(impl, check)`, or with `opened_host` for a machine of a known size. Places and addresses
come from the endpoint's description of itself; cases use the first 512 KiB of a memory, and its last bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .elements import element, filled
from .exchange import Completion, Host, Pair, pair_of
from .messages import ABSENT, Machine, Memory, Message, Place

__all__ = ["BACKGROUND", "Answered", "MemoryHost", "end_of", "frame_of", "host_of", "opened_host", "order_of"]

Number: TypeAlias = int | float | Decimal | None
Buffers: TypeAlias = Mapping[Pair, bytes]

BACKGROUND = 0xA5
"""The byte with which a case fills memory before it writes, so that untouched bytes are visible."""
LITERAL = "literal number "
PROBED = 1 << 18
"""The most bytes that are read in one call."""


class Answered(NamedTuple):
    """The answers to some requests: completions in the order of the requests, pairs in the order of the answers."""

    completions: Sequence[Completion]
    order: Sequence[Pair]
    sinks: Mapping[Pair, bytes]


class MemoryHost(Host):
    """Fills, copies, reads, and compares memory with the bytes that a case expects."""

    def __init__(self, impl: Implementation, check: Check, machine: Machine) -> None:
        super().__init__(impl, check, machine)
        self.succeeded: list[Message] = []
        """The requests that have succeeded so far."""

    # Messages

    def fill(
        self, place: Place, pa: int, nbytes: int, kind: str = "fill_u8", value: Number = BACKGROUND, **members: Any
    ) -> Message:
        """Return a MemoryWrite of a pattern; without a value, the pattern has none."""
        pattern = {"pattern_kind": kind} if value is None else {"pattern_kind": kind, "value": value}
        return self.write(place, **{"dst_pa": pa, "nbytes": nbytes, "pattern": pattern, **members})

    def copy_in(self, place: Place, pa: int, nbytes: int) -> Message:
        """Return a MemoryWrite of the buffer that the host shares under its ids (AMB-HIO-41)."""
        return self.write(place, dst_pa=pa, nbytes=nbytes, src_kind="host_buffer_ref", pattern=ABSENT)

    def read_back(self, place: Place, pa: int, nbytes: int, **members: Any) -> Message:
        """Return a MemoryRead of these bytes."""
        return self.read(place, **{"src_pa": pa, "nbytes": nbytes, **members})

    # Exchanges

    def send(self, *messages: Message, seed: int | None = None, buffers: Buffers | None = None) -> Answered:
        """Send requests with different ids, as many at a time as the endpoint keeps; each is answered once.

        Without a seed, a request that uses memory which an earlier one writes waits for its answer: an endpoint may
        choose the order of effects (AMB-HIO-48).
        """
        parts = in_order(messages, self.machine.queue_depth or len(messages), apart=seed is None)
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
        """Send requests; check that all succeed, except those that a listed alternative refuses."""
        answered = self.send(*messages, seed=seed, buffers=buffers)
        completed = list(zip(messages, answered.completions, strict=True))
        refused = [message for message, completion in completed if not completion["ok"]]
        self.succeeded += [message for message, completion in completed if completion["ok"]]
        for interpretation, alternative, lacking in (
            ("AMB-HIO-37", "null refused", has_null),
            ("AMB-HIO-38", "aligned to the element", is_unaligned),
        ):
            follows = all(map(lacking, refused)) and not any(map(lacking, self.succeeded))
            self.check.reading(interpretation, alternative, bool(refused) and follows)
        for message, completion in completed:
            what = f"success of {message['msg_type']} {message['request_id']} ({completion['error_code']})"
            self.check.equal(completion["ok"], True, what)
        return answered

    def fails(self, message: Message, why: str, buffers: Buffers | None = None) -> str:
        """Send a request alone, check that it fails or is refused, and return its error code."""
        completion = self.send(message, buffers=buffers).completions[0]
        self.check.equal(completion["ok"], False, f"success of {why}")
        return str(completion["error_code"])

    def fail(self, *places: Place) -> None:
        """Let these PEs fail from now on, and no others."""
        self.check.returns(self.impl.host_io.fail(places=[dict(place) for place in places]), "faults are set")

    # Memory

    def bytes_of(self, place: Place, pa: int, nbytes: int) -> bytes:
        """Return bytes of a PE's memory, read without a message."""
        parts = []
        for start in range(pa, pa + nbytes, PROBED):
            size = min(PROBED, pa + nbytes - start)
            seen = self.impl.host_io.memory(place=dict(place), pa=start, nbytes=size)
            parts.append(bytes.fromhex(self.check.returns(seen, "memory can be looked at")["data"]))
        return b"".join(parts)

    def holds(self, place: Place, pa: int, expected: bytes, what: str) -> None:
        """Check that memory has these bytes; a failure shows the first that differ."""
        found = self.bytes_of(place, pa, len(expected))
        if found == expected:
            self.check.true(True, what)
            return
        follows = found == self._turned(place, pa, expected) != expected
        self.check.reading("AMB-HIO-35", "aligned to the element's address", follows)
        pairs = zip(found, expected, strict=False)
        first = next((at for at, (one, two) in enumerate(pairs) if one != two), len(found))
        near = slice(max(0, first - 8), first + 24)
        where = f"{what}: bytes from {pa + near.start:#x} at {dict(place)}, of which {pa + first:#x} is the first wrong"
        self.check.equal(found[near].hex(" "), expected[near].hex(" "), where)

    def _turned(self, place: Place, pa: int, expected: bytes) -> bytes:
        """The bytes of memory where the elements of fills begin at multiples of their size, whatever the address."""
        turned = bytearray(expected)
        for message in filter(is_unaligned, self.succeeded):
            pattern = message.get("pattern") or {}
            there = {name: message.get(f"dst_{name}") for name in place}
            if pattern.get("pattern_kind", "zero") == "zero" or there != place:
                continue
            first, last = max(message["dst_pa"], pa), min(message["dst_pa"] + message["nbytes"], pa + len(expected))
            one = element(pattern["pattern_kind"], pattern["value"])
            for address in range(first, last):
                if expected[address - pa] == one[(address - message["dst_pa"]) % len(one)]:
                    turned[address - pa] = one[address % len(one)]
        return bytes(turned)

    def painted(self, place: Place, pa: int, nbytes: int) -> bytearray:
        """Fill memory with the background; return the same bytes, to which a case applies its writes."""
        self.done(self.fill(place, pa, nbytes))
        return bytearray(filled("fill_u8", BACKGROUND, nbytes))

    @property
    def base(self) -> int:
        """Return the address of the first memory, for cases that need some memory and no special one."""
        return self.machine.memories[0].base

    def spread(self, number: int) -> list[Place]:
        """Return up to `number` PEs, far apart in the order of places."""
        ordered = sorted(self.machine.places, key=order_of)
        number = min(number, len(ordered))
        return [ordered[index * (len(ordered) - 1) // max(1, number - 1)] for index in range(number)]


def host_of(impl: Implementation, check: Check) -> MemoryHost:
    """Return a host of the endpoint in its current state."""
    answer = check.returns(impl.host_io.describe(), "the endpoint tells what it has")
    return MemoryHost(impl, check, Machine.of(answer))


def opened_host(
    impl: Implementation, check: Check, sips: int = 2, cubes: int = 2, pes: int = 4, queue_depth: int = 64
) -> MemoryHost:
    """Return a host of a new endpoint with so many PEs; needs the feature endpoint-control."""
    size = {"sips": sips, "cubes": cubes, "pes": pes, "queue_depth": queue_depth}
    check.returns(impl.host_io.open(machine=size), "an endpoint of another size opens")
    host = host_of(impl, check)
    check.equal(len(host.machine.places), sips * cubes * pes, "the number of PEs")
    return host


def has_null(message: Message) -> bool:
    """True if a member with a default is null, though the document does not add None to its type."""
    return any(message.get(name, "") is None for name in ("dst_mem_kind", "dst_kind", "failure_policy"))


def is_unaligned(message: Message) -> bool:
    """True if the elements of a fill are not at multiples of their size, or a shard at one of four bytes."""
    kind = (message.get("pattern") or {}).get("pattern_kind", "zero")
    shards = [use.first for argument in message.get("args", ()) for use in uses_of(argument)]
    return bool(message.get("dst_pa", 0) % len(element(kind, 0))) or any(first % 4 for first in shards)


def in_order(messages: Sequence[Message], depth: int, apart: bool) -> list[list[Message]]:
    """Return requests in parts of at most `depth`; with `apart`, none uses memory that another of its part writes."""
    parts: list[list[Message]] = []
    used: list[Use] = []
    for message in messages:
        uses = list(uses_of(message)) if apart else []
        if not parts or len(parts[-1]) == depth or any(clash(use, other) for use in uses for other in used):
            parts.append([])
            used = []
        parts[-1].append(message)
        used += uses
    return parts


class Use(NamedTuple):
    """A range of bytes at a place that a request reads or writes."""

    place: tuple[Any, ...]
    first: int
    end: int
    writes: bool


def clash(one: Use, other: Use) -> bool:
    """True if two uses share a byte that one of them writes."""
    shared = one.place == other.place and one.first < other.end and other.first < one.end
    return shared and (one.writes or other.writes)


def uses_of(message: Any) -> Iterator[Use]:
    """Yield the memory that a request names: a launch may write its shards."""
    if isinstance(message, list):
        for part in message:
            yield from uses_of(part)
    elif isinstance(message, dict):
        for prefix, size, writes in RANGES:
            first, nbytes = message.get(f"{prefix}pa"), message.get(size)
            if isinstance(first, int) and isinstance(nbytes, int):
                place = tuple(message.get(f"{prefix}{name}") for name in ("sip", "cube", "pe"))
                yield Use(place, first, first + nbytes, writes)
        for part in message.values():
            yield from uses_of(part)


RANGES = [("dst_", "nbytes", True), ("src_", "nbytes", False), ("", "nbytes", True), ("deploy_", "nbytes_code", False)]
"""The prefix of the members that name a place, the member with the size, and whether the bytes may be written."""


def end_of(memory: Memory) -> int:
    """Return the first address after a memory."""
    return memory.base + memory.bytes


def order_of(place: Place) -> tuple[int, int, int]:
    """Return the key that orders places: SIP, cube, PE."""
    return place["sip"], place["cube"], place["pe"]


def frame_of(message: Message) -> str:
    """Return the text of a message; a `Decimal` keeps all its digits."""
    text = json.dumps(message, default=lambda number: f"{LITERAL}{number}")
    return re.sub(f'"{LITERAL}([^"]*)"', r"\1", text)
