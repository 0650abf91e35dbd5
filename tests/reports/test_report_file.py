"""The report file: its lines, its seal, the evidence that it keeps, and the schemas of files beside it."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest

from tessera_conformance.arithmetic import CHOICES, MOST_ALIGNMENT_BITS
from tessera_conformance.check import CheckRecord
from tessera_conformance.cli import main
from tessera_conformance.protocol import Fault, Observation, Returned
from tessera_conformance.reports.journal import FILE_NAME, UnreadableReport, content, dump, read, report_in
from tessera_conformance.reports.lines import FOLDER, encoded, plain, short, whole, without_run
from tessera_conformance.reports.publish import EDITED, schema_text, write_toml
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import Case, observation
from tessera_conformance.tensors import Tensor
from tessera_conformance.verdicts import Judgement

# The report file: written by hand here, read back, cut off, edited.


def test_every_line_follows_the_published_schema(build, observations):
    report = build(observations, planned=["abi/never"])
    lines = [json.loads(text) for text in report.path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [line["record"] for line in lines] == ["header", "plan", *["observation"] * 14, "footer"]
    assert [first_problem("tessera:report/lines", line["record"], line) for line in lines] == [None] * len(lines)


def test_the_plan_names_what_cases_share_once(build, observation):
    report = build([observation("abi/a/b")], planned=["abi/a-b/c", "abi/a/c", "abi/a/c/d", "alone"])
    written = json.loads(report.path.read_text(encoding="utf-8").split("\n")[1])
    assert written["cases"] == {"abi/a-b/": ["c"], "abi/a/": ["b", "c"], "abi/a/c/": ["d"], "": ["alone"]}
    planned = ["abi/a-b/c", "abi/a/b", "abi/a/c", "abi/a/c/d", "alone"]
    assert read(report.path).plan["cases"] == report.plan["cases"] == planned


def test_what_was_planned_and_never_ended_is_a_failure(build, observation):
    report = build([observation("abi/a")], planned=["abi/b"])
    assert [(line["case"], line["verdict"]) for line in report.observations] == [
        ("abi/a", "pass"),
        ("abi/b", "not_run"),
    ]
    assert report.claim == "failure"


@pytest.mark.parametrize(
    ("verdict", "disposition", "selection", "claim"),
    [
        ("pass", "none", {}, "success"),
        ("pass", "none", {"complete": False}, "partial"),
        ("pass", "unexpected_pass", {}, "failure"),
        *((verdict, "none", {}, "failure") for verdict in ("fail", "crash", "hang", "protocol_error", "harness_error")),
        ("fail", "known_deviation", {}, "success"),
        ("crash", "waived", {}, "success"),
    ],
)
def test_the_claim_follows_from_verdicts_and_dispositions(build, observation, verdict, disposition, selection, claim):
    lines = [observation("abi/a", verdict, disposition=disposition), observation("abi/b")]
    assert build(lines, **selection).claim == claim


def test_no_observation_and_a_problem_are_failures(build, observation):
    assert build([]).claim == "failure"
    assert build([observation("abi/a")], problems=["a deviation expired"]).claim == "failure"


def test_the_sealed_bytes_do_not_depend_on_the_order_of_arrival(build, observations):
    shuffled = list(observations)
    random.Random(7).shuffle(shuffled)
    first, second = build(observations, name="one"), build(shuffled, name="two")
    assert first.path.read_bytes() == second.path.read_bytes()


def test_the_seal_does_not_depend_on_the_time_taken(build, observation):
    slow = build([observation("abi/a", run={"seconds": 9.0})], name="slow")
    fast = build([observation("abi/a")], name="fast")
    assert slow.footer["sha256"] == fast.footer["sha256"]


def test_a_killed_run_is_readable_and_invalid(killed, observations):
    report = read(killed(observations))
    assert (report.claim, len(report.observations)) == ("invalid", 13)
    assert "did not end" in report.problem


def test_a_line_that_was_cut_off_is_named(killed, observations):
    path = killed(observations)
    path.write_bytes(path.read_bytes()[:-20])
    report = read(path)
    assert (report.claim, len(report.observations)) == ("invalid", 12)
    assert report.problem.startswith("line 15 ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict":"crash"', '"verdict":"pass"'),
        ("0x3f812000", "0x3f812001"),
        ('"claim":"failure"', '"claim":"success"'),
    ],
)
def test_an_edited_byte_is_detected(build, observations, old, new):
    path = build(observations).path
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert "edited" in read(path).problem


@pytest.mark.parametrize("text", ["\x00\x1b\x7f", "\r\n\x0b\x0c\x1c", "\ufffe\U0010ffff", "\x85", "\u2028\u2029"])
def test_any_text_survives_the_file(build, observation, text):
    report = build([observation("abi/a", "fail", reason=text)])
    assert report.problem is None
    assert report.observations[0]["reason"] == text


def test_a_run_in_which_nothing_passed_is_no_success(build, observation):
    assert build([observation("abi/a", "inapplicable"), observation("abi/b", "unsupported")]).claim == "failure"


def test_a_removed_line_is_detected(build, observations):
    path = build(observations).path
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(lines[:4] + lines[5:]), encoding="utf-8")
    assert "edited" in read(path).problem


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"record":"plan","cases":[]}\n', b"\xff\xfe"])
def test_what_is_no_report_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match=FILE_NAME):
        read(path)
    with pytest.raises(UnreadableReport, match="No such file"):
        read(tmp_path / "missing.jsonl")


def test_a_set_reads_the_same_in_every_process():
    """The order of a set's items is another one in each process, where they are texts."""
    assert plain({"what": {"b", "a", "c"}, "pairs": {(2, 1), (1, 2)}}) == {
        "what": ["a", "b", "c"],
        "pairs": [[1, 2], [2, 1]],
    }


