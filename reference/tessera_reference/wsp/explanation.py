"""The report of a deadlock for people: lines of text (sections 3.3 and 3.4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MOST_SHOWN", "explanation"]

MOST_SHOWN = 24
"""How many of those that wait are shown."""


def explanation(result: Mapping[str, Any]) -> Iterator[str]:
    """What a run came to, and the report where it is a deadlock (`schemas/wsp_result.schema.json`)."""
    if "deadlock" in result:
        yield from _deadlock(result["deadlock"])
    elif "error" in result:
        error = result["error"]
        where = f"{error['process']} at {error['statement']}"
        yield f"error {error['code']} at {error['time']}: {where}: {error['message']}"
    else:
        yield f"{result['outcome']}, total_cycles {result['statistics']['total_cycles']}"


def _deadlock(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"deadlock at {report['time']}"
    yield _row("window", _use(report["window"]))
    for name, use in report["resources"].items():
        if name != "task_ring" and use["high_water"]:
            yield _row("resource", f"{name}: {_use(use)}")
    for each in report["channels"]:
        closed = ", closed" if each["closed"] else ""
        tokens = f"{each['tokens']} of {each['capacity']} tokens{closed}"
        yield _row("channel", f"{each['name']} is {each['state']}: {tokens}")
    for each in report["waiting"][:MOST_SHOWN]:
        who = f"task {each['task']} of {each['process']}" if "task" in each else f"process {each['process']}"
        yield _row("waiting", f"{who}, {each['reason']}, for {each['for']}, at {each['statement']}")
    if len(report["waiting"]) > MOST_SHOWN:
        yield _row("", f"and {len(report['waiting']) - MOST_SHOWN} more")
    cycle = report["cycle"]
    yield _row("cycle", " -> ".join([*cycle, cycle[0]]) if cycle else "none: nobody who waits could end it")
    for each in report["scopes"]:
        yield _row("scopes", f"{each['process']}: depth {each['depth']}, holds {each['held']}")
    if report["held_by_scopes"]:
        yield _row("", "what scopes hold is what is lacking")
    for each in report["mitigations"]:
        at_least = f" = {each['at_least']}" if "at_least" in each else ""
        yield _row("helps", f"{each['knob']}{at_least}: {each['why']}")


def _use(use: Mapping[str, int]) -> str:
    return f"{use['used']} of {use['size']} used, at most {use['high_water']}"


def _row(title: str, text: str) -> str:
    return f"{title:<9}{text}"
