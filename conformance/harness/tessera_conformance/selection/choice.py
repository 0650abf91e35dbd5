"""The cases that were asked for: by patterns of ids, clauses, features, or a report whose failures they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tessera_conformance.registry import Registry
from tessera_conformance.registry.case_index import CaseIndex
from tessera_conformance.reports.journal import FILE_NAME, read
from tessera_conformance.terminal.errors import error_text, meant

# The cases that were asked for, by patterns of their ids, clauses, features, or a report whose failures they are.


class NothingChosen(ValueError):
    """A selection that no case can meet; says which part of it, and what may have been meant."""


class NothingFailed(NothingChosen):
    """A report whose failures were asked for has none."""


@dataclass(frozen=True)
class Choice:
    """A selection: any of the cases, any of the clauses, any of the features, and among the failures."""

    reproduced: str | None = None
    """One case by its id."""
    cases: Sequence[str] = ()
    """Patterns of ids, in which `*` stands for any text."""
    clauses: Sequence[str] = ()
    """Ids, or patterns of ids."""
    features: Sequence[str] = ()
    failed: Path | None = None
    """A report."""

    @property
    def narrows(self) -> bool:
        """True if it leaves out anything."""
        return bool(self.reproduced or self.cases or self.clauses or self.features or self.failed)

    def described(self) -> dict[str, Any]:
        """Return the selection for the header of a report."""
        cases = [*([self.reproduced] if self.reproduced else []), *self.cases]
        parts = {"cases": cases, "clauses": [*self.clauses], "features": [*self.features]}
        failed = {"failed": str(self.failed)} if self.failed else {}
        return {name: part for name, part in parts.items() if part} | failed

    def of(self, index: CaseIndex, registry: Registry) -> CaseIndex:
        """The cases that meet every part of it.

        Raises:
            NothingChosen: a pattern, clause, feature or report has no case, or all of them together have none.
            UnreadableReport: the report is none.
        """
        kept = set(index)
        if self.reproduced is not None:
            kept &= _one(self.reproduced, index)
        if self.cases:
            kept &= {each for pattern in self.cases for each in _matching(pattern, index)}
        if self.clauses:
            judged = {name for pattern in self.clauses for name in _clauses(pattern, index, registry)}
            kept = {each for each in kept if not judged.isdisjoint(index[each].clauses)}
        if self.features:
            needed = {_feature(name, index, registry) for name in self.features}
            kept = {each for each in kept if not needed.isdisjoint(index[each].features)}
        if self.failed is not None:
            kept &= _failures(self.failed, index)
        if not kept:
            raise NothingChosen("no case is in all that was asked for: leave out an option")
        return {identifier: case for identifier, case in index.items() if identifier in kept}


def _one(identifier: str, index: CaseIndex) -> set[str]:
    if identifier not in index:
        raise NothingChosen(f"no such case: {identifier}{meant(identifier, index)}")
    return {identifier}


def _matching(pattern: str, index: CaseIndex) -> list[str]:
    found = [identifier for identifier in index if fnmatchcase(identifier, pattern)]
    if not found:
        raise NothingChosen(f"--case {pattern}: no case has such an id{meant(pattern, _patterns(index))}")
    return found


def _patterns(index: CaseIndex) -> set[str]:
    """The ids, and a pattern for each part of an id with all that lies below it."""
    parts = [identifier.split("/") for identifier in index]
    folders = {"/".join([*each[:count], "*"]) for each in parts for count in range(1, len(each))}
    return {*index, *folders}


def _clauses(pattern: str, index: CaseIndex, registry: Registry) -> set[str]:
    """The clauses of that id or pattern; in the place of one that repeats another, that one, which has the cases."""
    clauses = [clause for name, clause in registry.clauses.items() if fnmatchcase(name, pattern)]
    if not clauses:
        raise NothingChosen(f"--clause {pattern}: no such clause{meant(pattern.upper(), registry.clauses)}")
    found = {clause.duplicate_of or clause.id for clause in clauses}
    if not any(found & {*case.clauses} for case in index.values()):
        verified = ", ".join(sorted({clause.verify for clause in clauses}))
        raise NothingChosen(f"--clause {pattern}: no case judges it (verified by: {verified})")
    return found


def _feature(name: str, index: CaseIndex, registry: Registry) -> str:
    if name not in registry.features:
        hint = meant(name, registry.features)
        raise NothingChosen(
            f"--feature {name}: no such feature{hint} (`tessera-conformance clauses features` lists them)"
        )
    if not any(name in case.features for case in index.values()):
        raise NothingChosen(f"--feature {name}: no case needs it")
    return name


def _failures(path: Path, index: CaseIndex) -> set[str]:
    report = read(path)
    failed = [str(line["case"]) for line in report.failures]
    if report.footer is None:  # it was cut off
        failed += sorted({*report.plan["cases"]} - {str(line["case"]) for line in report.observations})
    if not failed:
        raise NothingFailed(f"--failed {path}: no case of this report failed")
    unknown = [case for case in failed if case not in index]
    if unknown:
        further = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise NothingChosen(
            f"--failed {path}: the suite has no case {unknown[0]}{further}; the report is of another one"
        )
    return set(failed)


# Which earlier report says what failed, and where the report of this run goes so that it does not replace that one.


USUAL = Path("report")
"""The default folder of a report."""
PART = "failed"
"""The folder, in that of the report that was read, of a run of what failed in it."""
BEFORE = "before.jsonl"
"""The name of the report of the last such run while it is run again."""


@dataclass(frozen=True)
class Earlier:
    """The folder of this run's report, the report whose failures it runs, and a sentence for the user."""

    folder: Path
    failed: Path | None = None
    note: str = ""


def earlier(folder: Path | None, failed: Path | None, last_failed: bool, keeps: bool = False) -> Earlier:
    """Return the effect of `--report-dir`, `--failed` and `--lf`; a run that `keeps` all files writes no report.

    Raises:
        ValueError: the report would replace the one that is read.
    """
    if failed is not None:
        return _beside(folder, failed)
    base = folder or USUAL
    if not last_failed:
        return Earlier(base)
    part = next((path for name in (FILE_NAME, BEFORE) if (path := base / PART / name).is_file()), None)
    known = [path for path in (base / FILE_NAME, part) if path is not None and path.is_file()]
    if not known:
        return Earlier(base, note=f"--lf: there is no {base / FILE_NAME} yet: all cases run")
    newest = max(known, key=lambda path: path.stat().st_mtime_ns)
    if newest == base / PART / FILE_NAME and not keeps:
        newest = newest.replace(newest.with_name(BEFORE))
    return Earlier(base / PART, newest)


def _beside(folder: Path | None, failed: Path) -> Earlier:
    read_from = (failed if failed.is_dir() else failed.parent).resolve()
    if folder is None:
        inside = USUAL.resolve() in (read_from, *read_from.parents)
        return Earlier(read_from / PART if inside else USUAL, failed)
    if folder.resolve() == read_from:
        what = f"{folder} holds the report that --failed reads"
        raise ValueError(error_text("--report-dir", what, do="name another folder"))
    return Earlier(folder, failed)
