"""The outcomes of clauses, and the few causes of the cases that count against a claim, the largest first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from tessera_conformance.cases import clauses_directory
from tessera_conformance.documents import read_toml
from tessera_conformance.registry import Clause, Registry
from tessera_conformance.registry.model import CONSTRUCTS
from tessera_conformance.reports.claim import Line, Outcome, cases_by_clause, counts_against, outcome
from tessera_conformance.reports.journal import Report
from tessera_conformance.reports.lines import digest, digests_of

# The outcome of each clause, from the cases tagged with it, and tables of such outcomes.
#
# A clause passes only if a case that judges its main effect ran and all that ran passed. A clause that repeats another
# shares its cases and so its outcome. Clauses that no test can judge are counted apart, even if cases are tagged with
# them. The numbers of testable clauses thus equal those of the registry in every run.


Tally = Counter[Outcome]

OUTCOME_WORDS: Mapping[Outcome, str] = {
    "pass": "pass",
    "fail": "fail",
    "deviates": "known deviation",
    "other_reading": "other reading",
    "unsupported": "unsupported (declared)",
    "inapplicable": "inapplicable",
    "untested": "untested",
    "not_testable": "not testable",
}


@dataclass(frozen=True)
class ClauseResult:
    """A clause, its outcome, and the ids of the cases that led to it."""

    clause: Clause
    outcome: Outcome
    cases: tuple[str, ...]


def clause_results(report: Report, registry: Registry) -> dict[str, ClauseResult]:
    """Return every active clause of the registry with its outcome, in the order of the documents."""
    twins = {clause.id: clause.duplicate_of or clause.id for clause in registry.clauses.values()}
    results = {}
    for name, cases in cases_by_clause(report.observed, twins).items():
        clause = registry.clauses[name]
        if clause.active:
            verdict = outcome(registry.carried_by(clause), list(cases.values())) if clause.testable else "not_testable"
            results[name] = ClauseResult(clause, verdict, tuple(cases))
    return results


def unknown_clauses(report: Report, registry: Registry) -> list[str]:
    """Return clause ids that the report cites and the registry lacks: the report was made with another registry."""
    cited = {name for line in report.observations for name in line["clauses"]}
    return sorted(cited - registry.clauses.keys())


def tally(results: Iterable[ClauseResult]) -> Tally:
    """Return the number of clauses with each outcome."""
    return Counter(result.outcome for result in results)


def judgeable(counts: Tally) -> int:
    """Return the number of the counted clauses that a test can judge, by a call or statically."""
    return counts.total() - counts["not_testable"]


def by_document_and_level(results: Mapping[str, ClauseResult]) -> dict[tuple[str, str], Tally]:
    """Outcomes of each document's clauses of each level."""
    table: dict[tuple[str, str], Tally] = {}
    for result in results.values():
        table.setdefault((result.clause.document, result.clause.level), Counter())[result.outcome] += 1
    return table


# The cases that count against the claim, in the order in which people want to read them.
#
# Wrong results come first, then crashes, hangs and other failures. Cases that failed only because a claimed feature was
# answered as unsupported are not listed one by one: the causes count them by feature.


_AFTER_FAILURES = ("pass", "crash", "hang", "protocol_error", "harness_error", "not_run")
"""A pass that counts is an unexpected one."""


def failures(report: Report) -> list[Line]:
    """Return the cases to show one by one: none if the implementation did not start, and none of missing features."""
    if did_not_start(report):
        return []
    return [line for line in in_order(report.observed) if counts_against(line) and missing_feature(line) is None]


