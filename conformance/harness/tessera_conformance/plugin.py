"""The pytest side of the suite: options, the `clause` marker, the fixtures `impl` and `check`, verdicts and the report.

The suite's `conftest.py` loads it, so that it is active exactly where the suite is collected. Under xdist the workers
run the cases and the controller writes the report.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance import selection
from tessera_conformance.cases import (
    SuiteNotCollected,
    case_id,
    clauses_directory,
    in_shard,
    parse_shard,
    suite_directory,
)
from tessera_conformance.check import Check
from tessera_conformance.options import add_options
from tessera_conformance.registry import Clause, Registry, RegistryError, load_registry
from tessera_conformance.registry.cases import current_index
from tessera_conformance.registry.model import JUDGED, cited_interpretations
from tessera_conformance.report_plugin import PLANNED, PROPERTY, Progress, ReportKeeper, WorkerInterruption
from tessera_conformance.reports.claim import Line
from tessera_conformance.reports.journal import UnreadableReport, report_in
from tessera_conformance.reports.lines import plain
from tessera_conformance.reports.reproduce import write_script
from tessera_conformance.selection import NothingFailed, earlier, judged_before, nothing, set_aside
from tessera_conformance.session import Implementation
from tessera_conformance.suite_run import Case, SuiteRun, observation, planned_line
from tessera_conformance.terminal import either, error_text, interrupt_once, meant, print_error, visible
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import locate, via_of
from tessera_conformance.verdicts import LEVELS, Deviations, Judgement, MalformedDeviations, before_running

RUN = pytest.StashKey[SuiteRun]()
CASE = pytest.StashKey[Case]()
BEFORE_KEYWORD = pytest.StashKey[list[str]]()
"""The node ids of the cases that `-k` chooses from."""
RESUMED = pytest.StashKey[Mapping[str, Line]]()
"""The lines of the cases that `--resume` keeps."""
LAST_FAILED = pytest.StashKey[bool]()
"""True if `--lf` found a report."""
CHOSEN = pytest.StashKey[Set[str] | None]()
"""The ids of the cases that the options select, if they select any."""
WARNINGS_ARE_NO_ERRORS = pytest.mark.filterwarnings("default")
"""Overrides `filterwarnings` of the configuration: in this process a warning of the vendor's code would be a crash."""

_UNANSWERABLE = (ImplementationUnavailable, RegistryError, SuiteNotCollected, UnreadableReport, ValueError)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a conformance run."""
    add = parser.getgroup("tessera", "Tessera conformance").addoption
    add_options(lambda *names, **settings: add(*names, **refusing(names[0], settings)))


def refusing(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an option whose wrong values are refused in one sentence instead of pytest's usage."""
    settings = dict(settings)
    choices, read = settings.pop("choices", ()), settings.get("type", str)

    def value(text: str) -> Any:
        try:
            value = read(text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise pytest.UsageError(error_text(name, str(error).removeprefix(f"{name} "))) from None
        if choices and value not in choices:
            hint = meant(text, choices).removeprefix("; ")
            raise pytest.UsageError(error_text(name, f"unknown value {text}", either(choices), hint))
        return value

    if choices:
        settings["metavar"] = f"{{{','.join(choices)}}}"
    if choices or "type" in settings:
        settings["type"] = value
    return settings


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Print, in the form of all other errors, the reason for which a run cannot be done."""
    if config.option.list_cases:
        config.option.numprocesses = None  # the workers would have the cases, and this process none
    try:
        return (yield)
    except pytest.UsageError as error:
        if hasattr(config, "workerinput"):
            raise
        for message in error.args:
            print_error(message)
        return pytest.ExitCode.USAGE_ERROR


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and set up the run."""
    config.addinivalue_line("markers", "clause(id, ...): the clauses that a case judges")
    config.addinivalue_line("markers", "feature(name, ...): what must be claimed beyond the clauses' features")
    config.addinivalue_line("markers", "judges(what, ...): effect, acceptance or refusal, where checks show it wrongly")
    config.addinivalue_line("markers", "title(text): what one case of a parametrized test is about")
    config.addinivalue_line("markers", "level(name, ...): the numerics levels at which a case applies (default: all)")
    options = config.option
    _find_earlier_report(config)
    if options.report_dir.exists() and not options.report_dir.is_dir():
        raise pytest.UsageError(error_text("--report-dir", f"{options.report_dir} is a file", do="name a folder"))
    try:
        registry = load_registry(clauses_directory())
        selected, config.stash[CHOSEN] = _selection(config, registry)
        config.stash[RUN] = SuiteRun(
            locate(options.impl, options.compiler),
            registry,
            profile=options.profile,
            level=options.level,
            via=via_of(options.impl, options.via),
            seed=options.seed,
            deviations=Deviations.read(options.deviations) if options.deviations else None,
            shard=parse_shard(options.shard) if options.shard else None,
            deadlines=(options.start_deadline, options.deadline),
            today=options.today,
            evidence="all" if options.reproduce else options.evidence,
            chosen=selected,
        )
        header = None if hasattr(config, "workerinput") else config.stash[RUN].header
        config.stash[RESUMED] = judged_before(options.resume, header) if options.resume else {}
    except MalformedDeviations as error:
        raise pytest.UsageError(*error.args) from None
    except _UNANSWERABLE as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(interrupt_once())
    config.add_cleanup(_collect_seldom())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerInterruption())
        config.pluginmanager.register(ReportKeeper(config, config.stash[RUN], config.stash[RESUMED]), "tessera-report")
        config.pluginmanager.register(Progress(config, partial(_seconds_of, config)), "tessera-progress")
        if options.executor and not options.collectonly:
            _spread(config)


