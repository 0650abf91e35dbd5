"""Submissions: a report with everything needed to read, check and repeat it; the command `bundle`."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

from tessera_conformance import __version__
from tessera_conformance.cases import SuiteNotCollected, clauses_directory, in_shard, parse_shard, vectors_directory
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.documents import NoDocument, read_json
from tessera_conformance.interface import feature_of
from tessera_conformance.plugin import CASE
from tessera_conformance.protocol import Fault, Hello, ProtocolViolation, describe, read_hello
from tessera_conformance.registry import Registry, RegistryError, load_registry
from tessera_conformance.registry.cases import CaseIndex, case_index
from tessera_conformance.registry.model import judged_by_checks
from tessera_conformance.report_plugin import PROCESS_DIED
from tessera_conformance.reports.claim import Blockers, Line
from tessera_conformance.reports.journal import (
    FILE_NAME,
    MOST_BYTES,
    MOST_HEADER,
    Report,
    UnreadableReport,
    content,
    read,
    report_in,
)
from tessera_conformance.reports.lines import plain
from tessera_conformance.reports.publish import deviations_toml
from tessera_conformance.selection import Choice, NothingChosen, beginnings
from tessera_conformance.session import Session
from tessera_conformance.submissions.replay import (
    FOREIGN_IMAGE,
    NotKept,
    Recomputation,
    Replay,
    Reported,
    against_counts,
    unaccounted,
)
from tessera_conformance.suite_run import Case, SuiteRun, planned_line
from tessera_conformance.terminal import error_text, print_error, print_problems, reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, DirectTransport, locate
from tessera_conformance.vectors import Vector
from tessera_conformance.vectors.files import digest
from tessera_conformance.verdicts import Deviations, MalformedDeviations

# A submission: a report with all that is needed to read it, check it and repeat it, in one folder, signed or not.
#
# statement.json     who claims what, in numbers
# report.jsonl       the report, as the run left it
# plan.txt           the cases of the run, one a line
# deviations.toml    the known deviations under which it ran
# environment.json   the machine and the versions of what ran
# locks/             the clauses and the golden vectors that were judged by, by digest
# REPEAT.md          how to run it again
# MANIFEST.json      the SHA-256 of every other file
# SIGNATURE.json     if it is signed, an Ed25519 signature of the manifest


UTF_8 = ("utf-8", "backslashreplace")
"""The encoding of foreign texts, which may contain half of a surrogate pair."""
MANIFEST = "MANIFEST.json"
CLAUSES_LOCK, VECTORS_LOCK = "locks/clauses.lock", "locks/vectors.json"
FILES = (
    *("statement.json", FILE_NAME, "plan.txt", "deviations.toml", "environment.json"),
    *(CLAUSES_LOCK, VECTORS_LOCK, "REPEAT.md", MANIFEST),
)
"""Every file of a submission."""
PACKAGES = ("tessera-conformance", "numpy", "lark", "mpmath", "gmpy2", "jsonschema", "pytest", "hypothesis")


def contents(report: Report, implementation: str) -> dict[str, bytes]:
    """Return the files of a submission but its manifest, by path."""
    return {
        FILE_NAME: content(report.path),
        **locks(),
        **made_from(report),
        "environment.json": _json(_environment()).encode(),
        "REPEAT.md": _repeat(report, implementation).encode(*UTF_8),
    }


def locks() -> dict[str, bytes]:
    """Return the files that identify the clauses and vectors of the judgement."""
    return {
        CLAUSES_LOCK: (clauses_directory() / "clauses.lock").read_bytes(),
        VECTORS_LOCK: (vectors_directory() / "MANIFEST.json").read_bytes(),
    }


def made_from(report: Report) -> dict[str, bytes]:
    """Return the files that follow from the report alone. Raises `MalformedDeviations`."""
    deviations = Deviations.of(report.header["selection"]["deviations"], report.path).entries
    texts = {
        "statement.json": _json(statement(report)),
        "plan.txt": "".join(f"{case}\n" for case in report.plan["cases"]),
        "deviations.toml": deviations_toml(deviations, "The known deviations of the run."),
    }
    return {path: text.encode(*UTF_8) for path, text in texts.items()}


def write(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files and their manifest. Raises `OSError`."""
    for path, data in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    (directory / MANIFEST).write_text(_json({path: digest(files[path]) for path in sorted(files)}), encoding="utf-8")


