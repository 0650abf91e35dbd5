"""Which cases count against the claim, in the order in which people want to read them.

Wrong results come first, then crashes, hangs and what else went wrong. Cases that failed only because something claimed
was answered as unsupported say nothing one by one: the causes count them by feature.
"""

from __future__ import annotations

from collections.abc import Iterable

from tessera_conformance.reports.claim import Line, counts_against
from tessera_conformance.reports.journal import Report

_AFTER_FAILURES = ("pass", "crash", "hang", "protocol_error", "harness_error", "not_run")
"""A pass that counts is an unexpected one."""


def failures(report: Report) -> list[Line]:
    """The cases to show one by one; none of an implementation that did not even start, and none of what it lacks."""
    if did_not_start(report):
        return []
    return [line for line in in_order(report.observed) if counts_against(line) and missing_feature(line) is None]


def did_not_start(report: Report) -> bool:
    """Whether every failure has one cause: no implementation answered at all."""
    return report.header["implementation"]["fault"] is not None


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Cases that count against the claim first and by their weight, each part in the report's own order."""
    return sorted(lines, key=_rank)


def missing_feature(observation: Line) -> str | None:
    """The feature whose lack alone failed the case: it was claimed, and answered as unsupported."""
    if observation["verdict"] != "fail" or _wrong(observation):
        return None  # asked of every case: the exchanges of one that passed are not to be parsed for it
    exchanges = observation["exchanges"]
    if not exchanges:
        return None
    lacking = exchanges[-1]["observation"].get("unsupported")
    return None if lacking is None else str(lacking["feature"])


def last_stderr(observation: Line) -> str:
    """The standard error that the last exchange of a case that crashed or hung left behind."""
    exchanges = observation["exchanges"] if observation["verdict"] in ("crash", "hang") else ()
    return str(exchanges[-1]["run"].get("stderr", "")) if exchanges else ""


def tail(text: str, most: int) -> list[str]:
    """The last lines that say something."""
    return [line for line in text.splitlines() if line.strip()][-most:]


def _wrong(observation: Line) -> bool:
    return any(not check["passed"] for check in observation["checks"])


def _rank(observation: Line) -> int:
    if not counts_against(observation):
        return len(_AFTER_FAILURES) + 3
    if observation["verdict"] != "fail":
        return 2 + _AFTER_FAILURES.index(observation["verdict"])
    if missing_feature(observation) is not None:
        return len(_AFTER_FAILURES) + 2
    return 0 if _wrong(observation) else 1