EARLIER = "tessera_earlier"
"""The key of a worker's settings about reports: the path of this run's, and the report whose failures it runs."""


def _find_earlier_report(config: pytest.Config) -> None:
    """Set the path of the report, and of the one that `--failed` and `--lf` read; workers copy both."""
    option = config.option
    if hasattr(config, "workerinput"):
        folder, failed, resume = config.workerinput[EARLIER]
        option.report_dir, option.failed = Path(folder), Path(failed) if failed else None
        option.resume = Path(resume) if resume else None
        return
    own_last_failed = getattr(option, "lf", False) and not config.pluginmanager.hasplugin("cacheprovider")
    try:
        report = earlier(option.report_dir, option.failed, own_last_failed, option.list_cases or option.collectonly)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    option.report_dir, option.failed = report.folder, report.failed
    if option.resume is not None and not (option.list_cases or option.collectonly):
        option.resume = set_aside(report_in(option.resume), option.report_dir)
    option.lf = getattr(option, "lf", False) and not own_last_failed
    config.stash[LAST_FAILED] = own_last_failed and report.failed is not None
    if report.note:
        print(report.note, file=sys.stderr)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send a worker of xdist the paths of the reports that the run reads and writes."""
    option = node.config.option
    node.workerinput[EARLIER] = (str(option.report_dir), *(str(path or "") for path in (option.failed, option.resume)))


def _selection(config: pytest.Config, registry: Registry) -> tuple[dict[str, Any], Set[str] | None]:
    """Return the selection in words, and the ids of its cases; all of them if `--lf` finds no failure."""
    try:
        return selection.described(config), selection.narrow(config, registry)
    except NothingFailed:
        if not config.stash.get(LAST_FAILED, False):
            raise
        print(f"--lf: no case of {config.option.failed} failed: all cases run", file=sys.stderr)
        config.option.report_dir, config.option.failed = config.option.report_dir.parent, None
        return selection.described(config), selection.narrow(config, registry)


def _seconds_of(config: pytest.Config, nodes: Sequence[str]) -> dict[str, float]:
    """Return the estimated seconds of each case by its node id, 0 for inapplicable ones; {} if a node is no case."""
    from tessera_conformance.executor.cases import seconds_of_case

    cases = {node: identifier for node in nodes if (identifier := case_id(node)) is not None}
    if len(cases) < len(nodes):
        return {}
    run, index = config.stash[RUN], current_index() or {}
    seconds = {node: seconds_of_case(identifier) for node, identifier in cases.items()}
    for node, identifier in cases.items():
        if (case := index.get(identifier)) is not None:
            clauses = [run.registry.clause(name) for name in case.clauses]
            if before_running(clauses, case.features, case.levels, run.hello, run.profile, run.level) is not None:
                seconds[node] = 0.0
    return seconds


def _collect_seldom() -> Callable[[], None]:
    """Collect garbage less often, which took a tenth of a run; return the function that restores the thresholds."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(10 * young, middle, 2 * old)
    return partial(gc.set_threshold, young, middle, old)


