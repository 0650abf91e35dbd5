"""`tessera-conformance smoke`: a question of each kind that an implementation claims, and if its answer is right."""

from __future__ import annotations

import argparse

from tessera_conformance.check import Check, Unanswered
from tessera_conformance.locations import clauses_directory
from tessera_conformance.observations import Fault, Unsupported, describe
from tessera_conformance.registry import RegistryError, load_registry
from tessera_conformance.session import Implementation, Session
from tessera_conformance.smoke.questions import Question, questions
from tessera_conformance.suite_run import strange_claims
from tessera_conformance.terminal.errors import error_text, print_error, reporting_errors
from tessera_conformance.terminal.text import quoted_tail, visible
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, FORMS, door_of, locate
from tessera_conformance.verdicts import DOORS, after_running

SOUND, UNSOUND, UNUSABLE = 0, 1, 2
NAME_WIDTH = 22


def configure_smoke(parser: argparse.ArgumentParser) -> None:
    """The command `smoke`."""
    parser.add_argument("implementation", nargs="?", metavar="IMPL", help=FORMS)
    parser.add_argument("--impl", metavar="IMPL", help="the same, as the other commands take it")
    parser.add_argument(
        "--door", choices=DOORS, default="programs", help="as of the run: by operations asks no program"
    )
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="for each call")
    parser.set_defaults(handler=reporting_errors(smoke, ImplementationUnavailable, RegistryError))


def smoke(arguments: argparse.Namespace) -> int:
    """0 where no answer is wrong; 1 where one is, or breaks the protocol, or a claim is no feature; 2 without answers.

    What is not supported is no wrong answer here; where it was claimed, a run counts it as a failure, and this says so.
    """
    named = [each for each in (arguments.implementation, arguments.impl) if each]
    if len(named) != 1:
        print_error(error_text("smoke", f"{len(named)} implementations are named", f"one, --impl and one of {FORMS}"))
        return UNUSABLE
    session = Session(locate(named[0], arguments.compiler), arguments.deadline, arguments.deadline)
    try:
        return _smoke(session, door_of(named[0], arguments.door))
    finally:
        session.close()


def _smoke(session: Session, door: str) -> int:
    hello = session.open()
    if isinstance(hello, Fault):
        _print("session.open", describe(hello), hello)
        return UNSOUND
    _print("session.open", f"{hello.name} {hello.version}, claims {', '.join(hello.documents) or 'no document'}")
    strange = strange_claims(hello, load_registry(clauses_directory()))
    for sentence in strange:
        _print("session.open", f"wrong: {sentence}")
    asked = questions(hello, door)
    if not asked:
        print("nothing was asked, since nothing is claimed: name `documents` and `capabilities` in the Hello")
    implementation = Implementation(session, hello.level, door)
    sound = [_ask(session, implementation, question) for question in asked]
    return SOUND if sound and all(sound) and not strange else UNSOUND


def _ask(session: Session, implementation: Implementation, question: Question) -> bool:
    """Ask one question and say what came of it; whether it is no wrong answer."""
    check, error = Check(), None
    try:
        question.ask(implementation, check)
    except Exception as raised:
        error = raised
    reset = session.reset()
    if isinstance(error, Unanswered) and isinstance(error.observation, Unsupported) and reset is None:
        claim = f"the core of {question.document}" if question.feature == "core" else f"the feature {question.feature}"
        _print(question.method, f"{describe(error.observation)}: {claim} is claimed, so that a run counts a failure")
        return True
    judgement = after_running(error, check.records, reset)
    fault = error.observation if isinstance(error, Unanswered) else reset
    word = {"pass": "right", "fail": "wrong"}.get(judgement.verdict) or judgement.verdict.replace("_", " ")
    _print(question.method, ": ".join(filter(None, [f"{word}, {question.what}", judgement.reason])), fault)
    return judgement.verdict == "pass"


def _print(method: str, what: str, observation: object = None) -> None:
    print(f"{method:{NAME_WIDTH}} {what}")
    if isinstance(observation, Fault) and observation.stderr.strip():
        print(visible("\n".join(quoted_tail(observation.stderr, f"{'':{NAME_WIDTH}} "))))
