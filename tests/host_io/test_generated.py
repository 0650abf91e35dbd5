"""The typed messages, the schema beside them and their page follow from the published schema."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]


def test_what_is_made_from_the_schema_is_current() -> None:
    outputs = runpy.run_path(str(ROOT / "docs" / "draw_host_messages.py"))["outputs"]()
    stale = [path.name for path, text in outputs.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `python docs/draw_host_messages.py`"


def test_the_schema_is_one() -> None:
    schema = json.loads((ROOT / "schemas" / "host_io.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)


def test_its_clauses_are_in_the_registry() -> None:
    text = (ROOT / "schemas" / "host_io.schema.json").read_text(encoding="utf-8")
    known = (ROOT / "conformance" / "clauses" / "host_io.toml").read_text(encoding="utf-8")
    schema = json.loads(text)["$defs"]
    stated = {
        clause
        for each in schema.values()
        for node in (each, *each.get("properties", {}).values())
        for clause in node.get("x-clauses", ())
    }
    assert len(stated) > 90
    assert [clause for clause in sorted(stated) if f'id = "{clause}"' not in known] == []


@pytest.mark.parametrize("page", ["host_io", "host_messages"])
def test_the_pages_are_linked(page: str) -> None:
    assert f"\n{page}\n" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
