"""`tessera-conformance deviations write`: what fails today as known deviations, so that a run is green until then."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from tessera_conformance.cases import SuiteNotCollected
from tessera_conformance.registry.case_index import case_index
from tessera_conformance.reports.baseline import NoBaseline, as_toml, baseline
from tessera_conformance.reports.journal import FILE_NAME, UnreadableReport, read
from tessera_conformance.reports.toml_files import write_toml
from tessera_conformance.terminal.errors import reporting_errors

DAYS = 90
"""How long a deviation lasts where no day is given."""


def configure_deviations(parser: argparse.ArgumentParser) -> None:
    """The command `deviations`."""
    parser.description = "Known deviations, which --deviations of a run takes."
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    write = commands.add_parser("write", help="those under which the run of a report is green")
    write.add_argument("report", type=Path, metavar="REPORT", help=f"{FILE_NAME}, or the directory that holds it")
    write.add_argument("--output", type=Path, required=True, metavar="FILE", help="the TOML file to write")
    write.add_argument("--owner", required=True, help="who mends them")
    write.add_argument(
        "--expires", type=datetime.date.fromisoformat, metavar="DAY", help=f"YYYY-MM-DD (default: in {DAYS} days)"
    )
    write.set_defaults(handler=reporting_errors(write_deviations, UnreadableReport, NoBaseline, SuiteNotCollected))


def write_deviations(arguments: argparse.Namespace) -> int:
    """Write the file; 0 where it is written, 2 where the report gives none."""
    path = arguments.report
    report = read(path / FILE_NAME if path.is_dir() else path)
    expires = arguments.expires or datetime.date.today() + datetime.timedelta(days=DAYS)
    complete = report.header["selection"]["complete"] and not report.header["selection"]["shard"]
    others = {} if complete else {identifier: case.clauses for identifier, case in case_index().items()}
    entries = baseline(report, others, arguments.owner, expires)
    identity = (report.header["implementation"]["hello"] or {}).get("implementation", {})
    name = " ".join(filter(None, [identity.get("name"), identity.get("version")])) or "an implementation"
    write_toml(arguments.output, as_toml(entries, f"What {name} is known to get wrong."), "deviations")
    excused = sum(
        line["verdict"] != "pass" and any(entry.matches(line["case"], line["clauses"]) for entry in entries)
        for line in report.observations
    )
    print(f"{arguments.output}: {len(entries)} deviations for {excused} cases, until {expires}")
    return 0
