"""The report as JUnit XML, for CI systems: one suite a chapter, clause ids and verdicts as properties.

A wrong answer is a failure. A crash, a hang, a broken protocol, an error of the harness and a case that was not run are
errors. A case that does not apply, is declared unsupported or is a known deviation is skipped with its reason. The
property `group` of a case that counts is its cause, as the summary has it. A file that is no whole report, and each
problem of the run, is an error of its own in the suite `report`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping

from tessera_conformance.registry import Registry
from tessera_conformance.reports import wording
from tessera_conformance.reports.causes import causes
from tessera_conformance.reports.claim import Line
from tessera_conformance.reports.journal import Report
from tessera_conformance.terminal import escaped
from tessera_conformance.verdicts import BAD_VERDICTS

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
