"""Cases distributed in units, by their estimated seconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import suite_directory
from tessera_conformance.executor.case_process import greeting
from tessera_conformance.executor.engine import Engine, ExecutorLost, ExecutorUnavailable, Lost, units_of
from tessera_conformance.report_plugin import LOST, PLANNED, PROCESS_DIED
from tessera_conformance.reports.journal import read, report_in
from tessera_conformance.suite_run import Case, SuiteRun, planned_line
from tessera_conformance.transports.locate import via_of

# The estimated seconds of a case; `python -m tessera_conformance.executor.cases REPORT` makes the table anew.
#
# It determines which cases begin first and how many are in a unit. If it is wrong, a run takes longer, with the same
# results.


TABLE = Path(__file__).with_name("seconds.json")
FUNCTION_PARTS = 3
"""The first parts of a case id, which name a test function: chapter, file, function."""
LEAST = 0.02
"""Seconds of a case below which its test function has no row of its own."""


@cache
def table() -> Mapping[str, float]:
    """Return the seconds of a case by the beginning of its id; "" has those of all others."""
    rows: dict[str, float] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def seconds_of_case(case: str) -> float:
    """Return the estimate for a case by its id."""
    rows, beginning = table(), case
    while beginning and beginning not in rows:
        beginning = beginning.rpartition("/")[0]
    return rows[beginning]


def table_of(observations: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the table of a report: the mean of each test function that takes long, and that of all the others."""
    by_function: dict[str, list[float]] = {}
    for line in observations:
        function = "/".join(line["case"].split("/")[:FUNCTION_PARTS])
        by_function.setdefault(function, []).append(line["run"].get("seconds", 0.0))
    means = {name: sum(seconds) / len(seconds) for name, seconds in sorted(by_function.items())}
    long = {name: round(mean, 3) for name, mean in means.items() if mean >= LEAST}
    others = [seconds for name, times in by_function.items() if name not in long for seconds in times]
    return {"": round(sum(others) / max(len(others), 1), 4)} | long


if __name__ == "__main__":
    rows = table_of(read(report_in(Path(sys.argv[1]))).observations)
    TABLE.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")

# The cases of a pytest run, distributed to the workers of a cluster: this process collects them and keeps the report.


MODULE = "tessera_conformance.executor.case_process"
REFUSED = {
    "shard": "--shard is for jobs that share no cluster",
    "reproduce": "a single case is reproduced on this machine",
    "usepdb": "a debugger reaches no other machine",
    "tx": "-n shares the cases out on this machine",
}
"""Options of pytest that cannot be combined with `--executor`, with the reason."""


class SpreadCases:
    """Replaces pytest's own loop: gives the cases to the workers, and passes on their reports."""

    def __init__(self, config: pytest.Config, run: SuiteRun, case_of: Callable[[pytest.Item], Case | None]) -> None:
        """Connect to the cluster; `case_of` returns the case of an item, None if it has none.

        Raises `ExecutorUnavailable`: the cluster cannot do the run, or another option forbids it.
        """
        for name, reason in REFUSED.items():
            if getattr(config.option, name, None):
                raise ExecutorUnavailable(f"--executor: {reason}; leave out one of the two")
        self._config, self._run, self._case_of = config, run, case_of
        settings = settings_of(config)
        self._engine = Engine(config.option.executor, MODULE, settings, greeting(run.hello))
        config.add_cleanup(self._engine.close)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Judge every case on the workers; leave a run without cases to pytest."""
        if session.testsfailed:  # during collection
            return None
        items = self._items(session.items)
        seconds = {node: seconds_of_case(case.id) for node, (_, case) in items.items()}
        units = units_of(seconds, self._engine.slots, self._config.option.unit_seconds)
        try:
            for node, result in self._engine.results(units):
                self._report(*items[node], result)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        except (ExecutorLost, ExecutorUnavailable) as error:
            self._run.broken_off = str(error)
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
        finally:
            self._engine.stop()
        return True

    def _items(self, items: Sequence[pytest.Item]) -> dict[str, tuple[pytest.Item, Case]]:
        """Return the cases' items by node from the folder of the suite on, as `ir/test_sums.py::test_a[x]`."""
        found = {}
        for item in items:
            case = self._case_of(item)
            if case is None:
                reason = f"--executor spreads cases of the suite alone: {item.nodeid} is none"
                pytest.exit(reason, returncode=pytest.ExitCode.USAGE_ERROR)
            place = item.path.relative_to(suite_directory()).as_posix()
            found[f"{place}::{item.nodeid.partition('::')[2]}"] = item, case
        return found

    def _report(self, item: pytest.Item, case: Case, result: Any) -> None:
        """Pass a worker's reports of a case to every plugin, as if the case had run here."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if isinstance(result, Lost):
            reports = [lost_report(item, case, result)]
        else:
            read = self._config.hook.pytest_report_from_serializable
            reports = [read(config=self._config, data=report) for report in result]
        for report in reports:
            report.nodeid = item.nodeid
            if isinstance(report.longrepr, list):  # the place of a skip, which JSON turned into a list
                report.longrepr = tuple(report.longrepr)
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def lost_report(item: pytest.Item, case: Case, lost: Lost) -> pytest.TestReport:
    """Return the report for pytest of a case that no process completed."""
    verdict, reason = ("crash", PROCESS_DIED) if lost.by_task else ("harness_error", lost.reason)
    properties: list[tuple[str, Any]] = [(PLANNED, json.dumps(planned_line(case))), (LOST, (verdict, reason))]
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", reason, "???", user_properties=properties)  # type: ignore[arg-type]


def settings_of(config: pytest.Config) -> dict[str, Any]:
    """Return the options for the process of a unit, by their names; deviations as text."""
    option = config.option
    names = ("impl", "compiler", "profile", "level", "seed", "evidence", "deadline")
    return {name: getattr(option, name) for name in names} | {
        "via": via_of(option.impl, option.via),
        "start-deadline": option.start_deadline,
        "today": option.today and option.today.isoformat(),
        "tb": option.tbstyle,
        "deviations": option.deviations and option.deviations.read_text(encoding="utf-8"),
    }
