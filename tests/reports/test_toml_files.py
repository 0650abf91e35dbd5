"""TOML files that people edit name a schema to their editor, which lies beside them and judges as the readers do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tessera_conformance.arithmetic.model import CHOICES, MOST_ALIGNMENT_BITS
from tessera_conformance.cli import main
from tessera_conformance.reports.publish import EDITED, schema_text, write_toml

ROOT = Path(__file__).resolve().parents[2]
ORDER = """
format = 1
[[order]]
operation = "sum"
dtype = "fp32"
axis = 0
tree = "fold"
arithmetic = { product = "rounded", accumulator = "fp32", rounding = "nearest_even", subnormals = "kept" }
shapes = [[[3, 4]], [[5, 6]]]
"""


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for key, item in value.items() for each in ([item] if key == "$ref" else references(item))]
    return [each for item in value for each in references(item)] if isinstance(value, list) else []


def errors(kind: str, text: str) -> list[str]:
    judge = jsonschema.Draft202012Validator(json.loads(schema_text(kind)))
    return [error.message for error in judge.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("kind", EDITED)
def test_a_schema_refers_to_no_other_file(kind: str) -> None:
    schema = json.loads(schema_text(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert references(schema) == []
    assert schema["type"] == "object" and schema["title"]


def test_a_file_names_the_schema_beside_it(tmp_path: Path) -> None:
    write_toml(tmp_path / "known.toml", "deviation = []\n", "deviations")
    first, rest = (tmp_path / "known.toml").read_text(encoding="utf-8").split("\n", 1)
    assert (first, rest) == ("#:schema ./tessera-deviations.schema.json", "deviation = []\n")
    named = tmp_path / first.removeprefix("#:schema ")
    assert named.read_text(encoding="utf-8") == schema_text("deviations")


def test_declared_orders_obey_their_schema() -> None:
    assert errors("declared", ORDER) == []
    assert errors("declared", ORDER.replace('"sum"', '"mean"')) == ["'mean' is not one of ['matmul', 'sum']"]
    assert errors("declared", ORDER.replace("axis", "axes"))
    assert errors("declared", ORDER.replace('accumulator = "fp32", ', ""))


def test_the_arithmetic_of_the_schema_is_that_of_the_model() -> None:
    fields = json.loads(schema_text("declared"))["properties"]["order"]["items"]["properties"]["arithmetic"][
        "properties"
    ]
    assert {*fields} == {*CHOICES, "alignment_bits"}
    assert fields["alignment_bits"]["maximum"] == MOST_ALIGNMENT_BITS
    chosen = {name: tuple(field["enum"]) for name, field in fields.items() if "enum" in field}
    assert chosen == {name: values for name, values in CHOICES.items() if name != "accumulator"}


@pytest.mark.parametrize("example", ["plain_c", "vendor_opencl"])
def test_the_descriptions_of_the_examples_obey_theirs(example: str) -> None:
    text = (ROOT / "examples" / example / "description.toml").read_text(encoding="utf-8")
    assert errors("cabi-description", text) == []
    assert errors("cabi-description", f'colour = "red"\n{text}')


def test_the_command_prints_a_schema_or_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "declared"]) == 0
    assert capsys.readouterr().out == schema_text("declared")
    assert main(["schema", "cabi-description", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "#:schema ./tessera-cabi-description.schema.json\n"
    assert (tmp_path / "tessera-cabi-description.schema.json").is_file()
    assert main(["schema", "declared", "--output", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}")