def did_not_start(report: Report) -> bool:
    """True if every failure has one cause: no implementation answered at all."""
    return report.header["implementation"]["fault"] is not None


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Return the cases sorted: those that count against the claim by their weight, then the others in report order."""
    return sorted(lines, key=_weight)


def missing_feature(observation: Line) -> str | None:
    """Return the feature whose lack alone failed the case: claimed, but answered as unsupported."""
    if observation["verdict"] != "fail" or _wrong(observation):
        return None  # skip the exchanges of cases that passed: parsing them takes long
    exchanges = observation["exchanges"]
    if not exchanges:
        return None
    lacking = exchanges[-1]["observation"].get("unsupported")
    return None if lacking is None else str(lacking["feature"])


def last_stderr(observation: Line) -> str:
    """Return the standard error after the last exchange of a case that crashed or hung."""
    exchanges = observation["exchanges"] if observation["verdict"] in ("crash", "hang") else ()
    return str(exchanges[-1]["run"].get("stderr", "")) if exchanges else ""


def tail(text: str, most: int) -> list[str]:
    """Return the last non-empty lines."""
    return [line for line in text.splitlines() if line.strip()][-most:]


def _wrong(observation: Line) -> bool:
    return any(not check["passed"] for check in observation["checks"])


def _weight(observation: Line) -> int:
    if not counts_against(observation):
        return len(_AFTER_FAILURES) + 3
    if observation["verdict"] != "fail":
        return 2 + _AFTER_FAILURES.index(observation["verdict"])
    if missing_feature(observation) is not None:
        return len(_AFTER_FAILURES) + 2
    return 0 if _wrong(observation) else 1


# Causes: the cases that count against a claim, in few groups, so that one sees what to mend first.
#
# Cases fail in one way if they have a wrong value, the same refusal, the same wrong status or a crash in one
# function. They are grouped by the trait that best separates them from the cases that pass: a value of an argument, a
# method, a clause, a test. A trait is graded by its F2 measure. It combines the share of these failures that have it
# with the share of the judged cases with it that fail; the first counts more. The best trait takes its cases, then
# the next of the rest. Arithmetic that a hypothesis explains (`diagnosis`) is a cause of its own. The rest is fault
# localization by spectra, with arguments of calls in the place of lines of code (Jones and Harrold, "Empirical
# evaluation of the Tarantula automatic fault-localization technique", 2005).


Form = tuple[str, ...]
"""The form of a failure: `value`, or a kind with the part that distinguishes it from others of its kind."""
Trait = tuple[str, str]
"""A kind of trait and its name."""

WRONG_VALUE: Form = ("value",)
KINDS = ("call", "clause", "test", "file")
"""The kinds of traits; of two with the same measure, the earlier kind counts."""
RECALL = 4
"""The square of how much more the share of the failures counts than the share of the cases with the trait."""
LEAST_TELLING = 2 / 5
"""The least share of failing cases that makes a trait count, where it has enough of them."""
LEAST_PART = 1 / 5
"""The share of the failures that such a trait must have."""
NEARLY = 0.95
"""The share of the best measure from which on a trait is nearly as good."""
REMAINDER = 0.1
"""The largest share of a form's failures that is joined as a last group to the largest group with the same calls."""
_CODE = re.compile(r"\bTESS_[A-Z_]+\b|\bwith (\S+?):")
_SIGNAL = re.compile(r"\bSIG[A-Z]+\b|\bexit(?:ed)? (?:status |code |with )?\d+")
_HARNESS = ("runtime.tessx", "numerics.declared", "session.")
"""Methods that test nothing of a document."""


