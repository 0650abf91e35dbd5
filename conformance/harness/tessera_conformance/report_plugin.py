"""The pytest plugins of the process that gets all results: the report of a run, its progress, and its interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import CHAPTERS, case_id, suite_directory
from tessera_conformance.commands.run import SEAL
from tessera_conformance.protocol import Fault, Hello
from tessera_conformance.reports.claim import FIRST, Line, is_asked, silence
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
"""The user property under which a setup report carries the facts about its case, as JSON."""
LOST = "tessera_lost"
"""The user property of a case that no process completed: verdict and reason, unless it is a crash."""
PROCESS_DIED = "the process that ran the case died"
NO_ANSWER = "nothing answers"
NARROWING = (
    *("reproduce", "cases", "clauses", "features", "failed"),
    *("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "stepwise"),
)
"""The options that can leave cases out, except the shard."""


class Planned(ABC):
    """A plugin that begins with the tests of a run: those of this process, or what the first worker has collected."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin with the tests of this process."""
        self._begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Begin with the tests of the first worker; all workers collect the same."""
        self._begin(ids)

    @abstractmethod
    def _begin(self, node_ids: Sequence[str]) -> None: ...


class ReportKeeper(Planned):
    """Collects observation lines, writes the report file and prints the end of the run."""

    def __init__(self, config: pytest.Config, run: SuiteRun, earlier: Mapping[str, Line]) -> None:
        """Begin without lines; `earlier` has those of cases that an interrupted run has judged."""
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
        self._first: list[Line] = []

    @property
    def _lists(self) -> bool:
        """True if the cases are listed and not run."""
        return bool(self._config.option.collectonly or self._config.option.list_cases)

    @property
    def hello(self) -> Hello | Fault:
        """Return the Hello of this run; a fault if the implementation does not start."""
        return self._run.hello

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
            writer.plan(cases, self._run.rules())
            self._writer = writer  # with its plan: a run that ends earlier has no report to seal
            for line in self._kept.values():
                writer.observation(line)
                self._observed.append((line["case"], line["clauses"]))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file of the suite that was not collected: the plan cannot show this gap."""
        if not report.passed and case_id(f"{report.nodeid}::test_") is not None:
            self._not_collected.append(f"{report.nodeid} was not collected")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Record that something was left out; a shard leaves cases out by design."""
        if self._run.shard is None:
            self._deselected = self._deselected or any(case_id(item.nodeid) for item in items)

    def _is_complete(self, cases: Sequence[str]) -> bool:
        """True if these are all cases of the suite or shard: no option narrows them, every file has some."""
        suite, arguments = suite_directory(), [*map(str, self._config.args)]
        overridden = self._config.option.override_ini or ()
        if self._deselected or self._narrowed or any("::" in argument for argument in arguments):
            return False
        if any(entry.startswith(("python_", "norecursedirs")) for entry in overridden):
            return False
        if self._run.shard is not None:
            return any(path in (suite, *suite.parents) for path in (Path(argument).resolve() for argument in arguments))
        files = (path for chapter in CHAPTERS for path in sorted((suite / chapter).rglob("test_*.py")))
        prefixes = (str(case_id(f"{path.relative_to(suite).as_posix()}::test_")) for path in files)
        ordered = [*sorted(cases), ""]  # the first case from a prefix on begins with it, if any does
        return all(ordered[bisect_left(ordered, prefix, hi=len(cases))].startswith(prefix) for prefix in prefixes)

    @property
    def _narrowed(self) -> bool:
        """True if an option selects cases."""
        return any(getattr(self._config.option, name, None) for name in NARROWING)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record an ended case; xdist reports a case whose worker died with `when` "???"."""
        properties: list[tuple[str, Any]] = [*report.user_properties]
        others = [item for item in properties if item[0] not in (PROPERTY, PLANNED, LOST)]
        report.user_properties = others  # pytest keeps it
        for name, line in properties:
            if name == PROPERTY:
                self._write(ObservedLine(line))
                self._planned.pop(report.nodeid, None)
            elif name == PLANNED:
                self._planned[report.nodeid] = line
        verdict, reason = dict(properties).get(LOST, ("crash", PROCESS_DIED))
        lost = case_id(report.nodeid) if report.when not in ("setup", "call", "teardown") else None
        if lost is not None:
            known: dict[str, Any] = {"title": lost, "clauses": [], "levels": [], "needs": []}
            known |= json.loads(self._planned.get(report.nodeid, "{}"))
            clauses = [self._run.registry.clause(clause) for clause in known["clauses"]]
            died = Case(lost, known["title"], clauses, known["levels"], known["needs"])
            self._run.settle(died, Judgement(verdict, reason))
            self._write(observation(died))

    def _write(self, line: ObservedLine) -> None:
        if self._writer is not None:
            with _writing():
                self._writer.observation(line)
            self._observed.append((line["case"], line["clauses"]))
            if is_asked(line) and len(self._first) < FIRST:
                self._first.append(line)
                self._break_off_a_silent_run()

    def _break_off_a_silent_run(self) -> None:
        """End the run if the implementation does not answer; a selection of cases is run in full."""
        is_fault, why = isinstance(self.hello, Fault), silence(self._first)
        if not why or self._config.option.keep_going or (self._narrowed and not is_fault):
            return
        why = f"after the first {FIRST} cases" if is_fault else why  # a fault is a problem of its own
        self._run.broken_off = f"{why}; mend that first, or run on with --keep-going"
        for name, stop in (("session", "shouldfail"), ("dsession", "shouldstop")):  # pytest's session, and xdist's
            plugin = self._config.pluginmanager.get_plugin(name)
            if plugin is not None:
                setattr(plugin, stop, NO_ANSWER)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Seal the report, make the pages from it, and let a failed claim fail the run."""
        if self._lists:
            _seal()
        if self._writer is None:
            return
        problems = self._not_collected + self._run.problems()
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            workers = self._config.pluginmanager.get_plugin("dsession")  # xdist ends a run after too many failures
            if self._run.broken_off or str(getattr(workers, "shouldstop", "")).startswith("stopping after"):
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

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the end of a run for people."""
        if self._report is not None:
            terminalreporter.write_sep("=", "conformance")
            terminalreporter.write(terminal_summary(self._report, self._run.registry) + "\n")
            if self._config.option.reproduce:
                directory = self._config.option.report_dir
                terminalreporter.write(f"  script     {directory / script_name(self._config.option.reproduce)}\n")


