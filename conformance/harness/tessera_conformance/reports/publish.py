"""Files made from a report: pages, JUnit XML, known deviations; and the commands that make them."""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from tessera_conformance.cases import SuiteNotCollected, clauses_directory
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.registry.cases import case_index
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import causes
from tessera_conformance.reports.claim import Line, counts_against
from tessera_conformance.reports.compare import (
    FAILS,
    HOLDS,
    UNUSABLE,
    as_text,
    badge,
    compare,
    compared_page,
    exit_code,
)
from tessera_conformance.reports.journal import FILE_NAME, CannotMerge, Report, UnreadableReport, merge, read, report_in
from tessera_conformance.reports.page import page
from tessera_conformance.reports.summary import markdown, terminal_summary
from tessera_conformance.schemas import complete_schema
from tessera_conformance.terminal import error_text, escaped, print_error, reporting_errors
from tessera_conformance.verdicts import BAD_VERDICTS, Deviation

# The report as JUnit XML, for CI systems: one suite a chapter, clause ids and verdicts as properties.
#
# A wrong answer is a failure. A crash, a hang, a broken protocol, an error of the harness and a case that was not run
# are errors. A case that does not apply, is declared unsupported or is a known deviation is skipped with its reason.
# The property `group` of a case that counts is its cause, as the summary has it. A file that is no whole report, and
# each problem of the run, is an error of its own in the suite `report`.


RESULTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""The counts of the whole and of each suite beside that of its tests, and the elements that they count."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report, registry: Registry) -> Iterator[str]:
    """Yield the XML document, piece by piece: the elements of all cases together are large."""
    groups: dict[str, str] = {}
    for cause in causes(report):
        groups |= dict.fromkeys((line["case"] for line in cause.lines), cause.sentence())
    chapters: dict[str, list[Line]] = {}
    for line in report.observed:
        chapters.setdefault(line["case"].partition("/")[0], []).append(line)
    suites = [_suite(chapter, (_case(report, line, groups) for line in lines)) for chapter, lines in chapters.items()]
    problems = [report.problem] if report.problem is not None else []
    problems += wording.problems_of(report, registry)
    if problems:
        suites.append(_suite("report", map(_problem, count(1), problems)))
    root = _counted("testsuites", wording.implementation_name(report), sum((counts for counts, _ in suites), Counter()))
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n{_opening(root)}\n'
    yield from (text for _, text in suites)
    yield "</testsuites>\n"


def _suite(name: str, cases: Iterable[ElementTree.Element]) -> tuple[Counter[str], str]:
    """Return the counts and the text of a chapter; each case becomes text as soon as it is counted."""
    counts: Counter[str] = Counter()
    seconds, texts = 0.0, []
    for case in cases:
        counts.update(["tests", *(result for result, tag in RESULTS.items() if case.find(tag) is not None)])
        seconds += float(case.get("time", "0"))
        ElementTree.indent(case, level=2)
        texts.append(f"    {ElementTree.tostring(case, encoding='unicode')}\n")
    suite = _counted("testsuite", name, counts)
    suite.set("time", f"{seconds:.3f}")
    return counts, f"  {_opening(suite)}\n{''.join(texts)}  </testsuite>\n"


def _counted(tag: str, name: str, counts: Counter[str]) -> ElementTree.Element:
    element = ElementTree.Element(tag, name=_legal(name))
    for attribute in ("tests", *RESULTS):
        element.set(attribute, str(counts[attribute]))
    return element


def _opening(element: ElementTree.Element) -> str:
    return f"{ElementTree.tostring(element, encoding='unicode').removesuffix(' />')}>"


def _case(report: Report, observation: Line, groups: Mapping[str, str]) -> ElementTree.Element:
    folder, _, name = observation["case"].rpartition("/")
    case = ElementTree.Element("testcase", classname=_legal(folder.replace("/", ".")), name=_legal(name))
    case.set("time", f"{wording.seconds_of(observation) or 0.0:.3f}")
    properties = ElementTree.SubElement(case, "properties")
    fields = [("case", observation["case"]), ("title", observation["title"])]
    fields += [("clause", clause) for clause in observation["clauses"]]
    fields += [("judges", judged) for judged in observation["judges"]]
    fields += [("verdict", observation["verdict"]), ("disposition", observation["disposition"])]
    fields += [(name, observation[name]) for name in ("cause", "interpretation") if observation[name]]
    fields += [("group", groups[observation["case"]])] if observation["case"] in groups else []
    for key, value in fields:
        ElementTree.SubElement(properties, "property", name=key, value=_legal(value))
    _result(case, report, observation)
    # only a fault leaves standard error behind, and none passes
    exchanges = observation["exchanges"] if observation["verdict"] != "pass" else ()
    written = [exchange["run"]["stderr"] for exchange in exchanges if exchange["run"].get("stderr")]
    if written:
        ElementTree.SubElement(case, "system-err").text = _legal("\n".join(written))
    return case


