"""A sixty-fourth of the cases of each implementation that is a table of operations, where its package is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conformance.adapters.judge import PUBLISHED, implementations, judged, missing, page, summary

TABLES = [
    name for name, row in implementations().items() if row["impl"].startswith("ops:") or "serve ops:" in row["impl"]
]


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_part_is_judged(name: str) -> None:
    """Most of what its table has passes, and nothing breaks the protocol or the harness."""
    row = implementations()[name]
    if lacking := missing(row):
        pytest.skip(f"{', '.join(lacking)} is not there: {row['install']}")
    options = [option for option in row["options"] if not option.startswith("--shard")]
    told = summary(row, judged({**row, "options": options}, "--shard=1/64"))
    cases = told["cases"]
    assert {"protocol_error", "harness_error", "not_run"}.isdisjoint(cases)
    assert cases["pass"] > cases.get("fail", 0)


def test_the_comparison_is_current() -> None:
    assert (PUBLISHED / "README.md").read_text(encoding="utf-8") == page(), "run `python -m conformance.adapters.judge`"


def test_every_summary_is_of_a_known_implementation() -> None:
    for path in sorted(PUBLISHED.glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        if "cases" in told:
            assert told["impl"] == implementations()[path.stem]["impl"]
            assert Path(path.with_suffix(".md")).exists()
