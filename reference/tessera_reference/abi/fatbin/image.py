"""The container of a module image (runtime spec 8.1, 15, 16; AMB-RT-21).

Its bytes, reading, writing and signatures."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

from ...numerics.formats import shown
from ..status import ABI_VERSION, AbiVersion, Failure, Status, invalid, is_compatible, unsupported
from .metadata import Metadata, is_whole_number, malformed, metadata_of_bytes, metadata_to_bytes, require, require_all

# The bytes of the container (runtime spec 8.1; AMB-RT-21, which makes it our own choice).
#
# All numbers are unsigned and little-endian. In order: the header, the targets, the section table, the sections, each
# padded with zeros to a multiple of eight bytes, and a SHA-256 of everything before. `docs/fatbin.md` shows an image
# byte by byte.


MAGIC = b"TESSFBIN"
CONTAINER_VERSION = 1

HEADER = struct.Struct("<8sHHHHQII32s")
"""Magic, container version, zero, ABI major, ABI minor, image size, targets, sections, hash of the source IR."""

TARGET_BYTES = 32
"""The bytes of a target's name, padded with zeros; the last byte is zero."""

TABLE_ENTRY = struct.Struct("<IIQQ32s")
"""Kind, index of the target, offset in the image, size, SHA-256 of the section."""

NO_TARGET = 0xFFFFFFFF
"""The target index of a section that is for all targets."""

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
    """Return the SHA-256 of `data`."""
    return sha256(data).digest()


def round_up(offset: int) -> int:
    """Return the next multiple of eight."""
    return (offset + 7) // 8 * 8


# A fatbin as a value (runtime spec 8.1, 16): the contents of the container, without the layout of its bytes.


KINDS = {"graph-ir": 1, "target-ir": 2, "ptx": 3, "amdgcn": 4, "metadata": 5, "signature": 6, "rocdl": 7}
"""The kinds of section and their numbers in the section table."""

CODE_KINDS = ("graph-ir", "target-ir", "ptx", "amdgcn", "rocdl")
"""The sections that kernels can be made from: a module has at least one (AMB-RT-44, AMB-RT-60)."""

BINARY_KINDS = ("ptx", "rocdl")
"""The sections for a vendor's tools: PTX, or bitcode of LLVM for ROCDL (RT-08.1-05, -06)."""

_FOR_A_TARGET = ("target-ir", "ptx", "amdgcn", "rocdl")
_TEXTS = ("graph-ir", "target-ir")
_TARGET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,30}")


@dataclass(frozen=True)
class Section:
    """A section: its kind, its bytes, and its target, or None where it is for all."""

    kind: str
    target: str | None
    data: bytes

    def __post_init__(self) -> None:
        require(isinstance(self.kind, str) and self.kind in KINDS, "a section's kind", self.kind, ", ".join(KINDS))
        require(isinstance(self.data, bytes), f"section {self.kind}", type(self.data), "bytes")
        where = f"the target of section {self.kind}"
        if self.kind in _FOR_A_TARGET:
            require(isinstance(self.target, str), where, self.target, "a target")
        else:
            require(self.target is None, where, self.target, "none")
        if self.kind in _TEXTS:
            try:
                self.data.decode()
            except UnicodeDecodeError:
                require(False, f"section {self.kind}", self.data, "text in UTF-8")

    def __str__(self) -> str:
        return f"{self.kind} {self.target}" if self.target else self.kind


