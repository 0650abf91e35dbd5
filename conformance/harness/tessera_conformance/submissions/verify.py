"""Checks a submission without the implementation: nothing missing, unknown, twice or altered, every verdict recomputed.

Whoever makes a submission can make its digests anew, so that these show accidents only. What an edit cannot escape is
the suite: its cases with their clauses, its golden vectors, and the verdicts that follow from what was observed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance import __version__
from tessera_conformance.deviations import Deviations
from tessera_conformance.documents import NoDocument, read_json
from tessera_conformance.interface import feature_of
from tessera_conformance.observations import Fault
from tessera_conformance.plugin import CASE
from tessera_conformance.protocol import Hello, ProtocolViolation, read_hello
from tessera_conformance.registry import Registry
from tessera_conformance.registry.model import judged_by_checks
from tessera_conformance.reports.claim import Blockers
from tessera_conformance.reports.journal import FILE_NAME, MOST_BYTES, Report
from tessera_conformance.submissions.contents import CLAUSES_LOCK, FILES, MANIFEST, digest, locks, made_from
from tessera_conformance.submissions.recompute import Recomputation, unaccounted
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.transports.direct import DirectTransport
from tessera_conformance.vectors import Vector
from tessera_conformance.verdicts import before_running

NO_PROGRAMS = "--via=operations"
FOREIGN_IMAGE = "the reference's compiler"
"""Words in the reason of a case that ran and says nothing of the implementation."""


def verify(
    directory: Path, report: Report, cases: Collection[str], suite: Mapping[str, pytest.Function], registry: Registry
) -> Recomputation:
    """Everything that is wrong with a submission, of which `report` is the report as it was read.

    `cases` are the ids of this suite, `suite` its tests by id: those, at least, that the submission tells of.
    """
    found = Recomputation()
    found.problems += _files(directory)
    if report.claim == "invalid":
        found.problems.append(f"{FILE_NAME}: {report.problem}")
    found.problems += _locks(directory, report, registry)
    found.problems += _made_from(directory, report)
    selection = report.header["selection"]
    complete = selection["complete"] and selection["shard"] is None
    found.problems += unaccounted(report.observations, report.plan["cases"], cases, complete)
    _recompute(report, suite, registry, found)
    return found


def _files(directory: Path) -> Iterator[str]:
    """Files that are missing, that the manifest does not know, or that are not what they were."""
    there = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    yield from (f"{path}: missing" for path in sorted({*FILES} - there))
    yield from (f"{path}: no file of the submission" for path in sorted(there - {*FILES}))
    large = [path for path in sorted(there & {*FILES}) if (directory / path).stat().st_size > MOST_BYTES]
    if large:
        yield from (f"{path}: larger than any file of a submission" for path in large)
        return
    try:
        told = read_json((directory / MANIFEST).read_bytes())
        if not isinstance(told, dict):
            raise NoDocument(f"is {type(told).__name__}, expected an object of digests")
    except (OSError, NoDocument) as error:
        yield f"{MANIFEST}: cannot be read: {error}"
        return
    for path in sorted(({*FILES} & there) - {MANIFEST}):
        with (directory / path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != told.pop(path, None):
            yield f"{path}: altered: its SHA-256 is not that of the manifest"
    yield from (f"{path}: in the manifest, and no file of the submission" for path in sorted(told))


def _locks(directory: Path, report: Report, registry: Registry) -> Iterator[str]:
    """Yield differences between the submission's clauses and vectors and those of this suite."""
    ours = locks()
    for path, data in ours.items():
        if not _is(directory / path, data):
            yield f"{path}: not that of this suite: verify with the version that made the report"
    if report.header["harness"] != f"tessera-conformance {__version__}":
        yield f"{FILE_NAME}: is told to be of {report.header['harness']}; this is tessera-conformance {__version__}"
    told = {"clauses": len(registry.clauses), "sha256": digest(ours[CLAUSES_LOCK])}
    if report.header["registry"] != told:
        yield f"{FILE_NAME}: was made with another registry of clauses"


def _made_from(directory: Path, report: Report) -> Iterator[str]:
    """Yield files made from the report that no longer agree with it."""
    for path, data in made_from(report).items():
        if not _is(directory / path, data):
            yield f"{path}: does not follow from the report"


