"""The selected cases, and a pytest run narrowed to them before it collects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from tessera_conformance.cases import CHAPTERS, suite_directory
from tessera_conformance.registry import Registry
from tessera_conformance.registry.cases import CaseIndex, case_index, current_index
from tessera_conformance.reports.claim import Line
from tessera_conformance.reports.journal import FILE_NAME, read
from tessera_conformance.reports.lines import without_run
from tessera_conformance.terminal import error_text, meant

# The selected cases, by patterns of their ids, clauses, features, or by a report whose failures they are.


class NothingChosen(ValueError):
    """A selection that no case can match; has its wrong part, and suggestions."""


class NothingFailed(NothingChosen):
    """The report whose failures were selected has none."""


@dataclass(frozen=True)
class Choice:
    """A selection: any of the cases, any of the clauses, any of the features, and among the failures."""

    reproduced: str | None = None
    """One case by its id."""
    cases: Sequence[str] = ()
    """Patterns of ids, in which `*` is any text."""
    clauses: Sequence[str] = ()
    """Ids, or patterns of ids."""
    features: Sequence[str] = ()
    failed: Path | None = None
    """A report."""

    @property
    def narrows(self) -> bool:
        """True if it leaves out a case."""
        return bool(self.reproduced or self.cases or self.clauses or self.features or self.failed)

    def described(self) -> dict[str, Any]:
        """Return the selection for the header of a report."""
        cases = [*([self.reproduced] if self.reproduced else []), *self.cases]
        parts = {"cases": cases, "clauses": [*self.clauses], "features": [*self.features]}
        failed = {"failed": str(self.failed)} if self.failed else {}
        return {name: part for name, part in parts.items() if part} | failed

    def of(self, index: CaseIndex, registry: Registry) -> CaseIndex:
        """Return the cases that match every part of it.

        Raises `NothingChosen`: a pattern, clause, feature or report has no case, or all of them together have none; or
        `UnreadableReport`: the report is none.
        """
        selected = set(index)
        if self.reproduced is not None:
            if self.reproduced not in index:
                raise NothingChosen(f"no such case: {self.reproduced}{meant(self.reproduced, index)}")
            selected = {self.reproduced}
        if self.cases:
            selected &= {case for pattern in self.cases for case in _matching(pattern, index)}
        if self.clauses:
            judged = {name for pattern in self.clauses for name in _clauses(pattern, index, registry)}
            selected = {case for case in selected if not judged.isdisjoint(index[case].clauses)}
        if self.features:
            needed = {_feature(name, index, registry) for name in self.features}
            selected = {case for case in selected if not needed.isdisjoint(index[case].features)}
        if self.failed is not None:
            selected &= _failures(self.failed, index)
        if not selected:
            raise NothingChosen("no case matches all options: leave one out")
        return {identifier: case for identifier, case in index.items() if identifier in selected}


def _matching(pattern: str, index: CaseIndex) -> list[str]:
    identifiers = [identifier for identifier in index if fnmatchcase(identifier, pattern)]
    if not identifiers:
        folders = {f"{folder}/*" for identifier in index for folder in PurePosixPath(identifier).parents}
        raise NothingChosen(f"--case {pattern}: no case has such an id{meant(pattern, {*index, *folders} - {'./*'})}")
    return identifiers


def _clauses(pattern: str, index: CaseIndex, registry: Registry) -> set[str]:
    """Return the clauses of an id or pattern; in place of one that repeats another, that one, which has the cases."""
    clauses = [clause for name, clause in registry.clauses.items() if fnmatchcase(name, pattern)]
    if not clauses:
        raise NothingChosen(f"--clause {pattern}: no such clause{meant(pattern.upper(), registry.clauses)}")
    names = {clause.duplicate_of or clause.id for clause in clauses}
    if not any(names & {*case.clauses} for case in index.values()):
        verified = ", ".join(sorted({clause.verify for clause in clauses}))
        raise NothingChosen(f"--clause {pattern}: no case judges it (verified by: {verified})")
    return names


def _feature(name: str, index: CaseIndex, registry: Registry) -> str:
    if name not in registry.features:
        hint = f"{meant(name, registry.features)} (`tessera-conformance clauses features` lists them)"
        raise NothingChosen(f"--feature {name}: no such feature{hint}")
    if not any(name in case.features for case in index.values()):
        raise NothingChosen(f"--feature {name}: no case needs it")
    return name


def _failures(path: Path, index: CaseIndex) -> set[str]:
    report = read(path)
    failed = [str(line["case"]) for line in report.failures]
    if report.footer is None:  # the run was cut off
        failed += sorted({*report.plan["cases"]} - {str(line["case"]) for line in report.observations})
    if not failed:
        raise NothingFailed(f"--failed {path}: no case of this report failed")
    unknown = [case for case in failed if case not in index]
    if unknown:
        named = f"{unknown[0]} and {len(unknown) - 1} more" if len(unknown) > 1 else unknown[0]
        raise NothingChosen(f"--failed {path}: the suite has no case {named}; the report is of another one")
    return set(failed)


# The earlier report whose failures are run, and a folder for this run's report that does not replace it.


USUAL = Path("report")
"""The default folder of a report."""
PART = "failed"
"""The folder, within that of the report that was read, of a run of its failures."""
BEFORE = "before.jsonl"
"""The name of the report of the last such run while its cases run again."""


@dataclass(frozen=True)
class Earlier:
    """The folder of this run's report, the report whose failures it runs, and a sentence for the user."""

    folder: Path
    failed: Path | None = None
    note: str = ""


