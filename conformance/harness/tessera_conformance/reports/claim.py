"""The claim that follows from the lines of a report: outcomes of clauses, blocked cases, and silent implementations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from tessera_conformance.check import CheckFailed, Unanswered
from tessera_conformance.protocol import Returned
from tessera_conformance.registry import Construct
from tessera_conformance.registry.model import carries
from tessera_conformance.session import Exchange
from tessera_conformance.verdicts import BAD_VERDICTS, FAULTY, LEVELS

# Blocked cases: a case that fails on a construct that does not work at all says nothing about its own clause.
#
# `conformance/clauses/constructs.toml` names for each construct (a method, a feature of program texts) its control
# case: the plainest use of just that construct. If the control case fails in a run, the cases that fail on a call with
# that construct are inapplicable, "blocked by" the control case. Only the control case's clause then fails.
#
# A case that names an interpretation depends on it. If another case of the run shows that the implementation follows a
# listed alternative, it blocks the failing cases that name the interpretation.


Line = Mapping[str, Any]


def judged_exchange(exchanges: Sequence[Exchange], error: BaseException | None) -> Exchange | None:
    """Return the exchange whose answer ended the case; the last one if the error names none."""
    answer = error.observation if isinstance(error, CheckFailed | Unanswered) else None
    same = (exchange for exchange in reversed(exchanges) if exchange.observation is answer)
    return next(same, exchanges[-1] if exchanges else None)


COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//.*|/\*[\s\S]*?\*/')
"""A string, which stays as group 1, or a comment."""


def controls(
    constructs: Sequence[Construct], case: str, exchanges: Sequence[Exchange], error: BaseException | None
) -> list[str]:
    """Return the control cases of the constructs in the failed call, the simplest construct first.

    A control case depends only on constructs before its own, so that no two block each other.
    """
    exchange = judged_exchange(exchanges, error)
    if exchange is None or isinstance(exchange.observation, Returned):
        return []
    source = exchange.params.get("source")
    text = COMMENT.sub(r"\1 ", source) if isinstance(source, str) else ""
    names = []
    for construct in constructs:
        if construct.control == case:
            break
        used = text and construct.pattern and re.search(construct.pattern, text, re.MULTILINE)
        if exchange.method in construct.methods or used:
            names.append(construct.control)
    return names


class Blockers:
    """The cases of a run that can block others."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._failed: set[str] = set()
        self._shown: dict[str, str] = {}
        for line in lines:
            if line["verdict"] in BAD_VERDICTS or line.get("cause") == "blocked":
                self._failed.add(line["case"])
            if line["disposition"] == "other_reading":
                self._shown.setdefault(line["interpretation"], line["case"])

    def of(self, line: Line) -> str | None:
        """Return the case that blocks this one by its failure or by the other reading it showed; None without one."""
        failed = (name for name in line.get("leans", ()) if name in self._failed)
        shown = (self._shown[name] for name in line.get("cites", ()) if name in self._shown)
        return next(failed, None) or next(shown, None)

    def settle(self, line: Line) -> Line:
        """Return the line of a case, changed to inapplicable if it is blocked."""
        control = self.of(line)
        if control is None or line["verdict"] not in FAULTY or line["disposition"] != "none":
            return line
        reason = f"blocked by {control}: {line['reason']}"
        return {**line, "verdict": "inapplicable", "cause": "blocked", "reason": reason}


