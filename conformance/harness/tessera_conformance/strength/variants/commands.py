"""`tessera-conformance strength --variants`: puts the legal variants to the suite and publishes the outcome."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.cases import in_shard, parse_shard
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.registry import Registry
from tessera_conformance.strength import processes
from tessera_conformance.strength.variants.trial import (
    BESIDE,
    Outcome,
    Selection,
    Variant,
    judge_variants,
    load_variants,
)
from tessera_conformance.transports.locate import load_adapter

# The outcome of the variants, for the terminal and as published.


def failed(outcomes: Sequence[Outcome], whole: bool) -> bool:
    """Whether the suite has a defect or, where the whole reach was run, a variant shows nowhere."""
    return any(each.failures or (whole and not each.shown_by) for each in outcomes)


def lines_of(outcome: Outcome) -> list[str]:
    """A variant with its counts, then each case that it did not pass."""
    name, freedom = outcome.variant.name, outcome.variant.freedom
    counts = f"{outcome.passed} passed, {outcome.left_out} not claimed, {len(outcome.failures)} failed"
    nowhere = "" if outcome.shown_by else f"; {name} answers as the control does in each case"
    return [
        f"  {name} in {outcome.cases} cases: {counts}{nowhere}",
        *(
            f"  {name} ({freedom}) does not pass {each.case}: {each.verdict}: {_first_line(each.reason)}"
            for each in outcome.failures
        ),
    ]


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")


def summary(outcomes: Sequence[Outcome]) -> str:
    """The counts of all."""
    cases, failures = sum(each.cases for each in outcomes), sum(len(each.failures) for each in outcomes)
    return f"{len(outcomes)} legal variants in {cases} cases: {failures} failed"


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The table as published."""
    return {
        "format": 1,
        "variants": [
            {
                "name": each.variant.name,
                "freedom": each.variant.freedom,
                "description": each.variant.description,
                "level": each.level,
                "reach": list(each.variant.reach),
                "cases": each.cases,
                "passed": each.passed,
                "left_out": each.left_out,
                "failed": [vars(failure) for failure in each.failures],
                "shown_by": each.shown_by,
            }
            for each in outcomes
        ],
    }


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The table for people."""
    rows = [
        f"| {each.variant.name} | {each.variant.description} | {each.variant.freedom} | {each.level} | {each.cases} | "
        f"{each.passed} | {each.left_out} | {len(each.failures)} | {each.shown_by} |"
        for each in outcomes
    ]
    return "\n".join(
        [
            "# Legal variants",
            "",
            summary(outcomes) + ".",
            "",
            "| variant | what it does otherwise | freedom | level | cases | passed | not claimed | failed | shown by |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


# `tessera-conformance strength --variants`: put the legal variants to the suite, and say which cases fail one.


CHAPTERS = Path()
"""What stands for the folders of the chapters."""
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
    """The variants that the options name.

    Raises:
        RegistryError: a variant names a clause or an interpretation that there is not.
        ValueError: two variants share a name, no variant has such a name, or the shard has another form.
    """
    variants = load_variants(None if arguments.variants in (None, CHAPTERS) else arguments.variants)
    for variant in variants:
        (registry.interpretation if variant.freedom.startswith("AMB-") else registry.clause)(variant.freedom)
    only = arguments.only or ""
    named = [each for each in variants if only in each.name or only in each.freedom]
    if not named:
        raise ValueError(f"no variant's name or freedom contains {only!r}")
    shard = parse_shard(arguments.shard or "1/1")
    return [each for each in named if in_shard(each.name, shard)]


def put_variants(
    arguments: argparse.Namespace,
    variants: Sequence[Variant],
    suite: CollectedSuite,
    registry: Registry,
    chosen_cases: Selection | None = None,
) -> int:
    """0 where every variant passes, 1 where a case fails one or none can tell one from the control.

    The cases are those of the options, unless they are given.
    """
    selection = chosen_cases or Selection(arguments.within, arguments.beside, arguments.thorough)
    jobs = arguments.jobs or processes.available()
    outcomes = []
    for outcome in judge_variants(
        variants, suite.items, registry, lambda: load_adapter(arguments.control), selection, jobs
    ):
        outcomes.append(outcome)
        print("\n".join(lines_of(outcome)), flush=True)
    print(summary(outcomes))
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        document = json.dumps(as_json(outcomes), indent=1) + "\n"
        (arguments.output / "variants.json").write_text(document, encoding="utf-8")
        (arguments.output / "variants.md").write_text(markdown(outcomes), encoding="utf-8")
    return 1 if failed(outcomes, whole=selection.most is None) else 0