@dataclass(frozen=True)
class Cause:
    """Cases that went wrong in one way, and what they have in common; the smallest case first."""

    form: Form
    trait: Trait
    lines: Sequence[Line]
    passing: int = 0
    """The cases with the trait that pass."""
    mended: Sequence[str] = ()
    """The clauses of which no other case fails: they hold once the cause is corrected."""
    blocked: int = 0
    """The cases that lean on one of these and so were not judged."""
    diagnosis: str = ""
    """The operation, and what a hypothesis about its arithmetic says, where one fits."""
    speaks_of: tuple[str, ...] = ()
    """The clauses of the hypothesis, or of the control case of the method that all have in common."""

    @property
    def smallest(self) -> Line:
        """The case with the fewest and shortest calls."""
        return self.lines[0]

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that it speaks of, then those of the cases from the smallest on, which calls little else."""
        named = (name for line in self.lines for name in line["clauses"])
        return tuple(dict.fromkeys([*self.speaks_of, *named]))

    def sentence(self) -> str:
        """Return how many cases went wrong, how, and what they have in common."""
        number = len(self.lines)
        head = f"{number:,}".replace(",", " ") + (" case" if number == 1 else " cases")
        head += f", and {self.blocked} blocked by {'it' if number == 1 else 'them'}: " if self.blocked else ": "
        if self.diagnosis:
            return head + self.diagnosis
        way = _WAYS[self.form[0]].format(*(*self.form[1:], "", "", ""))
        if self.form[0] in ("missing", "crash", "hang", "protocol_error"):
            return head + way
        return head + way + self._common() + self._what()

    def _common(self) -> str:
        kind, name = self.trait
        number = sum(self.trait in _traits(line) for line in self.lines)  # a last few cases may lack it
        share = "all" if number == len(self.lines) else f"{number} of them"
        if kind == "call":
            method, _, argument = name.partition(" ")
            beside = f" ({self.passing} with it pass)" if self.passing else " (none with it passes)"
            and_argument = f" and {argument}" if argument else ""
            return f", {share} with {method.removeprefix('runtime.')}{and_argument}{beside}"
        return f", {share} of clause {name}" if kind == "clause" else f", {share} in {name}"

    def _what(self) -> str:
        """Return the text of the failed check, if all cases failed the same one."""
        texts = {re.sub(r"\d+", "#", check["what"]) for line in self.lines if (check := _failed(line)) is not None}
        return f": {texts.pop()}" if len(texts) == 1 and self.form[0] == "value" and "#" not in str(texts) else ""


_WAYS: Mapping[str, str] = {
    "missing": "{0} is not implemented",
    "value": "a wrong value",
    "refused": "a legal call or program is refused with {0}",
    "status": "{1} where {0} is due",
    "rejects": "{1} where {0} is due",
    "unanswered": "{0} gives no answer",
    "crash": "the implementation ends in {0}{1}",
    "hang": "{0} does not answer in time",
    "protocol_error": "{0} returns invalid data",
    "harness_error": "the harness went wrong in {0}",
    "not_run": "not run",
    "pass": "passes, which a known deviation says it must not",
}
"""The words of a form by its first part; `{0}` and `{1}` are the parts after it."""


@lru_cache(maxsize=1)
def causes(report: Report) -> Sequence[Cause]:
    """Return the causes of the cases that count against the claim, those with the most cases first.

    They are found once for all renderings of a report.
    """
    bad = [] if did_not_start(report) else [line for line in in_order(report.observed) if counts_against(line)]
    if not bad:
        return []
    passed = [line for line in report.observed if line["verdict"] == "pass"]
    passing: Passing = Counter(code for line in passed for code in {*digests_of(line.get("traits", ()))})
    passing.update(trait for line in passed for trait in _places(line))
    forms: dict[Form, list[Line]] = {}
    for line in bad:
        forms.setdefault(_form(line), []).append(line)
    explained = list(_diagnosed(forms))
    failing = Counter(name for line in bad for name in line["clauses"])
    reasons = (line["reason"] for line in report.observed if line["cause"] == "blocked")
    blocked = Counter(reason.removeprefix("blocked by ").partition(": ")[0] for reason in reasons)
    groups = (cause for form, lines in forms.items() for cause in _groups(form, lines, passing))
    controls = _controls(report)
    spoken = (replace(cause, speaks_of=controls.get(cause.trait[1], ())) for cause in groups)
    found = [_counted(cause, passing, failing, blocked) for cause in (*explained, *spoken)]
    last = {"missing": 1, "not_run": 2}
    return sorted(found, key=lambda cause: (last.get(cause.form[0], 0), -len(cause.lines) - cause.blocked))


def _controls(report: Report) -> Mapping[str, tuple[str, ...]]:
    """Return the clauses of the control case of each method; no other case speaks of the method alone."""
    clauses = {line["case"]: tuple(line["clauses"]) for line in report.observed}
    table = read_toml((clauses_directory() / CONSTRUCTS).read_bytes())
    return {name: clauses.get(row["control"], ()) for row in table["construct"] for name in row.get("methods", ())}


def _diagnosed(forms: dict[Form, list[Line]]) -> Iterator[Cause]:
    """Yield the causes of wrong values that a hypothesis explains, and remove their cases from `forms`."""
    left = {line["case"]: line for line in forms.get(WRONG_VALUE, ())}
    if not left:
        return
    from tessera_conformance.diagnosis import diagnose  # imports numpy, 100 ms, which most runs do without

    for cause in diagnose([*left.values()]):
        lines = [left.pop(case) for case in cause.cases if case in left] if cause.hypothesis else []
        if lines:
            says = f"{cause.operation}: {cause.says}"
            yield Cause(WRONG_VALUE, ("file", ""), lines, diagnosis=says, speaks_of=cause.clauses[:1])
    if WRONG_VALUE in forms:
        forms[WRONG_VALUE] = list(left.values())


def _counted(cause: Cause, passing: Passing, failing: Mapping[str, int], blocked: Mapping[str, int]) -> Cause:
    cited = Counter(name for line in cause.lines for name in line["clauses"])
    mended = tuple(sorted(name for name, number in cited.items() if failing[name] == number))
    lines, leaning = sorted(cause.lines, key=_size), sum(blocked.get(line["case"], 0) for line in cause.lines)
    return replace(cause, lines=lines, passing=_number(passing, cause.trait), mended=mended, blocked=leaning)


def _size(line: Line) -> tuple[int, int, str]:
    exchanges = line["exchanges"]
    return (len(exchanges), sum(len(str(exchange["params"])) for exchange in exchanges), line["case"])


Passing = Counter[str | Trait]
"""The number of passing cases by trait; a report keeps the traits of their calls as digests."""


def _number(passing: Passing, trait: Trait) -> int:
    return passing[digest(trait[1]) if trait[0] == "call" else trait]


def _groups(form: Form, lines: Sequence[Line], passing: Passing) -> Iterator[Cause]:
    left = [(line, _traits(line)) for line in sorted(lines, key=_size)]
    groups: dict[Trait, list[Line]] = {}
    while left:
        best = _best(left, passing)
        members = [line for line, traits in left if best in traits]
        left = [(line, traits) for line, traits in left if best not in traits]
        home = _home(members, groups) if len(members) <= REMAINDER * len(lines) else None
        groups.setdefault(home or best, []).extend(members)
    return (Cause(form, trait, members) for trait, members in groups.items())


def _best(left: Sequence[tuple[Line, Mapping[Trait, None]]], passing: Passing) -> Trait:
    """Return the trait with the best measure for the failures; one whose cases mostly pass only if there is no other.

    Among nearly as good traits of no fewer failures it prefers the one whose call is nearest to the end of the smallest
    case, `left[0]`: memory of some size is allocated before it is copied.
    """
    counts = Counter(trait for _, traits in left for trait in traits)
    numbers = {trait: _number(passing, trait) for trait in counts}
    merits = {trait: _merit(failing, len(left), numbers[trait]) for trait, failing in counts.items()}
    telling = {trait: failing / (failing + numbers[trait]) for trait, failing in counts.items()}
    if any(share >= LEAST_TELLING and counts[trait] >= LEAST_PART * len(left) for trait, share in telling.items()):
        merits = {trait: merit for trait, merit in merits.items() if telling[trait] >= LEAST_TELLING}
    best = max(merits, key=lambda trait: (merits[trait], -KINDS.index(trait[0]), trait[1]))
    near = [trait for trait in merits if merits[trait] >= NEARLY * merits[best] and counts[trait] >= counts[best]]
    places = {exchange["method"]: place for place, exchange in enumerate(left[0][0]["exchanges"])}

    def place(trait: Trait) -> int:
        return places.get(trait[1].partition(" ")[0], -1) if trait[0] == "call" else -1

    return max(near, key=lambda trait: (place(trait), merits[trait], -KINDS.index(trait[0]), trait[1]))


def _merit(failing: int, all_failing: int, passing: int) -> float:
    """Return the F2 measure of a trait."""
    recall, precision = failing / all_failing, failing / (failing + passing)
    return round((1 + RECALL) * precision * recall / (RECALL * precision + recall), 9)


def _home(lines: Sequence[Line], groups: Iterable[Trait]) -> Trait | None:
    """Return the trait of the first group whose method each of the last few cases calls too."""
    calls = ((kind, name) for kind, name in groups if kind == "call")
    return next((call for call in calls if all(call[1].partition(" ")[0] in line["methods"] for line in lines)), None)


def _traits(line: Line) -> dict[Trait, None]:
    """Return the traits of a case that went wrong, in a fixed order: of its calls, and its places."""
    called = (name for name in line.get("traits", ()) if not name.startswith(_HARNESS))
    return dict.fromkeys(("call", name) for name in called) | _places(line)


def _places(line: Line) -> dict[Trait, None]:
    """Return the clauses, the test and the file of a case."""
    chapter, _, rest = line["case"].partition("/")
    parts = rest.split("/")
    traits: dict[Trait, None] = dict.fromkeys(("clause", name) for name in line["clauses"])
    return traits | {("test", "/".join([chapter, *parts[:2]])): None, ("file", "/".join([chapter, *parts[:1]])): None}


def _form(line: Line) -> Form:
    """Return how a case went wrong."""
    feature = missing_feature(line)
    if feature is not None:
        return ("missing", feature)
    methods = [entry["method"] for entry in line["exchanges"] if not entry["method"].startswith("session.")]
    method = methods[-1].partition(".")[2] if methods else ""
    if line["verdict"] != "fail":
        signal = _SIGNAL.search(line["reason"])
        return (line["verdict"], method, f" ({signal[0]})" if signal else "")
    check = _failed(line)
    if check is None:
        return ("unanswered", method)
    kind, expected, actual = check["kind"], str(check["expected"]), str(check["actual"])
    if kind in ("returns", "accepts"):
        return ("refused", _code(actual))
    if kind in ("status", "rejects"):
        return (kind, expected.removeprefix("a "), "acceptance" if actual == "returned a result" else _code(actual))
    return WRONG_VALUE


def _code(described: str) -> str:
    match = _CODE.search(described)
    return (match[1] or match[0]) if match else described.partition(":")[0]


def _failed(line: Line) -> Line | None:
    return next((check for check in reversed(line["checks"]) if not check["passed"]), None)
