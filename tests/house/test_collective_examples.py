"""The examples of collectives run, and the committed trace is what its example writes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = ("data_parallel", "moe", "prefetch")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(root / "examples" / "collectives" / f"{name}.py"), run_name="__main__")
    assert " us" in capsys.readouterr().out


def test_the_committed_trace_is_current(root: Path) -> None:
    example = runpy.run_path(str(root / "examples" / "collectives" / "perfetto.py"))
    written = (root / "examples" / "collectives" / "step.trace.json").read_text(encoding="ascii")
    assert written == example["trace"](), "run `python perfetto.py` in examples/collectives"
    names = {event["name"] for event in json.loads(written)["traceEvents"] if event["ph"] == "X"}
    assert {"layer0", "backward1", "scatter0 chunk 0"} <= names
