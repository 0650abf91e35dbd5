"""A submission holds all of a run; verifying it finds what is missing, unknown, twice or altered, whoever sealed it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.collection import CollectedSuite
from tessera_conformance.documents import NoDocument, read_toml
from tessera_conformance.plugin import CASE
from tessera_conformance.registry import Registry, load_registry
from tessera_conformance.registry.cases import CaseIndex, case_index
from tessera_conformance.report_plugin import PROCESS_DIED
from tessera_conformance.reports.journal import UnreadableReport, dump, read, seal
from tessera_conformance.reports.lines import short, whole
from tessera_conformance.submissions.replay import FOREIGN_IMAGE, Recomputation
from tessera_conformance.submissions.verify import FILES as FILES_OF_A_SUBMISSION
from tessera_conformance.submissions.verify import (
    MANIFEST,
    NO_PROGRAMS,
    contents,
    read_signature,
    sign,
    signature_problems,
    verify,
    write,
)
from tessera_conformance.vectors.files import digest

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "harness" / "fakes"
WRONG = "py:vendors:CarelessProducts"
FILES = ["ir/test_matmul.py", "ir/test_precedence.py", "collectives/test_rooflines.py"]
CASES = "k-13 or unary or rates"
"""These files have products of every type, effects, and figures that no case judges."""
GOLDEN = "ir/matmul/golden/fp32/k-13"

Lines = list[dict[str, Any]]
Suite = dict[str, pytest.Function]


@pytest.fixture(scope="module")
def suite() -> Suite:
    return {item.stash[CASE].id: item for item in CollectedSuite(files=FILES).items}


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an implementation whose products are wrong, with deviations for some of them."""
    folder = tmp_path_factory.mktemp("bundle")
    known = folder / "known.toml"
    pattern = "ir/precedence/unary-minus-of-a-matrix-in-a-matrix-product/*"
    entry = f'cases = "{pattern}"\nmode = "may_fail"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
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
    return verify(directory, read(directory / "report.jsonl"), index(), suite, registry())


@cache
def index() -> CaseIndex:
    return case_index()


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
    assert "ir/precedence/unary-minus-of-a-matrix-in-a-matrix-product/*" in (submission / "deviations.toml").read_text()


def test_what_a_run_left_verifies(submission: Path, suite: Suite) -> None:
    actual = verified(submission, suite)
    assert actual.problems == []
    assert actual.replayed > 20
    assert actual.replayed + actual.digests > 30
    assert actual.unverified == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accident", "words"),
    [
        (lambda d: (d / "plan.txt").unlink(), "plan.txt: missing"),
        (lambda d: (d / "notes.txt").write_text("x"), "notes.txt: no file of the submission"),
        (lambda d: (d / "REPEAT.md").write_text("x"), "REPEAT.md: altered"),
        (lambda d: (d / "deviations.toml").write_text("deviation = []"), "deviations.toml: does not follow"),
        (lambda d: (d / MANIFEST).unlink(), "MANIFEST.json: cannot be read"),
    ],
    ids=["missing", "unknown", "altered", "deviations", "manifest"],
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


@pytest.mark.sampled(5)
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


Forgery = Callable[[Lines], None]
PASSED, OTHER = "ir/matmul/golden/fp64/k-13", "ir/matmul/golden/fp16/k-13"


