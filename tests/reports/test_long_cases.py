"""What a report shows of long cases and long texts."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import pytest

from tessera_conformance.check import CheckRecord
from tessera_conformance.observations import Fault, Returned
from tessera_conformance.reports.journal import without_run
from tessera_conformance.reports.lines import FOLDER, encoded, plain, whole
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import Case, observation
from tessera_conformance.tensors import Tensor
from tessera_conformance.verdicts import Judgement


def line_of(verdict: str, count: int) -> dict[str, object]:
    case = Case("abi/long", "A long case", [], ["strict"], [])
    case.exchanges = [Exchange("abi.dtype_ids", {"n": i}, Returned({"n": i}), 0.0) for i in range(count)]
    case.check.records += [CheckRecord("true", True, f"check {i}", True, True) for i in range(count + 1)]
    case.judgement = Judgement(verdict, "")  # type: ignore[arg-type]
    line = json.loads(observation(case).text)
    assert first_problem("tessera:report/lines", "observation", line) is None
    return line  # type: ignore[no-any-return]


def test_a_long_case_that_passed_shows_its_ends() -> None:
    line = line_of("pass", 1000)
    numbers = [exchange["params"]["n"] for exchange in line["exchanges"]]  # type: ignore[attr-defined]
    assert numbers == [*range(64), *range(936, 1000)]
    assert [check["what"] for check in line["checks"]][63:65] == ["check 63", "check 937"]  # type: ignore[attr-defined]
    assert line["left_out"] == {"checks": 873, "exchanges": 872}


def test_a_case_of_128_shows_all_exchanges() -> None:
    line = line_of("pass", 128)
    assert len(line["exchanges"]) == 128  # type: ignore[arg-type]
    assert line["left_out"] == {"checks": 1, "exchanges": 0}
    assert "left_out" not in line_of("pass", 127)


def test_a_case_that_failed_shows_everything() -> None:
    line = line_of("fail", 1000)
    assert len(line["exchanges"]) == 1000  # type: ignore[arg-type]
    assert "left_out" not in line


def test_a_long_text_is_shown_by_its_beginning_and_digest() -> None:
    text = "0f" * 5000
    shown = plain({"image": text})["image"]
    assert shown == f"{text[:256]}... (10000 characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"
    assert plain("0f" * 4096) == "0f" * 4096


def test_the_folder_of_a_case_is_not_told() -> None:
    """Each run has another one, and a report is the same in every run."""
    case = Case("a/case", "keeps files", [], ["strict"], folder=Path("/some/where"))
    case.check.equal("entry", "entry", 'what "/some/where" holds')
    case.check.equal("/some/where/entry", "/some/where/entry", "its path")
    text = observation(case).text
    assert "/some/where" not in text
    assert [check["expected"] for check in json.loads(text)["checks"]] == ["entry", f"{FOLDER}/entry"]


class Word(str):
    """A text of a type of its own, as an adapter in process may return."""


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -1.5, 1e300, float("inf"), float("nan"), 10**2999, 10**4000, 10**5000),
        *("", 'a"b\\', "\ud800", "\U0001f600", "<" * 8192, b"bytes", Word("word")),
        *(Fraction(1, 3), complex(1, 2), range(3), (1, "x"), MappingProxyType({"a": Fraction(1)}), {1: 2}),
        *({"$tensor": "x" * 8193}, ["y" * 8193, 1], ["z" * 5000, "z" * 5000], {"k" * 9000: 1}),
        *(["a"] * 5000, ["\\", "w" * 8193, "\\"], ['\\"' * 4096, '"'], ['\\"' * 4097], list(range(5000))),
        *(Tensor("int8", (4,), bytes(4)), [Tensor("int8", (4096,), bytes(4096))]),
        {"nested": {"tensors": (Tensor("bool", (), b"\1"),)}},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_encoded_at_once_reads_as_what_is_made_plain_first(value: object) -> None:
    assert json.loads(encoded(value)) == json.loads(json.dumps(plain(value)))


def test_the_text_without_run_is_that_of_the_object_without_run() -> None:
    """A field of the data that is named run stays."""
    case = Case("abi/runs", "Fields named run", [], ["strict"])
    case.exchanges = [
        Exchange("abi.a", {"run": {"seconds": 1}, "text": ',"run":{'}, Returned({"run": 2}), 0.5),
        Exchange("abi.b", {}, Fault("crash", "it died", 'said ,"run":{"seconds":3}'), 0.25),
    ]
    case.judgement = Judgement("crash", "it died")
    line = observation(case)
    read = json.loads(line.text)
    assert dict(line) == whole(read)
    assert len(line) == len(whole(read))
    assert json.loads(line.text_without_run) == without_run(read)
    assert without_run(read)["exchanges"][0]["params"] == {"run": {"seconds": 1}, "text": ',"run":{'}


def test_a_long_text_is_shortened_whatever_is_escaped_in_it() -> None:
    """And a long list of short texts is kept, whatever the length of both together."""
    for text in ('"' * 9000, "\\" * 9000, "\n" * 9000, "x" * 9000):
        assert "(9000 characters, SHA-256" in encoded({"a": ['"', text, '\\"'], "b": 1})
    short = [{"name": f'"{number}\\', "at": number} for number in range(2000)]
    assert json.loads(encoded(short)) == short
