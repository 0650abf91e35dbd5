"""The messages that the runtime sends for an example, and the memory they use (D2; AMB-HIO-21, -31, -63 to -67)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

__all__ = [
    "DEFINITIONS",
    "LONGEST_TEXT",
    "PROGRAMS",
    "Memory",
    "Range",
    "Sent",
    "bulk_of",
    "shards_of",
    "touched",
]

Message: TypeAlias = Mapping[str, Any]
PROGRAMS = ("attention", "fill")
DEFINITIONS = {"MemoryWrite": "memory_write", "MemoryRead": "memory_read", "KernelLaunch": "kernel_launch"}
"""The part of the schema, by message."""

LONGEST_TEXT = 64
"""The most characters of a text; a longer one counts as code or bytes (AMB-HIO-67)."""
MOST_FREE_FORM = 128
"""The most characters of JSON of a grid or a meta; more count as bulk data (AMB-HIO-67)."""

WORDS = re.compile(r"[A-Za-z0-9_.:-]{1,30}(?:(?:,? |/)[A-Za-z0-9_.:-]{1,30})*")
"""Names and words, unlike statements of a program, numbers of a tensor in one run, or encoded bytes."""

ELEMENTS = {"zero": 1, "fill_u8": 1, "fill_u16": 2, "fill_u32": 4}
"""The sizes of the elements that these patterns repeat."""


class Range(NamedTuple):
    """Bytes of a PE."""

    place: tuple[int, int, int]
    start: int
    stop: int


@dataclass(frozen=True)
class Sent:
    """The requests of an example in order, and True if its outputs have the bits of the runtime's own path."""

    frames: list[str]
    messages: list[Message]
    outputs_equal: bool

    @classmethod
    def by(cls, impl: Implementation, check: Check, program: str) -> Sent:
        """Return the runtime's messages for a program; check that every frame is the JSON text of an object."""
        answer = check.returns(
            impl.host_io.runtime_frames(program=program), f"the runtime sends messages for {program}"
        )
        messages = [_read(check, frame) for frame in answer["frames"]]
        check.true(len(messages) > 0, f"messages are sent for {program}")
        return cls(answer["frames"], messages, answer["outputs_equal"])

    def of(self, msg_type: str) -> list[Message]:
        """Return the requests of a type."""
        return [message for message in self.messages if message.get("msg_type") == msg_type]


class Memory:
    """The bytes of each PE that earlier messages wrote, with values for patterns of whole numbers."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[tuple[int, int, int], int], int | None] = {}

    def write(self, message: Message) -> None:
        """Apply a MemoryWrite."""
        at = touched(message)
        pattern = message.get("pattern") or {}
        size = ELEMENTS.get(str(pattern.get("pattern_kind")))
        value = pattern["value"] if size and pattern["pattern_kind"] != "zero" else 0
        element = value.to_bytes(size, "little") if size else None
        for place in range(at.stop - at.start):
            self._bytes[at.place, at.start + place] = element[place % len(element)] if element else None

    def unwritten(self, at: Range) -> int:
        """Return the number of bytes in a range that no message wrote."""
        return sum((at.place, pa) not in self._bytes for pa in range(at.start, at.stop))

    def known(self, at: Range) -> list[int | None]:
        """Return the bytes, None where no pattern determines them."""
        return [self._bytes.get((at.place, pa)) for pa in range(at.start, at.stop)]


def touched(message: Message) -> Range:
    """Return the bytes of a MemoryWrite or a MemoryRead."""
    side = "dst" if message["msg_type"] == "MemoryWrite" else "src"
    sip, cube, pe, pa = (message[f"{side}_{name}"] for name in ("sip", "cube", "pe", "pa"))
    return Range((sip, cube, pe), pa, pa + message["nbytes"])


def shards_of(launch: Message) -> list[list[Range]]:
    """Return the shards of each tensor of a launch, by place."""
    return [
        sorted(
            Range((shard["sip"], shard["cube"], shard["pe"]), shard["pa"], shard["pa"] + shard["nbytes"])
            for shard in argument["tensor_pa_map"]["shards"]
        )
        for argument in launch["args"]
        if argument["arg_kind"] == "tensor"
    ]


class Bulk(NamedTuple):
    """A member that holds more than a label, an id or a few numbers."""

    member: str
    shows_code: bool
    """True unless it is a text of words alone, in which a search for code and bytes finds none."""


def bulk_of(message: Message) -> Iterator[Bulk]:
    """Yield the members with more than a label, an id or a few numbers (AMB-HIO-67)."""
    for name in ("grid", "meta"):
        count = len(json.dumps(message.get(name), separators=(",", ":"), ensure_ascii=False))
        if count > MOST_FREE_FORM:
            yield Bulk(f"{name}: {count} characters", True)
    for path, text in _texts("", message):
        if len(text) > LONGEST_TEXT:
            yield Bulk(f"{path}: a text of {len(text)} characters", WORDS.fullmatch(text) is None)


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, names of members among them, with their paths."""
    if isinstance(value, str):
        yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{path}, a name", name
            yield from _texts(f"{path}.{name:.20}", member)
    if isinstance(value, list):
        for place, member in enumerate(value):
            yield from _texts(f"{path}[{place}]", member)


def _read(check: Check, frame: str) -> Message:
    try:
        value = json.loads(frame)
    except ValueError:
        value = None
    check.true(isinstance(value, dict), "a frame is the JSON text of an object", frame[:200])
    message: Message = value
    return message