def of_a_line(case: str, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Forgery:
    """Change the line of a case; the second argument is the line of another case, from which evidence may come."""

    def forge(lines: Lines) -> None:
        change(line_of(lines, case), line_of(lines, PASSED if case != PASSED else OTHER))

    return forge


def setting(place: str, value: Any) -> Callable[..., None]:
    """Set what stands at a place of nested fields."""

    def change(line: dict[str, Any], *_: Any) -> None:
        *before, last = [int(part) if part.lstrip("-").isdigit() else part for part in place.split(".")]
        at: Any = line
        for part in before:
            at = at[part]
        at[last] = value

    return change


def passing(line: dict[str, Any], *_: Any) -> None:
    line |= {"verdict": "pass", "reason": "", "leans": [], "cites": [], "judges": ["effect"], "traits": ""}


def with_passing_checks(line: dict[str, Any], *_: Any) -> None:
    passing(line)
    for check in line["checks"]:
        check |= {"passed": True, "difference": None}


def with_right_bits(line: dict[str, Any], *_: Any) -> None:
    with_passing_checks(line)
    line["checks"][-1]["actual"] = line["checks"][-1]["expected"]


def with_wrong_expectation(line: dict[str, Any], *_: Any) -> None:
    with_passing_checks(line)
    line["checks"][-1]["expected"] = line["checks"][-1]["actual"]


def without_failed_checks(line: dict[str, Any], *_: Any) -> None:
    passing(line)
    line["checks"] = [check for check in line["checks"] if check["passed"]]


def with_the_evidence_of_another(line: dict[str, Any], other: dict[str, Any]) -> None:
    line |= {name: other[name] for name in ("checks", "exchanges", "verdict", "reason", "judges", "traits", "methods")}


def with_an_answer_by_digest(line: dict[str, Any], *_: Any) -> None:
    """An answer that nobody has, so that the case cannot be replayed."""
    with_right_bits(line)
    tensor = {"dtype": "fp32", "shape": [4096], "head": "00000000", "sha256": "0" * 64}
    line["exchanges"][-1]["observation"] = {"returned": {"outputs": [{"$tensor": tensor}]}}
    line["checks"][-1] |= {"expected": {"$tensor": tensor}, "actual": {"$tensor": tensor}}


def with_a_middle_left_out(line: dict[str, Any], *_: Any) -> None:
    with_right_bits(line)
    line["left_out"] = {"checks": 1, "exchanges": 1}


def dead(verdict: str, cause: str = "") -> Callable[..., None]:
    """With the reason of a case whose process ended, which leaves nothing to verify."""

    def change(line: dict[str, Any], *_: Any) -> None:
        passing(line)
        line |= {"verdict": verdict, "cause": cause, "reason": PROCESS_DIED, "checks": [], "exchanges": []}

    return change


def without_evidence(cause: str, reason: str) -> Callable[..., None]:
    """Inapplicable for a reason that only some runs have, and without a record."""

    def change(line: dict[str, Any], *_: Any) -> None:
        passing(line)
        line |= {"verdict": "inapplicable", "cause": cause, "reason": reason, "checks": [], "exchanges": []}

    return change


def with_a_crash(line: dict[str, Any], *_: Any) -> None:
    fault = {"kind": "crash", "detail": "d", "reproducible": True}
    line["exchanges"][-1]["observation"] = {"fault": fault}


LINE_RULES: dict[str, Callable[..., None]] = {
    "verdict flipped": lambda line, other: line.update(verdict="fail" if line["verdict"] == "pass" else "pass"),
    "checks flipped": lambda line, other: [check.update(passed=not check["passed"]) for check in line["checks"]],
    "a check dropped": lambda line, other: line["checks"].pop(),
    "a check twice": lambda line, other: line["checks"].append(line["checks"][-1]),
    "a check renamed": setting("checks.-1.what", "the moon"),
    "an exchange dropped": lambda line, other: line["exchanges"].pop(),
    "an exchange twice": lambda line, other: line["exchanges"].append(line["exchanges"][-1]),
    "another request": setting("exchanges.0.params.function", "another"),
    "another method": setting("exchanges.0.method", "language.parse"),
    "an answer of nothing": setting("exchanges.-1.observation", {"returned": {"outputs": []}}),
    "a crash": with_a_crash,
    "the evidence of another case": with_the_evidence_of_another,
    "another title": setting("title", "A sum is a sum."),
    "other clauses": setting("clauses", ["LANG-02.3-61"]),
    "other levels": setting("levels", ["strict"]),
    "other features": setting("needs", ["complex"]),
    "more judged": setting("judges", ["effect", "refusal"]),
    "unsupported": lambda line, other: line.update(verdict="unsupported", cause="feature", reason="claimed by nobody"),
    "inapplicable": lambda line, other: line.update(verdict="inapplicable", cause="presumption", reason="presumes"),
    "waived": setting("disposition", "waived"),
    "crashed": setting("verdict", "crash"),
    "another reading": lambda line, other: line.update(disposition="other_reading", interpretation="AMB-LANG-01"),
    "another method told": setting("methods", ["wsp.execute"]),
    "dead, and passed": dead("pass"),
    "dead, and unsupported": dead("unsupported", "feature"),
    "not for a foreign image": without_evidence("question", f"an image by {FOREIGN_IMAGE}"),
    "not by operations": without_evidence("question", f"needs a program, {NO_PROGRAMS}"),
    "blocked": without_evidence("blocked", f"blocked by {OTHER}"),
    "a middle left out": with_a_middle_left_out,
    "counted": lambda line, other: line.update(evidence={"checks": {"bits": 1}, "exchanges": 1, "sha256": "0" * 64}),
}
MENDED: dict[str, Callable[..., None]] = {
    "passing": passing,
    "passing checks": with_passing_checks,
    "right bits": with_right_bits,
    "a wrong expectation": with_wrong_expectation,
    "failed checks dropped": without_failed_checks,
    "an answer by digest": with_an_answer_by_digest,
}
HEADER_RULES: dict[str, Callable[..., None]] = {
    "another version": setting("harness", "tessera-conformance 99.0"),
    "no registry": setting("registry.sha256", "0" * 64),
    "fewer clauses": setting("registry.clauses", 1),
    "another profile": setting("selection.profile", "core"),
    "level fast": setting("selection.level", "fast"),
    "by operations": setting("selection.via", "operations"),
    "whole": setting("selection.complete", True),
    "of a shard": setting("selection.shard", "1/2"),
    "not narrowed": lambda header, *_: header["selection"].pop("chosen"),
    "narrowed otherwise": setting("selection.chosen.keyword", "k-13"),
    "other places": setting("selection.chosen.paths", ["ir/test_matmul.py"]),
    "evidence by digests": setting("selection.evidence", "digests"),
    "no deviations": setting("selection.deviations", []),
    "a deviation expired": setting("selection.deviations.0.expires", "2001-01-01"),
    "a deviation of everything": setting("selection.deviations.0.cases", "*"),
    "claims nothing": setting("implementation.hello.documents", []),
    "lacks features": setting("implementation.hello.capabilities", {}),
    "claims the moon": setting("implementation.hello.capabilities.moon", "enforced"),
    "never started": lambda header, *_: header["implementation"].update(hello=None, fault="crash"),
}


def of_the_plan(name: str) -> Forgery:
    return lambda lines: lines[1][name].pop(next(iter(lines[1][name])))


def drop(lines: Lines, plan: bool = False) -> None:
    lines.remove(line_of(lines, GOLDEN))
    if plan:
        lines[1]["cases"].remove(GOLDEN)


def drop_all_failures(lines: Lines) -> None:
    """Drop the failures, to claim PARTIAL."""
    failed = {line["case"] for line in lines if line.get("verdict") == "fail"}
    lines[:] = [line for line in lines if line.get("case") not in failed]
    lines[1]["cases"] = [case for case in lines[1]["cases"] if case not in failed]


def drop_all_failures_by_a_report(lines: Lines) -> None:
    drop_all_failures(lines)
    lines[0]["selection"]["chosen"]["failed"] = "report.jsonl"


def excused_by(lines: Lines, place: str, value: str, reason: str) -> None:
    """State that a case did not run for a reason given in the header."""
    setting(place, value)(lines[0])
    without_evidence("question", f"an image by {reason}")(line_of(lines, GOLDEN))


def rename(lines: Lines, plan: bool = False) -> None:
    line_of(lines, GOLDEN)["case"] = "ir/matmul/golden/fp32/k-14"
    if plan:
        lines[1]["cases"].remove(GOLDEN)
        lines[1]["cases"].append("ir/matmul/golden/fp32/k-14")


FORGERIES: dict[str, Forgery] = {
    **{f"{case}: {name}": of_a_line(case, rule) for case in (GOLDEN, PASSED) for name, rule in LINE_RULES.items()},
    **{f"{GOLDEN}: {name}": of_a_line(GOLDEN, rule) for name, rule in MENDED.items()},
    **{f"header: {name}": lambda lines, rule=rule: rule(lines[0]) for name, rule in HEADER_RULES.items()},
    **{f"plan: no {name}": of_the_plan(name) for name in ("musts", "profiles", "products")},
    "a case dropped": drop,
    "a case dropped and not planned": lambda lines: drop(lines, plan=True),
    "all failures dropped": drop_all_failures,
    "a case twice": lambda lines: lines.append(dict(line_of(lines, GOLDEN))),
    "a case renamed": rename,
    "by a compiler, and excused": lambda lines: excused_by(lines, "implementation.compiler", "x", FOREIGN_IMAGE),
    "by operations, and excused": lambda lines: excused_by(lines, "selection.via", "operations", NO_PROGRAMS),
    "failures left out by --failed": drop_all_failures_by_a_report,
    "a case renamed and planned": lambda lines: rename(lines, plan=True),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_that_is_sealed_again_is_found(copy: Path, suite: Suite, forgery: str) -> None:
    before = (copy / "report.jsonl").read_bytes()
    resealed(copy, FORGERIES[forgery])
    assert (copy / "report.jsonl").read_bytes() != before
    assert verified(copy, suite).problems


FILE_FORGERIES: dict[str, Callable[[Path], object]] = {
    "no locks": lambda directory: shutil.rmtree(directory / "locks"),
    "an older lock of clauses": lambda directory: (directory / "locks" / "clauses.lock").write_text("{}"),
    "an older lock of vectors": lambda directory: (directory / "locks" / "vectors.json").write_text("{}"),
    "no statement": lambda directory: (directory / "statement.json").unlink(),
    "another statement": lambda directory: (directory / "statement.json").write_text('{"claim": "success"}'),
    "a shorter plan": lambda directory: (directory / "plan.txt").write_text(""),
    "only the report": lambda directory: [
        path.unlink() for path in directory.rglob("*") if path.is_file() and path.name != "report.jsonl"
    ],
}


@pytest.mark.parametrize("forgery", FILE_FORGERIES)
def test_a_forged_file_with_a_new_manifest_is_found(copy: Path, suite: Suite, forgery: str) -> None:
    FILE_FORGERIES[forgery](copy)
    paths = {path.relative_to(copy).as_posix(): path for path in copy.rglob("*") if path.is_file()}
    digests = {name: digest(path.read_bytes()) for name, path in paths.items() if name != MANIFEST}
    (copy / MANIFEST).write_text(json.dumps(digests))
    assert verified(copy, suite).problems


JUNK = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "\ud800",
    "x" * 9000,
    [],
    [[]],
    {},
    {"$tensor": {}},
    {"a": None},
    "<folder>",
]


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a nested value with every key of it."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places_of(item)


def mutated(directory: Path, seed: int) -> None:
    """Put junk in one to three places of the report, and seal it again where that can be done."""
    random = Random(seed)
    path = directory / "report.jsonl"
    lines = [deepcopy(whole(json.loads(text))) for text in path.read_text().splitlines()]
    for _ in range(random.randint(1, 3)):
        at, key = random.choice([*places_of(random.choice(lines[:2] if random.random() < 0.4 else lines[2:]))])
        at[key] = random.choice([*JUNK, at[key]])
    with contextlib.suppress(Exception):
        lines[-1] = seal(lines[:-1], []) | {"run": {}}
    path.write_text("".join(f"{json.dumps(short(line))}\n" for line in lines))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(15))