@dataclass(frozen=True)
class Fatbin:
    """A module: header, sections and metadata.

    `sections` are all but the metadata; a signature, if there is one, comes last. `ir_hash` is the SHA-256 of the
    source IR. Raises `Failure` with TESS_ERR_INVALID_VALUE for fields that form no module.
    """

    abi_version: AbiVersion
    ir_hash: bytes
    targets: tuple[str, ...]
    sections: tuple[Section, ...]
    metadata: Metadata

    def __post_init__(self) -> None:
        version = self.abi_version
        pair = isinstance(version, tuple) and len(version) == 2 and all(is_whole_number(n, 0, 0xFFFF) for n in version)
        require(pair, "the ABI version", version, "major and minor, two numbers from 0 to 65535")
        hashed = isinstance(self.ir_hash, bytes) and len(self.ir_hash) == 32
        require(hashed, "the hash of the source IR", self.ir_hash, "32 bytes")
        self._check_targets()
        self._check_sections()
        require(isinstance(self.metadata, Metadata), "the metadata", self.metadata, "of type Metadata")

    def section(self, kind: str, target: str | None = None) -> Section | None:
        """Return the section of a kind for a target, or None."""
        return next(
            (candidate for candidate in self.sections if (candidate.kind, candidate.target) == (kind, target)), None
        )

    def _check_targets(self) -> None:
        require(isinstance(self.targets, tuple), "targets", self.targets, "a tuple of names")
        for target in self.targets:
            named = isinstance(target, str) and _TARGET.fullmatch(target) is not None
            require(named, "a target", target, "1 to 31 of the characters a-z 0-9 _ . -, such as sm_90")
        require(len(set(self.targets)) == len(self.targets), "targets", self.targets, "each once")

    def _check_sections(self) -> None:
        require_all("the sections", self.sections, Section)
        targets = set(self.targets)
        for section in self.sections:
            kind, target = section.kind, section.target
            require(kind != "metadata", "a section's kind", kind, "another: the metadata is separate")
            listed_target = target is None or target in targets
            require(listed_target, f"the target of section {kind}", target, "one of the module's targets")
        names = list(map(str, self.sections))
        require(len(set(names)) == len(names), "sections", names, "each kind once for each target")
        coded = any(section.kind in CODE_KINDS for section in self.sections)
        require(coded, "sections", names, "one at least of " + ", ".join(CODE_KINDS))
        require("signature" not in names[:-1], "sections", names, "the signature, if any, as the last one")


# Signatures of modules (runtime spec 15, RT-15-01, RT-15-05): Ed25519 over the image without its signature.
#
# The signature section holds the public key, 32 bytes, and the signature, 64 bytes. The caller names the trusted keys:
# a signature by a key of the image's own choosing proves nothing. Needs the extra `signing`.


KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_CONTEXT = b"tessera fatbin signature, container 1\n"


def public_key(signing_key: bytes) -> bytes:
    """Return the public key, 32 bytes, of a private key of 32 bytes. Raises as `sign` does."""
    return bytes(_private(signing_key).public_key().public_bytes_raw())


def sign(content: bytes, signing_key: bytes) -> bytes:
    """Return the signature section for an unsigned image.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for an invalid key, with TESS_ERR_UNSUPPORTED without the extra.
    """
    return public_key(signing_key) + bytes(_private(signing_key).sign(_CONTEXT + content))


def verify_signature(content: bytes, section: bytes | None, trusted_keys: Collection[bytes]) -> None:
    """Raise `Failure` with TESS_ERR_INVALID_VALUE unless `section` signs `content` with a trusted key."""
    if section is None:
        raise _refused("an image without a signature")
    if len(section) != KEY_BYTES + _SIGNATURE_BYTES:
        raise _refused(f"a signature section of {len(section)} bytes")
    key, signature = section[:KEY_BYTES], section[KEY_BYTES:]
    if key not in trusted_keys:
        raise _refused(f"a signature by {key.hex()}, a key that is not trusted")
    ed25519 = _ed25519()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, _CONTEXT + content)
    except (ValueError, import_module("cryptography.exceptions").InvalidSignature):
        raise _refused(f"an image that the signature by {key.hex()} is not for") from None


def _private(signing_key: bytes) -> Any:
    if not isinstance(signing_key, bytes) or len(signing_key) != KEY_BYTES:
        raise invalid(
            "signing",
            "what is no private key",
            f"{KEY_BYTES} bytes, an Ed25519 private key",
        )
    return _ed25519().Ed25519PrivateKey.from_private_bytes(signing_key)


def _ed25519() -> Any:
    """Return the module of Ed25519, an optional dependency."""
    try:
        return import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError:
        allowed = "the package cryptography: pip install 'tessera-conformance[signing]'"
        raise unsupported("signing", "no Ed25519 here", allowed) from None


