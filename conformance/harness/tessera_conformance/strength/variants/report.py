"""The outcome of the variants, for the terminal and as published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.strength.variants.trial import Outcome

__all__ = ["as_json", "failed", "markdown", "text"]


def failed(outcomes: Sequence[Outcome], whole: bool) -> bool:
    """Whether the suite has a defect or, where the whole reach was run, a variant shows nowhere."""
    return any(each.failures or (whole and not each.shown_by) for each in outcomes)


def text(outcomes: Sequence[Outcome]) -> str:
    """The counts, and each case that a variant did not pass."""
    failures = [(each, failure) for each in outcomes for failure in each.failures]
    cases = sum(each.cases for each in outcomes)
    lines = [f"{len(outcomes)} legal variants in {cases} cases: {len(failures)} failed"]
    lines += [
        f"  {each.variant.name} ({each.variant.freedom}) does not pass {failure.case}: {failure.verdict}: "
        f"{failure.reason.splitlines()[0] if failure.reason else 'no reason'}"
        for each, failure in failures
    ]
    lines += [
        f"  {each.variant.name} answers as the control does in each case" for each in outcomes if not each.shown_by
    ]
    return "\n".join(lines)


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
            text(outcomes).splitlines()[0] + ".",
            "",
            "| variant | what it does otherwise | freedom | level | cases | passed | not claimed | failed | shown by |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
