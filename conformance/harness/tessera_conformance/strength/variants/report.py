"""The outcome of the variants, for the terminal and as published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.strength.variants.trial import Outcome

__all__ = ["as_json", "failed", "lines_of", "markdown", "summary"]


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
