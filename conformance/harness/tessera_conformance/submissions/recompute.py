"""The verdict of a case from its line in a report, without the implementation: what its checks and exchanges show.

Each check is judged again from what was expected and found. A line does not hold a property in words, or a long tensor
that is known by its digest. These are accepted as the line says, and counted. So is a pass that is kept as counts and a
digest (`--evidence=digests`), of which only the counts can be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera_conformance.check import MOST_ERRORS
from tessera_conformance.differences import first_difference
from tessera_conformance.reports.lines import shortened
from tessera_conformance.tensors import MalformedTensor, Tensor, from_wire
from tessera_conformance.vectors import Vector

Line = Mapping[str, Any]

WANTED = re.compile(r"a rejection of category (.+?)(?: in phase (.+?))?(?: at line (\d+))?")
FOUND = re.compile(r"rejected in phase (\w+) with (\S+): .* \(([^()]*)\)", re.DOTALL)


@dataclass
class Recomputation:
    """The findings in the lines of a report: problems, and the number of checks known by the line's word alone."""

    problems: list[str] = field(default_factory=list)
    judged: int = 0
    taken: int = 0
    replayed: int = 0
    """Cases that were replayed against their exchanges."""
    digests: int = 0
    """Cases of which the report has the evidence, or a long answer, by digest: counts and labels are judged."""
    by_claims: int = 0
    """Cases that did not run, as follows from the claims and the selection."""
    unverified: int = 0
    """Cases of which nothing is known, such as those that were not run; each counts against the claim."""

    def judge(self, line: Line, vector: Vector | None, level: str) -> None:
        """Judge the checks of a case that ran, and then its verdict."""
        if "evidence" in line:
            self.problems += _against_counts(line, vector if level == "strict" else None)
            return
        for check in line["checks"]:
            passed = _passed(check)
            self.judged += passed is not None
            self.taken += passed is None
            if passed is not None and passed != check["passed"]:
                stated = "passed" if check["passed"] else "failed"
                self.problems.append(
                    f"{line['case']}: the check {check['what']!r} claims to have {stated}, and has not"
                )
        if vector is not None and level == "strict":
            self.problems += _against_vector(line, vector)
        possible = _possible(line)
        if line["verdict"] not in possible:
            shown = " or ".join(possible)
            self.problems.append(f"{line['case']}: the verdict is {line['verdict']}, what was observed shows {shown}")


def _possible(line: Line) -> Sequence[str]:
    """The verdicts that the checks and exchanges of a case that ran leave open."""
    checks, exchanges = line["checks"], line["exchanges"]
    if line["verdict"] == "harness_error":
        return ["harness_error"]  # the suite's own fault, which no observation shows; it counts as a failure
    faults = [exchange["observation"]["fault"]["kind"] for exchange in exchanges if "fault" in exchange["observation"]]
    failed = not all(check["passed"] for check in checks)
    if failed or faults:
        return [*(["fail"] if failed else []), *faults[:1]]
    if exchanges and "unsupported" in exchanges[-1]["observation"]:
        return ["fail"]
    return ["pass"] if checks else ["harness_error"]


def _passed(check: Line) -> bool | None:
    """Return True if a check holds, as far as the line shows the expected and the found value."""
    expected, actual = check["expected"], check["actual"]
    match check["kind"]:
        case "returns" | "accepts":
            return bool(actual == "returned a result")
        case "status":
            return f" with {expected}:" in str(actual)
        case "rejects":
            return _is_rejection(str(expected), str(actual))
        case "equal":
            return _same(expected, actual)
        case "within":
            return bool(actual == "all")
        case "bits":
            return _same_bits(expected, actual)
    return None


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_same(expected[key], actual[key]) for key in expected)
    return type(expected) is type(actual) and bool(expected == actual)


def _same_bits(expected: Any, actual: Any) -> bool | None:
    """Return True if two tensors have the same bits, but for NaNs; None where digests differ and no bits are there."""
    if expected == actual:
        return True
    try:
        expected_value, actual_value = from_wire(expected), from_wire(actual)
    except MalformedTensor:
        return None  # one of them is known by its digest
    return first_difference(actual_value, expected_value) is None if isinstance(expected_value, Tensor) else None


def _is_rejection(expected: str, actual: str) -> bool:
    expected_match, match = WANTED.fullmatch(expected), FOUND.fullmatch(actual)
    if expected_match is None or match is None:
        return False
    errors = [word.rpartition(" at line ") for word in match[3].split(", ")]
    categories, phases = expected_match[1].split(" or "), expected_match[2].split(" or ") if expected_match[2] else []
    hit = any(category in categories and expected_match[3] in (None, line) for category, _, line in errors)
    return hit and len(errors) <= MOST_ERRORS and (not phases or match[1] in phases)


def _against_counts(line: Line, vector: Vector | None) -> Iterator[str]:
    """Yield problems of a case of which the checks are only counted."""
    if line["verdict"] != "pass" or line["disposition"] != "none":
        yield f"{line['case']}: is kept as counts and a digest, though it did not simply pass"
    bits = line["evidence"]["checks"].get("bits", 0)
    if vector is not None and bits < len(vector.expected):
        yield f"{line['case']}: {bits} results were judged, {vector.id} has {len(vector.expected)}"


def _against_vector(line: Line, vector: Vector) -> Iterator[str]:
    """Yield problems of a golden case: expected bits that are not the frozen ones, found bits not answered."""
    bits = [check for check in line["checks"] if check["kind"] == "bits"]
    answered = list(_tensors([exchange["observation"].get("returned") for exchange in line["exchanges"]]))
    for check, frozen in zip(bits, vector.expected, strict=False):
        if check["expected"] != shortened(frozen):
            yield f"{line['case']}: the check {check['what']!r} expects other bits than the golden vector {vector.id}"
        if (
            check["passed"]
            and vector.call.method.endswith((".execute", ".evaluate"))
            and check["actual"] not in answered
        ):
            yield f"{line['case']}: the bits that were judged are in no answer"
    if line["verdict"] == "pass" and len(bits) < len(vector.expected):
        yield f"{line['case']}: {len(bits)} results were judged, {vector.id} has {len(vector.expected)}"


def _tensors(value: Any) -> Iterator[Any]:
    """Every tensor's message in a nested value."""
    if isinstance(value, dict):
        if "$tensor" in value:
            yield value
        else:
            for item in value.values():
                yield from _tensors(item)
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def unaccounted(lines: Sequence[Line], plan: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Cases that are missing, unknown, or there twice."""
    cases: set[str] = set()
    for case in (line["case"] for line in lines):
        if case in cases:
            yield f"{case}: observed twice"
        cases.add(case)
    for case in plan:
        if case not in cases:
            yield f"{case}: planned, and not observed"
    for case in sorted(cases - set(plan)):
        yield f"{case}: observed, and not planned"
    for case in sorted(set(plan) - set(names)):
        yield f"{case}: no case of this suite"
