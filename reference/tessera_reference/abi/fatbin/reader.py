"""Reading a fatbin: any bytes give a `Fatbin` or a `Failure` (runtime spec 8.1, 16; AMB-RT-32, AMB-RT-43).

First the container is checked, which a truncated or altered image does not survive; then the ABI version, since what
follows is laid down by it; then the contents. No number in an image is believed before it is compared with the bytes
that are there, so that time and memory are bounded by the size of the image.
"""

from __future__ import annotations

from ..status import Failure, Status
from ..version import ABI_VERSION, AbiVersion, is_compatible
from .checks import malformed, require
from .container import (
    CHECKSUM_BYTES,
    CONTAINER_VERSION,
    HEADER,
    MAGIC,
    NO_TARGET,
    TABLE_ENTRY,
    TARGET_BYTES,
    Header,
    TableEntry,
    checksum,
    round_up,
)
from .metadata_json import metadata_of_bytes
from .model import KINDS, Fatbin, Section

__all__ = ["read"]

_KIND_NAMES = {number: name for name, number in KINDS.items()}


def read(image: bytes, runtime: AbiVersion | None = ABI_VERSION) -> Fatbin:
    """Read an image for a runtime of an ABI version; for None, of whatever version it is.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for what is no well-formed image, and otherwise with
    TESS_ERR_ABI_VERSION_MISMATCH for a module that such a runtime does not load (RT-16-02 to -04).
    """
    if not isinstance(image, bytes | bytearray | memoryview):
        raise malformed(f"an image of type {type(image).__name__}", "bytes")
    image = bytes(image)
    header = _header(image)
    entries = _table(image, header)
    targets = _targets(image, header)
    _require_tidy(image, header, entries)
    version = (header.abi_major, header.abi_minor)
    if runtime is not None and not is_compatible(version, runtime):
        allowed = f"{runtime[0]}.0 to {runtime[0]}.{runtime[1]}"
        given = f"a module of ABI version {version[0]}.{version[1]}"
        raise Failure(Status.TESS_ERR_ABI_VERSION_MISMATCH, "tessModuleLoad", given, allowed)
    return _contents(image, header, entries, targets)


def _header(image: bytes) -> Header:
    least = HEADER.size + CHECKSUM_BYTES
    require(len(image) >= least, "the size of the image", len(image), f"at least {least} bytes")
    header = Header(*HEADER.unpack_from(image))
    require(header.magic == MAGIC, "the magic number", header.magic, repr(MAGIC))
    version = header.container_version
    require(version == CONTAINER_VERSION, "the container version", version, str(CONTAINER_VERSION))
    require(header.zero == 0, "the field after the container version", header.zero, "0")
    size = header.image_size
    require(size == len(image), "the size in the header", size, f"{len(image)}, the bytes there are")
    content = memoryview(image)[:-CHECKSUM_BYTES]
    found = image[-CHECKSUM_BYTES:].hex()
    require(image.endswith(checksum(content)), "the checksum", found, "the SHA-256 of all bytes before it")
    return header


def _table(image: bytes, header: Header) -> list[TableEntry]:
    """The section table, once it and the targets are known to fit into the image."""
    start = _table_start(header)
    room = len(image) - CHECKSUM_BYTES - start
    require(room >= 0, "the number of targets", header.target_count, "no more than the image has room for")
    count = header.section_count
    require(TABLE_ENTRY.size * count <= room, "the number of sections", count, "no more than the image has room for")
    return [
        TableEntry(*TABLE_ENTRY.unpack_from(image, start + TABLE_ENTRY.size * position)) for position in range(count)
    ]


def _table_start(header: Header) -> int:
    return HEADER.size + TARGET_BYTES * header.target_count


def _targets(image: bytes, header: Header) -> tuple[str, ...]:
    found = []
    for position in range(header.target_count):
        start = HEADER.size + TARGET_BYTES * position
        field = image[start : start + TARGET_BYTES]
        name = field.rstrip(b"\0")
        plain = len(name) < TARGET_BYTES and name.isascii() and b"\0" not in name
        require(plain, "a target", field, f"up to {TARGET_BYTES - 1} ASCII characters, then zeros")
        found.append(name.decode("ascii"))
    return tuple(found)


def _require_tidy(image: bytes, header: Header, entries: list[TableEntry]) -> None:
    """Sections follow each other and the table, fill the image, and have the digests that the table gives."""
    view = memoryview(image)
    end = len(image) - CHECKSUM_BYTES
    expected = _table_start(header) + TABLE_ENTRY.size * len(entries)
    for entry in entries:
        require(entry.offset == expected, "the offset of a section", entry.offset, str(expected))
        room = end - entry.offset
        require(entry.size <= room, "the size of a section", entry.size, f"at most {room}, what follows its offset")
        stop = entry.offset + entry.size
        digest = checksum(view[entry.offset : stop])
        require(entry.digest == digest, "the SHA-256 of a section", entry.digest.hex(), digest.hex())
        expected = round_up(stop)
        require(not any(view[stop:expected]), "the padding after a section", image[stop:expected], "zeros")
    require(expected == end, "the end of the sections", expected, f"{end}, where the checksum begins")


def _contents(image: bytes, header: Header, entries: list[TableEntry], targets: tuple[str, ...]) -> Fatbin:
    sections = []
    for entry in entries:
        require(
            entry.kind in _KIND_NAMES,
            "the kind of a section",
            entry.kind,
            ", ".join(f"{number} {name}" for number, name in _KIND_NAMES.items()),
        )
        known = entry.target == NO_TARGET or entry.target < len(targets)
        require(known, "the target of a section", entry.target, f"below {len(targets)}, or {NO_TARGET:#x} for none")
        target = None if entry.target == NO_TARGET else targets[entry.target]
        sections.append(Section(_KIND_NAMES[entry.kind], target, image[entry.offset : entry.offset + entry.size]))
    first = sections[0].kind if sections else "none"
    require(first == "metadata", "the first section", first, "metadata")
    metadata = metadata_of_bytes(sections[0].data)
    version = (header.abi_major, header.abi_minor)
    return Fatbin(version, header.ir_hash, targets, tuple(sections[1:]), metadata)
