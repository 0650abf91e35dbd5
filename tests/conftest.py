"""The part of the tests that runs: a quick selection, tests named by path or keyword, or all with `--slow`.

And the C library, which is built once for all tests. What hypothesis draws is the same in every run, and never timed.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType

import pytest
from hypothesis import settings

from tessera_conformance.reports.journal import Report, read
from tessera_conformance.strength.sharing import available_processes

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("untimed", deadline=None, derandomize=True)
settings.load_profile("untimed")

# Of every pytest that a test starts: the plugin of hypothesis imports all of it at the end of a run.
os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p no:hypothesispytest"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run all parameters, and the slow tests of the project too")
    parser.addoption("--whole", action="store_true", help="draw all that tests draw by seed; a quarter without it")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one more worker than there are processors, since many tests wait for processes that they started."""
    return available_processes() + 1


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: starts many processes or outside tools; runs with --slow")
    config.addinivalue_line("markers", "sampled(n): one in n of its parameters runs, unless all are asked for")
    config.addinivalue_line(
        "markers", "whole: takes long, and a faster test shows a part of it; runs if all are asked for"
    )
    if not config.getoption("--slow") and selects_nothing(config):
        config.pluginmanager.register(QuickSelection(), "quick-selection")


class QuickSelection:
    """Leaves out test functions before pytest makes an item of each of their parameters.

    Of 29,000 items the quick selection wants a thousand; to make the others took a third of its time. Registered, since
    the hooks of this file are not asked about the folders of the suite.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[pytest.Item] | None:
        is_test = name.startswith("test") and isinstance(obj, FunctionType)
        return [] if is_test and not in_sample(f"{collector.nodeid}::{name}") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = {item for item in items if item.get_closest_marker("slow")}
    kept = items[:] if config.getoption("--slow") else [item for item in items if item not in slow]
    if selects_nothing(config):
        kept = sampled_parameters(config, kept) if config.getoption("--slow") else quick_selection(kept)
    kept.sort(key=lambda item: item not in slow)  # first, so that processes that share the tests end together
    if left_out := {*items} - {*kept}:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def sampled_parameters(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items, of a function marked `sampled(n)` one in n, of one marked `whole` none."""
    places: Counter[str] = Counter()
    kept = []
    for item in items:
        function, mark = item.nodeid.partition("[")[0], item.get_closest_marker("sampled")
        of_all = item.get_closest_marker("whole") and taken(config, 2) > 1
        if not of_all and (mark is None or places[function] % taken(config, *mark.args) == 0):
            kept.append(item)
        places[function] += 1
    return kept


def taken(config: pytest.Config, usual: int) -> int:
    """Return of how many things a test tries one: of all, with `--whole` or TESSERA_EVERY=1."""
    return 1 if config.getoption("--whole") else int(os.environ.get("TESSERA_EVERY", usual))


def selects_nothing(config: pytest.Config) -> bool:
    """True if the command line leaves the choice of tests to the project: `pytest`, `pytest -q`, `pytest -x`."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (named or config.option.keyword or config.option.markexpr or config.getoption("lf", False))


def quick_selection(items: list[pytest.Item]) -> list[pytest.Item]:
    """An even sample, the same on every machine: of every seventh test function the first parameters."""
    functions: dict[str, pytest.Item] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], item)
    return [item for name, item in functions.items() if in_sample(name)]


def in_sample(function: str) -> bool:
    """True if a test function, by its node id, is in the quick selection: every seventh is."""
    return zlib.crc32(function.encode()) % 7 == 0


@pytest.fixture(scope="session")
def drawn(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how many of so many things a test draws by seed: a quarter, or all with `--whole`."""
    share = 1 if request.config.getoption("--whole") else 4
    return lambda count: -(-count // share)


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """A test tries one of this many things, or all with `--whole` or TESSERA_EVERY=1."""
    return partial(taken, request.config)


@dataclass(frozen=True)
class FinishedRun:
    """The end of a run of the suite: its exit code, what it printed, and its report."""

    exit_code: int
    output: str
    directory: Path

    @property
    def report(self) -> Report:
        return read(self.directory / "report.jsonl")


RunSuite = Callable[..., FinishedRun]


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Run files of the suite against an implementation, in a process of their own.

    The process finds modules where this one does, after those of the `folders`.
    """

    def run(
        *options: str,
        report: Path = tmp_path,
        folders: tuple[Path, ...] = (),
        environment: Mapping[str, str] | None = None,
        command: tuple[str, ...] = ("pytest", "-q", "-p", "no:cacheprovider"),
    ) -> FinishedRun:
        paths = [*map(str, folders), str(ROOT), *filter(None, sys.path)]
        done = subprocess.run(
            [sys.executable, "-m", *command, f"--report-dir={report}", *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return FinishedRun(done.returncode, done.stdout + done.stderr, report)

    return run


@pytest.fixture(scope="session")
def libtessera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a libtessera, which all processes that share the tests have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "libtessera"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "lib/libtessera.so").exists():
            command = [sys.executable, "-m", "tessera_reference", "build-c-library", "--output", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 2:
                pytest.skip(f"needs libtessera: {done.stderr.strip()}")
            assert done.returncode == 0, done.stderr
    return folder