def test_junk_in_a_report_ends_in_problems_and_no_error(copy: Path, seed: int) -> None:
    mutated(copy, seed)
    assert main(["bundle", "verify", str(copy)]) in (1, 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*FILES_OF_A_SUBMISSION, "SIGNATURE.json"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(copy: Path, name: str) -> None:
    (copy / name).unlink(missing_ok=True)
    (copy / name).parent.mkdir(exist_ok=True)
    os.mkfifo(copy / name)
    assert main(["bundle", "verify", str(copy)]) in (1, 2)


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


def test_a_signature_holds_for_one_manifest_and_one_key(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    pem, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    keys = [ed25519.Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2)]
    private, public, other = (tmp_path / name for name in ("private.pem", "public.pem", "other.pem"))
    secret = (pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(keys[0].private_bytes(*secret))
    public.write_bytes(keys[0].public_key().public_bytes(pem, form))
    other.write_bytes(keys[1].public_key().public_bytes(pem, form))
    told = sign(copy, private)
    assert main(["bundle", "verify", str(copy), f"--signed-by={public}"]) == 0
    assert f"signed by {told}" in capsys.readouterr().out
    assert problems_of_signature(copy, other) == [f"SIGNATURE.json: signed by {told}, not by {signer_of(other)}"]
    (copy / MANIFEST).write_bytes((copy / MANIFEST).read_bytes() + b" ")
    assert problems_of_signature(copy, None) == ["SIGNATURE.json: is none of MANIFEST.json"]
    (copy / "SIGNATURE.json").write_text(f"{(copy / 'SIGNATURE.json').read_text():<10000}[")
    assert problems_of_signature(copy, None) == ["SIGNATURE.json: no signature"]
    (copy / "SIGNATURE.json").write_text("[]")
    assert problems_of_signature(copy, None) == ["SIGNATURE.json: no signature"]
    (copy / "SIGNATURE.json").unlink()
    assert problems_of_signature(copy, None) == []
    assert problems_of_signature(copy, public) == ["SIGNATURE.json: no signature"]
    assert main(["bundle", "verify", str(copy), f"--signed-by={copy / MANIFEST}"]) == 2


def problems_of_signature(directory: Path, trusted: Path | None) -> list[str]:
    return [*signature_problems(directory, read_signature(directory), trusted)]


def signer_of(path: Path) -> str:
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    return str(serialization.load_pem_public_key(path.read_bytes()).public_bytes_raw().hex())


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


def digested(lines: Lines) -> None:
    """Keep all passes as a run with `--evidence=digests` would have."""
    lines[0]["selection"]["evidence"] = "digests"
    for line in lines[2:]:
        if line["verdict"] == "pass":
            digest_line(line)


def digest_line(line: dict[str, Any], counts: dict[str, int] | None = None) -> None:
    kinds = Counter(check["kind"] for check in line.pop("checks"))
    exchanges = len(line.pop("exchanges"))
    line["evidence"] = {"checks": counts or dict(kinds), "exchanges": exchanges, "digest": "ab" * 12}


def a_pass(directory: Path) -> str:
    lines = read(directory / "report.jsonl").observations
    return next(str(line["case"]) for line in lines if line["verdict"] == "pass" and "/golden/" in line["case"])


def test_passes_kept_as_digests_are_counted_as_such(
    copy: Path, suite: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    before = verified(copy, suite)
    resealed(copy, digested)
    actual = verified(copy, suite)
    assert actual.problems == []
    assert 0 < actual.replayed < before.replayed
    assert actual.replayed + actual.digests == before.replayed + before.digests
    assert main(["bundle", "verify", str(copy)]) == 0
    told = capsys.readouterr().out
    assert f"{actual.digests} by digest" in told
    assert "--evidence=all" in told


@pytest.mark.parametrize(
    ("case", "counts", "words"),
    [
        (PASSED, {"equal": 1}, f"{PASSED}: 0 results were judged"),
        (PASSED, {"given": 1}, f"{PASSED}: claims to have judged"),
        (GOLDEN, None, f"{GOLDEN}: is kept as counts"),
    ],
)
def test_a_digest_that_cannot_be_is_found(
    copy: Path, suite: Suite, case: str, counts: dict[str, int] | None, words: str
) -> None:
    def change(lines: Lines) -> None:
        digested([line for line in lines if line.get("case") != case])
        digest_line(line_of(lines, case), counts)

    resealed(copy, change)
    assert [problem for problem in verified(copy, suite).problems if words in problem]


def test_a_digest_in_a_report_of_all_evidence_is_found(copy: Path, suite: Suite) -> None:
    resealed(copy, lambda lines: digest_line(line_of(lines, PASSED)))
    words = f"{PASSED}: keeps its evidence as digests"
    assert [problem for problem in verified(copy, suite).problems if words in problem]


LARGE_TOML: dict[str, Callable[[], str]] = {
    "a dotted key": lambda: "a" + ".a" * 200_000 + "=1",
    "dotted keys": lambda: ("a" + ".a" * 99 + "=1\n") * 19_000,
    "dotted tables": lambda: "".join(f"[a{number}{'.a' * 99}]\n" for number in range(1900)),
    "newlines": lambda: "\n" * 100_000_000,
    "values": lambda: "a=[" + "1," * 1_000_001 + "]",
}


@pytest.mark.parametrize("kind", LARGE_TOML)
def test_a_large_toml_text_is_refused_in_bounded_time(kind: str) -> None:
    """The parser of Python takes minutes for some of them."""
    text = LARGE_TOML[kind]()
    began = time.process_time()
    with pytest.raises(NoDocument, match="not TOML"):
        read_toml(text)
    assert time.process_time() - began < 10
