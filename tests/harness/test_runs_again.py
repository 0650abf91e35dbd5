"""A run of what failed before, a list instead of a run, and the end of one in which nothing answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera_conformance.reports.claim import FIRST, Line, is_asked, silence
from tessera_conformance.reports.journal import read
from tessera_conformance.selection import Earlier, earlier

from .conftest import FAKES, Checkout, CompletedRun, copy_harness

SOAK = Path(__file__).parents[1] / "soak.py"
TWELVE = """
import pytest
from pathlib import Path
from tessera_conformance.marks import clause
@clause("LANG-02-01")
@pytest.mark.parametrize("number", range(12))
def test_number(impl, check, number):
    check.returns(impl.language.execute(source="", function="f", inputs={}))
    check.true(number != 3 or Path("mended").exists(), "it is not 3")
"""
Run = Callable[..., CompletedRun]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with a suite of twelve cases, of which one fails until the file `mended` is there.

    It lies in a folder whose name has words that `-k` is asked about.
    """
    directory = tmp_path_factory.mktemp("10-and-11")
    copy_harness(directory)
    (directory / "conformance" / "ir").mkdir(exist_ok=True)
    (directory / "conformance" / "ir" / "test_twelve.py").write_text(TWELVE)
    return Checkout(directory)


@pytest.fixture
def run(twelve: Checkout, tmp_path: Path) -> Run:
    """`tessera-conformance run` in a folder of the test's own; the report in `folder` comes with the result."""

    def run(*options: str, folder: str = "report", impl: str = "py:echo:Echo") -> CompletedRun:
        done = subprocess.run(
            [sys.executable, "-m", "tessera_conformance", "run", f"--impl={impl}", *options],
            cwd=tmp_path,
            env=environment(twelve),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        path = tmp_path / folder / "report.jsonl"
        return CompletedRun(done.returncode, done.stdout + done.stderr, read(path) if path.exists() else None, path)

    return run


def environment(twelve: Checkout) -> dict[str, str]:
    """The variables with which Python finds the checkout's harness and the implementations of these tests."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(twelve.directory / "conformance/harness"), str(FAKES)]),
        "XDG_CACHE_HOME": str(twelve.directory / "cache"),
    }


def cases(done: CompletedRun) -> list[str]:
    assert done.report is not None, done.output
    return [line["case"].rpartition("/")[2] for line in done.report.observations]


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_what_failed_runs_again_until_nothing_fails(run: Run, tmp_path: Path, workers: list[str]) -> None:
    first = run("--lf")
    assert "--lf: there is no report/report.jsonl yet: all cases run" in first.output
    assert len(cases(first)) == 12
    whole = first.path.read_bytes()
    for _ in range(2):
        again = run("--last-failed", *workers, folder="report/failed")
        assert (again.exit_code, cases(again)) == (1, ["3"])
    (tmp_path / "mended").touch()
    assert run("--lf", "--list").output.splitlines()[0] == "ir/twelve/number/3"
    mended = run("--lf", *workers, folder="report/failed")
    assert (mended.exit_code, cases(mended)) == (0, ["3"])
    assert first.path.read_bytes() == whole
    everything = run("--lf")
    assert "failed: all cases run" in everything.output
    assert len(cases(everything)) == 12


@pytest.mark.slow
def test_the_report_that_is_read_is_kept(run: Run) -> None:
    whole = run()
    kept = whole.path.read_bytes()
    part = run("--failed=report/report.jsonl", folder="report/failed")
    assert cases(part) == ["3"]
    refused = run("--failed=report/report.jsonl", "--report-dir=report")
    assert refused.exit_code == 2
    assert "error: --report-dir: report holds the report that --failed reads; name another folder" in refused.output
    assert whole.path.read_bytes() == kept


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_a_list_runs_nothing(run: Run, options: list[str]) -> None:
    done = run("--list", "-k", "number and not 10 and not 11", *options)
    numbers = [line.rpartition("/")[2] for line in done.output.splitlines() if line.startswith("ir/twelve/number/")]
    assert numbers == [*map(str, range(10))]
    assert (done.exit_code, done.report) == (0, None)


@pytest.mark.slow
def test_a_list_that_nobody_reads_to_its_end_ends_quietly(twelve: Checkout, tmp_path: Path) -> None:
    unread, output = os.pipe()
    os.close(unread)
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl=py:echo:Echo", "--list"]
    with os.fdopen(output, "wb") as closed:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(twelve),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("options", [["-x"], ["--maxfail=1"], ["-x", "-n", "2"]], ids=" ".join)
def test_a_run_that_ends_with_the_first_failure_is_a_failure(run: Run, options: list[str]) -> None:
    done = run(*options)
    assert done.exit_code == 1
    assert done.report is not None and done.report.footer is not None
    assert done.report.footer["problems"] == []
    assert done.report.footer["verdicts"]["fail"] == 1
    assert len(cases(done)) == 12


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("impl", "problem"),
    [
        ("rpc:echo hello", "the run was broken off: after the first 10 cases; mend that first"),
        ("py:echo:Raises", "the first 10 cases ended all in crash: LookupError: no such register; mend that first"),
    ],
    ids=["rpc", "py"],
)
def test_an_implementation_that_answers_nothing_ends_the_run(
    run: Run, impl: str, problem: str, options: list[str]
) -> None:
    done = run(*options, impl=impl)
    assert done.exit_code == 1
    assert done.report is not None and done.report.footer is not None
    assert done.report.claim == "failure"
    (told,) = done.report.footer["problems"]
    assert problem in told
    if not options:
        assert done.report.footer["verdicts"]["not_run"] == 2


@pytest.mark.slow
def test_a_run_goes_on_where_that_is_wanted(run: Run) -> None:
    for option in ("--keep-going", "--case=ir/*"):
        done = run(option, impl="py:echo:Raises")
        assert done.report is not None and done.report.footer is not None
        assert done.report.footer["verdicts"] == {"crash": 12}


def line(verdict: str, *observations: str) -> Line:
    exchanges = [{"method": "language.execute", "observation": {kind: {}}} for kind in observations]
    return {"verdict": verdict, "disposition": "none", "reason": "why", "exchanges": exchanges}


def test_one_answer_is_enough_to_go_on() -> None:
    known = {**line("crash", "fault"), "disposition": "known_deviation"}
    for answered in (line("pass"), line("fail"), line("crash", "returned", "fault"), known):
        assert silence([line("crash", "fault")] * FIRST)
        assert not silence([line("crash", "fault")] * (FIRST - 1) + [answered])


def test_cases_that_ask_nothing_do_not_count() -> None:
    assert not any(is_asked(line(verdict)) for verdict in ("inapplicable", "unsupported"))
    assert not silence([line("hang", "fault")] * (FIRST - 1))
    lines = [*[line("hang", "fault")] * (FIRST - 1), line("crash", "fault")]
    assert silence(lines) == "the first 10 cases ended without an answer, 9 in hang: why"


def test_reports_below_the_usual_folder_are_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = Path("report/failed/report.jsonl")
    part.parent.mkdir(parents=True)
    part.touch()
    assert earlier(None, part, False) == Earlier(part.parent.resolve() / "failed", part)
    assert earlier(None, Path("other/report.jsonl"), False) == Earlier(Path("report"), Path("other/report.jsonl"))
    assert earlier(None, None, True, keeps=True) == Earlier(Path("report/failed"), part)
    assert part.exists()


# A run that was cut off goes on: what was judged is kept, and the report is that of a run in one go.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_a_resumed_run_has_the_report_of_a_run_in_one_go(run: Run, tmp_path: Path, share: float) -> None:
    whole = run("--report-dir=whole", folder="whole")
    assert whole.report is not None
    cut = tmp_path / "report" / "report.jsonl"
    cut.parent.mkdir()
    data = whole.path.read_bytes()
    cut.write_bytes(data[: int(share * len(data))])
    before = read(cut)
    resumed = run("--resume=report/report.jsonl")
    assert resumed.report is not None and resumed.report.footer is not None and whole.report.footer is not None
    assert resumed.report.footer["sha256"] == whole.report.footer["sha256"]
    kept = [line for line in resumed.report.observations if line in before.observations]
    assert len(kept) == len(before.observations)
    assert (resumed.exit_code, (cut.parent / "resumed.jsonl").exists()) == (whole.exit_code, True)


@pytest.mark.slow
def test_the_report_of_another_run_is_not_resumed(run: Run) -> None:
    run("--report-dir=whole", "-k", "number", folder="whole")
    done = run("--resume=whole/report.jsonl", "--level=fast")
    assert "is of another run: its selection differ" in done.output


@pytest.mark.slow
def test_hardships_change_no_verdict() -> None:
    """Two hardships of `tests/soak.py`, over one file; all ten minutes with TESSERA_EVERY=1."""
    sample = ["--hardships=2", "--seed=5", "--files=1", "conformance/ir/test_precedence.py"]
    amount = ["--minutes=10"] if os.environ.get("TESSERA_EVERY") == "1" else sample
    done = subprocess.run([sys.executable, str(SOAK), *amount], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 faults, " in done.stdout
