"""Legal variants: implementations that differ where they may. A case that one fails is a defect of the suite."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.adapter import Adapter
from tessera_conformance.cases import in_shard, parse_shard
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry
from tessera_conformance.reports.claim import Line, settled
from tessera_conformance.reports.summary import table
from tessera_conformance.strength.matrix import DEADLINE, put, write_results
from tessera_conformance.strength.sharing import available_processes, share_out
from tessera_conformance.strength.violation import AdapterClass, load_declared, load_whole, substituted
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.transports.locate import DirectTransport, load_adapter
from tessera_conformance.verdicts import Judgement

# A variant: the freedom it takes, the cases that can show it, and how to get an adapter that takes it.
#
# A module in the folder `variants` of a chapter declares variants in one of two ways: an adapter class under `@varies`,
# or `altered(...)` at module level, which replaces functions or constants of the implementation's code meanwhile.


@dataclass(frozen=True)
class Variant:
    """One legal implementation beside the control."""

    name: str
    freedom: str
    """The clause or the interpretation that leaves the freedom."""
    description: str
    reach: tuple[str, ...]
    """Patterns of the ids of cases that can show it, in which `*` is any text."""
    made: Callable[[], AbstractContextManager[Adapter]]
    taken_for: tuple[str, ...] = ()
    """Other interpretations whose alternatives one of its answers may match, where cases cannot distinguish the two."""


def varies(
    freedom: str, description: str, *reach: str, taken_for: Sequence[str] = ()
) -> Callable[[AdapterClass], AdapterClass]:
    """Declare an adapter class as another legal implementation."""

    def declare(adapter: AdapterClass) -> AdapterClass:
        load_whole(adapter)
        name = adapter.__name__
        adapter.variant = Variant(name, freedom, description, reach, lambda: nullcontext(adapter()), tuple(taken_for))
        return adapter

    return declare


def altered(
    freedom: str,
    description: str,
    reach: Sequence[str],
    make: Callable[[], Adapter],
    *substitutions: tuple[Any, str, Any],
    name: str = "",
) -> Variant:
    """Return a variant that replaces attributes of modules or classes, each `(owner, attribute name, substitute)`."""
    return Variant(name, freedom, description, tuple(reach), lambda: substituted(make, substitutions))


def load_variants(directory: Path | None = None) -> list[Variant]:
    """Every variant of the files of a folder, or of every chapter. Raises `ValueError` where two share a name."""
    return load_declared(Variant, "variants", "variant", directory)


# A variant against the suite: every case that its freedom can affect, and some that it cannot.
#
# A variant that follows a listed alternative of an interpretation passes if a case recognises that alternative. It also
# passes if a case that depends on the interpretation is blocked by such a case, as in a report. Other alternatives
# excuse no other variant.


BESIDE = 100
"""Cases out of a variant's reach that are put to it, too."""
CHUNK = 400
"""Cases that one process runs at a time."""
LEGAL = frozenset({"pass", "unsupported", "inapplicable"})


@dataclass(frozen=True)
class Selection:
    """The cases put to a variant: all with `thorough`, else at most `most` in its reach and `beside` others."""

    most: int | None = None
    beside: int = BESIDE
    thorough: bool = False

    def of(self, variant: Variant, items: Sequence[pytest.Function]) -> list[pytest.Function]:
        """Return the cases for a variant, in the order of their ids: the same on every machine."""
        if self.thorough:
            return list(items)
        within = [item for item in items if any(fnmatchcase(_id(item), pattern) for pattern in variant.reach)]
        reached = {_id(item) for item in within}
        others = [item for item in items if _id(item) not in reached]
        chosen = [*_some(variant, within, self.most), *_some(variant, others, self.beside)]
        return sorted(chosen, key=_id)


def require_reach(variant: Variant, items: Sequence[pytest.Function]) -> None:
    """Raise `ValueError` where a pattern of a variant's reach has no case."""
    for pattern in variant.reach:
        if not any(fnmatchcase(_id(item), pattern) for item in items):
            raise ValueError(f"{variant.name}: no case is like {pattern}")


@dataclass(frozen=True)
class Failure:
    """A case that a variant did not pass."""

    case: str
    verdict: str
    reason: str

    @property
    def summary(self) -> str:
        """The first line of the reason."""
        return self.reason.partition("\n")[0]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a variant."""

    variant: Variant
    cases: int
    """The number of cases that were put to it."""
    passed: int
    failures: Sequence[Failure] = ()
    shown_by: str = ""
    """The first case in which its answers differ from the control's; empty where all answers are equal."""
    level: str = "strict"

    @property
    def left_out(self) -> int:
        """The number of cases that it does not claim or that it reads otherwise."""
        return self.cases - self.passed - len(self.failures)


