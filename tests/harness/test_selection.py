"""A part of the suite: by cases, clauses, features, failures and places, through both ways, and what is misspelt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tessera_conformance import selection as places_of_suite
from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_conformance.registry.cases import IndexedCase
from tessera_conformance.reports.journal import Report, UnreadableReport, read
from tessera_conformance.selection import Choice, NothingChosen, place_of

from .conftest import FAKES, copy_harness

pytestmark = pytest.mark.slow

WAYS = {"pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider"], "run": ["-m", "tessera_conformance", "run"]}
SUITE = {
    "ir/test_sums.py": """
import os, pathlib, pytest
from tessera_conformance.marks import clause, feature
@clause("LANG-02-01")
@pytest.mark.parametrize("size", ["one", "two"])
def test_small(impl, check, size): check.equal(size, "one")
@clause("LANG-04-06")
def test_random(check): check.equal(1, 1)
@feature("casts")
@clause("LANG-10-02")
def test_cast(check): check.equal(1, 1)
""",
    "ir/deep/test_words.py": """
import os, pathlib
from tessera_conformance.marks import clause
with (pathlib.Path(__file__).parents[3] / "imported").open("a") as file: file.write("words ")
@clause("LANG-10-02")
def test_long(check): check.equal(1, 1)
""",
}
ONE, TWO, RANDOM, CAST, LONG = (
    "ir/sums/small/one",
    "ir/sums/small/two",
    "ir/sums/random",
    "ir/sums/cast",
    "ir/deep/words/long",
)
INDEX = {
    LONG: IndexedCase("ir/deep/test_words.py::test_long", ("LANG-10-02",), (), ()),
    CAST: IndexedCase("ir/test_sums.py::test_cast", ("LANG-10-02",), ("casts",), ()),
    RANDOM: IndexedCase("ir/test_sums.py::test_random", ("LANG-04-06",), ("random-ops",), ()),
    ONE: IndexedCase("ir/test_sums.py::test_small[one]", ("LANG-02-01",), (), ()),
    TWO: IndexedCase("ir/test_sums.py::test_small[two]", ("LANG-02-01",), (), ()),
}
"""The cases of that suite."""


@dataclass(frozen=True)
class Done:
    exit_code: int
    output: str
    report: Report | None

    @property
    def cases(self) -> list[str]:
        assert self.report is not None, self.output
        return [line["case"] for line in self.report.observations]


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the harness with a suite of two files."""
    made = tmp_path_factory.mktemp("checkout")
    copy_harness(made)
    for name, text in SUITE.items():
        (made / "conformance" / name).parent.mkdir(parents=True, exist_ok=True)
        (made / "conformance" / name).write_text(text)
    return made


@pytest.fixture
def run(checkout: Path, tmp_path: Path) -> Run:
    """Runs a part of that suite through a way."""

    def run(via: str, *options: str, directory: str = ".") -> Done:
        report = tmp_path / "report" / "report.jsonl"
        done = subprocess.run(
            [sys.executable, *WAYS[via], "--impl=py:echo:Echo", f"--report-dir={report.parent}", *options],
            cwd=checkout / directory,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(checkout / "conformance/harness"), str(FAKES)]),
                "XDG_CACHE_HOME": str(checkout / "cache"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout + done.stderr, read(report) if report.exists() else None)

    return run


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("options", "cases"),
    [
        (["--case=ir/sums/*", "--case=ir/deep/*/long"], [LONG, CAST, RANDOM, ONE, TWO]),
        (["--clause=LANG-10-02"], [LONG, CAST]),
        (["--feature=random-ops"], [RANDOM]),
        (["--clause=LANG-10-02", "conformance/ir/test_sums.py"], [CAST]),
        (["conformance/ir/deep"], [LONG]),
        (["conformance/ir/test_sums.py::test_small"], [ONE, TWO]),
        (["conformance/ir/test_sums.py::test_small[two]", "--case=*"], [TWO]),
        (["--case=ir/sums/*", "-k", "small"], [ONE, TWO]),
        (["conformance/ir/deep", "-n", "2"], [LONG]),
    ],
    ids=lambda part: " ".join(part) if part and "/" not in part[-1][:3] else None,
)
def test_what_is_asked_for_is_what_runs(run: Run, options: Sequence[str], cases: Sequence[str]) -> None:
    assert run("run", *options).cases == cases


@pytest.mark.parametrize(
    ("choice", "cases"),
    [
        (Choice(cases=["ir/sums/*"]), [CAST, RANDOM, ONE, TWO]),
        (Choice(cases=["*/words/*", "ir/sums/small/t*"]), [LONG, TWO]),
        (Choice(clauses=["LANG-10-02"]), [LONG, CAST]),
        (Choice(clauses=["LANG-0*"]), [RANDOM, ONE, TWO]),
        (Choice(features=["casts"]), [CAST]),
        (Choice(clauses=["LANG-10-02"], cases=["ir/deep/*"]), [LONG]),
    ],
)
def test_a_choice_has_the_cases_that_meet_every_kind_of_it(choice: Choice, cases: Sequence[str]) -> None:
    assert list(choice.of(INDEX, load_registry(clauses_directory()))) == cases


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "cases"),
    [
        (["--clause=LANG-10-02", "conformance/ir/test_sums.py"], [CAST]),
        (["--case=ir/sums/*", "-n", "2"], [CAST, RANDOM, ONE, TWO]),
    ],
)
def test_pytest_takes_the_same_options(run: Run, options: Sequence[str], cases: Sequence[str]) -> None:
    assert run("pytest", *options).cases == cases


