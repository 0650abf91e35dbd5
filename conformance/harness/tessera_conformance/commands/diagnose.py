"""`tessera-conformance diagnose`: say which plausible implementation answered as a report shows.

Exit codes: 0 where the report was read, whatever was found; 2 where it cannot be.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from tessera_conformance.diagnosis import diagnose
from tessera_conformance.diagnosis.catalogue import ANY, FAMILIES, Hypothesis, catalogue
from tessera_conformance.reports.journal import FILE_NAME, UnreadableReport, read, report_in
from tessera_conformance.terminal import reporting_errors, visible


def configure_diagnose(parser: argparse.ArgumentParser) -> None:
    """The command `diagnose`."""
    parser.description = (
        "Name the plausible implementations whose bits are those of the failing arithmetic of a report."
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="REPORT", help=f"{FILE_NAME}, or its directory")
    parser.add_argument("--cases", action="store_true", help="list the cases of each diagnosis too")
    parser.add_argument("--catalogue", action="store_true", help="print the catalogue as a table in Markdown")
    parser.set_defaults(handler=reporting_errors(show, UnreadableReport))


def show(arguments: argparse.Namespace) -> int:
    """`diagnose REPORT`, or the catalogue."""
    if arguments.catalogue or arguments.file is None:
        print("\n".join(catalogue_table()))
        return 0
    diagnoses = diagnose(read(report_in(arguments.file)).observed)
    for cause in diagnoses:
        print(visible(cause.sentence))
        for case in cause.cases if arguments.cases else ():
            print(f"  {visible(case)}")
    if not diagnoses:
        print("no failing arithmetic")
    return 0


def catalogue_table() -> Iterator[str]:
    """The hypotheses as lines of a Markdown table; those that differ in a number, such as a size, share a row."""
    yield "| hypothesis | operations | the answer has the bits of | clause |"
    yield "|---|---|---|---|"
    families: dict[tuple[str, str], list[Hypothesis]] = {}
    for departure in catalogue():
        families.setdefault((_with_n(departure.name), _with_n(departure.says)), []).append(departure)
    for (name, says), members in families.items():
        numbers = list(dict.fromkeys(number for member in members for number in _NUMBER.findall(member.name)))
        if len({member.name for member in members}) == 1:
            name, says, numbers = members[0].name, members[0].says, []
        sizes = f", N = {', '.join(numbers)}" if numbers else ""
        words = says.format(accumulator="the accumulator", right_accumulator="the accumulator")
        operations = frozenset().union(*(member.operations for member in members))
        yield f"| `{name}`{sizes} | {_operations(operations)} | {words} | {members[0].clause} |"


_NUMBER = re.compile(r"(?<![a-z\d])\d+(?![a-z\d])")


def _with_n(text: str) -> str:
    return _NUMBER.sub("N", text)


def _operations(operations: frozenset[str]) -> str:
    """The operations by the names of families, as far as these go."""
    if operations == ANY:
        return "all"
    names = []
    for name, family in FAMILIES.items():
        if family <= operations:
            names.append(name)
            operations -= family
    return ", ".join([*names, *sorted(operations)])
