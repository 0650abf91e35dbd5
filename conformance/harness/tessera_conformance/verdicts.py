"""From what happened in a case to its verdict, and from a verdict and the known deviations to its disposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tessera_conformance.check import CheckFailed, CheckRecord, OtherReading, Presumption, Unanswered, explain
from tessera_conformance.protocol import Fault, Hello, describe
from tessera_conformance.registry import Clause
from tessera_conformance.transports import Inapplicable, Lacking

Verdict = Literal[
    "pass", "fail", "crash", "hang", "protocol_error", "harness_error", "unsupported", "inapplicable", "not_run"
]
Disposition = Literal["none", "known_deviation", "waived", "unexpected_pass", "other_reading"]
Cause = Literal["", "document", "profile", "level", "feature", "presumption", "blocked", "question"]
Level = Literal["fast", "deterministic", "strict"]
Way = Literal["programs", "operations"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
BAD_VERDICTS: frozenset[str] = frozenset({"fail", "crash", "hang", "protocol_error", "harness_error", "not_run"})
LEVELS: tuple[Level, ...] = get_args(Level)
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""Why a case is unsupported or inapplicable; "" for every other verdict.

`document`, `profile` and `level` follow from the selection, `feature` from the claims. `presumption`: the machine lacks
what the case presumes. `blocked`: a construct that the case leans on fails its control case. `question`: the answer
would say nothing of this implementation.
"""
WAYS: tuple[Way, ...] = get_args(Way)
"""The ways to ask for arithmetic: in programs of the language, or operation by operation."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason in one sentence; the reason of a pass is empty.

    `interpretation` is the one of which the implementation follows a listed alternative, if it does.
    """

    verdict: Verdict
    reason: str = ""
    cause: Cause = ""
    interpretation: str = ""


def before_running(
    clauses: Sequence[Clause],
    features: Sequence[str],
    levels: Sequence[str],
    hello: Hello | Fault,
    profile: str,
    level: str,
) -> Judgement | None:
    """Why a case is not run at all, or None where it is to run.

    A case is inapplicable where the implementation does not claim the documents of its clauses, where the profile
    leaves it out, or where it judges another numerics level. It is unsupported where a feature that is not core, of a
    clause or of the case itself, is not claimed.
    """
    if isinstance(hello, Fault):
        return Judgement(hello.kind, hello.detail)
    if level not in levels:
        return Judgement("inapplicable", f"judges level {' or '.join(levels)}, this run is {level}", "level")
    if profile == "core" and all(clause.profile == "extended" for clause in clauses):
        return Judgement("inapplicable", "extended clauses, this run is profile core", "profile")
    unclaimed = sorted({clause.document for clause in clauses if clause.document not in hello.documents})
    if unclaimed:
        return Judgement("inapplicable", f"the implementation does not claim {', '.join(unclaimed)}", "document")
    needed = [clause.feature for clause in clauses] + list(features)
    missing = [feature for feature in needed if feature != "core" and not hello.has(feature)]
    if missing:
        return Judgement("unsupported", f"the implementation does not claim the feature {missing[0]}", "feature")
    return None


def after_running(
    error: BaseException | None, records: Sequence[CheckRecord], fault: Fault | None, unclaimed: str = ""
) -> Judgement:
    """The verdict of a case that ran.

    An unsupported answer is a failure, since what was asked is core or claimed; but where it is `unclaimed`, the
    feature of the method that gave it, the case is unsupported. A case whose presumption does not hold, or that asked
    what would say nothing of the implementation, is inapplicable, if nothing else was wrong.

    `fault` is the first one among its calls and the reset after it: no case passes over it, judged or not. Nor does a
    case pass that swallowed a failed check.
    """
    wrong = any(not record.passed and record.kind != "given" for record in records)
    match error:
        case OtherReading(interpretation=interpretation):
            return Judgement(fault.kind if fault else "fail", str(error), interpretation=interpretation)
        case CheckFailed():
            return Judgement("fail", str(error))
        case Presumption() if fault is None and not wrong:
            return Judgement("inapplicable", str(error), "presumption")
        case Inapplicable() if fault is None and not wrong:
            return Judgement("inapplicable", str(error), "question")
        case Lacking() if fault is None and not wrong:
            return Judgement("unsupported", str(error), "feature")
        case Unanswered(observation=Fault() as unanswered):
            return Judgement(unanswered.kind, unanswered.detail)
        case Unanswered() if unclaimed:
            return Judgement("unsupported", f"the implementation does not claim the feature {unclaimed}", "feature")
        case Unanswered(observation=observation):
            return Judgement("fail", f"claimed, but the implementation {describe(observation)}")
        case Inapplicable() | Lacking() | Presumption():
            pass
        case BaseException():
            return Judgement("harness_error", f"{type(error).__name__}: {error}")
        case None:
            pass
    if fault is not None:
        return Judgement(fault.kind, fault.detail)
    failed = next((record for record in records if not record.passed), None)
    if failed is not None:
        return Judgement("fail", explain(failed))
    if not records:
        return Judgement("harness_error", "the case made no checks, which is never a pass")
    return Judgement("pass")
