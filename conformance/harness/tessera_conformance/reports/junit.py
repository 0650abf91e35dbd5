"""The report as JUnit XML, for CI systems: one suite a chapter, clause ids and verdicts as properties.

A wrong answer is a failure; a crash, a hang, a broken protocol, an error of the harness and a case that was not run
are errors; what does not apply, is declared unsupported or is a known deviation is skipped with its reason. A file that
is no whole report, and each problem of the run, is an error of its own in the suite `report`: none is overlooked.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from tessera_conformance.registry import Registry
from tessera_conformance.reports import wording
from tessera_conformance.reports.clause_results import observed
from tessera_conformance.reports.journal import Line, Report
from tessera_conformance.verdicts import BAD_VERDICTS

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report, registry: Registry) -> str:
    """The whole XML document."""
    root = ElementTree.Element("testsuites", name=_legal(wording.implementation_name(report)))
    chapters: dict[str, list[Line]] = {}
    for line in observed(report):
        chapters.setdefault(line["case"].partition("/")[0], []).append(line)
    for chapter, lines in chapters.items():
        _suite(root, chapter, [_case(report, line) for line in lines])
    problems = [report.problem] if report.problem is not None else []
    problems += wording.problems_of(report, registry)
    if problems:
        _suite(root, "report", [_problem(number, text) for number, text in enumerate(problems, start=1)])
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, name: str, cases: Sequence[ElementTree.Element]) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=_legal(name), tests=str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(1 for case in cases if case.find(tag) is not None)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    suite.extend(cases)


def _case(report: Report, observation: Line) -> ElementTree.Element:
    folder, _, name = observation["case"].rpartition("/")
    seconds = observation["run"].get("seconds", 0.0)
    case = ElementTree.Element("testcase", classname=_legal(folder.replace("/", ".")), name=_legal(name))
    case.set("time", f"{seconds if isinstance(seconds, int | float) else 0.0:.3f}")
    properties = ElementTree.SubElement(case, "properties")
    fields = [("case", observation["case"]), ("title", observation["title"])]
    fields += [("clause", clause) for clause in observation["clauses"]]
    fields += [("verdict", observation["verdict"]), ("disposition", observation["disposition"])]
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
    return wording.escaped(_NOT_XML, text)
