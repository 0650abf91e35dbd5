"""One run of the suite against one implementation: the selection, the implementation, and the verdict of each case."""

from __future__ import annotations

import datetime
import hashlib
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tessera_conformance import __version__
from tessera_conformance.cases import clauses_directory
from tessera_conformance.check import Check, CheckFailed, CheckRecord, OtherReading, Unanswered
from tessera_conformance.interface import feature_of, interface
from tessera_conformance.protocol import Arithmetic, Fault, Hello, Returned
from tessera_conformance.registry import Clause, Registry
from tessera_conformance.registry.model import judged_by_checks
from tessera_conformance.reports.claim import controls, judged_exchange
from tessera_conformance.reports.lines import ObservedLine, digests, ends_of, observed_line, plain, traits
from tessera_conformance.session import Exchange, Session
from tessera_conformance.terminal import meant
from tessera_conformance.transports import Transport
from tessera_conformance.verdicts import FAULTY, Deviations, Judgement, after_running, before_running

OF_FUNCTIONS = re.compile(r"\bulp\b|\bunits in the last place\b|\btextbook adjoint\b")
"""Words in the names of checks whose bounds depend on the accuracy of elementary functions."""


@dataclass(slots=True)
class Case:
    """A test until it has a verdict."""

    id: str
    title: str
    clauses: Sequence[Clause]
    levels: Sequence[str]
    features: Sequence[str] = ()
    judges: Sequence[str] = ()
    """The effects that the test declares to judge; without a declaration, its checks show them."""
    check: Check = field(default_factory=Check)
    exchanges: list[Exchange] = field(default_factory=list)
    judgement: Judgement | None = None
    disposition: str = "none"
    leans: Sequence[str] = ()
    """The control cases of the constructs in the call on which it failed."""
    cites: Sequence[str] = ()
    """The interpretations that its test names."""
    seconds: float = 0.0
    folder: Path | None = None
    """The folder of its files, if it has any."""

    @property
    def clause_ids(self) -> list[str]:
        """The ids of the clauses it is tagged with."""
        return [clause.id for clause in self.clauses]

    @property
    def needs(self) -> list[str]:
        """The features, other than core, that must be claimed for it to run."""
        return sorted({*self.features, *(clause.feature for clause in self.clauses)} - {"core"})

    @property
    def judged(self) -> list[str]:
        """Return what it has judged: an effect, an acceptance, a refusal."""
        return list(self.judges or judged_by_checks(record.kind for record in self.check.records))


