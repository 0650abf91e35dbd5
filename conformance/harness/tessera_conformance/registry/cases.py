"""The cases of the suite: their index, the clauses that they cover, and the tests that name an interpretation."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from tessera_conformance import cases as locations
from tessera_conformance.cases import SuiteNotCollected
from tessera_conformance.documents import cache_file, keep, read_kept
from tessera_conformance.registry.errors import RegistryError
from tessera_conformance.registry.model import Clause, Registry, cited_interpretations, nearest

# The index of cases: each one's pytest node, clauses, features and levels, so that the suite need not be collected.
#
# Collecting the suite takes seconds. The index is kept in the user's cache folder with the fingerprint of its sources:
# the path, size and modification time of every file of the suite, its clauses, schemas and vectors, and the harness. A
# wheel has an index with a digest of the sources' contents. If a source differs, the suite is collected again, in a
# process of its own; if the cache cannot be written, each time.


SHIPPED = "cases.json"
"""The file of a wheel, in the folder of the suite."""


@dataclass(frozen=True)
class IndexedCase:
    """The facts about a case that is not collected.

    `node` is its pytest node id from the folder of the suite on, `ir/test_matmul.py::test_k_tail[bf16]`. `features` are
    those, other than core, that an implementation must claim for it to run.
    """

    node: str
    clauses: tuple[str, ...]
    features: tuple[str, ...]
    levels: tuple[str, ...]


CaseIndex = Mapping[str, IndexedCase]


def case_index() -> CaseIndex:
    """Return every case of the suite by its id, in the order of ids.

    Raises `SuiteNotCollected`: the sources changed, and pytest cannot collect the suite.
    """
    index = current_index()
    if index is None:
        fingerprint = _fingerprint()  # of the sources before they are collected: they may change meanwhile
        index = collected()
        _keep(index, fingerprint)
    return index


def current_index() -> CaseIndex | None:
    """Return the cached or shipped index if it matches the current sources, else None."""
    index = _kept(_fingerprint())
    shipped = locations.suite_directory() / SHIPPED
    if index is None and shipped.is_file():
        index = read_index(shipped, digest_of_contents())
        if index is not None:
            _keep(index, _fingerprint())
    return index


@lru_cache(maxsize=1)
def _kept(fingerprint: str) -> CaseIndex | None:
    """Return the index that an earlier process cached for sources with this fingerprint."""
    return read_index(cache_file("cases", locations.suite_directory()), fingerprint)


def _keep(index: CaseIndex, fingerprint: str) -> None:
    with contextlib.suppress(OSError):
        write_index(cache_file("cases", locations.suite_directory()), fingerprint, index)
    _kept.cache_clear()


def cases_by_clause(index: CaseIndex) -> Mapping[str, Sequence[str]]:
    """Return the ids of the cases tagged with each clause."""
    cases: dict[str, list[str]] = {}
    for identifier, case in index.items():
        for clause in case.clauses:
            cases.setdefault(clause, []).append(identifier)
    return cases


def collected() -> CaseIndex:
    """Return the index as pytest collects the suite now, in a new process, since collecting changes its process.

    Raises `SuiteNotCollected`: pytest cannot collect the suite.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    with tempfile.TemporaryDirectory(prefix="tessera-cases-") as scratch:
        file = Path(scratch) / SHIPPED
        command = [sys.executable, "-m", "tessera_conformance.collection", str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        index = read_index(file)
    if done.returncode or index is None:
        raise SuiteNotCollected((done.stdout + done.stderr).strip())
    return index


def write_index(file: Path, fingerprint: str, index: CaseIndex) -> None:
    """Write the index with the fingerprint of its sources, atomically. Raises `OSError`."""
    tags: dict[tuple[Sequence[str], ...], int] = {}
    cases = {
        identifier: [case.node, tags.setdefault((case.clauses, case.features, case.levels), len(tags))]
        for identifier, case in sorted(index.items())
    }
    keep(file, fingerprint, {"tags": list(tags), "cases": cases})


def read_index(file: Path, fingerprint: str | None = None) -> CaseIndex | None:
    """Return the index in a file; None if it has none, or one with another fingerprint."""
    try:
        content = read_kept(file, fingerprint)
        tags = [[tuple(map(str, names)) for names in tag] for tag in content["tags"]]
        return {identifier: IndexedCase(node, *tags[tag]) for identifier, (node, tag) in content["cases"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _fingerprint() -> str:
    """Return a digest of the sources' file metadata, which is fast."""
    digest = hashlib.sha256(f"{sys.version} {importlib.metadata.version('pytest')}".encode())
    for _, path in source_files():
        status = os.stat(path)
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n".encode())
    return digest.hexdigest()


def digest_of_contents() -> str:
    """Return a digest of the contents of the sources: the same in a checkout and in a wheel."""
    digest = hashlib.sha256()
    for name, path in source_files():
        digest.update(f"{name}\0{hashlib.sha256(Path(path).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def source_files() -> Iterator[tuple[str, str]]:
    """Yield every file from which cases are made: a name independent of the checkout's folder, and its path."""
    suite, harness = locations.suite_directory(), Path(locations.__file__).parent
    folders = {f"suite/{name}": suite / name for name in (*locations.CHAPTERS, "clauses")}
    folders |= {"schemas": locations.schemas_directory(), "vectors": locations.vectors_directory(), "harness": harness}
    yield "suite/conftest.py", str(suite / "conftest.py")
    for name, folder in folders.items():
        if folder.is_dir():
            yield from _below(name, str(folder))


def _below(name: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files below a folder, except those that a run leaves behind and the suite inside the harness."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            below = f"{name}/{entry.name}"
            if entry.name.startswith((".", "__pycache__")) or below == "harness/suite":
                continue
            if entry.is_dir():
                yield from _below(below, entry.path)
            else:
                yield below, entry.path


# The registry joined with the tests' tags: the clauses that tests verify, and those that lack a test.
#
# A tag says that a case is about a clause, not that it carries it: a clause may have nothing but a case about refused
# arguments. A report shows which clauses a run judged; with a report, they are counted beside the tags.
#
# A clause that repeats another is covered by that one's tests. A clause is testable if a case can decide it, by a call
# or statically (`verify` is test or static). In an enforced chapter (chapters.toml), an active testable clause that has
# neither a test nor a recorded reason is an error; elsewhere it is a warning. A tag that names an unknown or withdrawn
# clause is always an error: otherwise nobody would see that it checks nothing.


Group = TypeVar("Group")


@dataclass(frozen=True)
class Tally:
    """Numbers of active clauses: all, testable, and of these with a case, excused by a reason, and without either.

    `judged` is the number of testable ones that a run has judged, if a run is given.
    """

    clauses: int
    testable: int
    tested: int
    excused: int
    untested: int
    judged: int | None = None


@dataclass(frozen=True)
class Coverage:
    """The coverage of the tests.

    `cases` gives every active clause its cases and those of the clause it repeats. Tallies are by document, by document
    and section, and by level. `errors` must be settled; `warnings` are clauses whose chapter is not enforced yet.
    """

    cases: Mapping[str, tuple[str, ...]]
    total: Tally
    by_document: Mapping[str, Tally]
    by_section: Mapping[tuple[str, str], Tally]
    by_level: Mapping[str, Tally]
    errors: tuple[RegistryError, ...]
    warnings: tuple[RegistryError, ...]


def coverage(
    registry: Registry, tagged: Mapping[str, Sequence[str]], judged: Collection[str] | None = None
) -> Coverage:
    """Join the registry with the cases tagged with each clause id, and with the clauses that a run has judged."""
    active = [clause for clause in registry.clauses.values() if clause.active]
    cases = {
        clause.id: tuple(dict.fromkeys([*tagged.get(clause.id, ()), *tagged.get(clause.duplicate_of or "", ())]))
        for clause in active
    }
    waiting = [clause for clause in active if not clause.duplicate_of and _waits(clause, cases)]
    errors: list[RegistryError] = [*wrong_tags(registry, tagged)]
    warnings: list[RegistryError] = []
    for row in waiting:
        enforced = any(chapter.holds(row) for chapter in registry.enforced)
        fields = {"file": row.file, "id": row.id, "summary": row.summary, "enforced": enforced}
        (errors if enforced else warnings).append(RegistryError("untested clause", **fields))
    return Coverage(
        cases=cases,
        total=_tally(active, cases, judged),
        by_document=_tallies(active, cases, judged, lambda clause: clause.document),
        by_section=_tallies(active, cases, judged, lambda clause: (clause.document, clause.section)),
        by_level=_tallies(active, cases, judged, lambda clause: clause.level),
        errors=tuple(errors),
        warnings=tuple(warnings),
    )


def _waits(clause: Clause, cases: Mapping[str, Sequence[str]]) -> bool:
    """True if a required test is missing without a recorded reason."""
    return clause.testable and not cases[clause.id] and clause.reason is None


def wrong_tags(registry: Registry, tagged: Mapping[str, Sequence[str]]) -> Iterator[RegistryError]:
    """Yield an error for each unknown or withdrawn clause that cases or methods of the interface name."""
    for clause_id, cases in tagged.items():
        if clause_id not in registry.clauses:
            suggestions = nearest(clause_id, registry.clauses)
            yield RegistryError("unknown clause", id=clause_id, suggestions=suggestions, cited_by=tuple(cases))
        elif not registry.clauses[clause_id].active:
            yield RegistryError("withdrawn clause", id=clause_id, cited_by=tuple(cases))


def _tallies(
    clauses: Iterable[Clause],
    cases: Mapping[str, Sequence[str]],
    judged: Collection[str] | None,
    group_of: Callable[[Clause], Group],
) -> dict[Group, Tally]:
    groups: dict[Group, list[Clause]] = {}
    for clause in clauses:
        groups.setdefault(group_of(clause), []).append(clause)
    return {group: _tally(members, cases, judged) for group, members in groups.items()}


def _tally(clauses: Sequence[Clause], cases: Mapping[str, Sequence[str]], judged: Collection[str] | None) -> Tally:
    testable = [clause for clause in clauses if clause.testable]
    tested = sum(1 for clause in testable if cases[clause.id])
    untested = sum(1 for clause in testable if _waits(clause, cases))
    of_run = None if judged is None else sum(1 for clause in testable if clause.id in judged)
    return Tally(len(clauses), len(testable), tested, len(testable) - tested - untested, untested, of_run)


# The tests of the suite that name an interpretation, found in their source: decorators, docstring and body.
#
# A name outside of a module's tests, in a table or a helper, is the module's. The suite need not be collected.
# Violators and legal variants are no tests.


NO_TESTS = {"violators", "variants"}


def naming_tests(suite: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the tests that name each interpretation, `runtime/test_streams.py::test_order`, then the modules."""
    tests: dict[str, dict[str, None]] = {}
    for chapter in locations.CHAPTERS:
        for path in sorted((suite / chapter).rglob("*.py")):
            if not NO_TESTS & {*path.parts}:
                for name, place in _named_in(path.read_text(encoding="utf-8"), path.relative_to(suite).as_posix()):
                    tests.setdefault(name, {})[place] = None
    return {name: tuple(sorted(places, key=lambda place: "::" not in place)) for name, places in sorted(tests.items())}


def _named_in(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Yield each interpretation that a module names, with its tests; with the module if none of its tests names it."""
    everywhere = cited_interpretations(source)
    if not everywhere:
        return
    lines = source.splitlines()
    in_tests = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for name in cited_interpretations("\n".join(lines[first - 1 : node.end_lineno])):
                in_tests.add(name)
                yield name, f"{module}::{node.name}"
    for name in everywhere:
        if name not in in_tests:
            yield name, module
