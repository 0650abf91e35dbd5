"""What a report keeps of cases that pass: counts and a digest, or everything."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.check import CheckRecord
from tessera_conformance.observations import Fault, Observation, Returned
from tessera_conformance.reports.journal import UnreadableReport, dump, read, report_in, without_run
from tessera_conformance.reports.lines import short, whole
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import Case, observation
from tessera_conformance.verdicts import Judgement


def ended(verdict: str = "pass", answer: Observation = Returned(7), disposition: str = "none") -> Case:  # noqa: B008
    case = Case("abi/a", "A case", [], ["fast", "deterministic", "strict"])
    case.exchanges = [Exchange("abi.a", {"run": 1}, answer, 0.5), Exchange("abi.b", {}, answer, 0.25)]
    case.check.records += [CheckRecord(kind, True, kind, 1, 1) for kind in ("equal", "returns", "equal")]
    case.judgement = Judgement(verdict, "" if verdict == "pass" else "why")  # type: ignore[arg-type]
    case.disposition = disposition
    return case


def test_a_pass_is_kept_as_counts_and_the_digest_of_what_all_evidence_would_be() -> None:
    kept = json.loads(observation(ended(), "digests").text)
    everything = json.loads(observation(ended(), "all").text)
    both = {name: without_run(everything)[name] for name in ("checks", "exchanges")}
    text = json.dumps(both, separators=(",", ":"))[1:-1]
    assert first_problem("tessera:report/lines", "observation", kept) is None
    assert kept["evidence"] == {
        "checks": {"equal": 2, "returns": 1},
        "exchanges": 2,
        "digest": hashlib.sha256(text.encode()).hexdigest()[:24],
    }
    assert not {"checks", "exchanges", "levels", "needs", "disposition", "reason"} & kept.keys()


@pytest.mark.parametrize(
    "case",
    [ended("fail"), ended("crash", Fault("crash", "it died")), ended(disposition="unexpected_pass")],
    ids=["fail", "crash", "unexpected pass"],
)
def test_whatever_does_not_simply_pass_keeps_its_evidence(case: Case) -> None:
    line = observation(case, "digests")
    assert "evidence" not in line
    assert (len(line["checks"]), len(line["exchanges"])) == (3, 2)


def test_time_changes_no_digest_and_another_answer_does() -> None:
    slow, other = ended(), ended(answer=Returned(8))
    slow.exchanges[0] = Exchange("abi.a", {"run": 1}, Returned(7), 9.0)
    digests = [observation(each, "digests")["evidence"]["digest"] for each in (ended(), slow, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_line_reads_whole_whatever_it_leaves_out() -> None:
    line = observation(ended(), "digests")
    assert dict(line) == whole(json.loads(line.text))
    assert (line["checks"], line["exchanges"], line["needs"], line["disposition"]) == ([], [], [], "none")
    assert line["levels"] == ["fast", "deterministic", "strict"]


def test_a_line_with_both_evidence_and_checks_is_none(observation: Any) -> None:
    both = {"record": "observation", **observation("abi/a")} | {
        "evidence": {"checks": {"equal": 1}, "exchanges": 0, "digest": "ab" * 12}
    }
    assert first_problem("tessera:report/lines", "observation", both) is not None
    assert first_problem("tessera:report/lines", "observation", short(both)) is None


def test_a_report_of_short_lines_is_sealed_and_read(build: Any, observation: Any) -> None:
    digest = {"checks": {"equal": 1}, "exchanges": 1, "digest": "ab" * 12}
    report = build([observation("abi/a", evidence=digest), observation("abi/b", "fail", judges=["effect"])])
    again = read(report.path)
    assert again.problem is None
    assert [line.get("evidence") for line in again.observations] == [digest, None]
    assert [dump(line) for line in again.observations] == report.path.read_text().splitlines()[2:-1]
    assert again.observations[0]["checks"] == []


def test_a_compressed_report_reads_as_the_report_it_holds(build: Any, observation: Any, tmp_path: Path) -> None:
    report = build([observation("abi/a")])
    folder = tmp_path / "published"
    folder.mkdir()
    packed = folder / "report.jsonl.gz"
    packed.write_bytes(gzip.compress(report.path.read_bytes()))
    found = read(report_in(folder))
    assert (found.path, found.problem, found.claim) == (packed, None, "success")
    assert found.observations == read(report.path).observations


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"x" * 1000)[:-10]], ids=["empty", "other", "cut"])
def test_a_compressed_file_that_holds_no_report_is_unreadable(tmp_path: Path, data: bytes) -> None:
    packed = tmp_path / "report.jsonl.gz"
    packed.write_bytes(data)
    with pytest.raises(UnreadableReport, match=r"report\.jsonl\.gz(:1)?: "):
        read(packed)