def _seal() -> None:
    """Show the waiting command that this process completed its work: create the file that it names."""
    if SEAL in os.environ:
        Path(os.environ[SEAL]).touch()


@contextmanager
def _writing() -> Iterator[None]:
    """End the run with an error if its report cannot be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        what = f"the report cannot be written: {error.strerror}"
        remedy = "free the disk, or name another folder with --report-dir"
        raise pytest.UsageError(error_text(str(error.filename or "--report-dir"), what, do=remedy)) from None


# An interruption of a run under xdist: its workers are interrupted too.
#
# A signal may reach the first process alone. xdist then asks the workers to end, which they do after their current
# case, and interrupts them 5 s later.


class WorkerInterruption:
    """A plugin of the process that distributes the cases: passes an interruption on to its workers."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Keep the process of a worker of this machine; xdist offers no other access to it."""
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        if node.gateway.spec.popen and process is not None:
            self._processes.append(process)

    def pytest_keyboard_interrupt(self) -> None:
        """Interrupt the workers; each ignores the second of two signals."""
        for process in self._processes:
            process.send_signal(signal.SIGINT)


# Progress of a run by the seconds of its cases, in place of pytest's percentage of their number.


LEAST = 1.0
"""Seconds before a rate is shown."""
WIDEST = len(" [100%, 9999/s, 59:59 left]")
PYTEST = len(" [100%]")


class Progress(Planned):
    """A plugin that writes `[ 43%, 210/s, 1:10 left]` at the end of each line of dots.

    `seconds` estimates the time of each case by the node ids of the run, or returns {} if some test of the run is no
    case. A case that does not apply takes no time, and then no longer counts.
    """

    def __init__(
        self,
        config: pytest.Config,
        seconds: Callable[[list[str]], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._seconds_of, self._clock = config, seconds, clock
        self._left: dict[str, float] = {}
        self._done = 0.0
        self._cases = 0
        self._started: float | None = None

    def _begin(self, node_ids: Sequence[str]) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        names = ("_get_progress_information_message", "_screen_width", "_show_progress_info")
        if self._left or reporter is None or not all(hasattr(reporter, name) for name in names):
            return
        self._left = dict(self._seconds_of([*node_ids]))
        if self._left and reporter._show_progress_info == "progress":
            reporter._get_progress_information_message = self.message
            reporter._screen_width -= WIDEST - PYTEST

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case that ended."""
        if self._started is None:
            self._started = self._clock()
        if report.skipped and not hasattr(report, "wasxfail"):
            self._left[report.nodeid] = 0.0
        if report.when not in ("setup", "call"):
            self._done += self._left.pop(report.nodeid, 0.0)
            self._cases += 1

    def message(self) -> str:
        """Return the finished share of the cases' time, cases a second, and the time left."""
        left = sum(self._left.values())
        whole = self._done + left
        parts = [f"{int(100 * self._done / whole) if whole and self._left else 100:3d}%"]
        elapsed = self._clock() - self._started if self._started is not None else 0.0
        if elapsed >= LEAST and self._done:
            parts.append(f"{self._cases / elapsed:.0f}/s")
            parts.append(f"{in_minutes(elapsed * left / self._done)} left" if self._left else in_minutes(elapsed))
        return f" [{', '.join(parts)}]"


def in_minutes(seconds: float) -> str:
    """Return `1:10`; `2 h` for hours."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole < 6000 else f"{whole / 3600:.0f} h"
