"""The command lines `tessera-conformance report`, `tessera-conformance merge` and `tessera-conformance compare`.

Exit codes of `report`, and of `merge` for the joined report: 0 if the report claims success or partial success, 1 for
failure. 2 means that a file cannot be read or is no whole report, or that the reports cannot be joined. `report` shows
what it can read of an unfinished report all the same. Of `compare`: 0 where nothing broke, 1 where a case broke or
disappeared, 2 where one of the files is unreadable or invalid.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.reports.compare import as_json, as_text, badge, compare, compared_page
from tessera_conformance.reports.journal import FILE_NAME, CannotMerge, Report, UnreadableReport, merge, read, report_in
from tessera_conformance.reports.junit import junit
from tessera_conformance.reports.page import page
from tessera_conformance.reports.publish import publish, write_text
from tessera_conformance.reports.summary import markdown, terminal_summary
from tessera_conformance.terminal import error_text, print_error, reporting_errors

HOLDS, FAILS, UNUSABLE = 0, 1, 2
EXIT_CODES = {"success": HOLDS, "partial": HOLDS, "failure": FAILS, "invalid": UNUSABLE}
RENDERS = "Render a report file; with --format html, several of them side by side in one page."
MERGES = "Join the reports of all shards K/N of one run into the report of the whole run, and make its pages."
COMPARES = "Say which cases were fixed, broke, changed otherwise, were added or disappeared from A to B."
FORMATS: dict[str, Callable[[Report, Registry], str | Iterable[str]]] = {
    "terminal": terminal_summary,
    "markdown": markdown,
    "junit": junit,
    "html": page,
    "badge": badge,
}


def configure_report(parser: argparse.ArgumentParser) -> None:
    """The command `report`."""
    parser.description = RENDERS
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help=f"{FILE_NAME}, or the directory that holds it"
    )
    parser.add_argument("--format", choices=(*FORMATS, "all"), default="terminal", help="default: %(default)s")
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="a file, or with `all` a directory (default: FILE's)"
    )
    parser.set_defaults(handler=reporting_errors(show, UnreadableReport, CannotMerge, RegistryError))


def configure_merge(parser: argparse.ArgumentParser) -> None:
    """The command `merge`."""
    parser.description = MERGES
    parser.add_argument("parts", type=Path, nargs="+", metavar="REPORT", help="the report of a shard, or its directory")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the joined report goes")
    parser.set_defaults(handler=reporting_errors(join, UnreadableReport, CannotMerge, RegistryError))


def configure_compare(parser: argparse.ArgumentParser) -> None:
    """The command `compare`."""
    parser.description = COMPARES
    parser.add_argument("before", type=Path, metavar="A", help="the earlier report, or its directory")
    parser.add_argument("after", type=Path, metavar="B", help="the later report, or its directory")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(handler=reporting_errors(hold_against, UnreadableReport, CannotMerge, RegistryError))


def show(arguments: argparse.Namespace) -> int:
    """`report FILE...`."""
    reports, registry = [_read(path) for path in arguments.files], load_registry(clauses_directory())
    if len(reports) > 1:
        return _show_together(reports, registry, arguments)
    (report,) = reports
    if arguments.format == "all":
        publish(report, registry, arguments.output)
    else:
        _put(FORMATS[arguments.format](report, registry), arguments.output)
    return _exit_code(report)


def _show_together(reports: Sequence[Report], registry: Registry, arguments: argparse.Namespace) -> int:
    """Several reports in one page; the exit code is the worst of theirs."""
    if arguments.format != "html":
        actual = f"{arguments.format} is of one report, and {len(reports)} are given"
        print_error(error_text("--format", actual, "html", "or `tessera-conformance compare` for two"))
        return UNUSABLE
    _put(compared_page(reports, registry), arguments.output)
    return max(map(_exit_code, reports))


def _exit_code(report: Report) -> int:
    """The exit code of a report; a word of complaint where it is invalid."""
    if report.claim == "invalid":
        print_error(error_text(str(report.path), f"not a valid report: {report.problem}", do="run the suite again"))
    return EXIT_CODES[report.claim]


def join(arguments: argparse.Namespace) -> int:
    """`merge REPORT... --output DIR`."""
    registry = load_registry(clauses_directory())
    report = merge([_read(path) for path in arguments.parts], arguments.output)
    publish(report, registry)
    _put(terminal_summary(report, registry), None)
    return EXIT_CODES[report.claim]


def hold_against(arguments: argparse.Namespace) -> int:
    """`compare A B`."""
    before, after = _read(arguments.before), _read(arguments.after)
    comparison = compare(before, after)
    _put((as_json if arguments.json else as_text)(before, after, comparison), None)
    for problem in comparison.invalid:
        print_error(problem)
    return comparison.exit_code


def _read(path: Path) -> Report:
    return read(report_in(path))


def _put(rendered: str | Iterable[str], output: Path | None) -> None:
    text = "".join(rendered)
    if output is not None:
        write_text(output, text if text.endswith("\n") else f"{text}\n")
        return
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, errors="backslashreplace").decode(encoding).removesuffix("\n"))