class SuiteRun:
    """The implementation, the selection and the deviations of a run; starts the implementation on demand."""

    def __init__(
        self,
        transport: Transport,
        registry: Registry,
        *,
        profile: str = "extended",
        level: str | None = None,
        deviations: Deviations | None = None,
        shard: tuple[int, int] | None = None,
        via: str = "programs",
        seed: int = 0,
        deadlines: tuple[float, float] = (60.0, 30.0),
        evidence: str = "digests",
        today: datetime.date | None = None,
        chosen: Mapping[str, Any] | None = None,
    ) -> None:
        self.registry = registry
        start_deadline, deadline = deadlines
        self.session = Session(transport, deadline, start_deadline)
        self.profile = profile
        self.deviations = deviations or Deviations()
        self.shard = shard
        self.via = via
        self.seed = seed
        self.evidence = evidence
        self.today = today or datetime.date.today()
        self._today_given = today is not None
        self._level = level
        self.chosen = chosen or {}
        self.broken_off = ""
        """The reason for which the run ended before its cases did, other than the implementation."""

    @cached_property
    def hello(self) -> Hello | Fault:
        """Return the Hello; a fault if the implementation does not start."""
        return self.session.open()

    @property
    def level(self) -> str:
        """The numerics level of the run: the requested one, else the one that the implementation claims."""
        if self._level is not None:
            return self._level
        return self.hello.level if isinstance(self.hello, Hello) else "strict"

    def judge_before(self, case: Case) -> Judgement | None:
        """Return the judgement of a case that does not run, or None if it runs."""
        return before_running(case.clauses, case.features, case.levels, self.hello, self.profile, self.level)

    @property
    def judges_words(self) -> bool:
        """True if the implementation claims that its messages name the fault."""
        return isinstance(self.hello, Hello) and self.hello.has("last-error")

    def judge_after(self, case: Case, error: BaseException | None) -> Judgement:
        """Return the verdict of a case that ran; take its exchanges and reset the implementation."""
        case.exchanges = list(self.session.exchanges)
        reset_fault = self.session.reset()
        if reset_fault is not None:
            case.exchanges.append(Exchange("session.reset", {}, reset_fault, 0.0))
        error = self._accuracy_reading(case, absent_member(case, error))
        faults = [entry.observation for entry in case.exchanges if isinstance(entry.observation, Fault)]
        fault = faults[0] if faults else reset_fault
        exchange, unclaimed = judged_exchange(case.exchanges, error), ""
        if isinstance(error, Unanswered) and exchange is not None and isinstance(self.hello, Hello):
            feature = feature_of(exchange.method, exchange.params)
            unclaimed = feature if feature and not self.hello.has(feature) else ""
        judgement = after_running(error, case.check.records, fault, unclaimed)
        if judgement.verdict in FAULTY and not judgement.interpretation:
            case.leans = controls(self.registry.constructs, case.id, case.exchanges, error)
        return judgement

    def _accuracy_reading(self, case: Case, error: BaseException | None) -> BaseException | None:
        """Return another reading if a function declared worse than four units differs (AMB-LANG-136)."""
        message = self.hello.message.get("arithmetic", {}) if isinstance(self.hello, Hello) else {}
        if not isinstance(error, CheckFailed) or not Arithmetic.of(message).has_loose_functions:
            return error
        record = case.check.records[-1]
        try:
            is_number = record.kind == "within" and record.actual != "not finite"
            hangs = is_number and OF_FUNCTIONS.search(record.what) is not None
            case.check.reading("AMB-LANG-136", "no bound", hangs)
        except OtherReading as reading:
            return reading
        return error

    def problems(self) -> list[str]:
        """Return the faults of the run itself: deviations that have expired, claims that are impossible."""
        strange = strange_claims(self.hello, self.registry) if isinstance(self.hello, Hello) else []
        broken_off = [f"the run was broken off: {self.broken_off}"] if self.broken_off else []
        return broken_off + self.deviations.expired(self.today) + strange

    def settle(self, case: Case, judgement: Judgement) -> str:
        """Give the case its verdict and disposition; return the reason of its deviation, if it has one."""
        case.judgement = judgement
        if judgement.interpretation:
            case.disposition = "other_reading"
            return judgement.reason
        case.disposition, reason = self.deviations.disposition(case.id, case.clause_ids, judgement.verdict)
        return reason

    def rules(self) -> dict[str, dict[str, Any]]:
        """Return the rules of the claimed documents that the plan of a report has, of three kinds by the ids.

        They are every testable MUST clause with its profile and what carries it, the document and the features of each
        named profile, and the rules for the cases of each product.
        """
        documents = {*self.hello.documents} if isinstance(self.hello, Hello) else set()
        musts = {
            clause.id: {
                "document": clause.document,
                "profile": clause.profile,
                "by": self.registry.carried_by(clause),
                **({"as": clause.duplicate_of} if clause.duplicate_of else {}),
                **({"excused": clause.reason} if clause.reason else {}),
            }
            for clause in self.registry.clauses.values()
            if clause.active and clause.testable and clause.level == "MUST" and clause.document in documents
        }
        profiles = {
            row.id: {"document": row.document, "features": list(row.features)}
            for row in self.registry.profiles
            if not {row.document, *(self.registry.clauses[name].document for name in row.clauses)}.isdisjoint(documents)
        }
        lists = ("cases", "without", "features", "methods")
        products = {
            row.id: {**{name: list(getattr(row, name)) for name in lists}, "single_device": row.single_device}
            for row in self.registry.products
            if {*row.documents} <= documents
        }
        return {"musts": musts, "profiles": profiles, "products": products}

    def header(self, complete: bool) -> dict[str, Any]:
        """Return the report's header line."""
        lock = (clauses_directory() / "clauses.lock").read_bytes()
        hello = self.hello
        return {
            "harness": f"tessera-conformance {__version__}",
            "registry": {"clauses": len(self.registry.clauses), "sha256": hashlib.sha256(lock).hexdigest()},
            "implementation": {
                "label": self.session.label,
                **({"compiler": self.session.compiler} if self.session.compiler else {}),
                "hello": plain(hello.message) if isinstance(hello, Hello) else None,
                "fault": hello.detail if isinstance(hello, Fault) else None,
            },
            "selection": {
                "profile": self.profile,
                "level": self.level,
                "via": self.via,
                **({"seed": self.seed} if self.seed else {}),
                "shard": f"{self.shard[0]}/{self.shard[1]}" if self.shard else None,
                "complete": complete,
                "evidence": self.evidence,
                **({"chosen": plain(self.chosen)} if self.chosen else {}),
                "deadlines": {"start": self.session.start_deadline, "call": self.session.deadline},
                "today": self.today.isoformat() if self._today_given else None,
                "deviations": [
                    {**vars(entry), "expires": entry.expires.isoformat()} for entry in self.deviations.entries
                ],
            },
            "run": {
                "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "python": platform.python_version(),
                "platform": sys.platform,
                **({"stderr": hello.stderr} if isinstance(hello, Fault) and hello.stderr else {}),
            },
        }