def _spread(config: pytest.Config) -> None:
    """Let the workers of a cluster judge the cases."""
    from tessera_conformance.executor.cases import SpreadCases
    from tessera_conformance.executor.engine import ExecutorUnavailable

    try:
        spread = SpreadCases(config, config.stash[RUN], lambda item: item.stash.get(CASE, None))
    except ExecutorUnavailable as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(spread, "tessera-executor")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the implementation."""
    if RUN in config.stash:
        config.stash[RUN].session.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Exclude the collected tests from garbage collection: they live as long as the run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Allow the tests of a file of the suite to warn; a mark of the file holds for each of them."""
    if isinstance(collector, pytest.Module) and suite_directory() in collector.path.parents:
        collector.add_marker(WARNINGS_ARE_NO_ERRORS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make a case of every test of the suite, and deselect cases outside the selection."""
    run, suite = config.stash[RUN], suite_directory()
    inside = cache(lambda path: suite in path.parents)  # once a file: splitting a path takes long
    clauses = cache(lambda names: tuple(map(run.registry.clause, names)))  # most cases share those of others
    problems: list[str] = []
    node_of: dict[str, str] = {}
    for item in items:
        identifier = case_id(item.nodeid) if inside(item.path) else None
        if identifier is None:
            continue
        if identifier in node_of:
            problems.append(f"{item.nodeid}: case id {identifier} is also that of {node_of[identifier]}: rename one")
        node_of[identifier] = item.nodeid
        try:
            item.stash[CASE] = _case(run, identifier, item, clauses)
        except (RegistryError, ValueError) as error:
            problems.append(f"{item.nodeid}: {error}")
    if problems:
        items.clear()  # pytest ends the collection all the same, and this run must not write a report
        raise pytest.UsageError(*problems)
    _deselect(config, run, items)
    config.stash[BEFORE_KEYWORD] = [item.nodeid for item in items if CASE in item.stash]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Suggest words for a `-k` without cases, if the index of cases did not show that earlier."""
    before, keyword = session.config.stash.get(BEFORE_KEYWORD, []), getattr(session.config.option, "keyword", "")
    none = not session.items and not session.config.stash[RESUMED]
    if before and keyword and none and not hasattr(session.config, "workerinput"):
        raise pytest.UsageError(nothing(keyword, before))


def _case(
    run: SuiteRun, identifier: str, item: pytest.Item, clauses: Callable[[tuple[str, ...]], tuple[Clause, ...]]
) -> Case:
    marks: dict[str, list[str]] = {}
    for marker in item.iter_markers():  # the nearest first
        marks.setdefault(marker.name, []).extend(marker.args)
    if not marks.get("clause"):
        raise ValueError("no clause: every test of the suite names the clauses it judges, @clause(...)")
    levels, features, judges = (tuple(marks.get(name, ())) for name in ("level", "feature", "judges"))
    features_known = "`tessera-conformance clauses features` lists them"
    for what, names, known, remedy in (
        ("level {!r}", levels, LEVELS, f"expected one of {', '.join(LEVELS)}"),
        ("feature {!r}", features, run.registry.features, features_known),
        ("mark judges({!r})", judges, JUDGED, f"expected one of {', '.join(JUDGED)}"),
    ):
        for name in names:
            if name not in known:
                raise ValueError(f"unknown {what.format(name)}: {remedy}")
    named = clauses(tuple(dict.fromkeys(marks["clause"])))
    withdrawn = [clause.id for clause in named if not clause.active]
    if withdrawn:
        raise RegistryError("withdrawn clause", id=withdrawn[0], cited_by=(item.nodeid,))
    text = str(item.obj.__doc__ or "") if isinstance(item, pytest.Function) else ""
    title = next(iter(marks.get("title", ())), "") or text.strip().partition("\n")[0]
    cites = cited_interpretations(f"{title} {text}")
    return Case(identifier, title or identifier, named, levels or LEVELS, features, judges, cites=cites)


def _deselect(config: pytest.Config, run: SuiteRun, items: list[pytest.Item]) -> None:
    chosen = config.stash[CHOSEN]

    def keep(item: pytest.Item) -> bool:
        case = item.stash.get(CASE, None)
        if case is None:
            return chosen is None
        if chosen is not None and case.id not in chosen:
            return False
        return run.shard is None or in_shard(case.id, run.shard)

    remaining = [item for item in items if keep(item)]
    if len(remaining) != len(items):
        config.hook.pytest_deselected(items=[item for item in items if not keep(item)])
    judged = config.stash[RESUMED]
    items[:] = [item for item in remaining if CASE not in item.stash or item.stash[CASE].id not in judged]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Print the ids of the cases instead of running them, if the options say so."""
    if not session.config.option.list_cases:
        return None
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    for item in session.items:
        if terminal is not None and CASE in item.stash:
            terminal.write_line(item.stash[CASE].id)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a case that does not apply, and fail one whose implementation does not start."""
    case = item.stash.get(CASE, None)
    if case is None:
        return
    run = item.config.stash[RUN]
    judgement = run.judge_before(case)
    if judgement is None:
        if isinstance(item, pytest.Function):
            item.funcargs.update(arguments(run, case, item))
        return
    run.settle(case, judgement)
    if judgement.verdict in ("unsupported", "inapplicable"):
        pytest.skip(f"{judgement.verdict}: {judgement.reason}")
    pytest.fail(f"{judgement.verdict}: {judgement.reason}", pytrace=False)


def arguments(run: SuiteRun, case: Case, item: pytest.Function) -> dict[str, Any]:
    """Return the arguments of a test: the implementation, the checks, and the values that `parametrize` lists.

    They are set before pytest looks for them: it would make two or three fixtures for each, a thirtieth of a run.
    """
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    case.check.asked, case.check.judges_words = run.session.exchanges, run.judges_words
    return {"impl": Implementation(run.session, run.level, run.via, run.seed), "check": case.check, **parameters}


@pytest.fixture
def impl(request: pytest.FixtureRequest) -> Implementation:
    """The implementation under test, in its first state."""
    implementation: Implementation = request.node.funcargs["impl"]
    return implementation


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Check:
    """The assertions of this case: counted, recorded, and the only way to pass."""
    case_check: Check = request.node.funcargs["check"]
    return case_check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Compute the verdict of a test, and pytest's outcome from it."""
    case = item.stash.get(CASE, None)
    if case is None:
        return (yield)
    run = item.config.stash[RUN]
    error = call.excinfo.value if call.excinfo is not None else None
    case.seconds += call.duration
    judgement = run.judge_after(case, error) if call.when == "call" else None
    if judgement is not None and judgement.verdict != "harness_error":
        # a traceback takes longer than most cases; pytest shows one only for an error of the harness
        item.repr_failure = lambda failure: ""  # type: ignore[method-assign,assignment,misc]
    report = yield
    report.keywords = {}  # the line of the case has its marks; with -n, workers would send them three times
    if judgement is not None:
        folder = item.funcargs.get("tmp_path") if isinstance(item, pytest.Function) else None
        case.folder = folder if isinstance(folder, Path) else None
        _conclude(run, case, judgement, report)
    elif error is not None and (case.judgement is None or call.when == "teardown"):
        _conclude(run, case, Judgement("harness_error", f"{call.when}: {type(error).__name__}: {error}"), report)
    if call.when == "setup" and hasattr(item.config, "workerinput"):  # a worker may die, and this process outlive it
        report.user_properties = [(PLANNED, json.dumps(planned_line(case)))]
    if call.when == "teardown":
        report.user_properties = [(PROPERTY, observation(case, run.evidence).text)]
        if item.config.option.reproduce and case.judgement is not None:
            option, deadlines = item.config.option, (run.session.start_deadline, run.session.deadline)
            write_script(option.report_dir, run.session.label, case, option.compiler, deadlines)
        del item.stash[CASE]  # the report has its text by now: the messages of a whole run are large
    return report


def _conclude(run: SuiteRun, case: Case, judgement: Judgement, report: pytest.TestReport) -> None:
    deviation = run.settle(case, judgement)
    clauses = ", ".join(case.clause_ids)
    if case.disposition == "unexpected_pass":
        report.outcome = "failed"
        report.longrepr = f"unexpected pass of {case.id}: the deviations say it must fail ({deviation})"
    elif case.disposition in ("known_deviation", "waived", "other_reading"):
        report.outcome = "skipped"
        report.wasxfail = f"{case.disposition}: {deviation}"
    elif judgement.verdict in ("inapplicable", "unsupported"):
        report.outcome = "skipped"
        report.longrepr = (case.id, 0, f"{judgement.verdict}: {plain(judgement.reason)}")
    elif judgement.verdict != "pass":
        report.outcome = "failed"
        trace = f"\n{report.longreprtext}" if judgement.verdict == "harness_error" else ""
        reason = visible(plain(judgement.reason))
        report.longrepr = f"{judgement.verdict}: {reason}\n  case {case.id}  ({clauses}){trace}"