def _result(case: ElementTree.Element, report: Report, observation: Line) -> None:
    """Add the element of a case that did not simply pass."""
    verdict, disposition = observation["verdict"], observation["disposition"]
    message = wording.reason_with_verdict(observation)
    text, kind = None, disposition
    if disposition in ("known_deviation", "waived"):
        tag, message = "skipped", f"{disposition}: {wording.deviation_reason(report, observation)}; {message}"
    elif disposition == "other_reading":
        tag, message = "skipped", f"{disposition}: {message}"
    elif disposition == "unexpected_pass":
        tag = "failure"
    elif verdict in BAD_VERDICTS:
        text = _legal(f"{message}\n{wording.reproduce_command(report, observation['case'])}")
        tag, message, kind = "failure" if verdict == "fail" else "error", observation["reason"], verdict
    elif verdict != "pass":
        tag, kind = "skipped", verdict
    else:
        return
    ElementTree.SubElement(case, tag, message=_legal(message), type=kind).text = text


def _problem(number: int, text: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="report", name=f"problem-{number}", time="0.000")
    ElementTree.SubElement(case, "error", message=_legal(text), type="problem")
    return case


def _legal(text: str) -> str:
    """Return the text with every character that XML 1.0 does not allow written as an escape."""
    return escaped(_NOT_XML, text)


# Everything for people, made from a report file and written beside it.


Rendering = Callable[[Report, Registry], str | Iterable[str]]

RENDERINGS: dict[str, Rendering] = {"summary.md": markdown, "junit.xml": junit, "index.html": page}