def settled(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the observation lines of a run, with blocked cases as inapplicable."""
    return map(Blockers(lines).settle, lines)


# The outcome of each clause and the claim, derived from a report's lines alone.
#
# The plan of a report lists every testable MUST clause of the claimed documents with what carries it, so that the claim
# follows from the file. A clause passes only if a case that judges its main effect ran and passed and none that ran
# failed.


Outcome = Literal[
    "pass", "fail", "deviates", "other_reading", "unsupported", "inapplicable", "untested", "not_testable"
]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
JUDGED: tuple[Outcome, ...] = ("pass", "fail", "deviates", "other_reading")
"""The outcomes of a clause that this run has judged."""


def counts_against(observation: Line) -> bool:
    """True if an observation is a failure that no deviation accounts for, or an unexpected pass."""
    if observation["disposition"] == "unexpected_pass":
        return True
    return observation["verdict"] in BAD_VERDICTS and observation["disposition"] == "none"


def left_out_by_level(observation: Line, level: str) -> bool:
    """Return True if a run at this level leaves out a case that only stronger levels judge."""
    stronger = {*LEVELS[LEVELS.index(level) + 1 :]} if level in LEVELS else set()
    judges = observation["levels"]
    return observation["verdict"] == "inapplicable" and level not in judges and not stronger.isdisjoint(judges)


def outcome(main: str, observations: Sequence[Line]) -> Outcome:
    """Return the outcome of a clause's cases, carried by those that judge `main`."""
    if any(counts_against(line) for line in observations):
        return "fail"
    if any(line["disposition"] in ("known_deviation", "waived") for line in observations):
        return "deviates"
    passed = [line for line in observations if line["verdict"] == "pass"]
    if any(carries(line["judges"], main) for line in passed):
        return "pass"
    if any(line["disposition"] == "other_reading" for line in observations):
        return "other_reading"
    verdicts = {line["verdict"] for line in observations}
    if "unsupported" in verdicts:
        return "unsupported"
    return "inapplicable" if "inapplicable" in verdicts else "untested"


def cases_by_clause(observations: Iterable[Line], twins: Mapping[str, str]) -> dict[str, Mapping[str, Line]]:
    """Return the cases of some clauses by their ids; `twins` has for each clause the one that it repeats, or itself."""
    cases: dict[str, dict[str, Line]] = {}
    for line in observations:
        for name in line["clauses"]:
            cases.setdefault(twins.get(name, name), {})[line["case"]] = line
    return {name: cases.get(twin, {}) for name, twin in twins.items()}


def _cases_of_musts(plan: Line, observations: Iterable[Line]) -> dict[str, Mapping[str, Line]]:
    return cases_by_clause(observations, {name: must.get("as", name) for name, must in plan["musts"].items()})


def outcomes_of_musts(plan: Line, observations: Iterable[Line]) -> dict[str, Outcome]:
    """Return the outcome of every testable MUST clause of the claimed documents."""
    cases = _cases_of_musts(plan, observations)
    return {name: outcome(must["by"], [*cases[name].values()]) for name, must in plan["musts"].items()}


def missing_musts(plan: Line, outcomes: Mapping[str, Outcome]) -> list[str]:
    """Return the core MUST clauses that this run has not judged and for which no reason is recorded."""
    musts = plan["musts"]
    core = {name for name, must in musts.items() if must["profile"] == "core" and not must.get("excused")}
    return [name for name, found in outcomes.items() if found not in JUDGED and name in core]


def claimed_profiles(hello: Line | None, plan: Line) -> list[str]:
    """Return `core`, and the named profiles of which an implementation claims every feature."""
    states = (hello or {}).get("capabilities", {})
    named = plan["profiles"].items()
    return ["core", *(name for name, row in named if all(_is_claimed(states, feature) for feature in row["features"]))]


def left_out_profiles(hello: Line | None, plan: Line, observations: Sequence[Line]) -> dict[str, int]:
    """Return by named profile, "" for none, the core MUST clauses unsupported for lack of its features."""
    states = (hello or {}).get("capabilities", {})
    outcomes, cases = outcomes_of_musts(plan, observations), _cases_of_musts(plan, observations)
    counts: Counter[str] = Counter()
    for name in missing_musts(plan, outcomes):
        if outcomes[name] == "unsupported":
            lines = cases[name].values()
            needed = {need for line in lines for need in line["needs"] if not _is_claimed(states, need)}
            counts[_profile_with(plan, plan["musts"][name]["document"], needed)] += 1
    return {key: counts[key] for key in (*plan["profiles"], "") if counts[key]}


def _profile_with(plan: Line, document: str, features: set[str]) -> str:
    """Return the first named profile with one of these features, the document's own before others; else ""."""
    rows = sorted(plan["profiles"].items(), key=lambda item: item[1]["document"] != document)
    return next((name for name, row in rows if features & {*row["features"]}), "")


def _is_claimed(states: Line, feature: str) -> bool:
    return bool(states.get(feature, "unsupported") != "unsupported")


def product_results(plan: Line, observations: Iterable[Line]) -> dict[str, Counter[str]]:
    """Return the numbers of cases of each product of the claimed documents: passed, failed, excused, missing.

    Excused cases follow another reading or a known deviation. Missing ones are unsupported, blocked, or presume what is
    absent. Cases that the run's level does not judge are counted nowhere.
    """
    products = plan.get("products", {})
    results: dict[str, Counter[str]] = {name: Counter() for name in products}
    for line in observations:
        for name, row in products.items():
            if _is_of_product(line, row):
                results[name].update(_for_product(line, row["single_device"]))
    return results


def is_whole(product: Counter[str]) -> bool:
    """True if some case of a product passed and none failed or is missing."""
    return product["passed"] > 0 and not product["failed"] and not product["missing"]


def _is_of_product(line: Line, product: Line) -> bool:
    """Return True if a case belongs to a product: by its id, its features and the methods that it called."""
    if not line["case"].startswith(tuple(product["cases"])) or line["case"].startswith(tuple(product["without"])):
        return False
    required = ({method, f"{method.partition('.')[0]}.*"} for method in line["methods"])
    methods = product["methods"]
    return {*line["needs"]} <= {*product["features"]} and not any(names.isdisjoint(methods) for names in required)


def _for_product(line: Line, single_device: bool) -> list[str]:
    """Return the number that a case of a product counts in; none if its loss is none."""
    if counts_against(line):
        return ["failed"]
    if line["verdict"] == "pass":
        return ["passed"]
    if line["disposition"] != "none":
        return ["excused"]
    no_loss = ("document", "level", "profile", "question", *(["presumption"] if single_device else []))
    return [] if line["cause"] in no_loss else ["missing"]


def tallies(plan: Line, outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, int]]:
    """Return the number of testable MUST clauses by outcome, for each claimed document."""
    counts: dict[str, Counter[str]] = {}
    for name, by_name in outcomes.items():
        counts.setdefault(plan["musts"][name]["document"], Counter())[by_name] += 1
    documents = sorted(counts.items())
    return {name: {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]} for name, found in documents}