def _is(path: Path, data: bytes) -> bool:
    """True if a file has exactly these bytes, of which no more are read than there are."""
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def _recompute(report: Report, suite: Mapping[str, pytest.Function], registry: Registry, found: Recomputation) -> None:
    header, selection = report.header, report.header["selection"]
    hello = _hello(header)
    found.problems += _plan(report, registry, hello)
    deviations = Deviations.of(selection["deviations"], report.path)
    blockers = Blockers(report.observations)
    for line in report.observations:
        item = suite.get(line["case"])
        if item is None:
            continue  # told already
        case: Case = item.stash[CASE]
        if line["verdict"] != "not_run" and (line["clauses"] != case.clause_ids or line["levels"] != [*case.levels]):
            found.problems.append(f"{line['case']}: has other clauses or levels than in this suite")
        if line["verdict"] == "pass" and "left_out" not in line and line.get("judges") != _judged(case, line):
            found.problems.append(f"{line['case']}: is told to have judged {line.get('judges')}, and has not")
        if "evidence" in line and selection.get("evidence") != "digests":
            found.problems.append(f"{line['case']}: has no checks, though the run is told to have kept all evidence")
        disposition: str = "other_reading" if line["interpretation"] else ""
        disposition = disposition or deviations.disposition(line["case"], case.clause_ids, line["verdict"])[0]
        if disposition != line["disposition"]:
            found.problems.append(
                f"{line['case']}: the disposition is {line['disposition']}, by the deviations it is {disposition}"
            )
        before = before_running(
            case.clauses, case.features, case.levels, hello, selection["profile"], selection["level"]
        )
        if before is not None or line["verdict"] in ("unsupported", "inapplicable"):
            expected = before.verdict if before else None
            told_by_run = _excused(line, header, _vector(item) is not None, blockers)
            if line["verdict"] not in (expected, "not_run") and not (expected is None and told_by_run):
                found.problems.append(
                    f"{line['case']}: the verdict is {line['verdict']}, by the claims and the selection it is "
                    f"{expected or 'that of a case that ran'}"
                )
        elif line["verdict"] != "not_run":
            found.judge(line, _vector(item), selection["level"])


def _judged(case: Case, line: Mapping[str, Any]) -> list[str]:
    """Return the effects that a case has judged, by its test or its checks."""
    kinds = line["evidence"]["checks"] if "evidence" in line else [check["kind"] for check in line["checks"]]
    return list(case.judges or judged_by_checks(kinds))


class _Reported:
    """Stands for the implementation of a report, which is not there."""

    def hello(self) -> Mapping[str, Any]:
        """Nothing: the report has its Hello."""
        return {}


def _plan(report: Report, registry: Registry, hello: Hello | Fault) -> Iterator[str]:
    """Yield clauses and profiles of the plan that are not those of the registry for these claims."""
    run = SuiteRun(DirectTransport(_Reported, "report"), registry)
    run.hello = hello  # nobody is asked again
    for name, expected in (("musts", run.musts()), ("profiles", run.profiles()), ("products", run.products())):
        if report.plan.get(name, {}) != expected:
            yield f"{FILE_NAME}: the plan's {name} are not those of the registry for what is claimed"


def _excused(line: Mapping[str, Any], header: Mapping[str, Any], is_vector: bool, blockers: Blockers) -> bool:
    """True if what a case did allows that it is unsupported or inapplicable.

    It is blocked by a case that failed, something that it presumes does not hold, the method that it asked needs a
    feature that is not claimed, or it asked for a program by operations or for a foreign image.
    """
    if line["cause"] == "blocked":
        return blockers.of(line) is not None
    unmet = {check["kind"] for check in line["checks"] if not check["passed"]}
    if any("fault" in exchange["observation"] for exchange in line["exchanges"]):
        return False
    if line["cause"] == "presumption":
        return unmet == {"given"} and line["verdict"] == "inapplicable"
    clean = not unmet
    if line["cause"] == "feature" and line["exchanges"]:
        feature = feature_of(line["exchanges"][-1]["method"])
        states = (header["implementation"]["hello"] or {}).get("capabilities", {})
        claimed = states.get(feature, "unsupported") != "unsupported"
        absent = (
            header["selection"].get("via") == "operations" and "unsupported" in line["exchanges"][-1]["observation"]
        )
        return clean and line["verdict"] == "unsupported" and ((bool(feature) and not claimed) or absent)
    by_operations = header["selection"].get("via") == "operations" and NO_PROGRAMS in line["reason"] and not is_vector
    by_compiler = header["implementation"].get("compiler") is not None and FOREIGN_IMAGE in line["reason"]
    return line["verdict"] == "inapplicable" and clean and (by_operations or by_compiler)


def _hello(header: Mapping[str, Any]) -> Hello | Fault:
    told = header["implementation"]
    if told["hello"] is None:
        return Fault("crash", str(told["fault"]))
    try:
        return read_hello(told["hello"])
    except ProtocolViolation as violation:
        return Fault("protocol_error", str(violation))


def _vector(item: pytest.Function) -> Vector | None:
    vector = item.callspec.params.get("vector") if hasattr(item, "callspec") else None
    return vector if isinstance(vector, Vector) and item.stash[CASE].id.split("/golden/")[1:] else None
