"""About how many seconds a case takes; `python -m tessera_conformance.executor.costs REPORT` makes the table anew.

It says which cases begin first and how many stand in a unit; where it is wrong, a run takes longer, and gives the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tessera_conformance.reports.journal import read, report_in

TABLE = Path(__file__).with_name("seconds.json")
FUNCTION_PARTS = 3
"""The first parts of a case id, which name a test function: chapter, file, function."""
LEAST = 0.02
"""Seconds of a case below which its test function has no row of its own."""


@cache
def table() -> Mapping[str, float]:
    """Seconds of a case by the beginning of its id; "" has those of all others."""
    rows: dict[str, float] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def seconds_of_case(case: str) -> float:
    """The estimate for a case by its id."""
    rows, beginning = table(), case
    while beginning and beginning not in rows:
        beginning = beginning.rpartition("/")[0]
    return rows[beginning]


def table_of(observations: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The table that a report makes: the mean of each test function that takes long, and that of all the others."""
    by_function: dict[str, list[float]] = {}
    for line in observations:
        function = "/".join(line["case"].split("/")[:FUNCTION_PARTS])
        by_function.setdefault(function, []).append(line["run"].get("seconds", 0.0))
    means = {name: sum(seconds) / len(seconds) for name, seconds in sorted(by_function.items())}
    long = {name: round(mean, 3) for name, mean in means.items() if mean >= LEAST}
    others = [seconds for name, each in by_function.items() if name not in long for seconds in each]
    return {"": round(sum(others) / max(len(others), 1), 4)} | long


if __name__ == "__main__":
    rows = table_of(read(report_in(Path(sys.argv[1]))).observations)
    TABLE.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