@dataclass(frozen=True)
class _Part:
    """The cases of one variant that one process ran."""

    cases: int
    passed: int
    suspected: tuple[Line, ...]
    """Facts that `settled` needs about the cases that the control passes and this variant does not."""
    shown_by: str
    level: str


def judge_variants(
    variants: Sequence[Variant],
    items: Sequence[pytest.Function],
    registry: Registry,
    control: Callable[[], Adapter],
    selection: Selection,
    jobs: int = 1,
) -> Iterator[Outcome]:
    """Run the cases of each variant's selection against it; an outcome as soon as its variant is done.

    A case fails where the variant ends otherwise than by a pass or by what it does not claim, and the control passes.
    """
    for variant in variants:
        chosen = selection.of(variant, items)
        judge = partial(_judge, variant, registry=registry, control=control)
        parts = share_out(jobs, judge, [chosen[first : first + CHUNK] for first in range(0, len(chosen), CHUNK)])
        lines = [line for part in parts for line in part.suspected]
        shown = any(line["interpretation"] == variant.freedom for line in lines)
        if not shown and any(line["cites"] or line["leans"] for line in lines):
            # a case that may depend on the interpretation failed; one that was not chosen may show the other reading
            identifiers = {_id(item) for item in chosen}
            naming = [item for item in items if variant.freedom in item.stash[CASE].cites]
            parts.append(judge([item for item in naming if _id(item) not in identifiers]))
        yield _together(variant, parts)


def _together(variant: Variant, parts: Sequence[_Part]) -> Outcome:
    lines = [line for part in parts for line in part.suspected]
    failures = tuple(
        Failure(line["case"], line["verdict"], line["reason"])
        for line in settled(lines)
        if line["verdict"] not in LEGAL and line["disposition"] != "other_reading"
    )
    shown = next((part.shown_by for part in parts if part.shown_by), "")
    level = parts[0].level if parts else "strict"
    return Outcome(
        variant, sum(part.cases for part in parts), sum(part.passed for part in parts), failures, shown, level
    )


def _judge(
    variant: Variant, items: Sequence[pytest.Function], registry: Registry, control: Callable[[], Adapter]
) -> _Part:
    passed, suspected, answers = 0, [], []
    with variant.made() as adapter:
        run = SuiteRun(DirectTransport(lambda: adapter, variant.name), registry, deadlines=(DEADLINE, DEADLINE))
        for item in items:
            case, judgement = put(run, item)
            passed += judgement.verdict == "pass"
            if judgement.verdict not in LEGAL:
                suspected.append((item, _line(variant, case, judgement)))
            answers.append((item, _answers(case, judgement)))
        level = run.level
    transport = DirectTransport(control, "control")
    beside = SuiteRun(transport, registry, level=level, deadlines=(DEADLINE, DEADLINE))
    shown = next((_id(item) for item, digest in answers if _answers(*put(beside, item)) != digest), "")
    lines = tuple(line for item, line in suspected if put(beside, item)[1].verdict in LEGAL)
    return _Part(len(items), passed, lines, shown, level)


def _line(variant: Variant, case: Case, judgement: Judgement) -> Line:
    """Return the part of a report's line for the case that decides whether it is blocked."""
    follows = judgement.interpretation in (variant.freedom, *variant.taken_for)
    return {
        "case": case.id,
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "disposition": "other_reading" if follows else "none",
        "interpretation": judgement.interpretation,
        "leans": case.leans,
        "cites": [name for name in case.cites if name == variant.freedom],
    }


def _answers(case: Case, judgement: Judgement) -> bytes:
    """Return a digest of a case: its verdict, its observations, and the values that its checks judged."""
    parts = [judgement.verdict, *(f"{exchange.method} {exchange.observation}" for exchange in case.exchanges)]
    parts += [f"{record.what} {record.actual}" for record in case.check.records]
    return hashlib.sha256("\n".join(parts).encode(errors="backslashreplace")).digest()


def _some(variant: Variant, items: Sequence[pytest.Function], most: int | None) -> list[pytest.Function]:
    """Return at most `most` of the cases, by the digests of their ids and the variant's name."""
    ordered = sorted(items, key=lambda item: hashlib.sha256(f"{variant.name} {_id(item)}".encode()).digest())
    return ordered[:most]


def _id(item: pytest.Function) -> str:
    return item.stash[CASE].id


# The outcome of the variants, for the terminal and as published.


def failed(outcomes: Sequence[Outcome], whole: bool) -> bool:
    """Return True if a case failed a variant or, after a run of the whole reach, no case distinguishes a variant."""
    return any(outcome.failures or (whole and not outcome.shown_by) for outcome in outcomes)


