"""A submission holds all of a run; verifying it finds what is missing, unknown, twice or altered, whoever sealed it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry, load_registry
from tessera_conformance.reports.journal import UnreadableReport, dump, read, seal
from tessera_conformance.reports.lines import whole
from tessera_conformance.submissions.contents import FILES as FILES_OF_A_SUBMISSION
from tessera_conformance.submissions.contents import MANIFEST, contents, write
from tessera_conformance.submissions.recompute import Recomputation
from tessera_conformance.submissions.verify import verify

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "harness" / "fakes"
WRONG = "py:vendors:CarelessProducts"
FILES = ["ir/test_matmul.py", "ir/test_precedence.py", "collectives/test_rooflines.py"]
CASES = "k-13 or unary or rates"
"""Of these files: products of every type, effects, and figures that are judged by none."""
GOLDEN = "ir/matmul/golden/fp32/k-13"

Lines = list[dict[str, Any]]
Suite = dict[str, pytest.Function]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return {item.stash[CASE].id: item for item in CollectedSuite(files=FILES).items}


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an implementation whose products are wrong, with deviations for some of them."""
    folder = tmp_path_factory.mktemp("bundle")
    known = folder / "known.toml"
    entry = 'cases = "ir/matmul/golden/bf16/*"\nmode = "may_fail"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    known.write_text(f"[[deviation]]\n{entry}")
    places = [f"conformance/{file}" for file in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *places, "-k", CASES, f"--impl={WRONG}"]
    path = os.pathsep.join(["reference", "conformance/harness", str(FAKES)])
    subprocess.run(
        [*command, f"--report-dir={folder}", f"--deviations={known}", "--evidence=all"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=300,
        check=False,
    )
    sys.path.insert(0, str(FAKES))
    try:
        assert main(["bundle", str(folder), f"--impl={WRONG}", f"--output={folder / 'submission'}"]) == 0
    finally:
        sys.path.remove(str(FAKES))
    return folder / "submission"


def verified(directory: Path, suite: Suite) -> Recomputation:
    return verify(directory, read(directory / "report.jsonl"), suite, suite, registry())


@cache
def registry() -> Registry:
    return load_registry(clauses_directory())


@pytest.fixture
def copy(submission: Path, tmp_path: Path) -> Path:
    """A submission to tamper with."""
    shutil.copytree(submission, tmp_path / "submission")
    return tmp_path / "submission"


def resealed(directory: Path, change: Callable[[Lines], None]) -> None:
    """Change the lines of the report and make everything that depends on them anew, as a forger would."""
    path = directory / "report.jsonl"
    lines = [whole(json.loads(text)) for text in path.read_text().splitlines()][:-1]
    change(lines)
    footer = seal(lines, []) | {"run": {}}
    path.write_text("".join(f"{dump(line)}\n" for line in [*lines, footer]))
    files = contents(read(path), WRONG)
    shutil.rmtree(directory)
    write(directory, files)


def line_of(lines: Lines, case: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("case") == case)


@pytest.mark.slow
def test_it_holds_what_it_takes_to_read_check_and_repeat_it(submission: Path, suite: Suite) -> None:
    files = {path.relative_to(submission).as_posix() for path in submission.rglob("*") if path.is_file()}
    assert files == {
        "statement.json",
        "report.jsonl",
        "plan.txt",
        "deviations.toml",
        "environment.json",
        "locks/clauses.lock",
        "locks/vectors.json",
        "REPEAT.md",
        MANIFEST,
    }
    statement = json.loads((submission / "statement.json").read_text())
    assert (statement["implementation"]["name"], statement["claim"]) == ("tessera-reference", "failure")
    assert sum(statement["verdicts"].values()) == statement["cases"] > 30
    assert f"--impl={WRONG}" in (submission / "REPEAT.md").read_text()
    assert "ir/matmul/golden/bf16/*" in (submission / "deviations.toml").read_text()


def test_what_a_run_left_verifies(submission: Path, suite: Suite) -> None:
    found = verified(submission, suite)
    assert found.problems == []
    assert found.judged > 30


@pytest.mark.parametrize(
    ("accident", "words"),
    [
        (lambda d: (d / "plan.txt").unlink(), "plan.txt: missing"),
        (lambda d: (d / "notes.txt").write_text("x"), "notes.txt: no file of the submission"),
        (lambda d: (d / "REPEAT.md").write_text("x"), "REPEAT.md: altered"),
        (lambda d: (d / "locks" / "clauses.lock").write_text("{}"), "locks/clauses.lock: not that of this suite"),
        (lambda d: (d / "deviations.toml").write_text("deviation = []"), "deviations.toml: does not follow"),
        (lambda d: (d / "statement.json").write_text("{}"), "statement.json: does not follow"),
        (lambda d: (d / MANIFEST).unlink(), "MANIFEST.json: cannot be read"),
    ],
    ids=["missing", "unknown", "altered", "lock", "deviations", "statement", "manifest"],
)
def test_a_file_that_is_not_what_it_was_is_found(
    copy: Path, suite: Suite, accident: Callable[[Path], Any], words: str
) -> None:
    accident(copy)
    assert [problem for problem in verified(copy, suite).problems if words in problem]


HOSTILE = {
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "numbers for digests": b'{"plan.txt": 7}',
    "nested": b"[" * 100_000 + b"]" * 100_000,
    "no text": b"\xff\xfe",
    "nothing": b"",
    "holes": b"",
}


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("name", FILES_OF_A_SUBMISSION)
def test_a_hostile_file_is_a_problem_and_no_error(copy: Path, suite: Suite, name: str, content: str) -> None:
    (copy / name).write_bytes(HOSTILE[content])
    if content == "holes":
        os.truncate(copy / name, 1 << 40)
    try:
        problems = verified(copy, suite).problems
    except UnreadableReport as error:
        problems = [str(error)]
    assert [problem for problem in problems if name in problem or "plan.txt" in problem]


def mend(lines: Lines) -> None:
    line_of(lines, GOLDEN)["verdict"] = "pass"


def mend_check(lines: Lines) -> None:
    line = line_of(lines, GOLDEN)
    line["verdict"] = "pass"
    line["checks"][-1] |= {"passed": True, "difference": None}


def mend_bits(lines: Lines) -> None:
    mend_check(lines)
    check = line_of(lines, GOLDEN)["checks"][-1]
    check["actual"] = check["expected"]


def mend_expectation(lines: Lines) -> None:
    mend_check(lines)
    check = line_of(lines, GOLDEN)["checks"][-1]
    check["expected"] = check["actual"]


def drop_check(lines: Lines) -> None:
    mend(lines)
    line_of(lines, GOLDEN)["checks"].pop()


def drop_all_checks(lines: Lines) -> None:
    mend(lines)
    line_of(lines, GOLDEN)["checks"].clear()


def left_out(lines: Lines) -> None:
    line_of(lines, GOLDEN) | {"verdict": "inapplicable"}
    line_of(lines, GOLDEN)["verdict"] = "inapplicable"


def unsupported(lines: Lines) -> None:
    line_of(lines, GOLDEN)["verdict"] = "unsupported"


def excuse(lines: Lines) -> None:
    line_of(lines, GOLDEN)["disposition"] = "waived"


def retag(lines: Lines) -> None:
    line_of(lines, GOLDEN)["clauses"] = ["LANG-02.3-61"]


def drop(lines: Lines) -> None:
    lines.remove(line_of(lines, GOLDEN))


def repeat(lines: Lines) -> None:
    lines.append(dict(line_of(lines, GOLDEN)))


def invent(lines: Lines) -> None:
    lines.append({**line_of(lines, GOLDEN), "case": "ir/matmul/golden/fp32/k-14"})


def invent_and_plan(lines: Lines) -> None:
    invent(lines)
    lines[1]["cases"].append("ir/matmul/golden/fp32/k-14")


def call_it_whole(lines: Lines) -> None:
    lines[0]["selection"]["complete"] = True


def hide_a_crash(lines: Lines) -> None:
    line = line_of(lines, "ir/matmul/golden/fp64/k-13")
    line["exchanges"][-1]["observation"] = {"fault": {"kind": "crash", "detail": "d", "reproducible": True}}


def judge_more(lines: Lines) -> None:
    line_of(lines, "ir/matmul/golden/fp64/k-13")["judges"] = ["effect", "refusal"]


def count_less(lines: Lines) -> None:
    lines[1]["musts"].popitem()


def claim_a_crash(lines: Lines) -> None:
    line_of(lines, "ir/matmul/golden/fp64/k-13")["verdict"] = "crash"


@pytest.mark.parametrize(
    ("forgery", "words"),
    [
        (mend, f"{GOLDEN}: the verdict is pass, what was observed shows fail"),
        (mend_check, "is told to have passed, and has not"),
        (mend_bits, f"{GOLDEN}: the bits that were judged stand in no answer"),
        (mend_expectation, "expects other bits than the golden vector ir/matmul/fp32/k-13"),
        (drop_check, f"{GOLDEN}: 0 results were judged, ir/matmul/fp32/k-13 has 1"),
        (drop_all_checks, f"{GOLDEN}: the verdict is pass, what was observed shows harness_error"),
        (left_out, f"{GOLDEN}: the verdict is inapplicable, by the claims"),
        (unsupported, f"{GOLDEN}: the verdict is unsupported, by the claims"),
        (excuse, f"{GOLDEN}: the disposition is waived, by the deviations it is none"),
        (retag, f"{GOLDEN}: has other clauses or levels than in this suite"),
        (drop, f"{GOLDEN}: planned, and not observed"),
        (repeat, f"{GOLDEN}: observed twice"),
        (invent, "ir/matmul/golden/fp32/k-14: observed, and not planned"),
        (invent_and_plan, "ir/matmul/golden/fp32/k-14: no case of this suite"),
        (call_it_whole, "a case of the suite that the plan leaves out"),
        (hide_a_crash, "ir/matmul/golden/fp64/k-13: the verdict is pass, what was observed shows crash"),
        (judge_more, "ir/matmul/golden/fp64/k-13: is told to have judged ['effect', 'refusal'], and has not"),
        (count_less, "report.jsonl: the plan's musts are not those of the registry"),
        (claim_a_crash, "ir/matmul/golden/fp64/k-13: the verdict is crash, what was observed shows pass"),
    ],
)
def test_a_forgery_that_is_sealed_again_is_found(
    copy: Path, suite: Suite, forgery: Callable[[Lines], None], words: str
) -> None:
    resealed(copy, forgery)
    problems = verified(copy, suite).problems
    assert [problem for problem in problems if words in problem], problems


def test_resealing_alone_changes_nothing(copy: Path, suite: Suite) -> None:
    """The sealing alone is accepted, so that the other cases find the forgery."""
    resealed(copy, lambda lines: None)
    assert verified(copy, suite).problems == []


def test_an_edit_without_a_new_seal_is_found(copy: Path, suite: Suite) -> None:
    path = copy / "report.jsonl"
    path.write_text(path.read_text().replace('"verdict":"fail"', '"verdict":"pass"', 1))
    problems = verified(copy, suite).problems
    assert "report.jsonl: altered: its SHA-256 is not that of the manifest" in problems
    assert [problem for problem in problems if "the file was edited" in problem]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing", "--impl=reference", "--output=out"], "missing: No such file"),
        (["{report}", "--output=out"], "use bundle REPORT --impl=IMPL --output=DIR"),
        (["{report}", "--impl=py:echo:Echo", "--output={new}"], "is not what the report is about"),
        (["{report}", "--impl=reference", "--output={report}"], "is there already: name a new folder"),
    ],
)
def test_what_cannot_be_bundled_says_why(
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.syspath_prepend(FAKES)
    given = [word.format(report=submission, new=tmp_path / "new") for word in words]
    assert main(["bundle", *given]) == 2
    assert said in capsys.readouterr().err


def digested(case: str, counts: dict[str, int] | None = None) -> Callable[[Lines], None]:
    """Keep a case as a run with `--evidence=digests` would have."""

    def change(lines: Lines) -> None:
        lines[0]["selection"]["evidence"] = "digests"
        line = line_of(lines, case)
        kinds = Counter(check["kind"] for check in line.pop("checks"))
        exchanges = len(line.pop("exchanges"))
        line["evidence"] = {"checks": counts or dict(kinds), "exchanges": exchanges, "digest": "ab" * 12}

    return change


def a_pass(directory: Path) -> str:
    lines = read(directory / "report.jsonl").observations
    return next(str(line["case"]) for line in lines if line["verdict"] == "pass" and "/golden/" in line["case"])


def test_a_pass_kept_as_a_digest_is_counted_as_not_judged_again(
    copy: Path, suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    before = verified(copy, suite)
    resealed(copy, digested(a_pass(copy)))
    found = verified(copy, suite)
    assert found.problems == []
    assert (before.digests, found.digests) == (0, 1)
    assert found.judged < before.judged
    assert main(["bundle", "verify", str(copy)]) == 0
    told = capsys.readouterr().out
    assert "everything follows" not in told
    assert "1 passes could not be judged again" in told
    assert "--evidence=all" in told


def test_counts_that_show_no_golden_result_are_found(copy: Path, suite: Suite) -> None:
    case = a_pass(copy)
    resealed(copy, digested(case, {"equal": 1}))
    assert [problem for problem in verified(copy, suite).problems if f"{case}: 0 results were judged" in problem]


def test_counts_that_judge_nothing_are_found(copy: Path, suite: Suite) -> None:
    case = a_pass(copy)
    resealed(copy, digested(case, {"given": 1}))
    assert [problem for problem in verified(copy, suite).problems if f"{case}: is told to have judged" in problem]


def test_a_failure_kept_as_a_digest_is_found(copy: Path, suite: Suite) -> None:
    resealed(copy, digested(GOLDEN))
    assert [problem for problem in verified(copy, suite).problems if f"{GOLDEN}: is kept as counts" in problem]


def test_a_digest_in_a_report_of_all_evidence_is_found(copy: Path, suite: Suite) -> None:
    case = a_pass(copy)

    def change(lines: Lines) -> None:
        digested(case)(lines)
        lines[0]["selection"]["evidence"] = "all"

    resealed(copy, change)
    assert [problem for problem in verified(copy, suite).problems if f"{case}: has no checks" in problem]
