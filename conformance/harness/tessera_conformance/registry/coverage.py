"""The clauses that a test verifies, and the tests that name an interpretation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tessera_conformance import cases as locations
from tessera_conformance.registry.errors import RegistryError, UnknownClause, UntestedClause, WithdrawnClause
from tessera_conformance.registry.model import INTERPRETATION_ID, Clause, Registry, nearest

# The registry joined with the tests' tags: which clauses a test verifies, and which wait for one.
#
# A tag says that a case is about a clause, not that it carries it: a case about refused arguments may be all there
# is. What was judged is for a report to say, and counted beside the tags where one is given.
#
# A clause that says what another says is covered by its twin's tests. Testable is what a case can decide, by a call
# or statically (`verify` is test or static). Where a chapter is enforced (chapters.toml), an active testable clause
# that has neither a test nor a recorded reason is an error; elsewhere it is a warning. A tag that names an unknown or
# withdrawn clause is always an error: nobody would see that it checks nothing.


Group = TypeVar("Group")


@dataclass(frozen=True)
class Tally:
    """Numbers of active clauses: all, testable, and of these with a case, excused by a reason, and without either.

    `judged` is how many of the testable ones a run has judged, where one was given.
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

    `cases` gives every active clause its cases, its twin's included. The tallies are by document, by document and
    section, and by level. `errors` must be settled; `warnings` are clauses whose chapter is not enforced yet.
    """

    cases: Mapping[str, tuple[str, ...]]
    total: Tally
    by_document: Mapping[str, Tally]
    by_section: Mapping[tuple[str, str], Tally]
    by_level: Mapping[str, Tally]
    errors: tuple[RegistryError, ...]
    warnings: tuple[UntestedClause, ...]


def coverage(
    registry: Registry, tagged: Mapping[str, Sequence[str]], judged: Collection[str] | None = None
) -> Coverage:
    """Join the registry with the cases tagged with each clause id, and with the clauses that a run has judged."""
    active = [clause for clause in registry.clauses.values() if clause.active]
    cases = {clause.id: _cases_of(clause, tagged) for clause in active}
    untested = [_report(clause, registry) for clause in active if not clause.duplicate_of and _waits(clause, cases)]
    return Coverage(
        cases=cases,
        total=_tally(active, cases, judged),
        by_document=_tallies(active, cases, judged, lambda clause: clause.document),
        by_section=_tallies(active, cases, judged, lambda clause: (clause.document, clause.section)),
        by_level=_tallies(active, cases, judged, lambda clause: clause.level),
        errors=(*wrong_tags(registry, tagged), *(report for report in untested if report.enforced)),
        warnings=tuple(report for report in untested if not report.enforced),
    )


def _cases_of(clause: Clause, tagged: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    twins = tagged.get(clause.duplicate_of, ()) if clause.duplicate_of else ()
    return tuple(dict.fromkeys([*tagged.get(clause.id, ()), *twins]))


def _waits(clause: Clause, cases: Mapping[str, Sequence[str]]) -> bool:
    """True if a required test is missing and not excused."""
    return clause.testable and not cases[clause.id] and clause.reason is None


def _report(clause: Clause, registry: Registry) -> UntestedClause:
    enforced = any(chapter.holds(clause) for chapter in registry.enforced)
    return UntestedClause(clause.file, clause.id, clause.summary, enforced)


def wrong_tags(registry: Registry, tagged: Mapping[str, Sequence[str]]) -> Iterator[RegistryError]:
    """The unknown and the withdrawn clauses among those that cases, or methods of the interface, name."""
    for clause_id, cases in tagged.items():
        if clause_id not in registry.clauses:
            yield UnknownClause(clause_id, nearest(clause_id, registry.clauses), tuple(cases))
        elif not registry.clauses[clause_id].active:
            yield WithdrawnClause(clause_id, tuple(cases))


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
# A name outside of the tests of a module, in a table or a helper, is the module's. The suite need not be collected.
# Violators and legal variants are no tests.


NO_TESTS = {"violators", "variants"}


def naming_tests(suite: Path) -> Mapping[str, tuple[str, ...]]:
    """The tests that name each interpretation, `runtime/test_streams.py::test_order`, and after them the modules."""
    tests: dict[str, dict[str, None]] = {}
    for chapter in locations.CHAPTERS:
        for path in sorted((suite / chapter).rglob("*.py")):
            if not NO_TESTS & {*path.parts}:
                for name, place in _named_in(path.read_text(encoding="utf-8"), path.relative_to(suite).as_posix()):
                    tests.setdefault(name, {})[place] = None
    return {name: tuple(sorted(places, key=lambda place: "::" not in place)) for name, places in sorted(tests.items())}


def _named_in(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Each interpretation that a module names, with the test or, where no test of it does, the module."""
    everywhere = dict.fromkeys(INTERPRETATION_ID.findall(source))
    if not everywhere:
        return
    lines = source.splitlines()
    in_tests = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for name in INTERPRETATION_ID.findall("\n".join(lines[first - 1 : node.end_lineno])):
                in_tests.add(name)
                yield name, f"{module}::{node.name}"
    for name in everywhere:
        if name not in in_tests:
            yield name, module
