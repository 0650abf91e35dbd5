"""The store on disk: validity, corruption, processes that meet and processes that die (runtime spec 8.2)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.abi import cache
from tessera_reference.abi.cache import CacheKey, CacheStore, CacheTags
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status

KEY = CacheKey("scale", (("n", 1024), ("m", 4)), ("bf16", "fp32"), "sm_90")
TAGS = CacheTags("driver 1", "abc", NumericsPolicy())


@pytest.fixture
def store(tmp_path: Path) -> CacheStore:
    return CacheStore(tmp_path / "made" / "when needed")


def names(store: CacheStore) -> list[str]:
    return sorted(path.name for path in store.directory.iterdir() if path.name != ".lock")


def test_names_of_files_are_utf_8_in_a_locale_without_it(tmp_path: Path) -> None:
    """A name goes to the file system and comes back unchanged; bytes that are no UTF-8 do so too."""
    code = (
        "import sys; from tessera_reference.abi.cache import name_of, path_named\n"
        "for name in [sys.argv[1] + end for end in ('/\\u00e4\\u03bb', '/\\udcff')]:\n"
        "    path_named(name).touch(); print(name_of(path_named(name)) == name)"
    )
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, **locale}, capture_output=True, text=True, check=True)
    assert done.stdout == "True\nTrue\n"
    assert sorted(os.listdir(os.fsencode(tmp_path))) == ["\u00e4\u03bb".encode(), b"\xff"]


def test_what_is_put_is_found_again_also_by_another_process(store: CacheStore) -> None:
    assert store.get("binary", KEY, TAGS, same_policy=True) is None
    store.put("binary", KEY, TAGS, b"\0binary\xff")
    store.put("autotune", KEY, TAGS, b"")
    for view in (store, CacheStore(store.directory)):
        assert view.get("binary", KEY, TAGS, same_policy=True) == b"\0binary\xff"
        assert view.get("autotune", KEY, TAGS, same_policy=True) == b""


def corrupt(action: Any, path: Path) -> str:
    """The text of a failure with TESS_ERR_CACHE_CORRUPT, which names the file and what to do."""
    with pytest.raises(Failure) as caught:
        action()
    assert caught.value.status is Status.TESS_ERR_CACHE_CORRUPT
    text = str(caught.value)
    assert str(path) in text and "remove the file" in text
    return text


def test_every_truncation_and_every_altered_byte_is_corruption(store: CacheStore) -> None:
    """Each region: magic, version, sizes, header, payload, checksum."""
    store.put("binary", KEY, TAGS, b"payload")
    path = store.path("binary", KEY)
    content = path.read_bytes()
    altered = [content[:size] for size in range(len(content))] + [content + b"\0"]
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0x11
        altered.append(bytes(changed))
    for altered_bytes in altered:
        path.write_bytes(altered_bytes)
        corrupt(lambda: store.get("binary", KEY, TAGS, same_policy=True), path)
    path.write_bytes(content)
    assert store.get("binary", KEY, TAGS, same_policy=True) == b"payload"


def sealed(header: bytes, payload: bytes = b"", magic: bytes = b"TESSCACH", version: int = 1) -> bytes:
    """A file of an entry put together by hand."""
    content = struct.pack("<8sIIQ", magic, version, len(header), len(payload)) + header + payload
    return content + hashlib.sha256(content).digest()


def header(**change: Any) -> bytes:
    key = {"kernel": "scale", "shape": [["n", 1024], ["m", 4]], "dtype": ["bf16", "fp32"], "arch": "sm_90"}
    policy = {"stableReductions": 1, "deterministic": 1, "rngStateless": 1, "allowFastMath": 0}
    document = {"kind": "binary", "key": key, "tags": {"driver": "driver 1", "abi_hash": "abc", "policy": policy}}
    return json.dumps({**document, **change}, sort_keys=True, separators=(",", ":")).encode()


def test_the_bytes_of_an_entry(store: CacheStore) -> None:
    store.put("binary", KEY, TAGS, b"payload")
    assert store.path("binary", KEY).read_bytes() == sealed(header(), b"payload")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "too few"),
        (b"just some text that somebody has put here, of some length", "it begins with"),
        (sealed(header(), magic=b"TESSFBIN"), "it begins with"),
        (sealed(header(), version=2), "version 2"),
        (sealed(b""), "its header cannot be read"),
        (sealed(b"[]"), "its header cannot be read"),
        (sealed(b"{}"), "its header cannot be read"),
        (sealed(b"\xff"), "its header cannot be read"),
        (sealed(b"[" * 100_000), "its header cannot be read"),
        (sealed(header(kind="source")), "its header cannot be read"),
        (sealed(header(key={"kernel": "scale"})), "its header cannot be read"),
        (sealed(header(key=None)), "its header cannot be read"),
        (sealed(header(tags={"driver": "d", "abi_hash": "a", "policy": 1})), "its header cannot be read"),
        (sealed(header(tags={"driver": 1, "abi_hash": "a", "policy": {}})), "its header cannot be read"),
        (sealed(header(more=1)), "not written as this store writes it"),
        (sealed(b" " + header()), "not written as this store writes it"),
        (sealed(header(kind="autotune")), "another entry than its name says"),
    ],
)
def test_what_is_no_entry_is_corruption_though_its_checksum_be_right(
    store: CacheStore, content: bytes, why: str
) -> None:
    path = store.path("binary", KEY)
    path.write_bytes(content)
    assert why in corrupt(lambda: store.get("binary", KEY, TAGS, same_policy=True), path)
    corrupt(store.entries, path)


def test_an_entry_is_as_long_as_it_says(store: CacheStore) -> None:
    """Bytes more than the sizes give, under a checksum that covers them."""
    content = sealed(header(), b"payload")[:-32] + b"more"
    path = store.path("binary", KEY)
    path.write_bytes(content + hashlib.sha256(content).digest())
    assert "in place of" in corrupt(lambda: store.get("binary", KEY, TAGS, same_policy=True), path)


def test_an_entry_under_the_name_of_another_is_corruption(store: CacheStore) -> None:
    other = replace(KEY, arch="gfx942")
    store.put("binary", KEY, TAGS, b"x")
    store.path("binary", KEY).rename(store.path("binary", other))
    corrupt(lambda: store.get("binary", other, TAGS, same_policy=True), store.path("binary", other))


def test_a_folder_in_the_place_of_an_entry_is_corruption(store: CacheStore) -> None:
    store.path("binary", KEY).mkdir()
    corrupt(lambda: store.get("binary", KEY, TAGS, same_policy=True), store.path("binary", KEY))


def test_a_put_replaces_a_corrupt_entry(store: CacheStore) -> None:
    store.path("binary", KEY).write_bytes(b"garbage")
    store.put("binary", KEY, TAGS, b"x")
    assert store.get("binary", KEY, TAGS, same_policy=True) == b"x"


@pytest.mark.parametrize(
    "make",
    [
        lambda store: store.put("source", KEY, TAGS, b""),
        lambda store: store.get("source", KEY, TAGS, same_policy=True),
        lambda store: store.put("binary", KEY, TAGS, "text"),
        lambda store: CacheKey(1.5, (), "", ""),
        lambda store: CacheKey("f", (True,), "", ""),
        lambda store: CacheTags(None, "", NumericsPolicy()),
        lambda store: CacheStore(store.path("binary", KEY)),
        lambda store: CacheStore(store.path("binary", KEY) / "below a file"),
    ],
)
def test_what_cannot_be_is_refused(store: CacheStore, make: Any, refused: Any) -> None:
    store.path("binary", KEY).write_bytes(b"a file")
    refused(lambda: make(store))


def test_what_a_killed_writer_left_behind_is_no_entry_and_is_removed(store: CacheStore) -> None:
    leftover = store.directory / "tmp12345.unfinished"
    leftover.write_bytes(b"half an ent")
    assert store.entries() == []
    again = CacheStore(store.directory)
    assert not leftover.exists()
    assert again.entries() == []


def test_file_and_name_are_brought_to_the_disk_in_this_order(
    store: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content before name, so that a machine that loses power has no name without its content."""
    steps = []
    sync, rename = os.fsync, os.replace

    def syncing(descriptor: int) -> None:
        steps.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def renaming(old: Path, new: Path) -> None:
        steps.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", renaming)
    store.put("binary", KEY, TAGS, b"x")
    assert steps == ["file", "rename", "directory"]