def earlier(folder: Path | None, failed: Path | None, last_failed: bool, keeps: bool = False) -> Earlier:
    """Return the effect of `--report-dir`, `--failed` and `--lf`; a run that `keeps` all files writes no report.

    Raises `ValueError`: the report would replace the one that is read.
    """
    if failed is not None:
        return _beside(folder, failed)
    base = folder or USUAL
    if not last_failed:
        return Earlier(base)
    part = next((path for name in (FILE_NAME, BEFORE) if (path := base / PART / name).is_file()), None)
    paths = [path for path in (base / FILE_NAME, part) if path is not None and path.is_file()]
    if not paths:
        return Earlier(base, note=f"--lf: there is no {base / FILE_NAME} yet: all cases run")
    newest = max(paths, key=lambda path: path.stat().st_mtime_ns)
    if newest == base / PART / FILE_NAME and not keeps:
        newest = newest.replace(newest.with_name(BEFORE))
    return Earlier(base / PART, newest)


RESUMED = "resumed.jsonl"
"""The name of a resumed report that this run would otherwise overwrite."""


def set_aside(report: Path, folder: Path) -> Path:
    """Move a report that a folder's new one would replace; return its new path. Raises `OSError`."""
    if report.resolve() != (folder / FILE_NAME).resolve():
        return report
    return report.replace(report.with_name(RESUMED))


def judged_before(path: Path, header: Callable[[bool], Line] | None) -> dict[str, Line]:
    """Return the lines of a report that a run with this header keeps; a header None requires nothing.

    Raises `ValueError`: it is the report of another run; or `UnreadableReport`: it is none.
    """
    report = read(path)
    there = without_run(report.header)
    here = without_run(header(there["selection"]["complete"])) if header else there
    other = [name for name in here if here[name] != there.get(name)]
    if other:
        raise ValueError(error_text("--resume", f"{path} is of another run: its {' and '.join(other)} differ"))
    return {line["case"]: line for line in report.observed if line["verdict"] != "not_run"}


def _beside(folder: Path | None, failed: Path) -> Earlier:
    read_from = (failed if failed.is_dir() else failed.parent).resolve()
    if folder is None:
        inside = USUAL.resolve() in (read_from, *read_from.parents)
        return Earlier(read_from / PART if inside else USUAL, failed)
    if folder.resolve() == read_from:
        what = f"{folder} holds the report that --failed reads"
        raise ValueError(error_text("--report-dir", what, do="name another folder"))
    return Earlier(folder, failed)