def _refused(subject: str) -> Failure:
    return invalid("tessModuleLoad", subject, "an image signed by one of the trusted keys")


# Reading a fatbin: any bytes yield a `Fatbin` or a `Failure` (runtime spec 8.1, 16; AMB-RT-32, AMB-RT-43).
#
# First the container is checked, which detects truncation and changes; then the ABI version, which determines the rest;
# then the contents. Every number in an image is compared with the actual bytes before use, so that the size of the
# image bounds time and memory.


_KIND_NAMES = {number: name for name, number in KINDS.items()}


def read(image: bytes, runtime: AbiVersion | None = ABI_VERSION) -> Fatbin:
    """Read an image for a runtime of an ABI version; for None, of any version.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a malformed image, and otherwise with TESS_ERR_ABI_VERSION_MISMATCH
    for a module that such a runtime does not load (RT-16-02 to -04).
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
        actual = f"a module of ABI version {version[0]}.{version[1]}"
        raise Failure(Status.TESS_ERR_ABI_VERSION_MISMATCH, "tessModuleLoad", actual, allowed)
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
    digest = image[-CHECKSUM_BYTES:].hex()
    require(image.endswith(checksum(content)), "the checksum", digest, "the SHA-256 of all bytes before it")
    return header


def _table(image: bytes, header: Header) -> list[TableEntry]:
    """Return the section table, after checking that it and the targets fit into the image."""
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
    targets = []
    for position in range(header.target_count):
        start = HEADER.size + TARGET_BYTES * position
        field = image[start : start + TARGET_BYTES]
        name = field.rstrip(b"\0")
        plain = len(name) < TARGET_BYTES and name.isascii() and b"\0" not in name
        require(plain, "a target", field, f"up to {TARGET_BYTES - 1} ASCII characters, then zeros")
        targets.append(name.decode("ascii"))
    return tuple(targets)


def _require_tidy(image: bytes, header: Header, entries: list[TableEntry]) -> None:
    """Require sections that follow the table without gaps, fill the image, and match the digests of the table."""
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
        in_range = entry.target == NO_TARGET or entry.target < len(targets)
        require(in_range, "the target of a section", entry.target, f"below {len(targets)}, or {NO_TARGET:#x} for none")
        target = None if entry.target == NO_TARGET else targets[entry.target]
        sections.append(Section(_KIND_NAMES[entry.kind], target, image[entry.offset : entry.offset + entry.size]))
    first = sections[0].kind if sections else "none"
    require(first == "metadata", "the first section", first, "metadata")
    metadata = metadata_of_bytes(sections[0].data)
    version = (header.abi_major, header.abi_minor)
    return Fatbin(version, header.ir_hash, targets, tuple(sections[1:]), metadata)


# Writing a fatbin: one image for each value (runtime spec 8.1).


def write(fatbin: Fatbin, signing_key: bytes | None = None) -> bytes:
    """Return the image of `fatbin`, signed with an Ed25519 private key of 32 bytes if one is given (RT-15-05).

    A key replaces a signature that `fatbin` has; without one that signature stays. Raises as `signing.sign` does.
    """
    if signing_key is not None:
        content = signed_content(fatbin)
        sections = [section for section in fatbin.sections if section.kind != "signature"]
        fatbin = replace(fatbin, sections=(*sections, Section("signature", None, sign(content, signing_key))))
    return _image(fatbin)


def signed_content(fatbin: Fatbin) -> bytes:
    """Return the bytes that a signature covers: the image without one."""
    sections = tuple(section for section in fatbin.sections if section.kind != "signature")
    return _image(replace(fatbin, sections=sections))


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


# The check that a trusted key signed an image (runtime spec 15; AMB-RT-43).


def verify(image: bytes, trusted_keys: Collection[bytes]) -> None:
    """Check the signature of an image against the trusted public keys, 32 bytes each.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for an image that is malformed, unsigned, signed by another key, or
    changed since; with TESS_ERR_UNSUPPORTED without the extra `signing`.
    """
    fatbin = read(image, runtime=None)
    signature = fatbin.section("signature")
    verify_signature(signed_content(fatbin), None if signature is None else signature.data, trusted_keys)