def lines_of(outcome: Outcome) -> list[str]:
    """Return a variant with its counts, then each case that it did not pass."""
    name, freedom = outcome.variant.name, outcome.variant.freedom
    counts = f"{outcome.passed} passed, {outcome.left_out} not claimed, {len(outcome.failures)} failed"
    nowhere = "" if outcome.shown_by else f"; {name} answers as the control does in each case"
    return [
        f"  {name} in {outcome.cases} cases: {counts}{nowhere}",
        *(
            f"  {name} ({freedom}) does not pass {failure.case}: {failure.verdict}: {failure.summary}"
            for failure in outcome.failures
        ),
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the counts of all."""
    cases, failures = sum(outcome.cases for outcome in outcomes), sum(len(outcome.failures) for outcome in outcomes)
    return f"{len(outcomes)} legal variants in {cases} cases: {failures} failed"


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the table as published."""
    return {
        "format": 1,
        "variants": [
            {
                "name": outcome.variant.name,
                "freedom": outcome.variant.freedom,
                "description": outcome.variant.description,
                "level": outcome.level,
                "reach": list(outcome.variant.reach),
                "cases": outcome.cases,
                "passed": outcome.passed,
                "left_out": outcome.left_out,
                "failed": [vars(failure) for failure in outcome.failures],
                "shown_by": outcome.shown_by,
            }
            for outcome in outcomes
        ],
    }


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the table for people."""
    head = "variant|what it does otherwise|freedom|level|cases|passed|not claimed|failed|shown by".split("|")
    rows = [
        (
            outcome.variant.name,
            outcome.variant.description,
            outcome.variant.freedom,
            outcome.level,
            *map(str, (outcome.cases, outcome.passed, outcome.left_out, len(outcome.failures))),
            outcome.shown_by,
        )
        for outcome in outcomes
    ]
    return f"# Legal variants\n\n{summary(outcomes)}.\n\n{table(head, rows)}\n"


# `tessera-conformance strength --variants`: run the suite against the legal variants, and list cases that fail one.


CHAPTERS = Path()
"""The placeholder of the folders of the chapters."""
SAMPLE = Selection(most=40, beside=5)
"""The cases of each variant in a run of the violators."""


def configure_variants(parser: argparse.ArgumentParser) -> None:
    """The options of `strength` for variants."""
    group = parser.add_argument_group("variants", "legal implementations that differ from the control where they may")
    variants_help = "put the variants, of the chapters or of a folder, to the suite instead of the violators"
    group.add_argument("--variants", type=Path, nargs="?", const=CHAPTERS, metavar="DIR", help=variants_help)
    within_help = "cases in the reach of each (all)"
    group.add_argument("--within", type=int, metavar="N", help=within_help)
    beside_help = f"cases out of the reach of each ({BESIDE})"
    group.add_argument("--beside", type=int, default=BESIDE, metavar="N", help=beside_help)


def chosen_variants(arguments: argparse.Namespace, registry: Registry) -> list[Variant]:
    """Return the variants that the options name.

    Raises `RegistryError`: a variant names an unknown clause or interpretation; or `ValueError`: two variants share a
    name, no variant has such a name, or the shard is malformed.
    """
    variants = load_variants(None if arguments.variants in (None, CHAPTERS) else arguments.variants)
    for variant in variants:
        (registry.interpretation if variant.freedom.startswith("AMB-") else registry.clause)(variant.freedom)
    only = arguments.only or ""
    named = [candidate for candidate in variants if only in candidate.name or only in candidate.freedom]
    if not named:
        raise ValueError(f"no variant's name or freedom contains {only!r}")
    shard = parse_shard(arguments.shard or "1/1")
    return [candidate for candidate in named if in_shard(candidate.name, shard)]


def put_variants(
    arguments: argparse.Namespace,
    variants: Sequence[Variant],
    suite: CollectedSuite,
    registry: Registry,
    chosen_cases: Selection | None = None,
) -> int:
    """Return 0 if every variant passes, 1 if a case fails one or none distinguishes one from the control.

    Without `chosen_cases`, the options select the cases.
    """
    selection = chosen_cases or Selection(arguments.within, arguments.beside, arguments.thorough)
    jobs = arguments.jobs or available_processes()
    outcomes = []
    for outcome in judge_variants(
        variants, suite.items, registry, lambda: load_adapter(arguments.control), selection, jobs
    ):
        outcomes.append(outcome)
        print("\n".join(lines_of(outcome)), flush=True)
    print(summary(outcomes))
    if arguments.output is not None:
        write_results(arguments.output, "variants", as_json(outcomes), markdown(outcomes))
    return 1 if failed(outcomes, whole=selection.most is None) else 0
