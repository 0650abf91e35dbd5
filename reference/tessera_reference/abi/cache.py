"""The cache of compiled binaries and autotuning results on disk (runtime spec 8.2; AMB-RT-22)."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from ..ir.diagnostics import read_json
from ..numerics.formats import shown
from .policy import NumericsPolicy
from .status import Failure, Status, invalid

# Files: named by text of a caller, and opened only if they are no links, pipes, devices or folders.


def path_named(name: str) -> Path:
    """Return the path whose bytes are a name's UTF-8, in any locale. Raises `TypeError` and `UnicodeEncodeError`."""
    return Path(os.fsdecode(str(Path(name)).encode("utf-8", "surrogateescape")))


def name_of(path: Path) -> str:
    """Return the name of a path, whose bytes are UTF-8 in every locale."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def opened_plain(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a plain file without following a link or waiting for a pipe. Raises `OSError`."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return os.fdopen(descriptor, "rb" if flags == os.O_RDONLY else "ab")


# A lock between the processes that use one cache directory; needs the file locks of a POSIX system.
#
# Writers share it, and a process that removes files holds it exclusively. The system releases it when a process dies.
# Readers need none: an entry appears and disappears as a whole.


_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT


@contextmanager
def together(path: Path) -> Iterator[None]:
    """Hold the lock in the file `path` with other writers, after any exclusive holder has released it."""
    with opened_plain(path, _APPENDING) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Try to hold the lock exclusively, without waiting; yield True if that succeeded."""
    with opened_plain(path, _APPENDING) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


# An entry of the cache, as a value and as the bytes of its file (runtime spec 8.2; AMB-RT-22).
#
# A file holds a magic number, a version, the sizes of header and payload, the header as JSON, the payload, and a
# SHA-256 of everything before it. The header repeats kind, key and tags, so that a file identifies itself under any
# name.


KeyPart: TypeAlias = "str | int | tuple[KeyPart, ...]"

KINDS = ("binary", "autotune")
"""Compiled binaries (RT-08.2-01) and results of autotuning (RT-08.2-02)."""

_MAGIC = b"TESSCACH"
_VERSION = 1
_PREFIX = struct.Struct("<8sIIQ")
"""The prefix: magic, version, size of the header, size of the payload."""
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class CacheKey:
    """Key of a cached result: kernel, shape, dtype and architecture, made of texts, numbers and tuples."""

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
    """The conditions of a result: driver, hash of the ABI (RT-08.2-04, -05), and numerics policy (AMB-RT-22)."""

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
    """Return the name of an entry's file: its kind, and the digest of its key, which the arch changes (RT-08.2-03)."""
    return f"{kind}-{sha256(_json(asdict(key))).hexdigest()}"


def entry_to_bytes(entry: CacheEntry) -> bytes:
    """Return the contents of an entry's file."""
    header = _json({"kind": entry.kind, "key": asdict(entry.key), "tags": asdict(entry.tags)})
    content = _PREFIX.pack(_MAGIC, _VERSION, len(header), len(entry.payload)) + header + entry.payload
    return content + sha256(content).digest()


def entry_of_bytes(content: bytes) -> CacheEntry:
    """Read the contents of an entry's file. Raises ValueError with the fault."""
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
        document = read_json(header)
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
        return all(_is_key_part(item) for item in part)
    return type(part) in (str, int)


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _tuples(part: Any) -> Any:
    return tuple(_tuples(item) for item in part) if isinstance(part, list) else part


# The store of compiled binaries and autotune results on disk (runtime spec 8.2, RT-08.2-01 to -06).
#
# One file an entry. A new entry is written to a file of its own, flushed to the disk, and renamed into place, so that a
# process killed at any moment leaves the old entry or the new one. Several processes may use one directory. The runtime
# decides when to look results up. Entries are executed: so a directory that others may write is refused, and an entry
# that is not a plain file is corrupt.


_SUFFIX = ".tesscache"
_UNFINISHED = ".unfinished"