def publish(report: Report, registry: Registry, directory: Path | None = None) -> None:
    """Write `summary.md`, `junit.xml` and `index.html` into the report's directory, or another."""
    directory = directory or report.path.parent
    directory.mkdir(parents=True, exist_ok=True)
    for name, render in RENDERINGS.items():
        write_text(directory / name, render(report, registry))


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write UTF-8 with plain line ends; half characters that an implementation sent are written as escapes."""
    with path.open("wb") as file:
        for piece in [text] if isinstance(text, str) else text:
            file.write(piece.encode("utf-8", errors="backslashreplace"))


# TOML files that people edit, written with the line that names their schema to an editor, and the schema beside them.
#
# Editors with a TOML language server (Even Better TOML, taplo, tombi) read the schema that a first line names,
# `#:schema ./tessera-deviations.schema.json`, and complete and check by it. A schema there refers to no other file.


EDITED: Mapping[str, tuple[str, str]] = {
    "cabi-description": ("tessera:cabi-description", "description"),
    "declared": ("tessera:declared", "file"),
    "deviations": ("tessera:deviations", "file"),
}
"""The kinds of files, with the schema and the definition in it that they obey."""


def write_toml(path: Path, text: str, kind: str) -> None:
    """Write a TOML file of one of the kinds, with the line that names its schema, and the schema beside it."""
    write_text(path, write_schema(path.parent, kind) + text)


def write_schema(directory: Path, kind: str) -> str:
    """Write the schema of a kind of file into a folder, and return the line by which a file there names it."""
    file = f"tessera-{kind}.schema.json"
    write_text(directory / file, schema_text(kind))
    return f"#:schema ./{file}\n"


def schema_text(kind: str) -> str:
    """Return the JSON text of the schema of a kind of file."""
    return json.dumps(complete_schema(*EDITED[kind]), indent=2, ensure_ascii=False) + "\n"


# The command lines `tessera-conformance report`, `tessera-conformance merge` and `tessera-conformance compare`.
#
# Exit codes of `report`, and of `merge` for the joined report: 0 if the report claims success or partial success, 1
# for failure. 2 means that a file cannot be read or is no whole report, or that the reports cannot be joined.
# `report` shows what it can read of an unfinished report all the same. Of `compare`: 0 where nothing broke, 1 where a
# case broke or disappeared, 2 where one of the files is unreadable or invalid.


EXIT_CODES = {"success": HOLDS, "partial": HOLDS, "failure": FAILS, "invalid": UNUSABLE}
FORMATS: dict[str, Rendering] = {
    "terminal": terminal_summary,
    "markdown": markdown,
    "junit": junit,
    "html": page,
    "badge": badge,
}


def configure_report(parser: argparse.ArgumentParser) -> None:
    """The command `report`."""
    parser.description = "Render a report file; with --format html, several of them side by side in one page."
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
    parser.description = (
        "Join the reports of all shards K/N of one run into the report of the whole run, and make its pages."
    )
    parser.add_argument("parts", type=Path, nargs="+", metavar="REPORT", help="the report of a shard, or its directory")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the joined report goes")
    parser.set_defaults(handler=reporting_errors(join, UnreadableReport, CannotMerge, RegistryError))


def configure_compare(parser: argparse.ArgumentParser) -> None:
    """The command `compare`."""
    parser.description = "Say which cases were fixed, broke, changed otherwise, were added or disappeared from A to B."
    parser.add_argument("before", type=Path, metavar="A", help="the earlier report, or its directory")
    parser.add_argument("after", type=Path, metavar="B", help="the later report, or its directory")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(handler=reporting_errors(hold_against, UnreadableReport, CannotMerge, RegistryError))


def show(arguments: argparse.Namespace) -> int:
    """Print a report, or several as one page; return the worst of their exit codes."""
    reports, registry = [_read(path) for path in arguments.files], load_registry(clauses_directory())
    if len(reports) > 1 and arguments.format != "html":
        actual = f"{arguments.format} is of one report, and {len(reports)} are given"
        print_error(error_text("--format", actual, "html", "or `tessera-conformance compare` for two"))
        return UNUSABLE
    if len(reports) > 1:
        _put(compared_page(reports, registry), arguments.output)
    elif arguments.format == "all":
        publish(reports[0], registry, arguments.output)
    else:
        _put(FORMATS[arguments.format](reports[0], registry), arguments.output)
    return max(map(_exit_code, reports))


def _exit_code(report: Report) -> int:
    """Return the exit code of a report; print an error if it is invalid."""
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
    _put(json.dumps(comparison, indent=2) if arguments.json else as_text(before, after, comparison), None)
    for problem in comparison["invalid"]:
        print_error(problem)
    return exit_code(comparison)


def _read(path: Path) -> Report:
    return read(report_in(path))


def _put(rendered: str | Iterable[str], output: Path | None) -> None:
    text = "".join(rendered)
    if output is not None:
        write_text(output, text if text.endswith("\n") else f"{text}\n")
        return
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, errors="backslashreplace").decode(encoding).removesuffix("\n"))


# `tessera-conformance schema`: the form of a TOML file that people edit, as one JSON Schema for their editor.


def configure_schema(parser: argparse.ArgumentParser) -> None:
    """The command `schema`."""
    parser.description = (
        "Print the JSON Schema of a TOML file that people edit; an editor reads the one that `#:schema FILE` names."
    )
    parser.add_argument("kind", metavar="KIND", choices=sorted(EDITED), help=", ".join(sorted(EDITED)))
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write it into DIR, and print the line that names it"
    )
    parser.set_defaults(handler=reporting_errors(print_schema))


def print_schema(arguments: argparse.Namespace) -> int:
    """Print the schema, or write it and print the line that names it."""
    written = write_schema(arguments.output, arguments.kind) if arguments.output else schema_text(arguments.kind)
    print(written, end="")
    return 0


# `tessera-conformance deviations write`: few patterns that match the failing cases of a report and no others.
#
# A pattern is a common beginning and end of ids, `ir/matmul/*/k-13`, or the same among the cases of one clause. The
# largest patterns that match no other case are taken first.


LONGEST_REASON = 160
MODE = "must_fail"

Pattern = tuple[int, str, str]
"""The number of literal characters, the pattern, and the clause that narrows it or ""."""


class NoBaseline(Exception):
    """No deviations can be made from a report; says why."""


def baseline(
    report: Report, others: Mapping[str, Sequence[str]], owner: str, expires: datetime.date
) -> list[Deviation]:
    """Return deviations with which this run is green; a repaired case then makes it red.

    `others` are the clauses of further cases of the suite, which the run left out: no pattern matches them. Deviations
    with which the report was made are kept where they still hold.

    Raises `NoBaseline`: the report is no whole run, or a case of it did not run or is broken itself.
    """
    if report.claim == "invalid":
        raise NoBaseline(f"{report.path}: not a valid report: {report.problem}")
    lines = {line["case"]: line for line in report.observations}
    unfit = [case for case, line in lines.items() if line["verdict"] in ("not_run", "harness_error")]
    if unfit:
        verdict = lines[unfit[0]]["verdict"].replace("_", " ")
        raise NoBaseline(f"{unfit[0]}: {verdict}: no deviation of an implementation; run it again first")
    entries = _kept(report)
    failing = {
        case: line
        for case, line in lines.items()
        if line["disposition"] != "unexpected_pass"
        and line["verdict"] != "pass"
        and (counts_against(line) or line["disposition"] in ("known_deviation", "waived"))
        and not any(entry.matches(case, line["clauses"]) for entry in entries)
    }
    everything = {**others, **{case: line["clauses"] for case, line in lines.items()}}
    additions = [
        Deviation(pattern, MODE, _reason(failing[cases[0]], len(cases)), owner, expires, clause or None)
        for (_, pattern, clause), cases in _cover(everything, failing)
    ]
    return sorted([*entries, *additions], key=lambda entry: (entry.cases, entry.clause or ""))


def _kept(report: Report) -> list[Deviation]:
    """Return the run's deviations, except expired ones, unmatched ones, and those of cases that passed unexpectedly."""
    rows = report.header["selection"]["deviations"]
    entries = [Deviation(**{**entry, "expires": datetime.date.fromisoformat(entry["expires"])}) for entry in rows]
    passed = [line for line in report.observations if line["disposition"] == "unexpected_pass"]
    problems = report.footer["problems"] if report.footer else []
    return [
        entry
        for entry in entries
        if not any(entry.matches(line["case"], line["clauses"]) for line in passed)
        and not any(repr(entry.cases) in problem for problem in problems)
    ]


