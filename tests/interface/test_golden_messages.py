"""The golden messages: protocol 1 as it was recorded before it was generated, byte for byte.

`golden/AREA.jsonl` is one conversation with the reference, without its optional packages: a request, its answer, a
request, and so on; requests that succeed and requests that are refused, of every method. `golden/mutated.jsonl` has
parameters, results and outcomes, most of them spoiled, with what the harness says of each.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.interface import interface
from tessera_conformance.schemas import first_problem
from tessera_conformance.server import serve
from tessera_reference import adapter

GOLDEN = Path(__file__).parent / "golden"
AREAS = ("abi", "binding", "collectives", "language", "numerics", "runtime", "wsp")


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
    found = written.getvalue().splitlines(keepends=True)
    found = [claiming_no_more(*pair) for pair in zip(found, answers, strict=True)]
    wrong = [pair for pair in zip(requests, found, answers, strict=True) if pair[1] != pair[2]]
    assert wrong[:1] == []


def claiming_no_more(found: bytes, recorded: bytes) -> bytes:
    """A Hello without the documents and features that came after the recording; any other answer as it is."""
    now, then = json.loads(found).get("result", {}), json.loads(recorded).get("result", {})
    if "capabilities" not in now or "capabilities" not in then:
        return found
    now["documents"] = [each for each in now["documents"] if each in then["documents"]]
    now["capabilities"] = {name: how for name, how in now["capabilities"].items() if name in then["capabilities"]}
    return json.dumps({**json.loads(found), "result": now}, separators=(",", ":")).encode() + b"\n"


def test_every_method_of_protocol_1_is_there_twice() -> None:
    """A method that is added later need not be."""
    returned = Counter(method for method, _, result in EXCHANGES if "returned" in result or method == "session.open")
    rare = {name: count for name, count in returned.items() if count < 2}
    assert rare == {}
    assert len(set(interface().methods) & set(returned)) == 91
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
    assert 100 < sum(each["problem"] is None for each in kept) < 400
    for each in kept:
        area, _, definition = each["definition"].partition("/")
        assert first_problem(f"tessera:protocol/{area}", definition, each["message"]) == each["problem"], each