def test_a_full_disk_is_told_and_leaves_nothing_behind(
    store: CacheStore, monkeypatch: pytest.MonkeyPatch, refused: Any
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put("binary", KEY, TAGS, b"old")
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in str(refused(lambda: store.put("binary", KEY, TAGS, b"new")))
    assert store.get("binary", KEY, TAGS, same_policy=True) == b"old"
    assert len(names(store)) == 1


def test_an_entry_replaced_since_it_was_found_outdated_stays(
    store: CacheStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def somebody_was_quicker(lock: Path) -> Iterator[bool]:
        CacheStore.put(store, "binary", KEY, newer, b"new")
        yield True

    newer = replace(TAGS, driver="driver 2")
    store.put("binary", KEY, TAGS, b"old")
    monkeypatch.setattr(cache, "alone", somebody_was_quicker)
    assert store.get("binary", KEY, newer, same_policy=True) is None
    assert store.get("binary", KEY, newer, same_policy=True) == b"new"


PROLOGUE = """
import os, signal, sys
from pathlib import Path
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.cache import CacheKey, CacheStore, CacheTags
key = CacheKey("scale", (("n", 1024), ("m", 4)), ("bf16", "fp32"), "sm_90")
tags = CacheTags("driver 1", "abc", NumericsPolicy())
store = CacheStore(Path(sys.argv[1]))
"""
KILLED_BEFORE_RENAMING = """
os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
store.put("binary", key, tags, b"new")
"""
KILLED_WHILE_WRITING = """
os.fsync = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
store.put("binary", key, tags, b"new" * 100000)
"""
HOLDING_THE_LOCK = """
def wait(*names):
    print("writing", flush=True)
    sys.stdin.read()
    os.rename(*names)
os.replace = wait
store.put("binary", key, tags, b"new")
"""
MANY = """
from dataclasses import replace
mine, wrong = sys.argv[2], 0
for round in range(40):
    for number in range(4):
        numbered_key = replace(key, kernel=f"k{number}")
        store.put("binary", numbered_key, tags, (f"{number} {mine} {round} " * 200).encode())
        found = store.get("binary", numbered_key, tags, same_policy=True)
        pieces = {found[start:start + len(found) // 200] for start in range(0, len(found), len(found) // 200)}
        wrong += len(pieces) != 1 or not found.startswith(b"%d " % number)
    wrong += len(store.entries()) > 4
print(wrong)
"""
CHANGING_DRIVERS = """
from dataclasses import replace
mine = replace(tags, driver=sys.argv[2])
for round in range(60):
    store.put("binary", key, mine, sys.argv[2].encode())
    found = store.get("binary", key, mine, same_policy=True)
    assert found in (None, sys.argv[2].encode()), found
"""


def process(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROLOGUE + code, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("code", [KILLED_BEFORE_RENAMING, KILLED_WHILE_WRITING], ids=["renaming", "writing"])
@pytest.mark.parametrize("before", [None, b"old"])
def test_a_writer_killed_at_work_leaves_the_old_state(store: CacheStore, code: str, before: bytes | None) -> None:
    if before is not None:
        store.put("binary", KEY, TAGS, before)
    with process(code, str(store.directory)) as killed:
        assert killed.wait() == -signal.SIGKILL
    assert len(names(store)) == (1 if before is None else 2), "there is an unfinished file"
    assert store.get("binary", KEY, TAGS, same_policy=True) == before
    assert CacheStore(store.directory).get("binary", KEY, TAGS, same_policy=True) == before
    assert len(names(store)) == (0 if before is None else 1)


def test_a_writer_at_work_is_not_disturbed(store: CacheStore) -> None:
    """Neither by a store that is opened nor by an outdated entry that is met; the new entry is there at last."""
    store.put("binary", KEY, TAGS, b"old")
    with process(HOLDING_THE_LOCK, str(store.directory)) as writer:
        assert writer.stdout is not None and writer.stdin is not None
        assert writer.stdout.readline() == "writing\n"
        second = CacheStore(store.directory)
        assert second.get("binary", KEY, replace(TAGS, driver="driver 2"), same_policy=False) is None
        assert second.get("binary", KEY, TAGS, same_policy=False) == b"old"
        writer.stdin.close()
        assert writer.wait() == 0
    assert store.get("binary", KEY, TAGS, same_policy=True) == b"new"
    assert len(names(store)) == 1


def test_processes_that_write_the_same_entries_read_whole_ones(store: CacheStore) -> None:
    writers = [process(MANY, str(store.directory), str(number)) for number in range(3)]
    results = [writer.communicate() for writer in writers]
    assert [(out.strip(), err) for out, err in results] == [("0", "")] * 3
    assert len(store.entries()) == 4
    assert len(names(store)) == 4


def test_processes_of_different_drivers_never_see_each_others_entries(store: CacheStore) -> None:
    writers = [process(CHANGING_DRIVERS, str(store.directory), f"driver {number}") for number in range(3)]
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert len(names(store)) <= 1


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_refused(tmp_path: Path, mode: int, refused: Any) -> None:
    """Code that another user puts there would be run."""
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(mode)
    refused(lambda: CacheStore(directory))
    directory.chmod(0o700)
    CacheStore(directory)


def test_a_directory_that_is_made_is_its_users_alone(store: CacheStore) -> None:
    assert store.directory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a device"])
def test_an_entry_that_is_no_plain_file_is_corruption(store: CacheStore, kind: str, tmp_path: Path) -> None:
    """A link would let another folder's files in; a pipe would never end."""
    store.put("binary", KEY, TAGS, b"x")
    path = store.path("binary", KEY)
    elsewhere = path.rename(tmp_path / "elsewhere")
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere if kind == "a link" else "/dev/zero")
    corrupt(lambda: store.get("binary", KEY, TAGS, same_policy=True), path)


def test_a_link_in_the_place_of_the_lock_is_not_followed(store: CacheStore, tmp_path: Path, refused: Any) -> None:
    (store.directory / ".lock").unlink()
    (store.directory / ".lock").symlink_to(tmp_path / "elsewhere")
    refused(lambda: store.put("binary", KEY, TAGS, b"x"))
    assert not (tmp_path / "elsewhere").exists()
