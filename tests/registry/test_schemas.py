"""The typed reader and the published JSON Schemas accept and refuse the same files."""

from __future__ import annotations

import copy
import json
import tomllib

import pytest
from jsonschema import Draft202012Validator

from tessera_conformance import locations
from tessera_conformance.registry import decode, schema

TABLES = {
    "clauses": ("runtime_abi.toml", decode.CLAUSE_FILE),
    "interpretations": ("interpretations.toml", decode.INTERPRETATION_FILE),
    "chapters": ("chapters.toml", decode.CHAPTER_FILE),
}

CHAPTER = {"document": "runtime_abi", "section": "10.1", "topics": ["parameter-buffer"]}

VALUES = [
    *("", " ", "x", "X", " x", "x ", "a b", "a\nb", "MUST", "test", "untestable", "core", "active", "abi", "wsp", "RT"),
    *("RT-01-01", "RT-1", "AMB-RT-01", "AMB-LANG-100", "AMB-RT-1", "rt-01-01", "RT 4.1", "RT 4.1-4.8", "10.1", "19.A"),
    *("sha256:" + "0" * 64, "sha256:" + "G" * 64, "0" * 64, "a.txt", "a/b.txt", "0.1.0", "0.1", "UPPER", "two-words"),
    *(0, 1, -1, True, False, 1.5, {}, {"a": 1}, []),
    *([1, 2], [0, 1], [1], [1, 2, 3], [True, 2], ["x"], ["x", "x"], ["RT-01-01"], ["AMB-RT-01"], ["RT 4.1"], [""]),
    *(["AMB-RT-01", "AMB-RT-01"], ["two-words"], ["UPPER"], [1], [[]]),
]


def shipped(name):
    file, table = TABLES[name]
    content = tomllib.loads((locations.clauses_directory() / file).read_text())
    rows = content.get(table.rows) or [CHAPTER]
    with_most_fields = max(rows, key=len)
    return {**content, table.rows: [with_most_fields]}, table


def validator(name):
    path = locations.schemas_directory() / "registry" / f"{name}.schema.json"
    return Draft202012Validator(json.loads(path.read_text()))


def mutations(content, rows):
    """The content with one field dropped, added, or given each of many values, in the header, the row and on top."""
    for path in [(), ("document",), (rows, 0)]:
        target = content
        for step in path:
            target = target[step] if step in target or isinstance(target, list) else None
            if target is None:
                break
        if not isinstance(target, dict):
            continue
        for field in [*target, "reason", "unknown"]:
            for value in [None, *VALUES]:
                mutated = copy.deepcopy(content)
                place = mutated
                for step in path:
                    place = place[step]
                if value is None:
                    place.pop(field, None)
                else:
                    place[field] = value
                yield mutated, f"{'.'.join(map(str, path))}: {field} = {value!r}"


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_is_valid_and_closed(name):
    schema_text = validator(name).schema
    Draft202012Validator.check_schema(schema_text)
    assert schema_text["additionalProperties"] is False


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_reader_and_schema_agree_over_mutations(name):
    content, table = shipped(name)
    judge = validator(name)
    assert judge.is_valid(content)
    accepted = refused = 0
    for mutated, description in mutations(content, table.rows):
        by_reader = not list(decode.violations(mutated, table, "a file"))
        assert by_reader == judge.is_valid(mutated), f"reader accepts: {by_reader}; {description}"
        accepted, refused = accepted + by_reader, refused + (not by_reader)
    assert accepted > 2
    assert refused > 80


def test_what_only_the_schema_refuses_is_reported_with_row_and_field():
    content, _ = shipped("clauses")
    row = copy.deepcopy(content["clause"][0])
    row["level"] = "COULD"
    files = {"runtime_abi.toml": {**content, "clause": [row]}}
    (problem,) = schema.schema_violations(files)
    assert (problem.file, problem.row, problem.field) == ("runtime_abi.toml", row["id"], "level")


def test_every_file_of_the_registry_has_a_schema():
    directory = locations.clauses_directory()
    schemas = locations.schemas_directory() / "registry"
    files = sorted(file.name for file in directory.iterdir())
    assert len(files) == 8
    assert all((schemas / f"{schema.schema_of(file)}.schema.json").is_file() for file in files)