def _cover(
    everything: Mapping[str, Sequence[str]], failing: Mapping[str, Line]
) -> Iterator[tuple[Pattern, Sequence[str]]]:
    """Yield patterns that together match the failing cases, each with the cases that no earlier pattern matches."""
    matched: dict[Pattern, set[str]] = {}
    for case in failing:
        for pattern in _patterns(case, everything[case]):
            matched.setdefault(pattern, set()).add(case)
    for case in everything.keys() - failing.keys():
        for pattern in _patterns(case, everything[case]):
            matched.pop(pattern, None)
    left = set(failing)
    for *_, pattern in sorted((-len(cases), bool(one[2]), -one[0], one) for one, cases in matched.items()):
        fresh = matched[pattern] & left
        if fresh:
            left -= fresh
            yield pattern, sorted(fresh)


def _patterns(case: str, clauses: Sequence[str]) -> Iterator[Pattern]:
    """Yield every pattern that matches a case: its id, and the beginnings and ends of its parts, or of its words."""
    parts = case.split("/")
    yield len(case), case, ""
    shared = {
        "/".join([*parts[:first], "*", *parts[len(parts) - last :]])
        for first in range(1, len(parts))
        for last in range(len(parts) - first)
    }
    shared |= {f"{case[: place + 1]}*" for place, letter in enumerate(case[:-1]) if letter in "/-"}
    for pattern in shared:
        for clause in ("", *clauses):
            yield len(pattern) - 1, pattern, clause


def _reason(first: Line, number: int) -> str:
    """Return the reason of the first of some cases, and their number."""
    reason = " ".join(f"{first['verdict']}: {first['reason']}".split())
    shown = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 4]} ..."
    return shown if number == 1 else f"{shown} ({number} cases)"


def deviations_toml(entries: Sequence[Deviation], heading: str) -> str:
    """Return the file of some deviations."""
    lines = [f"# {heading}"]
    for entry in entries:
        fields = {name: getattr(entry, name) for name in ("cases", "clause", "mode", "reason", "owner")}
        lines += ["", "[[deviation]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value)]
        lines.append(f"expires = {entry.expires.isoformat()}")
    return "\n".join(lines if entries else [*lines, "deviation = []"]) + "\n"


# `tessera-conformance deviations write`: list today's failures as known deviations, so that the run is green.


DAYS = 90
"""The days for which a deviation lasts unless a date is given."""


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
    """Write the file and return 0; an error, such as a report without a baseline, makes the command return 2."""
    report = _read(arguments.report)
    expires = arguments.expires or datetime.date.today() + datetime.timedelta(days=DAYS)
    others = {identifier: case.clauses for identifier, case in case_index().items()} if report.is_part else {}
    entries = baseline(report, others, arguments.owner, expires)
    name = " ".join(filter(None, map(report.identity.get, ("name", "version")))) or "an implementation"
    write_toml(arguments.output, deviations_toml(entries, f"What {name} is known to get wrong."), "deviations")
    excused = sum(
        line["verdict"] != "pass" and any(entry.matches(line["case"], line["clauses"]) for entry in entries)
        for line in report.observations
    )
    print(f"{arguments.output}: {len(entries)} deviations for {excused} cases, until {expires}")
    return 0
