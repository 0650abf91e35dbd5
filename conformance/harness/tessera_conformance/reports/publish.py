"""Files made from a report, JUnit XML among them, and the commands `report`, `merge`, `compare` and `schema`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import causes
from tessera_conformance.reports.claim import Line
from tessera_conformance.reports.compare import as_json, as_text, badge, compare, compared_page
from tessera_conformance.reports.journal import FILE_NAME, CannotMerge, Report, UnreadableReport, merge, read, report_in
from tessera_conformance.reports.page import page
from tessera_conformance.reports.summary import markdown, terminal_summary
from tessera_conformance.schemas import complete_schema
from tessera_conformance.terminal import error_text, escaped, print_error, reporting_errors
from tessera_conformance.verdicts import BAD_VERDICTS

# The report as JUnit XML, for CI systems: one suite a chapter, clause ids and verdicts as properties.
#
# A wrong answer is a failure. A crash, a hang, a broken protocol, an error of the harness and a case that was not run
# are errors. A case that does not apply, is declared unsupported or is a known deviation is skipped with its reason.
# The property `group` of a case that counts is its cause, as the summary has it. A file that is no whole report, and
# each problem of the run, is an error of its own in the suite `report`.


COUNTED = ("tests", "failures", "errors", "skipped")
"""The counts of the whole and of each suite."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report, registry: Registry) -> Iterator[str]:
    """The XML document, piece by piece: the elements of all cases together are large."""
    groups: dict[str, str] = {}
    for cause in causes(report):
        groups |= dict.fromkeys((line["case"] for line in cause.lines), cause.sentence())
    chapters: dict[str, list[Line]] = {}
    for line in report.observed:
        chapters.setdefault(line["case"].partition("/")[0], []).append(line)
    suites = [_Suite(chapter, (_case(report, line, groups) for line in lines)) for chapter, lines in chapters.items()]
    problems = [report.problem] if report.problem is not None else []
    problems += wording.problems_of(report, registry)
    if problems:
        suites.append(_Suite("report", (_problem(number, text) for number, text in enumerate(problems, start=1))))
    root = ElementTree.Element("testsuites", name=_legal(wording.implementation_name(report)))
    for attribute in COUNTED:
        root.set(attribute, str(sum(suite.counts[attribute] for suite in suites)))
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n{_opening(root)}\n'
    for suite in suites:
        yield from suite.pieces()
    yield "</testsuites>\n"


class _Suite:
    """The cases of a chapter, which are text as soon as they are counted."""

    def __init__(self, name: str, cases: Iterable[ElementTree.Element]) -> None:
        self.name = name
        self.counts = dict.fromkeys(COUNTED, 0)
        self._seconds = 0.0
        self._cases = [self._counted(case) for case in cases]

    def _counted(self, case: ElementTree.Element) -> str:
        self.counts["tests"] += 1
        self._seconds += float(case.get("time", "0"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.counts[attribute] += case.find(tag) is not None
        ElementTree.indent(case, level=2)
        return f"    {ElementTree.tostring(case, encoding='unicode')}\n"

    def pieces(self) -> Iterator[str]:
        """The element with all its cases."""
        suite = ElementTree.Element("testsuite", name=_legal(self.name))
        for attribute in COUNTED:
            suite.set(attribute, str(self.counts[attribute]))
        suite.set("time", f"{self._seconds:.3f}")
        yield f"  {_opening(suite)}\n"
        yield from self._cases
        yield "  </testsuite>\n"


def _opening(element: ElementTree.Element) -> str:
    return f"{ElementTree.tostring(element, encoding='unicode').removesuffix(' />')}>"


def _case(report: Report, observation: Line, groups: Mapping[str, str]) -> ElementTree.Element:
    folder, _, name = observation["case"].rpartition("/")
    seconds = observation["run"].get("seconds", 0.0)
    case = ElementTree.Element("testcase", classname=_legal(folder.replace("/", ".")), name=_legal(name))
    case.set("time", f"{seconds if isinstance(seconds, int | float) else 0.0:.3f}")
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
    _stderr(case, observation)
    return case


def _result(case: ElementTree.Element, report: Report, observation: Line) -> None:
    verdict, disposition = observation["verdict"], observation["disposition"]
    reason = wording.reason_with_verdict(observation)
    if disposition in ("known_deviation", "waived"):
        message = f"{disposition}: {wording.deviation_reason(report, observation)}; {reason}"
        ElementTree.SubElement(case, "skipped", message=_legal(message), type=disposition)
    elif disposition == "other_reading":
        ElementTree.SubElement(case, "skipped", message=_legal(f"{disposition}: {reason}"), type=disposition)
    elif disposition == "unexpected_pass":
        ElementTree.SubElement(case, "failure", message=_legal(reason), type=disposition)
    elif verdict in BAD_VERDICTS:
        tag = "failure" if verdict == "fail" else "error"
        element = ElementTree.SubElement(case, tag, message=_legal(observation["reason"]), type=verdict)
        element.text = _legal(f"{reason}\n{wording.reproduce_command(report, observation['case'])}")
    elif verdict != "pass":
        ElementTree.SubElement(case, "skipped", message=_legal(reason), type=verdict)


def _stderr(case: ElementTree.Element, observation: Line) -> None:
    if observation["verdict"] == "pass":
        return  # only a fault leaves standard error behind, and none passes
    written = [exchange["run"]["stderr"] for exchange in observation["exchanges"] if exchange["run"].get("stderr")]
    if written:
        ElementTree.SubElement(case, "system-err").text = _legal("\n".join(written))


def _problem(number: int, text: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="report", name=f"problem-{number}", time="0.000")
    ElementTree.SubElement(case, "error", message=_legal(text), type="problem")
    return case


def _legal(text: str) -> str:
    """The text with every character that XML 1.0 does not allow written as an escape."""
    return escaped(_NOT_XML, text)


# Everything people look at, made from a report file and written beside it.


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