# Files, folders and tests of the suite as the command line names them, with pytest's `::`.


MOST_FUNCTIONS = 100
"""The most test functions that are passed to pytest one by one."""


@dataclass(frozen=True)
class Place:
    """A file or folder that exists, and the rest of its argument: `::test_k_tail[bf16]`, or ""."""

    argument: str
    """The argument for pytest: a path from the working directory on, or from the root."""
    path: Path
    test: str = ""

    @cached_property
    def in_suite(self) -> str:
        """The place relative to the folder of the suite; "" if it is, or contains, the whole suite."""
        suite = suite_directory()
        return "" if self.path in (suite, *suite.parents) else f"{self.path.relative_to(suite).as_posix()}{self.test}"

    @cached_property
    def outside(self) -> bool:
        """True if it contains nothing of the suite."""
        suite = suite_directory()
        return self.path not in (suite, *suite.parents) and suite not in self.path.parents

    def holds(self, node: str) -> bool:
        """True if a node id, relative to the folder of the suite, belongs to it."""
        if self.outside:
            return False
        name = self.in_suite
        return not name or node == name or node.startswith(beginnings(name))


def beginnings(name: str) -> tuple[str, str, str]:
    """Return the beginnings of the node ids in a folder, a file or a test function."""
    return f"{name}/", f"{name}::", f"{name}["


def place_of(argument: str, directory: Path) -> Place:
    """Return the place that an argument names, relative to the directory or to the folder of the suite.

    Raises `NothingChosen`: there is no such file or folder.
    """
    name, colons, test = argument.partition("::")
    suite = suite_directory()
    inside = Path(*Path(name).parts[1:]) if Path(name).parts[:1] == ("conformance",) else Path(name)
    for path, argued in ((directory / name, argument), (suite / inside, f"{suite / inside}{colons}{test}")):
        if path.exists():
            return Place(argued, path.resolve(), f"{colons}{test}")
    hint = meant(name, _near(Path(name), inside))
    raise NothingChosen(f"{name}: no such file or folder, here or in the suite{hint}")


def _near(given: Path, inside: Path) -> Iterator[str]:
    """Return the folders and test files of the suite, in the form of the given path."""
    before = given.parts[: len(given.parts) - len(inside.parts)]
    suite = suite_directory()
    for chapter in CHAPTERS:
        for path in [suite / chapter, *sorted((suite / chapter).rglob("*"))]:
            if path.match("test_*.py") or (path.is_dir() and next(path.glob("test_*.py"), None)):
                yield Path(*before, path.relative_to(suite)).as_posix()


def narrowed(nodes: Sequence[str]) -> list[str]:
    """Return arguments for pytest that cover these nodes and little else: functions, or files if there are many."""
    suite = suite_directory()
    functions = list(dict.fromkeys(node.partition("[")[0] for node in nodes))
    files = list(dict.fromkeys(node.partition("::")[0] for node in nodes))
    return [f"{suite}/{name}" for name in (functions if len(functions) <= MOST_FUNCTIONS else files)]


# `-k` answered from the index of cases, before anything is collected: its possible cases, or suggestions.


UNINDEXED = (
    *("clause", "feature", "judges", "title", "level"),
    *("parametrize", "usefixtures", "filterwarnings", "hypothesis"),
)
"""Names of marks, which pytest matches too and which the index does not have."""
_NAME = re.compile(r"[^\s()]+")
_WORD = re.compile(r"[a-z0-9.]+")


def matching(expression: str, index: CaseIndex) -> CaseIndex | None:
    """Return the cases that `-k` matches; None if the index cannot tell. Raises `NothingChosen`: it matches no case."""
    words = _words(expression)
    if any(word in name for word in words for name in (*UNINDEXED, suite_directory().name)):
        return None
    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return None  # pytest reports the error
    matches = {identifier: case for identifier, case in index.items() if compiled.evaluate(_named(case.node))}
    if not matches:
        raise NothingChosen(nothing(expression, [case.node for case in index.values()]))
    return matches


