"""Mitigations of a deadlock (sections 3.3 and 3.4.3), each tried: the package was executed again with it, and went on.

A knob stands alone where raising it alone is enough, with the smallest value that was found; else those that it needs
beside it stand with it (`also`). Where a scope holds what is lacking, its process is tried without scopes. Where
nothing helps, the program is to be restructured. The search takes a bounded number of steps (AMB-WSP-72).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .executor.stalls import CHANNEL_FULL_WAIT, RESOURCE_OF
from .knobs import capacity_of, no_scopes_of

__all__ = ["AMPLE", "Knobs", "Trial", "mitigations"]

Knobs = Mapping[str, int]
AMPLE = (1 << 32) - 1
"""A size that nothing in reach exhausts."""
MOST_KNOBS = 16


@dataclass(frozen=True)
class Trial:
    """Another execution: `outcome` is completed, further (it went past the deadlock, and was left there), deadlock,
    error or unknown; `demand` is the most that it had of each knob, and `deadlock` the report of its own."""

    outcome: str
    demand: Knobs
    deadlock: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def helps(self) -> bool:
        """Whether it went past the deadlock."""
        return self.outcome in ("completed", "further")


def mitigations(report: Mapping[str, Any], execute: Callable[[Knobs], Trial]) -> list[dict[str, Any]]:
    """What helps against a deadlock, by executions with other settings."""
    search = _Search(report, execute)
    settings = list(search.single_knobs()) or search.knobs_together()
    return [*settings, *search.scopes()] or [{"knob": "restructure", "why": search.why_restructure()}]


class _Search:
    def __init__(self, report: Mapping[str, Any], execute: Callable[[Knobs], Trial]) -> None:
        self.report = report
        self.execute = execute
        self.errors: list[str] = []
        self.spent = False

    def single_knobs(self) -> Iterator[dict[str, Any]]:
        """Each exhausted resource and full channel, if raising it is enough."""
        for knob, size in _exhausted(self.report).items():
            trial = self._tried({knob: AMPLE})
            if trial.helps:
                value, smallest, trial = self._least(knob, size, trial, {})
                exhausted = f"{_subject(knob)} is exhausted at {size}"
                yield _mitigation({knob: value}, trial, exhausted, smallest)

    def scopes(self) -> Iterator[dict[str, Any]]:
        """Each process whose scopes hold something, if it goes on without them."""
        for each in self.report["scopes"]:
            knob = no_scopes_of(each["process"])
            if each["held"] and self.report["held_by_scopes"] and self._tried({knob: 1}).helps:
                held = f"its scopes hold the outputs of {each['held']} complete tasks"
                yield {"knob": knob, "why": f"{held}: without them the run goes on, so end them sooner"}

    def knobs_together(self) -> list[dict[str, Any]]:
        """Several knobs, where one deadlock follows upon another."""
        raised: dict[str, int] = {}
        report: Mapping[str, Any] | None = self.report
        while report is not None and len(raised) < MOST_KNOBS:
            lacking = {knob: size for knob, size in _exhausted(report).items() if knob not in raised}
            if not lacking:
                return []
            raised |= lacking
            trial = self._tried(dict.fromkeys(raised, AMPLE))
            if trial.helps:
                return [self._least_of_each(raised, trial)]
            report = trial.deadlock
        return []

    def why_restructure(self) -> str:
        """Why no setting helps."""
        if self.errors:
            return f"with larger settings the run ends with an error: {self.errors[0]}"
        if self.spent:
            return "no setting was found within the bound of the search: change who waits for whom"
        if not _exhausted(self.report):
            return "no resource is exhausted and no channel is full: change who waits for whom"
        return "the wait remains however large the settings are: change who waits for whom"

    def _least_of_each(self, sizes: Knobs, trial: Trial) -> dict[str, Any]:
        """Knobs lowered one after the other, those that are not needed left out."""
        chosen = dict.fromkeys(sizes, AMPLE)
        all_smallest = True
        for knob, size in sizes.items():
            others = {each: value for each, value in chosen.items() if each != knob}
            without = self._tried(others) if others else None
            if without is not None and without.helps:
                del chosen[knob]
                trial = without
                continue
            chosen[knob], smallest, trial = self._least(knob, size, trial, others)
            all_smallest &= smallest
        return _mitigation(chosen, trial, "one deadlock follows upon another", all_smallest)

    def _least(self, knob: str, size: int, ample: Trial, others: Knobs) -> tuple[int, bool, Trial]:
        """The smallest value that helps, whether the one below was seen not to, and the trial with it."""
        fails, helps, best = size, max(ample.demand[knob], size + 1), ample
        stride = 1
        while helps - fails > 1:
            value = min(fails + stride, (fails + helps) // 2)
            trial = self._tried({**others, knob: value})
            if trial.outcome == "unknown":
                return helps, False, best
            if trial.outcome == ample.outcome:
                helps, best, stride = value, trial, 1
            else:
                fails, stride = value, stride * 2
        return helps, best.outcome == "completed", best

    def _tried(self, knobs: Knobs) -> Trial:
        trial = self.execute(knobs)
        if trial.outcome == "error":
            self.errors.append(trial.error)
        self.spent |= trial.outcome == "unknown"
        return trial


def _exhausted(report: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the knobs whose shortage somebody waits for."""
    reasons = {each["reason"] for each in report["waiting"]}
    found = {
        "task_window" if name == "task_ring" else name: report["resources"][name]["size"]
        for reason, name in RESOURCE_OF.items()
        if reason in reasons
    }
    full = {each["for"] for each in report["waiting"] if each["reason"] == CHANNEL_FULL_WAIT}
    found |= {capacity_of(each["name"]): each["capacity"] for each in report["channels"] if each["name"] in full}
    return found


def _subject(knob: str) -> str:
    return knob.removesuffix(".capacity")


def _mitigation(knobs: Knobs, trial: Trial, why: str, smallest: bool) -> dict[str, Any]:
    (first, value), *others = knobs.items()
    settings = " and ".join(f"{knob} {each}" for knob, each in knobs.items())
    effect = "completes" if trial.outcome == "completed" else "goes past this deadlock"
    found: dict[str, Any] = {"knob": first, "at_least": value}
    if others:
        found["also"] = [{"knob": knob, "at_least": each} for knob, each in others]
    return found | {"smallest": smallest, "why": f"{why}; with {settings} the run {effect}"}
