"""The index of cases: of each its pytest node, clauses, features and levels, so that the suite need not be collected.

To collect the suite takes seconds. The index is kept in the user's cache folder with the fingerprint of its sources.
That is the path, size and time of change of every file of the suite, its clauses, schemas and vectors, and the harness.
A wheel has one with a digest of their contents. Where a source differs, the suite is collected again, in a process
of its own; where the cache cannot be written, each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tessera_conformance import cases as locations
from tessera_conformance.cases import SuiteNotCollected
from tessera_conformance.documents import cache_file, write_whole

SHIPPED = "cases.json"
"""The file of a wheel, in the folder of the suite."""


@dataclass(frozen=True)
class IndexedCase:
    """The facts about a case that is not collected.

    `node` is its pytest node id from the folder of the suite on, `ir/test_matmul.py::test_k_tail[bf16]`; `features`
    are those, other than core, that are to be claimed for it to run.
    """

    node: str
    clauses: tuple[str, ...]
    features: tuple[str, ...]
    levels: tuple[str, ...]


CaseIndex = Mapping[str, IndexedCase]


def case_index() -> CaseIndex:
    """Every case of the suite by its id, in the order of ids.

    Raises `SuiteNotCollected`: the sources changed, and pytest cannot collect the suite.
    """
    index = current_index()
    if index is None:
        index = collected()
        _keep(index)
    return index


def current_index() -> CaseIndex | None:
    """The index that is there and has the cases of the sources as they are; None where there is none."""
    index = read(cache_file("cases", locations.suite_directory()), _fingerprint())
    shipped = locations.suite_directory() / SHIPPED
    if index is None and shipped.is_file():
        index = read(shipped, digest_of_contents())
        if index is not None:
            _keep(index)
    return index


def _keep(index: CaseIndex) -> None:
    with contextlib.suppress(OSError):
        write(cache_file("cases", locations.suite_directory()), _fingerprint(), index)


def cases_by_clause(index: CaseIndex) -> Mapping[str, Sequence[str]]:
    """The ids of the cases tagged with each clause."""
    cases: dict[str, list[str]] = {}
    for identifier, case in index.items():
        for clause in case.clauses:
            cases.setdefault(clause, []).append(identifier)
    return cases


def collected() -> CaseIndex:
    """The index as pytest collects the suite now; a process of its own, since collecting changes the one it runs in.

    Raises `SuiteNotCollected`: pytest cannot collect the suite.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    with tempfile.TemporaryDirectory(prefix="tessera-cases-") as scratch:
        file = Path(scratch) / SHIPPED
        command = [sys.executable, "-m", "tessera_conformance.collection", str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        index = read(file)
    if done.returncode or index is None:
        raise SuiteNotCollected((done.stdout + done.stderr).strip())
    return index


def write(file: Path, fingerprint: str, index: CaseIndex) -> None:
    """The index with the fingerprint of its sources; the file is written atomically. Raises `OSError`."""
    tags: dict[tuple[Sequence[str], ...], int] = {}
    cases = {
        identifier: [case.node, tags.setdefault((case.clauses, case.features, case.levels), len(tags))]
        for identifier, case in sorted(index.items())
    }
    content = {"fingerprint": fingerprint, "tags": list(tags), "cases": cases}
    write_whole(file, json.dumps(content, separators=(",", ":")))


def read(file: Path, fingerprint: str | None = None) -> CaseIndex | None:
    """The index in a file; None where it is none, or has another fingerprint than the one given."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if fingerprint is not None and content["fingerprint"] != fingerprint:
            return None
        tags = [[tuple(map(str, names)) for names in tag] for tag in content["tags"]]
        return {identifier: IndexedCase(node, *tags[tag]) for identifier, (node, tag) in content["cases"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _fingerprint() -> str:
    """A digest of the sources' metadata in the file system, which is fast."""
    digest = hashlib.sha256(f"{sys.version} {importlib.metadata.version('pytest')}".encode())
    for _, path in files():
        status = os.stat(path)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n".encode())
    return digest.hexdigest()


def digest_of_contents() -> str:
    """A digest of the contents of the sources: the same in a checkout and in a wheel."""
    digest = hashlib.sha256()
    for name, path in files():
        digest.update(f"{name}\0{hashlib.sha256(Path(path).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def files() -> Iterator[tuple[str, str]]:
    """Every file that the cases are made from: a name that does not depend on the place, and its path."""
    suite, harness = locations.suite_directory(), Path(locations.__file__).parent
    folders = {f"suite/{name}": suite / name for name in (*locations.CHAPTERS, "clauses")}
    folders |= {"schemas": locations.schemas_directory(), "vectors": locations.vectors_directory(), "harness": harness}
    yield "suite/conftest.py", str(suite / "conftest.py")
    for name, folder in folders.items():
        if folder.is_dir():
            yield from _below(name, str(folder))


def _below(name: str, folder: str) -> Iterator[tuple[str, str]]:
    """The files below a folder, but for those that running it leaves behind, and the suite inside the harness."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            below = f"{name}/{entry.name}"
            if entry.name.startswith((".", "__pycache__")) or below == "harness/suite":
                continue
            if entry.is_dir():
                yield from _below(below, entry.path)
            else:
                yield below, entry.path