def statement(report: Report) -> dict[str, Any]:
    """Return the claim and the claimant: all of it follows from the report."""
    states = report.hello.get("capabilities", {})
    selection = {name: value for name, value in report.header["selection"].items() if name != "deviations"}
    return {
        "harness": report.header["harness"],
        "implementation": report.hello.get("implementation"),
        "documents": report.hello.get("documents", []),
        "features": sorted(name for name, state in states.items() if state != "unsupported"),
        "selection": selection,
        "claim": report.claim,
        "cases": len(report.plan["cases"]),
        "verdicts": dict(sorted(Counter(line["verdict"] for line in report.observations).items())),
        "dispositions": dict(sorted(Counter(line["disposition"] for line in report.observations).items())),
        "report": digest(content(report.path)),
    }


def _environment() -> dict[str, Any]:
    versions = {name: __version__ if name == "tessera-conformance" else "unknown" for name in PACKAGES}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    machine = {"system": platform.system(), "release": platform.release(), "machine": platform.machine()}
    return {**machine, "python": platform.python_version(), "packages": versions}


def _repeat(report: Report, implementation: str) -> str:
    chosen = report.header["selection"]
    options = {
        "impl": implementation,
        "profile": chosen["profile"],
        "level": chosen["level"],
        "deviations": "deviations.toml",
        "compiler": report.header["implementation"].get("compiler"),
        **{name: chosen.get(name) for name in ("via", "seed", "evidence", "shard", "today")},
    }
    usual = (None, 0, "programs", "digests")
    stated = [f"--{name}={value}" for name, value in options.items() if value not in usual]
    words = ["tessera-conformance", "run", *stated]
    part = "" if chosen["complete"] else "\nThe run left cases out: `plan.txt` names those that it had.\n"
    return f"""# How to repeat this run

With {report.header["harness"]}, in this folder:

```sh
{shlex.join(words)}
tessera-conformance compare report.jsonl report/report.jsonl
```
{part}
The report says the same whenever the implementation does; what differs between two runs is in it under `run`.
`tessera-conformance bundle verify .` checks this folder without the implementation.
"""


def _json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


# The optional Ed25519 signature of a submission, over its manifest; keys are PEM files, as openssl writes them.


SIGNATURE = "SIGNATURE.json"
_CONTEXT = b"tessera-conformance submission, version 1\0"
_LARGEST = 10_000


class NoKey(Exception):
    """The file holds no Ed25519 key, or no package that reads one is installed."""


def sign(directory: Path, key: Path) -> str:
    """Sign the manifest of a submission and return the public key. Raises `NoKey` and `OSError`."""
    private = _key(key, "load_pem_private_key", password=None)
    public = private.public_key().public_bytes_raw().hex()
    signature = private.sign(_CONTEXT + (directory / MANIFEST).read_bytes()).hex()
    text = json.dumps({"algorithm": "Ed25519", "public_key": public, "signature": signature}, indent=1)
    (directory / SIGNATURE).write_text(f"{text}\n", encoding="ascii")
    return str(public)


class Signature(NamedTuple):
    """The public key and the signature in hexadecimal digits, as a submission states them."""

    public: str
    signature: str


def read_signature(directory: Path) -> Signature | None:
    """Return the signature of a submission; None without a file of one, or if it is malformed."""
    path = directory / SIGNATURE
    try:
        document = read_json(path.read_bytes()) if path.is_file() and path.stat().st_size <= _LARGEST else {}
        return Signature(str(document["public_key"]), str(document["signature"]))
    except (OSError, NoDocument, KeyError, TypeError):
        return None


def signature_problems(directory: Path, stated: Signature | None, trusted: Path | None) -> Iterator[str]:
    """Yield the faults of a stated signature; with a trusted key, there must be one by it. Raises `NoKey`."""
    expected = _key(trusted, "load_pem_public_key").public_bytes_raw().hex() if trusted else None
    if stated is None:
        if expected or os.path.lexists(directory / SIGNATURE):
            yield f"{SIGNATURE}: no signature"
        return
    if expected not in (None, stated.public):
        yield f"{SIGNATURE}: signed by {stated.public:.64}, not by {expected}"
    ed25519, exceptions = _module("hazmat.primitives.asymmetric.ed25519"), _module("exceptions")
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(stated.public))
        key.verify(bytes.fromhex(stated.signature), _CONTEXT + (directory / MANIFEST).read_bytes())
    except (ValueError, OSError, exceptions.InvalidSignature):
        yield f"{SIGNATURE}: is none of {MANIFEST}"


