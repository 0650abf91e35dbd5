"""The store of compiled binaries and autotune results on disk (runtime spec 8.2, RT-08.2-01 to -06).

One file an entry. A new entry is written to a file of its own, brought to the disk, and renamed into place, so that a
process killed at any moment leaves the old entry or the new one. Several processes may use one directory. When results
are looked up is the runtime's business. What is found here is run: so a directory that others may write is refused, and
an entry that is no plain file is corrupt.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..numerics.errors import shown
from .cache_entry import KINDS, CacheEntry, CacheKey, CacheTags, entry_name, entry_of_bytes, entry_to_bytes
from .cache_lock import alone, together
from .plain_files import opened_plain
from .status import Failure, Status, invalid

__all__ = ["CacheEntry", "CacheKey", "CacheStore", "CacheTags"]

_SUFFIX = ".tesscache"
_UNFINISHED = ".unfinished"


class CacheStore:
    """The entries in a directory, which is made if it is not there.

    What processes killed while writing have left behind is removed. Raises `Failure` with TESS_ERR_INVALID_VALUE for a
    directory that cannot be made or written, as `put` does, or that others may write.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = directory / ".lock"
        with self._usable():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_own(directory)
            self._remove_unfinished()

    def path(self, kind: str, key: CacheKey) -> Path:
        """The file of an entry, whether it exists or not."""
        if kind not in KINDS:
            raise invalid("cache", f"the kind {shown(kind)}", " or ".join(KINDS))
        return self.directory / (entry_name(kind, key) + _SUFFIX)

    def get(self, kind: str, key: CacheKey, tags: CacheTags, *, same_policy: bool) -> bytes | None:
        """The payload of an entry, or None where there is none that is valid under `tags`.

        An entry of another driver or ABI hash is removed; one of another policy is passed over with `same_policy`,
        which deterministic launches ask for (RT-08.2-06). Raises `Failure` with TESS_ERR_CACHE_CORRUPT.
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
        """Add an entry, in the place of one with the same key; the last of several writers stays."""
        path = self.path(kind, key)
        content = entry_to_bytes(CacheEntry(kind, key, tags, payload))
        with self._usable(), together(self._lock):
            unfinished = self._write_beside(content)
            os.replace(unfinished, path)
            self._bring_names_to_disk()

    def entries(self) -> list[CacheEntry]:
        """All entries, in order of kind and key. Raises `Failure` with TESS_ERR_CACHE_CORRUPT."""
        with self._usable():
            paths = sorted(self.directory.glob("*" + _SUFFIX))
        found = [entry for path in paths if (entry := self._read(path)) is not None]
        return sorted(found, key=lambda entry: (entry.kind, repr(entry.key)))

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
        """A new file with `content`, on the disk; none where that fails."""
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
            given = f"the cache directory {self.directory}, where {error}"
            raise invalid("cache", given, "a directory that can be written, with room left") from None


def _require_own(directory: Path) -> None:
    """Raise `Failure` unless the directory is this user's, and nobody else may write it."""
    found = directory.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        given = f"the cache directory {directory}, which others may write"
        raise invalid(
            "cache", given, f"a directory of one's own with nobody else's right to write: chmod 700 {directory}"
        )


def _identity(tags: CacheTags) -> tuple[str, str]:
    return tags.driver, tags.abi_hash


def _corrupt(path: Path, why: str) -> Failure:
    given = f"the cache file {path} is corrupt: {why}"
    allowed = "an entry as it was written; remove the file, and it will be compiled again"
    return Failure(Status.TESS_ERR_CACHE_CORRUPT, "cache", given, allowed)
