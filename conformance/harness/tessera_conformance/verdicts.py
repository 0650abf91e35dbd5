"""From what happened in a case to its verdict, and from a verdict and the known deviations to its disposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tessera_conformance.check import CheckFailed, CheckRecord, Unanswered, explain
from tessera_conformance.observations import Fault, describe
from tessera_conformance.protocol import Hello
from tessera_conformance.registry import Clause
from tessera_conformance.transports import Inapplicable

Verdict = Literal[
    "pass", "fail", "crash", "hang", "protocol_error", "harness_error", "unsupported", "inapplicable", "not_run"
]
Disposition = Literal["none", "known_deviation", "waived", "unexpected_pass"]
Level = Literal["fast", "deterministic", "strict"]
Door = Literal["programs", "operations"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
BAD_VERDICTS: frozenset[str] = frozenset({"fail", "crash", "hang", "protocol_error", "harness_error", "not_run"})
LEVELS: tuple[Level, ...] = get_args(Level)
DOORS: tuple[Door, ...] = get_args(Door)
"""How arithmetic is asked for: in programs of the language, or operation by operation."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason in one sentence; the reason of a pass is empty."""

    verdict: Verdict
    reason: str = ""


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
        return Judgement("inapplicable", f"judges level {' or '.join(levels)}, this run is {level}")
    if profile == "core" and all(clause.profile == "extended" for clause in clauses):
        return Judgement("inapplicable", "extended clauses, this run is profile core")
    unclaimed = sorted({clause.document for clause in clauses if clause.document not in hello.documents})
    if unclaimed:
        return Judgement("inapplicable", f"the implementation does not claim {', '.join(unclaimed)}")
    needed = [clause.feature for clause in clauses] + list(features)
    missing = [feature for feature in needed if feature != "core" and not hello.has(feature)]
    if missing:
        return Judgement("unsupported", f"the implementation does not claim the feature {missing[0]}")
    return None


def after_running(error: BaseException | None, records: Sequence[CheckRecord], fault: Fault | None) -> Judgement:
    """The verdict of a case that ran; whatever it ran was claimed, so an unsupported answer is a failure.

    A case that asked what would say nothing of the implementation is inapplicable, if nothing else was wrong.

    `fault` is the first one among its calls and the reset after it: no case passes over it, judged or not. Nor does a
    case pass that swallowed a failed check.
    """
    match error:
        case CheckFailed():
            return Judgement("fail", str(error))
        case Inapplicable() if fault is None and all(record.passed for record in records):
            return Judgement("inapplicable", str(error))
        case Unanswered(observation=Fault() as unanswered):
            return Judgement(unanswered.kind, unanswered.detail)
        case Unanswered(observation=observation):
            return Judgement("fail", f"claimed, but the implementation {describe(observation)}")
        case Inapplicable():
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
