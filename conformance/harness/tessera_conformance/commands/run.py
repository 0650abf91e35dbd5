"""`tessera-conformance run` and `reproduce`, the suite through pytest, and `diagnose`, plausible causes of failures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tessera_conformance.cases import pytest_options
from tessera_conformance.terminal import UNREAD, error_text, print_error, reporting_errors, visible
from tessera_conformance.transports.rpc import run_to_the_end

# This process only starts another: it imports neither pytest nor modules that judge.


PASSED, FAILED, USAGE_EXIT, NOTHING_SELECTED = 0, 1, 2, 5
"""Exit codes; those of pytest where it has such codes."""
SEAL = "TESSERA_CONFORMANCE_SEAL"
"""The environment variable naming a file that exists once the report is whole."""
SEALING_GRACE = 30.0
"""Seconds for an interrupted run to seal its report."""
PROCESS = "tessera_conformance.commands.suite_process"


RUN_EXAMPLES = """
  tessera-conformance run --impl=reference
  tessera-conformance run --impl=py:my_adapter:make ir/test_matmul.py -k bf16
  tessera-conformance run --impl=py:my_adapter:make --case 'ir/matmul/*' --clause 'LANG-10-*' --feature casts
  tessera-conformance run --impl=py:my_adapter:make --failed report/report.jsonl --report-dir=again
  tessera-conformance run --impl=rpc:"./acme --device=0" --deviations=known.toml --shard=1/4
  tessera-conformance run --impl=cabi:build/libacme.so --compiler="acmec {input} -o {output}"
  tessera-conformance run --impl=hostio:unix:acme.sock,description=acme.toml
"""
REPRODUCE_EXAMPLES = """
  tessera-conformance reproduce ir/matmul/golden/fp32/k-13 --impl=py:my_adapter:make
"""


def configure_run(parser: argparse.ArgumentParser) -> None:
    """The command `run`."""
    _take_suite_options(parser, RUN_EXAMPLES)
    parser.set_defaults(handler=lambda arguments: run_suite(arguments.rest))


def configure_reproduce(parser: argparse.ArgumentParser) -> None:
    """The command `reproduce`."""
    _take_suite_options(parser, REPRODUCE_EXAMPLES)
    parser.add_argument("case", help="case id as in the report")
    parser.set_defaults(handler=reproduce)


def _take_suite_options(parser: argparse.ArgumentParser, examples: str) -> None:
    """Let pytest read the options of the suite; the help shows them and examples."""
    parser.usage = f"{parser.prog} --impl IMPL [options] [PATH ...]"
    parser.formatter_class = partial(_SuiteHelp, examples=examples)
    parser.set_defaults(takes_rest=True)


class _SuiteHelp(argparse.RawDescriptionHelpFormatter):
    """The help of a command, with the options of the suite, which take long to import."""

    def __init__(self, prog: str, *, examples: str) -> None:
        super().__init__(prog)
        self._examples = examples

    def format_help(self) -> str:
        from tessera_conformance.options import add_options

        options = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
        add_options(options.add_argument)
        further = (
            "PATH is a file, folder or test, here or in the suite: ir, ir/test_sums.py, ir/test_sums.py::test_golden.\n"
            "A case is selected if it matches each kind of option, by any value of it. Further options go to pytest: "
            "-k, -x, -n."
        )
        return f"{super().format_help()}\n{options.format_help()}\n{further}\n\nexamples:{self._examples}"


def reproduce(arguments: argparse.Namespace) -> int:
    """Run one case; its report and script go to `reproduction/` by default, not over a whole report."""
    return run_suite(["--report-dir=reproduction", "--reproduce", arguments.case, *arguments.rest])


def run_suite(options: list[str]) -> int:
    """Run pytest over the suite with our own configuration; exit code 0, 1 for a failed claim, 2 for a bad request.

    It runs in a process of its own, so that an implementation that ends its process cannot end with our exit code.
    """
    if not any(option.partition("=")[0] == "--impl" for option in options):
        from tessera_conformance.transports.locate import FORMS

        print_error(error_text("tessera-conformance run", "no implementation is named", f"--impl and one of {FORMS}"))
        return USAGE_EXIT
    with tempfile.TemporaryDirectory(prefix="tessera-run-") as scratch:
        seal, place = Path(scratch) / "sealed", pytest_options(Path(scratch))
        command = [sys.executable, "-m", PROCESS, "-q", "--tb=no", "-rN", "--disable-warnings", *place, *options]
        try:
            code = run_to_the_end(command, SEALING_GRACE, {SEAL: str(seal)})
        finally:
            sealed = seal.exists()
    if code == NOTHING_SELECTED:
        print_error(error_text("run", "no case was selected", do="look at -k, -m, --shard and the paths given"))
    elif code in (PASSED, FAILED) and not sealed:
        what = "the run ended before its report: the implementation ended the process it shares with the suite"
        own = 'run it in a process of its own, --impl=rpc:"tessera-conformance serve IMPL"'
        print_error(error_text("--impl", what, do=own))
        return USAGE_EXIT
    return code if code in (PASSED, FAILED, UNREAD) else USAGE_EXIT


def configure_diagnose(parser: argparse.ArgumentParser) -> None:
    """The command `diagnose`: plausible implementations with the answers of a report."""
    from tessera_conformance.reports.journal import FILE_NAME, UnreadableReport

    parser.description = (
        "Name the plausible implementations whose bits are those of the failing arithmetic of a report."
    )
    parser.add_argument("file", type=Path, metavar="REPORT", help=f"{FILE_NAME}, or its directory")
    parser.add_argument("--cases", action="store_true", help="list the cases of each diagnosis too")
    parser.set_defaults(handler=reporting_errors(show, UnreadableReport))


def show(arguments: argparse.Namespace) -> int:
    """Run `diagnose REPORT`; exit code 0 if the report was read, whatever it shows."""
    from tessera_conformance.diagnosis import diagnose
    from tessera_conformance.reports.journal import read, report_in

    diagnoses = diagnose(read(report_in(arguments.file)).observed)
    for cause in diagnoses:
        print(visible(cause.sentence))
        for case in cause.cases if arguments.cases else ():
            print(f"  {visible(case)}")
    if not diagnoses:
        print("no failing arithmetic")
    return 0