def _named(node: str) -> Callable[..., bool]:
    """Return a test for parts of pytest's names of the folders, the file, the class and the test of a node id."""
    path, *inside = node.split("::")
    names = "\n".join([*PurePosixPath(path).parts, *inside]).lower()
    return lambda part, /, **_: part.lower() in names


def _words(expression: str) -> list[str]:
    return [word for word in _NAME.findall(expression.lower()) if word not in ("and", "or", "not")]


def nothing(expression: str, nodes: Sequence[str]) -> str:
    """Return the error of an expression without cases: the first word that no case has, and a suggestion."""
    text = "\n".join(nodes).lower()
    absent = next((word for word in _words(expression) if word not in text), None)
    if absent is None:
        return error_text(f"-k {expression}", "no case has all of these names", do="leave out one of them")
    words = {*_WORD.findall(text), *(PurePosixPath(node.partition("::")[0]).stem[5:] for node in nodes)}
    hint = meant(absent, words).removeprefix("; ")
    return error_text(f"-k {expression}", f"no case has {absent} in its name", do=hint or "`--list` shows the cases")


# A pytest run narrowed before it collects: its arguments become the files and tests that contain the selection.


FILTERS = ("keyword", "markexpr")


def choice(config: pytest.Config) -> Choice:
    """Return the selection of the options."""
    option = config.option
    return Choice(option.reproduce, option.cases, option.clauses, option.features, option.failed)


def narrow(config: pytest.Config, registry: Registry) -> Set[str] | None:
    """Narrow the arguments of the run; return the ids of the chosen cases, or None if no option chooses any.

    Raises `NothingChosen`: the selection does not exist; `UnreadableReport`: `--failed` names no report; or
    `SuiteNotCollected`: there is no index of cases, and pytest cannot collect the suite.
    """
    named = _places(config)
    selection = choice(config)
    if not selection.narrows:
        config.args[:] = _named_by_keyword(config, named)
        return None
    chosen = selection.of(case_index(), registry)
    selected = {name: case for name, case in chosen.items() if any(place.holds(case.node) for place in named)}
    if not selected:
        where = ", ".join(place.argument for place in named)
        raise NothingChosen(f"{where}: holds none of the {len(chosen)} cases that were asked for")
    config.args[:] = narrowed([case.node for case in selected.values()])
    return selected.keys()


def _named_by_keyword(config: pytest.Config, named: Sequence[Place]) -> list[str]:
    """Return the places, narrowed by the index of cases to the functions or files that `-k` matches."""
    arguments = [place.argument for place in named]
    if not getattr(config.option, "keyword", "") or any(place.outside for place in named):
        return arguments
    if any(not place.in_suite and place.path != suite_directory() for place in named):
        return arguments  # there may be other tests
    whole = config.rootpath == suite_directory() and not any(place.in_suite for place in named)
    index = case_index() if whole else current_index()
    within = {name: case for name, case in (index or {}).items() if any(place.holds(case.node) for place in named)}
    selected = matching(config.option.keyword, within) if within else None
    return arguments if selected is None else narrowed([case.node for case in selected.values()])


def described(config: pytest.Config) -> dict[str, Any]:
    """Return the selection for the header of the report; call it before the run is narrowed."""
    inside = sorted({place.in_suite for place in _places(config) if not place.outside})
    paths = {} if "" in inside or not inside else {"paths": inside}
    filters = {name: getattr(config.option, name) for name in FILTERS if getattr(config.option, name, "")}
    return choice(config).described() | paths | filters


def _places(config: pytest.Config) -> list[Place]:
    """Return the places on the command line; the suite if `tessera-conformance run` gets none."""
    suite = suite_directory()
    of_the_suite = config.rootpath == suite
    if of_the_suite and config.args_source is not pytest.Config.ArgsSource.ARGS:
        return [Place(str(suite), suite)]
    named = [place_of(str(argument), config.invocation_params.dir) for argument in config.args]
    outside = [place for place in named if place.outside]
    if of_the_suite and outside:
        raise NothingChosen(f"{outside[0].argument}: is outside the suite, which is in {suite}")
    return named
