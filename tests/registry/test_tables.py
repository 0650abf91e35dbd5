"""The TOML files of the registry: their schemas, and their copies as JSON."""

from __future__ import annotations

import copy
import functools
import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tessera_conformance import cases, documents
from tessera_conformance.documents import cache_folder, table_of
from tessera_conformance.registry import load

# What the published JSON Schemas accept and refuse, and how the reader names the row and the field.

FILES = {
    "clauses": ("runtime_abi.toml", "clause"),
    "interpretations": ("interpretations.toml", "interpretation"),
    "chapters": ("chapters.toml", "enforced"),
    "profiles": ("profiles.toml", "profile"),
    "constructs": ("constructs.toml", "construct"),
}
CHAPTER = {"document": "runtime_abi", "section": "10.1", "topics": ["parameter-buffer"]}

TEXT = ["", " ", " x", "x ", "a\nb", 1, None, ["x"]]
SLUG = ["", "UPPER", "two words", "-x", 1]
SECTION = ["", "10.", "10.1a", 10]
CLAUSE = ["RT-1", "rt-01-01", "XX-01-01", "RT-01-001", 1]
DIGEST = ["sha256:" + "G" * 64, "0" * 64, "sha256:" + "0" * 63, 0]
VERSION = ["0.1", "0.1.0-a", 1]
STATUS = ["", "Active", True]
WRONG = {
    ("clauses", "clause"): {
        "id": CLAUSE,
        "section": SECTION,
        "lines": [[], [1], [1, 2, 3], [0, 1], [True, 2], [1.5, 2], "12", 1],
        "source": DIGEST,
        "level": ["COULD", "must", None],
        "kind": ["rule", 1],
        "summary": TEXT,
        "verify": ["tests", 1],
        "judged_by": ["effect", 1],
        "reason": TEXT,
        "area": ["wsp", 1],
        "topic": SLUG,
        "feature": SLUG,
        "profile": ["Core", 1],
        "duplicate_of": CLAUSE,
        "interpretations": [[], ["AMB-RT-1"], ["RT-01-01"], ["AMB-RT-01", "AMB-RT-01"], "AMB-RT-01"],
        "since": VERSION,
        "status": STATUS,
    },
    ("clauses", "document"): {
        "key": ["runtime", 1],
        "title": TEXT,
        "prefix": ["ABI", 1],
        "file": ["a/b.txt", "a.md", 1],
        "lines": [0, -1, 1.5, True, "1"],
        "sha256": ["0" * 63, "G" * 64, 0],
    },
    ("interpretations", "interpretation"): {
        "id": ["AMB-RT-1", "RT-01-01", 1],
        "document": ["runtime", 1],
        "sections": [[], ["4.1"], ["RT 4.1", "RT 4.1"], "RT 4.1"],
        "issue": TEXT,
        "decision": TEXT,
        "why": TEXT,
        "alternatives": [[""], ["x", "x"], "x"],
        "excluded": [[], [""], ["x", "x"], "x"],
        "affects": [["RT-1"], ["RT-01-01", "RT-01-01"], "RT-01-01"],
        "asserted": TEXT,
        "feature": SLUG,
        "since": VERSION,
        "status": STATUS,
    },
    ("chapters", "enforced"): {
        "document": ["runtime", 1],
        "section": SECTION,
        "topics": [[], ["UPPER"], ["x", "x"], "x"],
    },
    ("profiles", "profile"): {
        "id": SLUG,
        "document": ["runtime", 1],
        "summary": TEXT,
        "features": [[], ["UPPER"], ["x", "x"], "x"],
        "clauses": [[], ["RT-1"], ["RT-01-01", "RT-01-01"], "RT-01-01"],
    },
}
OPTIONAL = {
    "clauses": {"judged_by", "reason", "duplicate_of", "interpretations"},
    "interpretations": {"excluded", "feature"},
    "chapters": {"section", "topics"},
    "profiles": set(),
}


@functools.cache
def shipped(name):
    """The parsed file with one row, one that has most fields; the same object each time, so copy it to change it."""
    file, rows = FILES[name]
    content = tomllib.loads((cases.clauses_directory() / file).read_text())
    return {**content, rows: [max(content.get(rows) or [CHAPTER], key=len)]}, file


