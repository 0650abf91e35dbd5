"""The result of a run of mutants, for the terminal, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.strength.mutants.equivalent import explained
from tessera_conformance.strength.mutants.sites import Mutant
from tessera_conformance.strength.mutants.trial import Result

__all__ = ["as_json", "markdown", "share_killed", "survivors", "text"]

Judged = Sequence[tuple[Mutant, Result]]


def survivors(judged: Judged, equivalents: Mapping[str, str]) -> list[tuple[Mutant, Result]]:
    """Mutants that nothing caught and nobody explains."""
    return [
        (mutant, result)
        for mutant, result in judged
        if result.fate in ("survived", "not executed") and not explained(mutant, equivalents)
    ]


def share_killed(judged: Judged, equivalents: Mapping[str, str]) -> float:
    """The share of mutants that are killed or explained, from 0 to 1."""
    counted = [each for each in judged if each[1].fate != "not installed"]
    return 1 - len(survivors(counted, equivalents)) / len(counted) if counted else 0.0


def text(judged: Judged, equivalents: Mapping[str, str]) -> str:
    """The figure of each room, and every survivor."""
    lines = [
        f"{room:10} {figures['mutants']:5} mutants  {figures['killed']:5} killed ({figures['near']} near)  "
        f"{figures['explained']:4} explained  {figures['survived']:4} survived  "
        f"{figures['not executed']:4} not executed  {100 * figures['share']:.1f} %"
        for room, figures in _figures(judged, equivalents).items()
    ]
    lines += [
        f"  {result.fate}: {mutant.name} {mutant.description}" for mutant, result in survivors(judged, equivalents)
    ]
    return "\n".join(lines)


def as_json(judged: Judged, equivalents: Mapping[str, str], seed: int) -> dict[str, Any]:
    """The figures, and every mutant that survived."""
    return {
        "format": 1,
        "seed": seed,
        "rooms": {room: dict(figures) for room, figures in _figures(judged, equivalents).items()},
        "survivors": [
            {
                "name": mutant.name,
                "line": mutant.change.line,
                "before": mutant.change.before,
                "after": mutant.change.after,
            }
            | {"fate": result.fate, "cases": result.cases}
            for mutant, result in survivors(judged, equivalents)
        ],
    }


def markdown(judged: Judged, equivalents: Mapping[str, str], seed: int) -> str:
    """The figures by room, and the survivors."""
    rows = [
        f"| {room} | {figures['mutants']} | {figures['killed']} | {figures['near']} | {figures['explained']} | "
        f"{figures['survived']} | {figures['not executed']} | {100 * figures['share']:.1f} % |"
        for room, figures in _figures(judged, equivalents).items()
    ]
    left = [f"- `{mutant.name}`, {mutant.description}" for mutant, _ in survivors(judged, equivalents)]
    head = "| room | mutants | killed | by cases of the module's clauses | explained | survived | not executed |"
    return "\n".join(
        [
            "# Mutants",
            "",
            f"Changes of the reference by rule, sampled by seed {seed}, each against the cases that execute it.",
            "",
            f"{head} killed or explained |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Survivors:",
            "",
            *(left or ["none"]),
            "",
        ]
    )


def _figures(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """By room, and for all of them together."""
    rooms = {mutant.room: [pair for pair in judged if pair[0].room == mutant.room] for mutant, _ in judged}
    return {room: _counted(pairs, equivalents) for room, pairs in {**rooms, "all": list(judged)}.items()}


def _counted(judged: Judged, equivalents: Mapping[str, str]) -> Mapping[str, Any]:
    left = Counter(result.fate for _, result in survivors(judged, equivalents))
    fates = Counter(result.fate for _, result in judged)
    total = len(judged) - fates["not installed"]
    return {
        "mutants": total,
        "killed": fates["killed"],
        "near": sum(result.near for _, result in judged),
        "explained": total - fates["killed"] - left["survived"] - left["not executed"],
        "survived": left["survived"],
        "not executed": left["not executed"],
        "share": round(share_killed(judged, equivalents), 4),
    }
