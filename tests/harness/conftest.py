"""Shared by the tests of the harness: where the fakes are and how a session with one is opened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.reports.journal import Report, read
from tessera_conformance.session import Session
from tessera_conformance.transports.rpc import RpcTransport

collect_ignore = ["sample_suite"]

FAKES = Path(__file__).parent / "fakes"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fake_command() -> Callable[[str], str]:
    """The command line that starts a fake."""
    return lambda name: f"{sys.executable} {FAKES / 'speaker.py'} {name}"


@pytest.fixture
def fake_session(fake_command: Callable[[str], str]) -> Iterator[Callable[..., Session]]:
    """Opens sessions with fakes, and closes them when the test ends."""
    opened: list[Session] = []

    def open_session(name: str, deadline: float = 10.0, start_deadline: float = 10.0) -> Session:
        opened.append(Session(RpcTransport(fake_command(name)), deadline, start_deadline))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()


@dataclass(frozen=True)
class Checkout:
    """A copy of the harness with a small suite of its own, in which pytest can be run."""

    directory: Path

    def run(self, *options: str, report: str = "report", command: Sequence[str] = ()) -> CompletedRun:
        """Run the suite; the report, as far as there is one, comes with the result."""
        report_directory = self.directory / report
        shutil.rmtree(report_directory, ignore_errors=True)
        arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *command, *options]
        if not any(option.startswith("--impl") for option in options):
            arguments.append("--impl=py:echo:Echo")
        done = subprocess.run(
            [*arguments, f"--report-dir={report_directory}", "conformance"],
            cwd=self.directory,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(["conformance/harness", str(FAKES)]),
                "XDG_CACHE_HOME": str(self.directory / "cache"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        path = report_directory / "report.jsonl"
        return CompletedRun(done.returncode, done.stdout + done.stderr, read(path) if path.exists() else None, path)


@dataclass(frozen=True)
class CompletedRun:
    """The output of a run, its exit code and its report."""

    exit_code: int
    output: str
    report: Report | None
    path: Path

    def verdicts(self) -> dict[str, str]:
        """The verdict of each case, by the last part of its id."""
        assert self.report is not None, self.output
        return {line["case"].removeprefix("ir/sample/"): line["verdict"] for line in self.report.observations}

    def observation(self, case: str) -> Mapping[str, Any]:
        """One line of the report."""
        assert self.report is not None, self.output
        return next(line for line in self.report.observations if line["case"] == f"ir/sample/{case}")


@pytest.fixture(scope="session")
def shared_checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout that tests may run in but not change."""
    return make_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout of the test's own."""
    return make_checkout(tmp_path / "checkout")


def make_checkout(directory: Path) -> Checkout:
    """A checkout with the sample suite as chapter `ir`, and its kit, which the sources of vectors import."""
    copy_harness(directory)
    ignore = shutil.ignore_patterns("__pycache__")
    sample = Path(__file__).parent / "sample_suite"
    shutil.copytree(sample, directory / "conformance" / "ir", ignore=ignore, dirs_exist_ok=True)
    shutil.copytree(ROOT / "conformance" / "ir" / "kit", directory / "conformance" / "ir" / "kit", ignore=ignore)
    return Checkout(directory)


def copy_harness(directory: Path) -> None:
    """Copy what the harness needs to run a suite, compiled as far as it is, so that no run has to do so again."""
    unfinished = shutil.ignore_patterns("*.pyc.*")  # what another process is writing
    shutil.copytree(ROOT / "conformance" / "harness", directory / "conformance" / "harness", ignore=unfinished)
    shutil.copytree(ROOT / "conformance" / "clauses", directory / "conformance" / "clauses")
    shutil.copytree(ROOT / "schemas", directory / "schemas")
    for declared in (ROOT / "conformance").rglob("interface.toml"):
        folder = directory / declared.parent.relative_to(ROOT)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(declared, folder)
    shutil.copy(ROOT / "conformance" / "conftest.py", directory / "conformance")
    options = "addopts = --import-mode=importlib --strict-markers\ntestpaths = conformance\n"
    (directory / "pytest.ini").write_text(f"[pytest]\n{options}")


def is_alive(pid: int) -> bool:
    """True if a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def pids_in(directory: Path) -> list[int]:
    """The processes that fakes have written down in a folder."""
    return [int(pid) for path in directory.glob("*.pids") for pid in path.read_text().split()]
