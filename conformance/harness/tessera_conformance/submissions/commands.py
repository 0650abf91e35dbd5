"""`tessera-conformance bundle`: the submission of a report; `bundle verify` checks one without the implementation."""

from __future__ import annotations

import argparse
from pathlib import Path

from tessera_conformance.cases import SuiteNotCollected, clauses_directory
from tessera_conformance.deviations import MalformedDeviations
from tessera_conformance.protocol import Fault, describe
from tessera_conformance.registry import RegistryError, load_registry
from tessera_conformance.reports.journal import FILE_NAME, Report, UnreadableReport, read, report_in
from tessera_conformance.reports.lines import plain
from tessera_conformance.session import Session
from tessera_conformance.submissions.signature import NoKey, read_signature, sign, signature_problems
from tessera_conformance.terminal import error_text, print_error, print_problems, reporting_errors
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import FORMS, locate

SHOWN = 40
VERIFY = "verify"


class CannotBundle(Exception):
    """No submission can be made; says why."""


class SubmissionProblem(Exception):
    """Something is wrong with a submission."""


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
    parser.set_defaults(
        handler=reporting_errors(
            bundle,
            CannotBundle,
            UnreadableReport,
            ImplementationUnavailable,
            SuiteNotCollected,
            RegistryError,
            MalformedDeviations,
            NoKey,
        )
    )


def bundle(arguments: argparse.Namespace) -> int:
    """Make or check a submission."""
    first, *rest = arguments.words
    if first == VERIFY and len(rest) == 1:
        return _verify(Path(rest[0]), arguments.signed_by)
    if rest or arguments.impl is None or arguments.output is None:
        raise CannotBundle("use bundle REPORT --impl=IMPL --output=DIR, or bundle verify SUBMISSION")
    return _make(Path(first), arguments.impl, arguments.output, arguments.sign)


def _make(path: Path, implementation: str, output: Path, key: Path | None) -> int:
    from tessera_conformance.submissions.contents import contents, write

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
    """The implementation that is named answers as the one of the report did."""
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
    """0 where everything follows, 1 where something does not, 2 where there is no report."""
    from tessera_conformance.collection import CollectedSuite
    from tessera_conformance.plugin import CASE
    from tessera_conformance.registry.case_index import case_index
    from tessera_conformance.submissions.verify import cases_of, verify

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
    counts = (
        f"{outcome.replayed} cases verified by replay, {outcome.digests} by digest, {outcome.by_claims} by the claims, "
        f"{outcome.unverified} not at all"
    )
    if outcome.problems:
        print_error(error_text(str(directory), f"{len(outcome.problems)} problems", do=counts))
        return 1
    signed = f", signed by {signature.public}" if signature else ""
    hint = (
        "; a run with --evidence=all keeps what they were judged by"
        if report.header["selection"].get("evidence") == "digests"
        else ""
    )
    print(f"{directory}: no problem{signed}; {counts}{hint}")
    return 0