def strange_claims(hello: Hello, registry: Registry) -> list[str]:
    """Return one sentence for each claim of an unknown feature."""
    features, remedy = registry.features, "`tessera-conformance clauses features` lists them"
    return [
        f"the implementation claims {name!r}, which is no feature{meant(name.replace('_', '-'), features)}; {remedy}"
        for name in hello.capabilities
        if name not in features
    ]


def planned_line(case: Case) -> dict[str, Any]:
    """Return the facts about a case before it runs; enough to report it if its process dies."""
    subject = {"case": case.id, "title": case.title, "clauses": case.clause_ids}
    return {**subject, "levels": list(case.levels), "needs": case.needs}


def observation(case: Case, evidence: str = "all") -> ObservedLine:
    """Return the report's line for a case with a verdict; for a plain pass, with the kept evidence."""
    judgement = case.judgement or Judgement("harness_error", "the case ended without a verdict")
    checks, exchanges = case.check.records, case.exchanges
    if judgement.verdict == "pass" and evidence == "digests":
        checks, exchanges = list(ends_of(checks)), list(ends_of(exchanges))
    left_out = {"checks": len(case.check.records) - len(checks), "exchanges": len(case.exchanges) - len(exchanges)}
    kept = traits(case.exchanges) if judgement.verdict in {"pass", *FAULTY} else []
    head = {
        **planned_line(case),
        "judges": case.judged,
        "verdict": judgement.verdict,
        "disposition": case.disposition,
        "reason": judgement.reason,
        "cause": judgement.cause,
        "interpretation": judgement.interpretation,
        "leans": list(case.leans),
        "cites": list(case.cites) if judgement.verdict in FAULTY else [],
        "methods": sorted({exchange.method for exchange in case.exchanges} - {"session.reset"}),
        "traits": digests(kept) if judgement.verdict == "pass" else kept,
    }
    figures = [{"plot": figure.plot, "line": figure.line, **figure.values} for figure in case.check.figures]
    run = {"seconds": round(case.seconds, 6), **({"figures": figures} if figures else {})}
    tail = {**({"left_out": left_out} if any(left_out.values()) else {}), "run": run}
    digest = evidence == "digests" and judgement.verdict == "pass" and case.disposition == "none"
    return observed_line(head, checks, exchanges, tail, case.folder, digest=digest, whole=evidence == "all")


def absent_member(case: Case, error: BaseException | None) -> BaseException | None:
    """Return a failed check if a case read a member of an answer that the protocol lets implementations omit."""
    if not isinstance(error, KeyError) or not error.args:
        return error
    for exchange in reversed(case.exchanges):
        method, answer = interface().methods.get(exchange.method), exchange.observation
        optional = [output.name for output in method.outputs if output.optional] if method else []
        if isinstance(answer, Returned) and error.args[0] in optional and error.args[0] not in answer.value:
            what = f"the answer of {exchange.method} has the member {error.args[0]}"
            record = CheckRecord("true", False, what, True, f"the members {', '.join(answer.value)}")
            case.check.records.append(record)
            return CheckFailed(record, answer)
    return error