def claimed(header: Line, plan: Line, observations: Sequence[Line], problems: Sequence[str]) -> str:
    """Return `success`, `partial` or `failure`.

    It is `failure` also if nothing passed: a run that judged nothing claims nothing. It is `partial` if part of the
    suite was left out, the run's level leaves arithmetic unjudged, or a core MUST clause of a claimed document was not
    judged.
    """
    passed = any(line["verdict"] == "pass" for line in observations)
    if problems or not passed or any(counts_against(line) for line in observations):
        return "failure"
    selection = header["selection"]
    whole = selection["complete"] and selection["shard"] is None and selection.get("via") != "operations"
    if not whole or any(left_out_by_level(line, selection["level"]) for line in observations):
        return "partial"
    return "partial" if missing_musts(plan, outcomes_of_musts(plan, observations)) else "success"


# An unresponsive implementation: the first cases that call it all crash, hang or get invalid answers.


FIRST = 10
"""Cases that run before the implementation is given up."""
FAULTS = ("crash", "hang", "protocol_error")
NOT_ASKED = ("unsupported", "inapplicable")


def is_asked(line: Line) -> bool:
    """True if the implementation was asked in a case."""
    return line["verdict"] not in NOT_ASKED


def silence(first: Sequence[Line]) -> str:
    """Return a sentence if the first cases that ask all ended without an answer, with the commonest reason; else ""."""
    if len(first) != FIRST or any(map(_is_answered, first)):
        return ""
    reasons = Counter(f"{line['verdict'].replace('_', ' ')}: {line['reason']}" for line in first)
    ((reason, number),) = reasons.most_common(1)
    how = "all" if number == FIRST else f"without an answer, {number}"
    return f"the first {FIRST} cases ended {how} in {reason}"


def _is_answered(line: Line) -> bool:
    """True if an implementation answered a call of a case, or a known deviation says that somebody has seen it run."""
    calls = (entry["observation"] for entry in line["exchanges"] if entry["method"] != "session.reset")
    excused = line["disposition"] != "none"
    return line["verdict"] not in FAULTS or excused or any("fault" not in answer for answer in calls)
