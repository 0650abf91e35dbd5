"""An entry of the cache, as a value and as the bytes of its file (runtime spec 8.2; AMB-RT-22).

A file holds a magic number, a version, the sizes of header and payload, the header as JSON, the payload, and a SHA-256
of everything before it. The header repeats kind, key and tags, so that a file says what it is wherever it lies.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from ..numerics.errors import shown
from .policy import NumericsPolicy
from .status import Failure, invalid

__all__ = ["KINDS", "CacheEntry", "CacheKey", "CacheTags", "entry_name", "entry_of_bytes", "entry_to_bytes"]

KeyPart: TypeAlias = "str | int | tuple[KeyPart, ...]"

KINDS = ("binary", "autotune")
"""Compiled binaries (RT-08.2-01) and results of autotuning (RT-08.2-02)."""

_MAGIC = b"TESSCACH"
_VERSION = 1
_PREFIX = struct.Struct("<8sIIQ")
"""Magic, version, size of the header, size of the payload."""
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class CacheKey:
    """What a cached result is for: kernel, shape, dtype and architecture, made of texts, numbers and tuples."""

    kernel: KeyPart
    shape: KeyPart
    dtype: KeyPart
    arch: KeyPart

    def __post_init__(self) -> None:
        for name, part in asdict(self).items():
            if not _is_key_part(part):
                raise invalid(
                    "cache", f"the {name} of a key is {shown(part)}", "texts, whole numbers, and tuples of them"
                )


@dataclass(frozen=True)
class CacheTags:
    """Under what a result is valid: driver, hash of the ABI (RT-08.2-04, -05), and numerics policy (AMB-RT-22)."""

    driver: str
    abi_hash: str
    policy: NumericsPolicy

    def __post_init__(self) -> None:
        for name, text in (("driver", self.driver), ("ABI hash", self.abi_hash)):
            if not isinstance(text, str):
                raise invalid("cache", f"the {name} is {shown(text)}", "a text")


@dataclass(frozen=True)
class CacheEntry:
    """A cached result; `kind` is one of `KINDS`."""

    kind: str
    key: CacheKey
    tags: CacheTags
    payload: bytes

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise invalid("cache", f"the kind {shown(self.kind)}", " or ".join(KINDS))
        if not isinstance(self.payload, bytes):
            raise invalid("cache", f"a payload of type {type(self.payload).__name__}", "bytes")


def entry_name(kind: str, key: CacheKey) -> str:
    """The name of an entry's file: its kind, and the digest of its key. Another arch is another file (RT-08.2-03)."""
    return f"{kind}-{sha256(_json(asdict(key))).hexdigest()}"


def entry_to_bytes(entry: CacheEntry) -> bytes:
    """The contents of an entry's file."""
    header = _json({"kind": entry.kind, "key": asdict(entry.key), "tags": asdict(entry.tags)})
    content = _PREFIX.pack(_MAGIC, _VERSION, len(header), len(entry.payload)) + header + entry.payload
    return content + sha256(content).digest()


def entry_of_bytes(content: bytes) -> CacheEntry:
    """Read the contents of an entry's file. Raises ValueError, saying what is wrong."""
    if len(content) < _PREFIX.size + _DIGEST_BYTES:
        raise ValueError(f"{len(content)} bytes are too few")
    magic, version, header_size, payload_size = _PREFIX.unpack_from(content)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ValueError(f"it begins with {magic!r}, version {version}, in place of {_MAGIC!r}, version {_VERSION}")
    needed = _PREFIX.size + header_size + payload_size + _DIGEST_BYTES
    if len(content) != needed:
        raise ValueError(f"it has {len(content)} bytes in place of {needed}")
    if sha256(memoryview(content)[:-_DIGEST_BYTES]).digest() != content[-_DIGEST_BYTES:]:
        raise ValueError("its checksum is wrong")
    header_end = _PREFIX.size + header_size
    return _entry(content[_PREFIX.size : header_end], content[header_end:-_DIGEST_BYTES])


def _entry(header: bytes, payload: bytes) -> CacheEntry:
    try:
        document = json.loads(header)
        key = CacheKey(**{name: _tuples(part) for name, part in document["key"].items()})
        tags = CacheTags(**{**document["tags"], "policy": NumericsPolicy(**document["tags"]["policy"])})
        entry = CacheEntry(document["kind"], key, tags, payload)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, Failure) as error:
        raise ValueError(f"its header cannot be read: {error}") from None
    if entry_to_bytes(entry)[_PREFIX.size :][: len(header)] != header:
        raise ValueError("its header is not written as this store writes it")
    return entry


def _is_key_part(part: object) -> bool:
    if isinstance(part, tuple):
        return all(_is_key_part(each) for each in part)
    return type(part) in (str, int)


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _tuples(part: Any) -> Any:
    return tuple(_tuples(each) for each in part) if isinstance(part, list) else part
