"""Schemas as functions give the verdicts of jsonschema, on golden messages and on spoiled ones."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.schemas import OutsideTheSubset, _part, check_of, schemas, validator
from tessera_conformance.tensors import Tensor

GOLDEN = Path(__file__).parent / "golden" / "mutated.jsonl"
VALUES: list[Any] = [None, True, False, 0, 1, -1, 1.0, 1.5, 1 << 70, float("nan"), "", "0", "00", "0g", "fifo", "00\n"]
VALUES += [[], [1], ["a", "a"], ["a", "b"], [None], [1, 2, 3], {}, {"a": 1}, {"kind": "out_of_memory"}, {1: 2}]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a message with every key of it."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def spoiled(message: Any, chance: random.Random) -> Any:
    """The message with a member replaced, gone or added."""
    found = deepcopy(message)
    spots = list(places(found))
    if not spots or chance.random() < 0.1:
        return {**found, "more": 1} if isinstance(found, dict) else chance.choice(VALUES)
    container, key = chance.choice(spots)
    if chance.random() < 0.3:
        del container[key]
    else:
        container[key] = deepcopy(chance.choice(VALUES))
    return found


def test_messages_spoiled_at_random_get_the_verdicts_of_jsonschema() -> None:
    chance = random.Random(7)
    accepted = 0
    kept = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    for each in kept:
        area, _, definition = each["definition"].partition("/")
        schema = f"tessera:protocol/{area}"
        judge, check = validator(schema, definition), check_of(_part(schema, definition))
        for message in (each["message"], *(spoiled(each["message"], chance) for _ in range(4))):
            expected = judge.is_valid(message)
            accepted += expected
            assert check(message) == expected, (each["definition"], message)
    assert 200 < accepted < len(kept) * 3


FRAGMENTS: list[dict[str, Any]] = [
    {"const": True},
    {"const": 1},
    {"const": "a"},
    {"enum": [0, 1]},
    {"enum": ["a", "00"]},
    {"type": ["integer", "null"], "minimum": 1},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 2},
    {"exclusiveMinimum": 0, "exclusiveMaximum": 2},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "null"}},
    {"propertyNames": {"pattern": "^a$"}, "minProperties": 1},
    {"oneOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]},
    {"oneOf": [{"required": ["a"]}, {"required": ["kind"]}]},
    {},
]


@pytest.mark.parametrize("schema", FRAGMENTS, ids=json.dumps)
def test_every_keyword_means_what_jsonschema_means(schema: dict[str, Any]) -> None:
    import jsonschema

    judge, check = jsonschema.Draft202012Validator(schema), check_of(schema)
    values = [value for value in VALUES if value != {1: 2}]
    assert [check(value) for value in values] == [judge.is_valid(value) for value in values]


@pytest.mark.parametrize(
    "schema", [{"contains": {}}, {"anyOf": [{}]}, {"type": "string", "format": "date"}, {"const": []}]
)
def test_a_keyword_that_is_not_known_is_not_passed_over(schema: dict[str, Any]) -> None:
    with pytest.raises(OutsideTheSubset):
        check_of(schema)


def test_tensors_that_are_decoded_already_are_taken_as_they_are() -> None:
    check = check_of(_part("tessera:protocol/language", "execute.result", decoded=True))
    assert check({"outputs": [Tensor("int8", (), b"\1")]})
    assert not check({"outputs": [{"$tensor": {"dtype": "int8", "shape": [], "bits": "01"}}]})


JUDGED_OFTEN = ["tessera:report/lines", "tessera:vectors/lines", *(name for name in schemas() if "protocol/" in name)]


@pytest.mark.parametrize("identifier", JUDGED_OFTEN)
def test_a_schema_that_is_judged_often_becomes_a_function(identifier: str) -> None:
    for definition in ("", *schemas()[identifier].get("$defs", {})):
        check_of(_part(identifier, definition))


def test_bytes_as_pairs_of_digits_are_judged_without_memory_for_each() -> None:
    check = check_of(_part("tessera:protocol/messages", "data"))
    digits = "0f" * (1 << 20)
    tracemalloc.start()
    verdicts = [check(digits), check(digits[1:]), check(f"{digits}0g")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdicts == [True, False, False]
    assert peak < len(digits) * 4  # the three texts themselves, where a remembered repetition takes 90 bytes
