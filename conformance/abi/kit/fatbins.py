"""Images in the suite's own container, parsed, forged and sealed again (`docs/fatbin.md`; AMB-RT-21).

Written from that page alone. A forged image has the checksum of its bytes, so that only the forged part is wrong. An
image in a container of another kind cannot be forged like that: such cases are inapplicable.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from tessera_conformance.transports import Inapplicable

__all__ = ["DIGEST_BYTES", "HEADER_BYTES", "NAME_BYTES", "Fatbin", "parsed", "patched", "table_at", "written"]

MAGIC = b"TESSFBIN"
HEADER = struct.Struct("<8sHHHHQII32s")
ENTRY = struct.Struct("<IIQQ32s")
HEADER_BYTES, ENTRY_BYTES, NAME_BYTES, DIGEST_BYTES = HEADER.size, ENTRY.size, 32, 32


@dataclass(frozen=True)
class Section:
    """A section: kind, index of its target, bytes."""

    kind: int
    target: int
    data: bytes


@dataclass(frozen=True)
class Fatbin:
    """The contents of an image; lengths, offsets and digests follow from them."""

    abi_version: tuple[int, int]
    ir_hash: bytes
    targets: Sequence[bytes]
    sections: Sequence[Section]


def parsed(image: bytes) -> Fatbin:
    """Return the parts of a valid image. Raises `Inapplicable` for a container of another kind."""
    if image[: len(MAGIC)] != MAGIC:
        raise Inapplicable("forges images in the suite's container (AMB-RT-21), and this image is in another one")
    _, _, _, major, minor, _, target_count, section_count, ir_hash = HEADER.unpack_from(image)
    names = [image[HEADER_BYTES + NAME_BYTES * number :][:NAME_BYTES].rstrip(b"\0") for number in range(target_count)]
    sections = []
    for number in range(section_count):
        entry = HEADER_BYTES + NAME_BYTES * target_count + ENTRY_BYTES * number
        kind, target, offset, size, _ = ENTRY.unpack_from(image, entry)
        sections.append(Section(kind, target, image[offset : offset + size]))
    return Fatbin((major, minor), ir_hash, names, sections)


def written(fatbin: Fatbin) -> bytes:
    """Return the image of these parts."""
    table, bodies = b"", b""
    start = table_at(fatbin, len(fatbin.sections))
    for section in fatbin.sections:
        data = section.data
        table += ENTRY.pack(section.kind, section.target, start + len(bodies), len(data), sha256(data).digest())
        bodies += data + bytes(-len(data) % 8)
    names = b"".join(name.ljust(NAME_BYTES, b"\0") for name in fatbin.targets)
    size = start + len(bodies) + DIGEST_BYTES
    counts = len(fatbin.targets), len(fatbin.sections)
    header = HEADER.pack(MAGIC, 1, 0, *fatbin.abi_version, size, *counts, fatbin.ir_hash)
    content = header + names + table + bodies
    return content + sha256(content).digest()


def patched(image: bytes, offset: int, data: bytes) -> bytes:
    """Return an image with other bytes at a place before its checksum, and the new checksum."""
    content = image[:offset] + data + image[offset + len(data) : -DIGEST_BYTES]
    return content + sha256(content).digest()


def table_at(fatbin: Fatbin, section: int) -> int:
    """Return the position of a section's entry in the table."""
    return HEADER_BYTES + NAME_BYTES * len(fatbin.targets) + ENTRY_BYTES * section