def _key(path: Path, load: str, **arguments: Any) -> Any:
    ed25519 = _module("hazmat.primitives.asymmetric.ed25519")
    try:
        key = getattr(_module("hazmat.primitives.serialization"), load)(path.read_bytes(), **arguments)
    except (ValueError, TypeError) as error:
        raise NoKey(f"{path}: no Ed25519 key in PEM: {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey):
        raise NoKey(f"{path}: a key of another kind than Ed25519")
    return key


def _module(name: str) -> Any:
    try:
        return import_module(f"cryptography.{name}")
    except ImportError:
        what = "signatures need the package cryptography"
        raise NoKey(f"{what}: pip install 'tessera-conformance[signing]'") from None


# The check of a submission without the implementation: no file missing, unknown, repeated or altered, and every verdict
# recomputed.
#
# The author of a submission can make its digests anew, so that these show accidents only. An edit cannot change the
# suite: its cases with their clauses, its golden vectors, and the verdicts that follow from the observations.


NO_PROGRAMS = "--via=operations"
"""Words in the reason of a case that ran and says nothing about the implementation."""


def verify(
    directory: Path, report: Report, index: CaseIndex, suite: Mapping[str, pytest.Function], registry: Registry
) -> Recomputation:
    """Return all problems of a submission; `report` is its report.

    `index` has the cases of this suite, `suite` its tests by id: at least those that `cases_of` returns.
    """
    result = Recomputation()
    result.problems += _files(directory)
    if report.claim == "invalid":
        result.problems.append(f"{FILE_NAME}: {report.problem}")
    result.problems += _locks(directory, report, registry)
    follows = made_from(report).items()
    result.problems += (
        f"{path}: does not follow from the report" for path, data in follows if not _is(directory / path, data)
    )
    result.problems += unaccounted(report.observations, report.plan["cases"], index)
    result.problems += _selected(report, index, suite, registry)
    _recompute(report, suite, registry, result)
    return result


def cases_of(report: Report, index: CaseIndex, registry: Registry) -> set[str]:
    """Return the cases of the suite that a report has, or that its selection may require."""
    try:
        return {*report.plan["cases"]} & index.keys() | {*_candidates(report, index, registry)}
    except NothingChosen:
        return {*report.plan["cases"]} & index.keys()


def _candidates(report: Report, index: CaseIndex, registry: Registry) -> CaseIndex:
    """Return the cases of a selection before its expressions, which need the tests. Raises `NothingChosen`."""
    selection = report.header["selection"]
    chosen = selection.get("chosen", {})
    choice = Choice(None, *(chosen.get(name, ()) for name in ("cases", "clauses", "features")))
    cases = choice.of(index, registry) if choice.narrows else index
    shard = parse_shard(selection["shard"]) if selection["shard"] else None
    paths = tuple(start for name in chosen.get("paths", ()) for start in beginnings(str(Path(name))))
    return {
        name: case
        for name, case in cases.items()
        if (shard is None or in_shard(name, shard)) and (not paths or case.node.startswith(paths))
    }


def _selected(
    report: Report, index: CaseIndex, suite: Mapping[str, pytest.Function], registry: Registry
) -> Iterator[str]:
    """Yield differences between the plan and the cases that the header's selection chooses."""
    chosen, plan = report.header["selection"].get("chosen", {}), {*report.plan["cases"]}
    try:
        expected = {*_candidates(report, index, registry)}
        if keyword := chosen.get("keyword"):
            matches = Expression.compile(keyword).evaluate
            expected = {case for case in expected if matches(KeywordMatcher.from_item(suite[case]))}
        if marks := chosen.get("markexpr"):
            matches = Expression.compile(marks).evaluate
            expected = {case for case in expected if matches(MarkMatcher.from_markers(suite[case].iter_markers()))}
    except (ValueError, SyntaxError, RecursionError, pytest.UsageError) as error:
        yield f"{FILE_NAME}: the selection chooses nothing: {error}"
        return
    if report.header["selection"]["complete"] and chosen.keys() - {"paths"}:
        yield f"{FILE_NAME}: claims the whole suite, and its selection narrows it"
    if "failed" in chosen:
        yield f"{FILE_NAME}: of the cases that failed in another report: run the suite without --failed"
        expected &= plan
    for case in sorted(expected - plan):
        yield f"{case}: chosen by the selection in the header, and not planned"
    for case in sorted(plan & index.keys() - expected):
        yield f"{case}: planned, and not chosen by the selection in the header"


def _files(directory: Path) -> Iterator[str]:
    """Yield files that are missing, that the manifest lacks, or that were changed."""
    there = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    yield from (f"{path}: missing" for path in sorted({*FILES} - there))
    yield from (f"{path}: no file of the submission" for path in sorted(there - {*FILES, SIGNATURE}))
    most = dict.fromkeys(FILES, MOST_BYTES) | {MANIFEST: MOST_HEADER}
    large = [path for path in sorted(there & {*FILES}) if (directory / path).stat().st_size > most[path]]
    if large:
        yield from (f"{path}: larger than any file of a submission" for path in large)
        return
    try:
        if MANIFEST not in there:
            raise NoDocument("no plain file")
        manifest = read_json((directory / MANIFEST).read_bytes())
        if not isinstance(manifest, dict):
            raise NoDocument(f"is {type(manifest).__name__}, expected an object of digests")
    except (OSError, NoDocument) as error:
        yield f"{MANIFEST}: cannot be read: {error}"
        return
    for path in sorted(({*FILES} & there) - {MANIFEST}):
        with (directory / path).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != manifest.pop(path, None):
            yield f"{path}: altered: its SHA-256 is not that of the manifest"
    yield from (f"{path}: in the manifest, and no file of the submission" for path in sorted(manifest))


def _locks(directory: Path, report: Report, registry: Registry) -> Iterator[str]:
    """Yield differences between the submission's clauses and vectors and those of this suite."""
    ours = locks()
    for path, data in ours.items():
        if not _is(directory / path, data):
            yield f"{path}: not that of this suite: verify with the version that made the report"
    if report.header["harness"] != f"tessera-conformance {__version__}":
        yield f"{FILE_NAME}: claims to be of {report.header['harness']}; this is tessera-conformance {__version__}"
    expected = {"clauses": len(registry.clauses), "sha256": digest(ours[CLAUSES_LOCK])}
    if report.header["registry"] != expected:
        yield f"{FILE_NAME}: was made with another registry of clauses"


def _is(path: Path, data: bytes) -> bool:
    """True if a file has exactly these bytes; no more than these are read."""
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def _recompute(report: Report, suite: Mapping[str, pytest.Function], registry: Registry, result: Recomputation) -> None:
    header, selection = report.header, report.header["selection"]
    deviations = Deviations.of(selection["deviations"], report.path)
    run = SuiteRun(
        DirectTransport(Reported, "report"),
        registry,
        profile=selection["profile"],
        level=selection["level"],
        via=selection.get("via", "programs"),
        seed=selection.get("seed", 0),
        deviations=deviations,
    )
    run.hello = _hello(header)  # the implementation is not called again
    rules = [name for name, expected in run.rules().items() if report.plan.get(name, {}) != expected]
    not_those = "are not those of the registry for what is claimed"
    result.problems += (f"{FILE_NAME}: the plan's {name} {not_those}" for name in rules)
    result.problems += _unreported(report, run)
    blockers = Blockers(report.observations)
    replay = Replay(run, blockers, selection.get("evidence", "all"))
    for line in report.observations:
        item = suite.get(line["case"])
        if item is None:
            continue  # already reported
        case: Case = item.stash[CASE]
        wrong = _labels(line, case, deviations, selection)
        before = run.judge_before(case)
        if _is_lost(line):
            result.unverified += 1  # each of them counts against the claim
        elif before is not None:
            result.by_claims += 1
            if (line["verdict"], line["reason"], line["cause"]) != (before.verdict, before.reason, before.cause):
                by_claims = f"by the claims and the selection it is {before.verdict}"
                wrong.append(f"the verdict is {line['verdict']}, {by_claims}")
        else:
            try:
                problem = replay.problem(item, line)
                result.replayed += 1
                wrong += [problem] if problem else []
            except NotKept:
                result.digests += 1
                vector = _vector(item)
                if "evidence" in line:
                    wrong += against_counts(line, vector if selection["level"] == "strict" else None)
                elif line["verdict"] in ("unsupported", "inapplicable"):
                    excused = _excused(line, header, vector is not None, blockers)
                    wrong += [] if excused else [f"the verdict is {line['verdict']}, which nothing shows"]
        result.problems += (f"{line['case']}: {mismatch}" for mismatch in wrong)


def _is_lost(line: Line) -> bool:
    """True if a line has a verdict that counts against the claim, without evidence about the case."""
    died = line["verdict"] == "crash" and line["reason"] == PROCESS_DIED
    return died or line["verdict"] in ("not_run", "harness_error")


def _labels(line: Line, case: Case, deviations: Deviations, selection: Line) -> list[str]:
    """Return wrong statements of a line about its case, by this suite or by the deviations."""
    wrong = []
    if line["verdict"] == "harness_error" or not _is_lost(line):
        strange = [name for name, value in planned_line(case).items() if line[name] != plain(value)]
        wrong += [f"has another {name} than in this suite" for name in strange]
    kinds = line["evidence"]["checks"] if "evidence" in line else [check["kind"] for check in line["checks"]]
    judged = list(case.judges or judged_by_checks(kinds))
    if line["verdict"] == "pass" and "left_out" not in line and line.get("judges") != judged:
        wrong.append(f"claims to have judged {line.get('judges')}, and has not")
    evidence = "digests" if "evidence" in line else "all"
    if line["verdict"] == "pass" and line["disposition"] == "none" and evidence != selection.get("evidence", "all"):
        wrong.append(f"keeps its evidence as {evidence}, and the header says otherwise")
    disposition: str = "other_reading" if line["interpretation"] else ""
    disposition = disposition or deviations.disposition(line["case"], case.clause_ids, line["verdict"])[0]
    if disposition != line["disposition"]:
        wrong.append(f"the disposition is {line['disposition']}, by the deviations it is {disposition}")
    return wrong


def _unreported(report: Report, run: SuiteRun) -> Iterator[str]:
    """Yield problems of the run that its footer omits."""
    selection = report.header["selection"]
    try:
        run.today = date.fromisoformat(selection["today"] or str(report.header["run"].get("started"))[:10])
    except ValueError:
        yield f"{FILE_NAME}: says nowhere on which day the run was"
    problems_reported = (report.footer or {}).get("problems", ())
    problems = run.problems()
    if not report.is_part:
        problems += run.deviations.unmatched([(line["case"], line["clauses"]) for line in report.observations])
    omitted = (problem for problem in problems if problem not in problems_reported)
    yield from (f"{FILE_NAME}: the footer leaves out: {problem}" for problem in omitted)


def _excused(line: Mapping[str, Any], header: Mapping[str, Any], is_vector: bool, blockers: Blockers) -> bool:
    """True if the evidence of a case allows that it is unsupported or inapplicable.

    A failed case blocks it, a presumption of it does not hold, or its method needs an unclaimed feature. Or it needs
    programs in a run by operations, or a foreign image.
    """
    verdict, cause, exchanges = line["verdict"], line["cause"], line["exchanges"]
    if cause == "blocked":
        return blockers.of(line) is not None
    unmet = {check["kind"] for check in line["checks"] if not check["passed"]}
    if any("fault" in exchange["observation"] for exchange in exchanges):
        return False
    if cause == "presumption":
        return unmet == {"given"} and verdict == "inapplicable"
    by_operations = header["selection"].get("via") == "operations"
    if cause == "feature" and exchanges:
        feature = feature_of(exchanges[-1]["method"])
        states = (header["implementation"]["hello"] or {}).get("capabilities", {})
        unclaimed = bool(feature) and states.get(feature, "unsupported") == "unsupported"
        absent = by_operations and "unsupported" in exchanges[-1]["observation"]
        return not unmet and verdict == "unsupported" and (unclaimed or absent)
    needs_programs = by_operations and NO_PROGRAMS in line["reason"] and not is_vector
    by_compiler = header["implementation"].get("compiler") is not None and FOREIGN_IMAGE in line["reason"]
    return verdict == "inapplicable" and not unmet and (needs_programs or by_compiler)


def _hello(header: Mapping[str, Any]) -> Hello | Fault:
    implementation = header["implementation"]
    if implementation["hello"] is None:
        return Fault("crash", str(implementation["fault"]))
    try:
        return read_hello(implementation["hello"])
    except ProtocolViolation as violation:
        return Fault("protocol_error", str(violation))


def _vector(item: pytest.Function) -> Vector | None:
    vector = item.callspec.params.get("vector") if hasattr(item, "callspec") else None
    return vector if isinstance(vector, Vector) and item.stash[CASE].id.split("/golden/")[1:] else None


SHOWN = 40
VERIFY = "verify"


class CannotBundle(Exception):
    """No submission can be made; has the reason."""


class SubmissionProblem(Exception):
    """A submission is wrong."""


def configure_bundle(parser: argparse.ArgumentParser) -> None:
    """The command `bundle`."""
    parser.description = "Make the submission of a report, or check one: bundle REPORT ..., bundle verify SUBMISSION."
    parser.add_argument(
        "words", nargs="+", metavar="REPORT", help=f"{FILE_NAME} or its directory; or: verify SUBMISSION"
    )
    parser.add_argument("--impl", metavar="IMPL", help=f"what the report is about: {FORMS}")
    parser.add_argument("--output", type=Path, metavar="DIR", help="the folder of the submission, a new one")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign it with this Ed25519 key, a PEM file")
    parser.add_argument(
        "--signed-by", type=Path, metavar="KEY", help="verify: the public key by which it must be signed, a PEM file"
    )
    of_the_suite = (ImplementationUnavailable, SuiteNotCollected, RegistryError)
    foreseen = (CannotBundle, UnreadableReport, MalformedDeviations, NoKey, *of_the_suite)
    parser.set_defaults(handler=reporting_errors(bundle, *foreseen))


def bundle(arguments: argparse.Namespace) -> int:
    """Make or check a submission."""
    first, *rest = arguments.words
    if first == VERIFY and len(rest) == 1:
        return _verify(Path(rest[0]), arguments.signed_by)
    if rest or arguments.impl is None or arguments.output is None:
        raise CannotBundle("use bundle REPORT --impl=IMPL --output=DIR, or bundle verify SUBMISSION")
    return _make(Path(first), arguments.impl, arguments.output, arguments.sign)


def _make(path: Path, implementation: str, output: Path, key: Path | None) -> int:
    report = read(report_in(path))
    if report.claim == "invalid":
        raise CannotBundle(f"{report.path}: not a valid report: {report.problem}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CannotBundle(f"{output}: is there already: name a new folder")
    _require_same_hello(report, implementation)
    write(output, contents(report, implementation))
    if key is not None:
        print(f"{output}: signed; the public key is {sign(output, key)}")
    print(f"{output}: the submission, claim {report.claim}; now try: tessera-conformance bundle verify {output}")
    digests = sum("evidence" in line for line in report.observations)
    if digests:
        print(
            f"{digests} passes are in it as counts and digests, which cannot be judged again: "
            "for a submission that can be recomputed, run the suite with --evidence=all"
        )
    return 0


def _require_same_hello(report: Report, implementation: str) -> None:
    """Raise `CannotBundle` unless the implementation's Hello is that of the report."""
    session = Session(locate(implementation, report.header["implementation"].get("compiler")))
    try:
        hello = session.open()
        if isinstance(hello, Fault):
            raise CannotBundle(f"{implementation}: {describe(hello)}")
        hello_message = report.header["implementation"]["hello"]
        if plain(hello.message) != hello_message:
            raise CannotBundle(f"{implementation}: is not what the report is about: its Hello is another")
    finally:
        session.close()


def _verify(directory: Path, trusted: Path | None) -> int:
    """Return 0 if everything is in order, 1 if it is not, 2 without a report."""
    if (directory / FILE_NAME).exists() and not (directory / FILE_NAME).is_file():
        raise CannotBundle(f"{directory / FILE_NAME}: is no plain file")
    index, report, registry = case_index(), read(directory / FILE_NAME), load_registry(clauses_directory())
    files = {index[case].node.partition("::")[0]: None for case in sorted(cases_of(report, index, registry))}
    suite = {item.stash[CASE].id: item for item in CollectedSuite(files=list(files)).items} if files else {}
    outcome = verify(directory, report, index, suite, registry)
    signature = read_signature(directory)
    outcome.problems += signature_problems(directory, signature, trusted)
    print_problems(SubmissionProblem(problem) for problem in outcome.problems[:SHOWN])
    if len(outcome.problems) > SHOWN:
        print(f"and {len(outcome.problems) - SHOWN} more")
    by_others = f"{outcome.digests} by digest, {outcome.by_claims} by the claims, {outcome.unverified} not at all"
    counts = f"{outcome.replayed} cases verified by replay, {by_others}"
    if outcome.problems:
        print_error(error_text(str(directory), f"{len(outcome.problems)} problems", do=counts))
        return 1
    signed = f", signed by {signature.public}" if signature else ""
    by_digest = report.header["selection"].get("evidence") == "digests"
    hint = "; a run with --evidence=all keeps what they were judged by" if by_digest else ""
    print(f"{directory}: no problem{signed}; {counts}{hint}")
    return 0
