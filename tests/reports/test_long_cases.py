"""What a report shows of long cases and long texts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tessera_conformance.check import CheckRecord
from tessera_conformance.observations import Returned
from tessera_conformance.reports.lines import plain
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import FOLDER, Case, observation_line, observation_text
from tessera_conformance.verdicts import Judgement


def line_of(verdict: str, count: int) -> dict[str, object]:
    case = Case("abi/long", "A long case", [], ["strict"], [])
    case.exchanges = [Exchange("abi.dtype_ids", {"n": i}, Returned({"n": i}), 0.0) for i in range(count)]
    case.check.records += [CheckRecord("true", True, f"check {i}", True, True) for i in range(count + 1)]
    case.judgement = Judgement(verdict, "")  # type: ignore[arg-type]
    line = observation_line(case)
    assert first_problem("tessera:report/lines", "observation", {"record": "observation", **line}) is None
    return line


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
    text = observation_text(case)
    assert "/some/where" not in text
    assert [check["expected"] for check in json.loads(text)["checks"]] == ["entry", f"{FOLDER}/entry"]
