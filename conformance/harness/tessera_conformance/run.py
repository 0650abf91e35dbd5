"""`tessera-conformance run`: the suite from wherever it lies, checkout or wheel, through pytest."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pytest

from tessera_conformance.locations import suite_directory

USAGE_EXIT = 2
CONFIGURATION = "[pytest]\naddopts = --import-mode=importlib --strict-markers --strict-config -p no:cacheprovider\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` and `reproduce`."""
    run = subparsers.add_parser(
        "run",
        help="run the conformance suite",
        description="Run the suite against an implementation. Further options go to pytest; see also --help-suite.",
    )
    run.add_argument("--help-suite", action="store_true", help="list the options of the suite and exit")
    run.set_defaults(handler=run_command, takes_rest=True)
    reproduce = subparsers.add_parser("reproduce", help="run one case and write a standalone script for it")
    reproduce.add_argument("case", help="case id as in the report, such as ir/matmul/k-tail")
    reproduce.set_defaults(handler=reproduce_command, takes_rest=True)


def run_command(arguments: argparse.Namespace) -> int:
    """The suite, or `--help-suite`."""
    return run_suite(["--help"] if arguments.help_suite else arguments.rest)


def reproduce_command(arguments: argparse.Namespace) -> int:
    """One case; its report and script go to `reproduction/` unless told otherwise, and not over a whole report."""
    return run_suite(["--report-dir=reproduction", "--reproduce", arguments.case, *arguments.rest])


def run_suite(options: list[str]) -> int:
    """Run pytest over the suite with our own configuration; exit code 0, 1 for a failed claim, 2 for a bad request."""
    suite = suite_directory()
    _make_working_directory_importable()
    with tempfile.TemporaryDirectory(prefix="tessera-run-") as scratch:
        configuration = Path(scratch) / "pytest.ini"
        configuration.write_text(CONFIGURATION, encoding="utf-8")
        place = ["-c", str(configuration), "--rootdir", str(suite), f"--confcutdir={suite}"]
        code = pytest.main(["-q", "--tb=no", "-rN", *place, str(suite), *options])
    return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else USAGE_EXIT


def _make_working_directory_importable() -> None:
    """An adapter in the working directory is found, as with `python -m`."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
