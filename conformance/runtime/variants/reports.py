"""Other reports: traces, findings and the log, whose words and order are free (runtime spec 17, Appendix C)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.mesh import trace
from tessera_reference.mesh.memory import FindingKind, Findings
from tessera_reference.mesh.trace import Record
from tessera_reference.runtime.state import Log

from .reach import RUNTIME

TRACE, ADD, NOTE = trace.chrome_trace, Findings.add, Log.note
LATER = 10**6
"""Microseconds by which the clock of the trace is ahead."""


def other_trace(records: Iterable[Record], *rest: Any) -> dict[str, Any]:
    """The events backwards but for their flows, on processes and threads of other numbers, with more to each."""
    made = TRACE(records, *rest)
    events = [renumbered(event) for event in made["traceEvents"]]
    flows = [event for event in events if event["ph"] in "sf"]
    others = [event for event in events if event["ph"] not in "sf"]
    return {"displayTimeUnit": "ms", "traceEvents": [*others[::-1], *flows]}


def renumbered(event: dict[str, Any]) -> dict[str, Any]:
    """An event of another process and thread."""
    moved = {name: 3 * event[name] + 11 for name in ("pid", "tid") if name in event}
    more = {"args": event["args"] | {"vendor": "x"}} if event["ph"] == "X" else {}
    return event | moved | more


TRACES = altered(
    "AMB-RT-164",
    "writes the events of a trace backwards, with other numbers of processes and threads and fields of its own",
    RUNTIME,
    ReferenceAdapter,
    (trace, "chrome_trace", other_trace),
    name="other_traces",
)


def in_a_word(findings: Findings, kind: FindingKind, text: str) -> None:
    """The finding without what was found; each is reported."""
    ADD(findings, kind, f"#{len(findings)}")


def latest_first(findings: Findings) -> Any:
    """From the last to the first."""
    return iter([*findings._found][::-1])


FINDINGS = altered(
    "AMB-RT-83",
    "tells findings without a word more than their kind, the last one first",
    RUNTIME,
    ReferenceAdapter,
    (Findings, "add", in_a_word),
    (Findings, "__iter__", latest_first),
    name="other_findings",
)


def in_other_words(log: Log, level: str, text: str) -> None:
    """Two lines of another text."""
    for line in ("avant", "après"):
        NOTE(log, level, line)


LOGS = altered(
    "AMB-RT-31",
    "logs other lines, and twice as many",
    RUNTIME,
    ReferenceAdapter,
    (Log, "note", in_other_words),
    name="other_log",
)
