"""Golden messages, and the schemas as functions that judge them."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.interface import interface
from tessera_conformance.schemas import OutsideTheSubset, _part, check_of, first_problem, schemas, validator
from tessera_conformance.server import serve
from tessera_conformance.tensors import Tensor
from tessera_reference import adapter

# The golden messages: protocol 1 as it was recorded before it was generated, byte for byte.

GOLDEN = Path(__file__).parent / "golden"
AREAS = ("abi", "binding", "collectives", "host_io", "language", "numerics", "runtime", "wsp")


def lines(area: str) -> tuple[list[bytes], list[bytes]]:
    """The requests and the answers of a conversation."""
    found = (GOLDEN / f"{area}.jsonl").read_bytes().splitlines(keepends=True)
    return found[::2], found[1::2]


def exchanges() -> list[tuple[str, dict[str, Any], Any]]:
    """The method, the parameters and the result of every exchange that has one."""
    pairs = [pair for area in AREAS for pair in zip(*map(list, lines(area)), strict=True)]
    read = [(json.loads(request), json.loads(answer)) for request, answer in pairs]
    return [(asked["method"], asked["params"], given["result"]) for asked, given in read if "result" in given]


EXCHANGES = exchanges()


@pytest.mark.parametrize("area", AREAS)
def test_the_reference_answers_byte_for_byte(area: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    requests, answers = lines(area)
    written = io.BytesIO()
    serve(adapter.make(), io.BytesIO(b"".join(requests)), written)
    actual = written.getvalue().splitlines(keepends=True)
    actual = [claiming_no_more(*pair) for pair in zip(actual, answers, strict=True)]
    wrong = [pair for pair in zip(requests, actual, answers, strict=True) if pair[1] != pair[2]]
    assert wrong[:1] == []


def claiming_no_more(found: bytes, recorded: bytes) -> bytes:
    """A Hello without the documents and features that came after the recording; any other answer as it is."""
    now, then = json.loads(found).get("result", {}), json.loads(recorded).get("result", {})
    if "capabilities" not in now or "capabilities" not in then:
        return found
    now["documents"] = [document for document in now["documents"] if document in then["documents"]]
    now["capabilities"] = {name: how for name, how in now["capabilities"].items() if name in then["capabilities"]}
    return json.dumps({**json.loads(found), "result": now}, separators=(",", ":")).encode() + b"\n"


def test_every_method_of_protocol_1_is_there_twice() -> None:
    """A method that is added later need not be."""
    returned = Counter(method for method, _, result in EXCHANGES if "returned" in result or method == "session.open")
    rare = {name: count for name, count in returned.items() if count < 2}
    assert rare == {}
    assert len(set(interface().methods) & set(returned)) == 100
    refused = {method for method, params, result in EXCHANGES if "rejected" in result and params}
    assert len(refused) > 60


def test_every_result_and_outcome_is_accepted() -> None:
    for method, _, result in EXCHANGES:
        area, _, name = method.partition(".")
        if method == "session.open":
            assert first_problem("tessera:protocol/session", "open.result", result) is None
            continue
        assert first_problem("tessera:protocol/messages", "outcome", result) is None
        if "returned" in result:
            assert first_problem(f"tessera:protocol/{area}", f"{name}.result", result["returned"]) is None, method


def test_spoiled_messages_are_refused_with_the_same_words() -> None:
    kept = [json.loads(line) for line in (GOLDEN / "mutated.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(kept) > 1000
    assert 100 < sum(case["problem"] is None for case in kept) < 400
    for entry in kept:
        area, _, definition = entry["definition"].partition("/")
        assert first_problem(f"tessera:protocol/{area}", definition, entry["message"]) == entry["problem"], entry


# Schemas as functions give the verdicts of jsonschema, on golden messages and on spoiled ones.

MUTATED = Path(__file__).parent / "golden" / "mutated.jsonl"
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
    kept = [json.loads(line) for line in MUTATED.read_text(encoding="utf-8").splitlines()]
    for entry in kept:
        area, _, definition = entry["definition"].partition("/")
        schema = f"tessera:protocol/{area}"
        judge, check = validator(schema, definition), check_of(_part(schema, definition))
        for message in (entry["message"], *(spoiled(entry["message"], chance) for _ in range(4))):
            expected = judge.is_valid(message)
            accepted += expected
            assert check(message) == expected, (entry["definition"], message)
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
