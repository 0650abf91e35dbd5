"""The bytes of the container (runtime spec 8.1; AMB-RT-21, which makes it our own choice).

All numbers are unsigned and little-endian. In order: the header, the targets, the section table, the sections, each
filled up with zeros to a multiple of eight bytes, and a SHA-256 of everything before. `docs/fatbin.md` shows an image
byte by byte.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import NamedTuple

__all__ = [
    "CHECKSUM_BYTES",
    "CONTAINER_VERSION",
    "HEADER",
    "MAGIC",
    "NO_TARGET",
    "TABLE_ENTRY",
    "TARGET_BYTES",
    "Header",
    "TableEntry",
    "checksum",
    "round_up",
]

MAGIC = b"TESSFBIN"
CONTAINER_VERSION = 1

HEADER = struct.Struct("<8sHHHHQII32s")
"""Magic, container version, zero, ABI major, ABI minor, image size, targets, sections, hash of the source IR."""

TARGET_BYTES = 32
"""A name of a target, filled up with zeros; the last byte is zero."""

TABLE_ENTRY = struct.Struct("<IIQQ32s")
"""Kind, index of the target, offset in the image, size, SHA-256 of the section."""

NO_TARGET = 0xFFFFFFFF
"""The index of the target of a section that is for all of them."""

CHECKSUM_BYTES = 32


class Header(NamedTuple):
    """The fields of `HEADER`."""

    magic: bytes
    container_version: int
    zero: int
    abi_major: int
    abi_minor: int
    image_size: int
    target_count: int
    section_count: int
    ir_hash: bytes


class TableEntry(NamedTuple):
    """The fields of `TABLE_ENTRY`."""

    kind: int
    target: int
    offset: int
    size: int
    digest: bytes


def checksum(data: bytes | memoryview) -> bytes:
    """The SHA-256 of `data`."""
    return sha256(data).digest()


def round_up(offset: int) -> int:
    """The next multiple of eight."""
    return (offset + 7) // 8 * 8
