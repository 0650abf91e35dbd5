"""The report of a deadlock as a graph in SVG: who waits at the left, for what at the right, the cycle in red."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .explanation import MOST_SHOWN

__all__ = ["drawing"]

WIDTH, ROW, BOX, TOP = 760, 46, 30, 50
LEFT, RIGHT, BOX_WIDTH = 20, 480, 260
CYCLE, WAIT = "#b03a2e", "#777777"
Edge = tuple[str, str]


def drawing(report: Mapping[str, Any]) -> str:
    """The picture of a report; of many that wait, those in the cycle and the first."""
    cycle = report["cycle"]
    around = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    waits = _waits(report)
    shown = [each for each in waits if each[0][0] in cycle] + [each for each in waits if each[0][0] not in cycle]
    shown = shown[:MOST_SHOWN]
    names = list(dict.fromkeys([*(name for edge, _ in shown for name in edge), *cycle]))
    places = _places([each for each in names if each], report)
    reasons = dict(shown)
    edges = list(dict.fromkeys([edge for edge, _ in shown if edge[1]] + around))
    height = TOP + ROW * max(1, *(1 + row for _, row in places.values()))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f"<defs>{_arrow_head('wait', WAIT)}{_arrow_head('cycle', CYCLE)}</defs>",
        f'<text x="{LEFT}" y="24" font-size="14">deadlock at {report["time"]}: {len(waits)} wait</text>',
        *(_edge(edge, places, reasons.get(edge, ""), edge in around) for edge in edges),
        *(part for name, place in places.items() for part in _node(name, place, _note(name, report), name in cycle)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _waits(report: Mapping[str, Any]) -> Sequence[tuple[Edge, str]]:
    """Who waits for what, with the reason; who waits for tasks has an edge in the cycle alone."""
    found = []
    for each in report["waiting"]:
        who = f"task {each['task']}" if "task" in each else f"process {each['process']}"
        kind = "channel" if each["reason"].startswith("CHANNEL") else "resource"
        what = "" if each["reason"] == "TASK_WAIT" else f"{kind} {each['for']}"
        found.append(((who, what), each["reason"]))
    return found


def _places(names: Sequence[str], report: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Column and row of each: who acts at the left, what they wait for at the right."""
    left = [each for each in names if each.startswith(("process ", "task "))]
    right = [each for each in names if each not in left]
    return {each: (LEFT, row) for row, each in enumerate(left)} | {each: (RIGHT, row) for row, each in enumerate(right)}


def _note(name: str, report: Mapping[str, Any]) -> str:
    """What the report says of a channel, resource or scope."""
    kind, _, subject = name.partition(" ")
    for each in report["channels"]:
        if kind == "channel" and each["name"] == subject:
            return f"{each['state']}, {each['tokens']} of {each['capacity']}"
    if kind == "resource":
        use = report["resources"][subject]
        return f"{use['used']} of {use['size']}"
    for each in report["scopes"]:
        if name == f"scope of {each['process']}":
            return f"depth {each['depth']}, holds {each['held']}"
    for each in report["waiting"]:
        if name in (f"task {each.get('task')}", f"process {each['process']}" if "task" not in each else None):
            return str(each["statement"])
    return ""


def _node(name: str, place: tuple[int, int], note: str, in_cycle: bool) -> Iterator[str]:
    x, row = place
    y = TOP + ROW * row
    colour = CYCLE if in_cycle else WAIT
    yield f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX}" rx="4" fill="white" stroke="{colour}"/>'
    text = f"{name}, {note}" if note else name
    yield f'<text x="{x + 8}" y="{y + 20}">{escape(text if len(text) < 42 else text[:40] + "...")}</text>'


def _edge(edge: Edge, places: Mapping[str, tuple[int, int]], reason: str, in_cycle: bool) -> str:
    """From box to box: across, or beside the column where both are in one."""
    (x1, row1), (x2, row2) = places[edge[0]], places[edge[1]]
    y1, y2 = (TOP + ROW * row + BOX // 2 for row in (row1, row2))
    kind, colour = ("cycle", CYCLE) if in_cycle else ("wait", WAIT)
    line = f'fill="none" stroke="{colour}" marker-end="url(#{kind})"'
    if x1 == x2:
        side = x1 + BOX_WIDTH if x1 == LEFT else x1
        out = side + 40 if x1 == LEFT else side - 40
        return f'<path d="M {side} {y1} C {out} {y1} {out} {y2} {side} {y2}" {line}/>'
    start, end = (x1 + BOX_WIDTH, x2) if x1 < x2 else (x1, x2 + BOX_WIDTH)
    shift = 5 if x1 < x2 else -5
    label = f'<text x="{start + 8}" y="{y1 - shift - 4}" font-size="9">{escape(reason)}</text>' if reason else ""
    return f'<line x1="{start}" y1="{y1 - shift}" x2="{end}" y2="{y2 - shift}" {line}/>{label}'


def _arrow_head(kind: str, colour: str) -> str:
    return (
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{colour}"/></marker>'
    )