# What a report keeps of cases that pass: counts and a digest, or everything.


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
    digests = [observation(report, "digests")["evidence"]["digest"] for report in (ended(), slow, other)]
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
    actual = read(report_in(folder))
    assert (actual.path, actual.problem, actual.claim) == (packed, None, "success")
    assert actual.observations == read(report.path).observations


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"x" * 1000)[:-10]], ids=["empty", "other", "cut"])
def test_a_compressed_file_that_holds_no_report_is_unreadable(tmp_path: Path, data: bytes) -> None:
    packed = tmp_path / "report.jsonl.gz"
    packed.write_bytes(data)
    with pytest.raises(UnreadableReport, match=r"report\.jsonl\.gz(:1)?: "):
        read(packed)


# What a report shows of long cases and long texts.


def line_of(verdict: str, count: int, evidence: str = "all") -> dict[str, object]:
    case = Case("abi/long", "A long case", [], ["strict"], [])
    case.exchanges = [Exchange("abi.dtype_ids", {"n": i}, Returned({"n": i}), 0.0) for i in range(count)]
    case.check.records += [CheckRecord("true", True, f"check {i}", True, True) for i in range(count + 1)]
    case.judgement = Judgement(verdict, "")  # type: ignore[arg-type]
    line = json.loads(observation(case, evidence).text)
    assert first_problem("tessera:report/lines", "observation", line) is None
    return line  # type: ignore[no-any-return]


def test_all_evidence_of_a_long_case_is_kept_and_a_digest_is_of_its_ends() -> None:
    line = line_of("pass", 1000)
    assert len(line["exchanges"]) == 1000  # type: ignore[arg-type]
    assert "left_out" not in line
    short_line = line_of("pass", 1000, "digests")
    assert short_line["evidence"]["exchanges"] == 128  # type: ignore[index]
    assert short_line["left_out"] == {"checks": 873, "exchanges": 872}
    assert "left_out" not in line_of("pass", 127, "digests")


@pytest.mark.parametrize("evidence", ["all", "digests"])
def test_all_evidence_has_long_answers_whole_and_long_requests_shortened(evidence: str) -> None:
    text, tensor = "0f" * 5000, Tensor("fp32", (1000,), bytes(4000))
    case = Case("abi/long", "A long answer", [], ["strict"], [], judgement=Judgement("fail", "no"))
    answer = Returned({"image": text, "rows": [tensor, "half \ud800"]})
    case.exchanges = [Exchange("language.compile", {"source": text}, answer, 0.0)]
    (exchange,) = json.loads(observation(case, evidence).text)["exchanges"]
    returned = exchange["observation"]["returned"]
    assert "SHA-256" in exchange["params"]["source"]
    assert (returned["image"] == text, "bits" in returned["rows"][0]["$tensor"]) == (evidence == "all",) * 2
    assert returned["rows"][1] == "half \\ud800"


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


# The published report of the reference: whole, valid, and as light as a report of the suite may be.

PUBLISHED = Path(__file__).resolve().parents[2] / "reports" / "reference"
MOST_OF_A_CASE, MOST_PAGE = 620, 5_000_000
"""Bytes of the report file, unpacked, for each of its cases, and of its page."""