def validator(name):
    path = cases.schemas_directory() / "registry" / f"{name}.schema.json"
    return Draft202012Validator(json.loads(path.read_text()))


@pytest.mark.parametrize("name", FILES)
def test_the_schema_is_valid_and_closed(name):
    schema_text = validator(name).schema
    Draft202012Validator.check_schema(schema_text)
    assert schema_text["additionalProperties"] is False


def spoilt(name, table, field, value):
    """Fields with a value that is refused, or left out where the value is `...`."""
    content, file = copy.deepcopy(shipped(name))
    row = content[table][0] if isinstance(content[table], list) else content[table]
    if value is ...:
        row.pop(field, None)
    else:
        row[field] = value
    place = row["id"] if table != "document" and field != "id" and "id" in row else None
    return load.schema_violations(file, content), place


@pytest.mark.parametrize(("name", "table"), WRONG)
def test_a_field_of_the_wrong_form_is_named_with_its_row(name, table):
    for field, values in WRONG[name, table].items():
        for value in values:
            problems, row = spoilt(name, table, field, value)
            assert problems, f"{field} = {value!r} is accepted"
            assert all(problem.field.partition(".")[0] == field for problem in problems), f"{field} = {value!r}"
            assert row is None or problems[0].row == row


@pytest.mark.parametrize(("name", "table"), WRONG)
def test_a_field_left_out_is_missing_unless_it_is_optional(name, table):
    for field in WRONG[name, table]:
        problems, _ = spoilt(name, table, field, ...)
        missing = [] if field in OPTIONAL[name] else [(field, "missing")]
        assert [(problem.field, problem.found) for problem in problems] == missing


@pytest.mark.parametrize(("name", "table"), WRONG)
def test_a_field_that_is_not_known_is_named_with_those_that_are(name, table):
    ((problem,), _) = spoilt(name, table, "extra", "x")
    assert (problem.field, problem.found) == ("extra", "unknown")
    assert all(field in problem.required for field in WRONG[name, table])


@pytest.mark.parametrize("content", [{}, {"format": 2}, {"format": True}, {"format": 1, "clause": "x"}, {"more": 1}])
def test_a_file_of_another_form_is_refused(content):
    assert load.schema_violations("runtime_abi.toml", content)


def test_every_file_of_the_registry_has_a_schema():
    directory = cases.clauses_directory()
    schemas = cases.schemas_directory() / "registry"
    files = sorted(file.name for file in directory.iterdir())
    assert len(files) == 12
    assert all((schemas / f"{load.schema_of(file)}.schema.json").is_file() for file in files)


# TOML files kept as JSON: what is kept is used for the text that it was made from, and for nothing else.

WRITTEN = '[a]\nnumbers = [1, 2]\ntext = "é"\n'
TABLE = {"a": {"numbers": [1, 2], "text": "é"}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "some.toml"
    path.write_text(WRITTEN, encoding="utf-8")
    return path


def kept() -> Path:
    (found,) = cache_folder().iterdir()
    return found


def test_a_table_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table_of(file) == TABLE
    monkeypatch.setattr(documents, "read_toml", None)
    assert table_of(file) == TABLE


def test_a_text_that_changed_is_read_again(file: Path) -> None:
    table_of(file)
    file.write_text("b = 3\n", encoding="utf-8")
    assert table_of(file) == {"b": 3}
    assert json.loads(kept().read_text())["value"] == {"b": 3}


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 10**5, '{"source":"0","value":{}}'])
def test_what_is_no_table_of_the_text_is_not_used(file: Path, content: str) -> None:
    table_of(file)
    kept().write_text(content, encoding="utf-8")
    assert table_of(file) == TABLE


def test_no_folder_to_write_to_is_no_failure(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("", encoding="utf-8")
    assert table_of(file) == TABLE


def test_a_date_is_read_each_time(file: Path) -> None:
    file.write_text("day = 2026-11-20\n", encoding="utf-8")
    assert str(table_of(file)["day"]) == "2026-11-20"
    assert list(cache_folder().glob("*")) == []


@pytest.mark.parametrize("text", [b"a =", b"\xff"])
def test_what_is_no_toml_raises(file: Path, text: bytes) -> None:
    file.write_bytes(text)
    with pytest.raises(ValueError, match=r"not TOML|can't decode"):
        table_of(file)
