"""Writing a fatbin: one image for each value (runtime spec 8.1)."""

from __future__ import annotations

from dataclasses import replace

from ...numerics.errors import shown
from .checks import malformed
from .container import (
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
from .metadata_json import metadata_to_bytes
from .model import KINDS, Fatbin, Section
from .signing import sign

__all__ = ["signed_content", "write"]


def write(fatbin: Fatbin, signing_key: bytes | None = None) -> bytes:
    """The image of `fatbin`, signed with an Ed25519 private key of 32 bytes if one is given (RT-15-05).

    A key replaces a signature that `fatbin` has; without one that signature stays. Raises as `signing.sign` does.
    """
    if signing_key is not None:
        content = signed_content(fatbin)
        kept = [each for each in fatbin.sections if each.kind != "signature"]
        fatbin = replace(fatbin, sections=(*kept, Section("signature", None, sign(content, signing_key))))
    return _image(fatbin)


def signed_content(fatbin: Fatbin) -> bytes:
    """What a signature is made over: the image without one."""
    kept = tuple(each for each in fatbin.sections if each.kind != "signature")
    return _image(replace(fatbin, sections=kept))


def _image(fatbin: Fatbin) -> bytes:
    if not isinstance(fatbin, Fatbin):
        raise malformed(f"a fatbin is {shown(fatbin)}", "of type Fatbin")
    sections = (Section("metadata", None, metadata_to_bytes(fatbin.metadata)), *fatbin.sections)
    index = {target: position for position, target in enumerate(fatbin.targets)}
    end = HEADER.size + TARGET_BYTES * len(fatbin.targets) + TABLE_ENTRY.size * len(sections)
    table, bodies = b"", b""
    for section in sections:
        number = NO_TARGET if section.target is None else index[section.target]
        entry = TableEntry(KINDS[section.kind], number, end, len(section.data), checksum(section.data))
        table += TABLE_ENTRY.pack(*entry)
        bodies += section.data + bytes(round_up(len(section.data)) - len(section.data))
        end = round_up(end + len(section.data))
    names = b"".join(target.encode("ascii").ljust(TARGET_BYTES, b"\0") for target in fatbin.targets)
    size = end + len(checksum(b""))
    major, minor = fatbin.abi_version
    header = HEADER.pack(
        *Header(MAGIC, CONTAINER_VERSION, 0, major, minor, size, len(fatbin.targets), len(sections), fatbin.ir_hash)
    )
    content = header + names + table + bodies
    return content + checksum(content)
