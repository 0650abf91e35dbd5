"""The process that judges a unit of cases: pytest runs them alone, and their reports are written to a file."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest

from tessera_conformance.cases import pytest_options
from tessera_conformance.executor.worker import AnswerWriter, do_unit
from tessera_conformance.protocol import Fault, Hello
from tessera_conformance.report_plugin import ReportKeeper
from tessera_conformance.reports.lines import plain
from tessera_conformance.selection import narrowed
from tessera_conformance.session import Session
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate

DONE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def greeting(hello: Hello | Fault) -> Any:
    """Return the name in an implementation's Hello; if it does not start, the kind of fault."""
    return plain(hello.message) if isinstance(hello, Hello) else {"fault": hello.kind}


def judge(settings: Mapping[str, Any], nodes: Sequence[str], answers: AnswerWriter) -> None:
    """Judge the cases of these nodes; without nodes, only start the implementation."""
    if not nodes:
        _greet(settings, answers)
        return
    deviations = answers.folder / "deviations.toml"
    stated = {name: value for name, value in settings.items() if value is not None}
    if "deviations" in stated:
        deviations.write_text(stated["deviations"], encoding="utf-8")
        stated["deviations"] = deviations
    place = ["-q", *pytest_options(answers.folder)]
    directories = [f"--basetemp={answers.folder / 'files'}", f"--report-dir={answers.folder / 'report'}"]
    options = [f"--{name}={value}" for name, value in stated.items()]
    code = pytest.main([*place, *directories, *options, *narrowed(nodes)], plugins=[ReportWriter(answers, set(nodes))])
    if code == pytest.ExitCode.USAGE_ERROR:
        answers.write("refusal", f"cannot run the cases: {answers.output()}")
    elif code not in DONE:
        answers.write("failure", f"pytest ended with exit code {int(code)}: {answers.output()}")


def _greet(settings: Mapping[str, Any], answers: AnswerWriter) -> None:
    try:
        transport = locate(settings["impl"], settings["compiler"])
    except ImplementationUnavailable as error:
        answers.write("refusal", str(error))
        return
    with closing(Session(transport, settings["deadline"], settings["start-deadline"])) as session:
        answers.write("greeting", greeting(session.open()))


class ReportWriter:
    """Keeps the selected cases, and writes the reports of each once it has ended."""

    def __init__(self, answers: AnswerWriter, nodes: Collection[str]) -> None:
        self._answers, self._nodes = answers, nodes
        self._reports: list[Any] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Disable the report plugin: the process that distributes the units writes the report."""
        self._config = config
        self._keeper = config.pluginmanager.unregister(name="tessera-report")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the selected cases, in the order of the files."""
        items[:] = [item for item in items if item.nodeid in self._nodes]

    def pytest_sessionfinish(self) -> None:
        """Write the greeting: this worker may have come after the others had greeted."""
        assert isinstance(self._keeper, ReportKeeper)
        if isinstance(self._keeper.hello, Hello):
            self._answers.write("greeting", greeting(self._keeper.hello))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a case begins."""
        self._answers.write("running", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the report of setup, call or teardown."""
        written = self._config.hook.pytest_report_to_serializable
        self._reports.append(written(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write the reports of a case that has ended."""
        self._answers.write("result", [nodeid, self._reports])
        self._reports = []


if __name__ == "__main__":
    sys.exit(do_unit(judge))