def test_the_published_report_is_whole_and_light() -> None:
    report = read(report_in(PUBLISHED))
    assert (report.problem, report.claim) == (None, "success")
    assert report.header["selection"]["complete"]
    assert all("evidence" in line for line in report.observations if line["verdict"] == "pass")
    assert len(content(report.path)) <= MOST_OF_A_CASE * len(report.observations)
    assert (PUBLISHED / "index.html").stat().st_size <= MOST_PAGE


# TOML files that people edit name a schema to their editor, which lies beside them and judges as the readers do.

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
        return [
            reference for key, item in value.items() for reference in ([item] if key == "$ref" else references(item))
        ]
    return [reference for item in value for reference in references(item)] if isinstance(value, list) else []


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


# A report that somebody hands in costs its reader neither much time nor much memory, whatever is in it.

READING = """
import re, resource, sys, time
from pathlib import Path
from tessera_conformance.reports.journal import UnreadableReport, read
limit = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
began = time.process_time()
try:
    words = read(Path(sys.argv[1])).problem or ""
except UnreadableReport as error:
    words = str(error)
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
print(f"{time.process_time() - began:.1f} {peak} {words}")
"""
MEBI = 1 << 20
MOST_SECONDS, MOST_MEBIBYTES = 20.0, 250
"""For each of these files; the largest unpacks to 300 MiB."""


def _with_an_exchange(lines: list[bytes], value: str) -> bytes:
    """A whole report of which the first case has this value in a message."""
    place = next(number for number, line in enumerate(lines) if b'"params":{' in line)
    before, found, after = lines[place].partition(b'"params":{')
    return b"\n".join([*lines[:place], before + found + b'"x":' + value.encode() + b"," + after, *lines[place + 1 :]])


HOSTILE: dict[str, tuple[Callable[[list[bytes]], Iterable[bytes]], str]] = {
    "newlines": (lambda lines: [b"\n" * MEBI] * 300, ":1: not the header of a report"),
    "one long line": (lambda lines: [b"x" * MEBI] * 300, ":1: larger than any report"),
    "a line of many lists": (lambda lines: [b"[", b"[]," * MEBI * 50, b"0]"], ":1: larger than any report"),
    "many lines of lists": (lambda lines: [b"[]\n" * MEBI] * 50, ":1: not the header of a report"),
    "a header and lists": (lambda lines: [lines[0], b"\n", *[b"[]\n" * MEBI] * 50], "line 2 is not a JSON object"),
    "a header and a long line": (lambda lines: [lines[0], b"\n", *[b"x" * MEBI] * 100], ":2: larger than any report"),
    "plan upon plan": (lambda lines: [lines[0], *[b"\n" + lines[1]] * 300_000], "line 3: a second plan"),
    "many values": (lambda lines: [_with_an_exchange(lines, f"[{'[],' * 1_100_000}0]")], "is not a JSON object"),
    "wide": (lambda lines: [_with_an_exchange(lines, f"[{'[],' * 450_000}0]")], "the footer's sha256"),
    "deep": (lambda lines: [_with_an_exchange(lines, "[" * 100_000 + "]" * 100_000)], "is not a JSON object"),
    "long numbers": (
        lambda lines: [_with_an_exchange(lines, f"[{','.join(['7' * 4000] * 3000)}]")],
        "the footer's sha256",
    ),
    "bytes": (lambda lines: [lines[0], b"\n\xff\xfe"], "line 2 is not UTF-8 text"),
    "nothing": (lambda lines: [], ":1: not the header of a report: the file is empty"),
    "many wide lines": (lambda lines: [lines[0], b"\n", lines[1], *[b"\n" + _wide(lines)] * 12], "there is no footer"),
}


def _wide(lines: list[bytes]) -> bytes:
    return _with_an_exchange([line for line in lines if b'"params":{' in line][:1], f"[{'[],' * 450_000}0]")


@pytest.mark.sampled(4)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process's memory")
@pytest.mark.parametrize(
    ("kind", "packed"), [*((kind, False) for kind in HOSTILE), ("newlines", True), ("a header and lists", True)]
)
def test_a_hostile_report_is_refused_in_bounded_time_and_memory(build, observations, tmp_path, kind, packed):
    make, words = HOSTILE[kind]
    path = tmp_path / ("hostile.jsonl.gz" if packed else "hostile.jsonl")
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        for part in make(build(observations).path.read_bytes().splitlines()):
            file.write(part)
    done = subprocess.run(
        [sys.executable, "-c", READING, path], capture_output=True, text=True, timeout=120, check=True
    )
    seconds, mebibytes, actual = done.stdout.split(" ", 2)
    assert words in actual
    assert float(seconds) < MOST_SECONDS
    assert int(mebibytes) < MOST_MEBIBYTES
