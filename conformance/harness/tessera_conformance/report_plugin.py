"""The pytest plugin that writes the report of a run: registered once, in the process that sees all results."""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import CHAPTERS, case_id, suite_directory
from tessera_conformance.commands.run import SEAL
from tessera_conformance.protocol import Fault, Hello
from tessera_conformance.reports.claim import FIRST, Line, Silence
from tessera_conformance.reports.journal import FILE_NAME, JournalWriter, Report
from tessera_conformance.reports.lines import ObservedLine
from tessera_conformance.reports.publish import publish
from tessera_conformance.reports.reproduce import script_name
from tessera_conformance.reports.summary import terminal_summary
from tessera_conformance.suite_run import Case, SuiteRun, observation
from tessera_conformance.terminal import error_text
from tessera_conformance.verdicts import Judgement

PROPERTY = "tessera_observation"
"""The user property under which a teardown report carries its case's observation line."""
PLANNED = "tessera_planned"
"""The user property under which a setup report carries what is known of its case beforehand, as JSON."""
LOST = "tessera_lost"
"""The user property of a case that no process completed: verdict and reason, where it is no crash."""
PROCESS_DIED = "the process that ran the case died"
NO_ANSWER = "nothing answers"
NARROWING = (
    *("reproduce", "cases", "clauses", "features", "failed"),
    *("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "stepwise"),
)
"""The options that can leave cases out, the shard aside."""


class ReportKeeper:
    """Collects observation lines, writes the report file and prints the end of the run."""

    def __init__(self, config: pytest.Config, run: SuiteRun, earlier: Mapping[str, Line]) -> None:
        """`earlier` has the lines of cases that another run has judged before it was cut off."""
        self._kept = earlier
        self._config = config
        self._run = run
        self._writer: JournalWriter | None = None
        self._report: Report | None = None
        self._started = time.monotonic()
        self._deselected = False
        self._not_collected: list[str] = []
        self._planned: dict[str, str] = {}
        self._complete = False
        self._observed: list[tuple[str, Sequence[str]]] = []
        self._silence = Silence()
        self._session: pytest.Session | None = None

    @property
    def _lists(self) -> bool:
        """True where the cases are listed and none is run."""
        return bool(self._config.option.collectonly or self._config.option.list_cases)

    @property
    def hello(self) -> Hello | Fault:
        """Return the Hello of this run; a fault where the implementation does not start."""
        return self._run.hello

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin the report with the cases of this process."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Begin the report with what the first worker has collected; all workers collect the same."""
        self._begin(ids)

    def _begin(self, node_ids: Sequence[str]) -> None:
        if self._writer is not None or self._lists:
            return
        cases = [*self._kept, *(identifier for identifier in map(case_id, node_ids) if identifier is not None)]
        if not cases:
            return
        self._complete = self._is_complete(cases)
        header = self._run.header(self._complete)
        with _writing():
            writer = JournalWriter(self._config.option.report_dir / FILE_NAME)
            writer.header(header)
            writer.plan(cases, self._run.musts(), self._run.profiles(), self._run.products())
            self._writer = writer  # with its plan: a run that ends before has no report to seal
            for line in self._kept.values():
                writer.observation(line)
                self._observed.append((line["case"], line["clauses"]))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file of the suite whose tests were not collected is a gap that the plan cannot show."""
        if not report.passed and case_id(f"{report.nodeid}::test_") is not None:
            self._not_collected.append(f"{report.nodeid} was not collected")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember that something was left out; a shard leaves cases out by design."""
        if self._run.shard is None:
            self._deselected = self._deselected or any(case_id(item.nodeid) for item in items)

    def _is_complete(self, cases: Sequence[str]) -> bool:
        """True if these are all cases of the suite, or of the shard: nothing leaves any out, every file has some."""
        option = self._config.option
        if self._deselected or any(getattr(option, name, None) for name in NARROWING):
            return False
        if any(entry.startswith(("python_", "norecursedirs")) for entry in option.override_ini or ()):
            return False
        if any("::" in str(argument) for argument in self._config.args):
            return False
        if self._run.shard is not None:
            suite = suite_directory()
            paths = [Path(str(argument)).resolve() for argument in self._config.args]
            return any(path == suite or path in suite.parents for path in paths)
        ordered = [*sorted(cases), ""]  # the first case from a prefix on begins with it, if any does
        return all(
            ordered[bisect_left(ordered, prefix, hi=len(cases))].startswith(prefix) for prefix in _file_prefixes()
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the observation of an ended case; xdist reports a case whose worker died with `when` "???"."""
        properties: list[tuple[str, Any]] = [*report.user_properties]
        report.user_properties = [
            item for item in properties if item[0] not in (PROPERTY, PLANNED, LOST)
        ]  # pytest keeps it
        for name, line in properties:
            if name == PROPERTY:
                self._write(ObservedLine(*line))
                self._planned.pop(report.nodeid, None)
            elif name == PLANNED:
                self._planned[report.nodeid] = line
        verdict, reason = dict(properties).get(LOST, ("crash", PROCESS_DIED))
        lost = case_id(report.nodeid) if report.when not in ("setup", "call", "teardown") else None
        if lost is not None:
            died = self._died(lost, self._planned.get(report.nodeid))
            self._run.settle(died, Judgement(verdict, reason))
            self._write(observation(died))

    def _died(self, case: str, planned: str | None) -> Case:
        """A case that did not end, as far as is known."""
        if planned is None:
            return Case(case, case, [], [])
        line = json.loads(planned)
        clauses = [self._run.registry.clause(clause) for clause in line["clauses"]]
        return Case(case, line["title"], clauses, line["levels"], line["needs"])

    def _write(self, line: ObservedLine) -> None:
        if self._writer is not None:
            with _writing():
                self._writer.observation(line)
            self._observed.append((line["case"], line["clauses"]))
            if self._silence.after(line) and self._ends_in_silence():
                self._break_off()

    def _ends_in_silence(self) -> bool:
        """True where an implementation that answers nothing ends the run; who asks for some cases wants them all."""
        option = self._config.option
        chosen = any(getattr(option, name, None) for name in NARROWING)
        return not option.keep_going and (isinstance(self.hello, Fault) or not chosen)

    def _break_off(self) -> None:
        """End the run: nothing answers."""
        is_fault = isinstance(self.hello, Fault)  # it is a problem of its own
        why = f"after the first {FIRST} cases" if is_fault else self._silence.sentence()
        self._run.broken_off = f"{why}; mend that first, or run on with --keep-going"
        if self._session is not None:
            self._session.shouldfail = NO_ANSWER
        workers = self._config.pluginmanager.get_plugin("dsession")
        if workers is not None:
            workers.shouldstop = NO_ANSWER

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember what can be ended."""
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Seal the report, make the pages from it, and let a failed claim fail the run."""
        if self._lists:
            _seal()
        if self._writer is None:
            return
        problems = self._not_collected + self._run.problems()
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            if self._stopped_by_itself():
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            else:
                problems.append("the run was interrupted")
        if self._complete and self._run.shard is None:
            problems += self._run.deviations.unmatched(self._observed)
        with _writing():
            report = self._writer.finish(problems, {"seconds": round(time.monotonic() - self._started, 3)})
            publish(report, self._run.registry)
        self._report = report
        _seal()
        if self._kept and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if self._report.claim not in ("success", "partial") and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _stopped_by_itself(self) -> bool:
        """True where xdist ended the run after so many failures, or because nothing answers."""
        workers = self._config.pluginmanager.get_plugin("dsession")
        return bool(self._run.broken_off) or str(getattr(workers, "shouldstop", "")).startswith("stopping after")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The end of a run, as people see it."""
        if self._report is not None:
            terminalreporter.write_sep("=", "conformance")
            terminalreporter.write(terminal_summary(self._report, self._run.registry) + "\n")
            if self._config.option.reproduce:
                directory = self._config.option.report_dir
                terminalreporter.write(f"  script     {directory / script_name(self._config.option.reproduce)}\n")


def _seal() -> None:
    """Tell the command that waits for this process that it did not end before its work did."""
    if SEAL in os.environ:
        Path(os.environ[SEAL]).touch()


@contextmanager
def _writing() -> Iterator[None]:
    """End the run where its report cannot be written, as on a full disk, and say so."""
    try:
        yield
    except OSError as error:
        what = f"the report cannot be written: {error.strerror}"
        remedy = "free the disk, or name another folder with --report-dir"
        raise pytest.UsageError(error_text(str(error.filename or "--report-dir"), what, do=remedy)) from None


def _file_prefixes() -> list[str]:
    """Return the prefixes of the ids of the cases of each test file of the suite."""
    suite = suite_directory()
    files = [path for chapter in CHAPTERS for path in sorted((suite / chapter).rglob("test_*.py"))]
    return [str(case_id(f"{path.relative_to(suite).as_posix()}::test_")) for path in files]