class CacheStore:
    """The entries in a directory, which is created if it does not exist.

    Files left by processes killed while writing are removed. Raises `Failure` with TESS_ERR_INVALID_VALUE for a
    directory that cannot be created or written, as `put` does, or that others may write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = directory / ".lock"
        with self._usable():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_own(directory)
            self._remove_unfinished()

    def path(self, kind: str, key: CacheKey) -> Path:
        """Return the file of an entry, whether it exists or not."""
        if kind not in KINDS:
            raise invalid("cache", f"the kind {shown(kind)}", " or ".join(KINDS))
        return self.directory / (entry_name(kind, key) + _SUFFIX)

    def get(self, kind: str, key: CacheKey, tags: CacheTags, *, same_policy: bool) -> bytes | None:
        """Return the payload of an entry, or None where there is none that is valid under `tags`.

        An entry of another driver or ABI hash is removed. With `same_policy`, as deterministic launches require, one of
        another policy is ignored (RT-08.2-06). Raises `Failure` with TESS_ERR_CACHE_CORRUPT.
        """
        path = self.path(kind, key)
        entry = self._read(path)
        if entry is None:
            return None
        if _identity(entry.tags) != _identity(tags):
            self._invalidate(path, entry)
            return None
        if same_policy and entry.tags.policy != tags.policy:
            return None
        return entry.payload

    def put(self, kind: str, key: CacheKey, tags: CacheTags, payload: bytes) -> None:
        """Add an entry, replacing one with the same key; that of the last writer stays."""
        path = self.path(kind, key)
        content = entry_to_bytes(CacheEntry(kind, key, tags, payload))
        with self._usable(), together(self._lock):
            unfinished = self._write_beside(content)
            os.replace(unfinished, path)
            self._bring_names_to_disk()

    def entries(self) -> list[CacheEntry]:
        """Return all entries, in order of kind and key. Raises `Failure` with TESS_ERR_CACHE_CORRUPT."""
        with self._usable():
            paths = sorted(self.directory.glob("*" + _SUFFIX))
        entries = [entry for path in paths if (entry := self._read(path)) is not None]
        return sorted(entries, key=lambda entry: (entry.kind, repr(entry.key)))

    def _read(self, path: Path) -> CacheEntry | None:
        try:
            with opened_plain(path) as file:
                entry = entry_of_bytes(file.read())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _corrupt(path, str(error)) from None
        if path.name != entry_name(entry.kind, entry.key) + _SUFFIX:
            raise _corrupt(path, "it holds another entry than its name says")
        return entry

    def _write_beside(self, content: bytes) -> Path:
        """Write `content` to a new file, flushed to the disk, and return its path; leave no file where that fails."""
        descriptor, name = tempfile.mkstemp(_UNFINISHED, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            os.unlink(name)
            raise
        return Path(name)

    def _invalidate(self, path: Path, entry: CacheEntry) -> None:
        """Remove an outdated entry, unless somebody has replaced it, or is about to."""
        with self._usable(), alone(self._lock) as nobody_writes:
            if nobody_writes and self._read(path) == entry:
                path.unlink(missing_ok=True)

    def _remove_unfinished(self) -> None:
        with alone(self._lock) as nobody_writes:
            if nobody_writes:
                for path in sorted(self.directory.glob("*" + _UNFINISHED)):
                    path.unlink(missing_ok=True)

    def _bring_names_to_disk(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f"the cache directory {self.directory}, where {error}"
            raise invalid("cache", where, "a directory that can be written, with room left") from None


def _require_own(directory: Path) -> None:
    """Raise `Failure` unless the directory is this user's, and no other user may write it."""
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        where = f"the cache directory {directory}, which others may write"
        raise invalid("cache", where, f"a directory of one's own that no other user may write: chmod 700 {directory}")


def _identity(tags: CacheTags) -> tuple[str, str]:
    return tags.driver, tags.abi_hash


def _corrupt(path: Path, why: str) -> Failure:
    where = f"the cache file {path} is corrupt: {why}"
    allowed = "an entry as it was written; remove the file, and it will be compiled again"
    return Failure(Status.TESS_ERR_CACHE_CORRUPT, "cache", where, allowed)