@pytest.mark.parametrize("via", WAYS)
def test_without_a_choice_the_whole_suite_runs(run: Run, via: str) -> None:
    done = run(via)
    assert done.cases == [LONG, CAST, RANDOM, ONE, TWO]
    assert done.report is not None
    assert "chosen" not in done.report.header["selection"]
    assert done.report.header["selection"]["complete"] is True


def test_a_place_is_known_from_anywhere(run: Run, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the wheel has no checkout to name files in."""
    (checkout / "elsewhere").mkdir(exist_ok=True)
    assert run("run", "ir/test_sums.py", directory="elsewhere").cases == [CAST, RANDOM, ONE, TWO]
    monkeypatch.setattr(places_of_suite, "suite_directory", lambda: checkout / "conformance")
    arguments = ("ir/test_sums.py", "conformance/ir/test_sums.py")
    named = [place_of(argument, checkout / "elsewhere") for argument in arguments]
    assert [place.in_suite for place in named] == ["ir/test_sums.py"] * 2


def test_a_place_is_first_looked_for_here(run: Run) -> None:
    assert run("run", "test_words.py", directory="conformance/ir/deep").cases == [LONG]


@pytest.mark.parametrize("via", WAYS)
def test_the_report_says_what_was_chosen(run: Run, via: str) -> None:
    done = run(via, "--case=ir/*", "--clause=LANG-10-02", "--feature=casts", "conformance/ir", "-k", "cast")
    assert done.report is not None, done.output
    assert done.report.header["selection"]["chosen"] == {
        "cases": ["ir/*"],
        "clauses": ["LANG-10-02"],
        "features": ["casts"],
        "paths": ["ir"],
        "keyword": "cast",
    }


@pytest.mark.parametrize("via", WAYS)
def test_the_report_has_the_seed_of_what_was_drawn(run: Run, via: str) -> None:
    done = run(via, "--seed=7", "--case=ir/deep/*")
    assert done.report is not None, done.output
    assert done.report.header["selection"]["seed"] == 7


@pytest.mark.parametrize("option", ["--case=ir/deep/*", "ir/deep"])
def test_a_part_claims_no_more_than_a_part(run: Run, option: str) -> None:
    done = run("run", option)
    assert done.report is not None, done.output
    assert (done.report.header["selection"]["complete"], done.report.claim) == (False, "partial")


def test_what_failed_runs_again(run: Run, tmp_path: Path) -> None:
    via = "run"
    assert run(via).exit_code == 1
    kept = shutil.copy(tmp_path / "report" / "report.jsonl", tmp_path / "before.jsonl")
    again = run(via, f"--failed={kept}")
    assert again.cases == [TWO]
    assert again.report is not None
    assert again.report.header["selection"]["chosen"] == {"failed": str(kept)}
    run(via, "--case=ir/deep/*")
    passed = shutil.copy(tmp_path / "report" / "report.jsonl", tmp_path / "passed.jsonl")
    assert "no case of this report failed" in run(via, f"--failed={passed}").output


def test_other_files_are_not_imported(run: Run, checkout: Path) -> None:
    run("run", "--case=ir/sums/*")
    (checkout / "imported").unlink(missing_ok=True)
    assert run("run", "--case=ir/sums/*").cases == [CAST, RANDOM, ONE, TWO]
    assert not (checkout / "imported").exists()
    run("run", "--case=ir/deep/*")
    assert (checkout / "imported").read_text() == "words "


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(cases=["ir/sumz/*"]), "no case has such an id; did you mean ir/sums/*"),
        (Choice(cases=["ir/sums"]), "did you mean ir/sums/*"),
        (Choice(clauses=["LANG-10-002"]), "no such clause; did you mean LANG-10-02"),
        (Choice(clauses=["RT-04.3-01"]), "no case judges it (verified by: static)"),
        (Choice(features=["cast"]), "no such feature; did you mean casts?"),
        (Choice(features=["mesh-selection"]), "no case needs it"),
        (Choice("ir/sums/smal/one"), "no such case: ir/sums/smal/one; did you mean ir/sums/small/one"),
        (Choice(failed=clauses_directory() / "clauses.lock"), ":1: not the header of a report"),
        (Choice(features=["casts"], cases=["ir/deep/*"]), "no case matches all options"),
    ],
)
def test_what_does_not_exist_is_an_error_of_one_line(choice: Choice, words: str) -> None:
    with pytest.raises((NothingChosen, UnreadableReport)) as raised:
        choice.of(INDEX, load_registry(clauses_directory()))
    assert words in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--case=ir/sumz/*", "no case has such an id; did you mean ir/sums/*"),
        ("--clause=LANG-10-002", "no such clause; did you mean LANG-10-02"),
        ("--failed=nothing.jsonl", "nothing.jsonl: No such file"),
        ("schemas", "is outside the suite"),
    ],
)
def test_what_does_not_exist_is_said_in_a_sentence(run: Run, option: str, words: str) -> None:
    done = run("pytest" if "case" in option else "run", option)
    assert words in done.output
    assert (done.exit_code, done.report) == (4 if "case" in option else 2, None)
    assert len(done.output.split("error: ")[1].strip().splitlines()) == 1, done.output


@pytest.mark.parametrize(
    ("place", "meant"), [("conformance/ir/test_sum.py", "conformance/ir/test_sums.py"), ("ir/dep", "ir/deep")]
)
def test_a_place_that_does_not_exist_is_an_error_of_one_line(
    checkout: Path, place: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places_of_suite, "suite_directory", lambda: checkout / "conformance")
    with pytest.raises(NothingChosen, match=rf"^[^\n]+, here or in the suite; did you mean {meant}\?$"):
        place_of(place, checkout)


def test_a_place_without_the_cases_that_were_asked_for(run: Run) -> None:
    done = run("run", "--case=ir/deep/*", "conformance/ir/test_sums.py")
    assert "holds none of the 1 cases" in done.output
