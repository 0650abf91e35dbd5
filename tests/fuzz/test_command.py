"""The command: exit codes, findings reported, saved, reduced and repeated, and features as they are claimed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.cli import main
from tessera_conformance.fuzz.statements import FEATURES
from tessera_conformance.fuzz.trials import Plan, Tally, claimed, run, tried
from tessera_conformance.protocol import Hello
from tessera_conformance.registry import load_registry
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import DirectTransport


@pytest.fixture(autouse=True)
def front_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def fuzz(name: str, *options: str) -> int:
    return main(["fuzz", f"--impl=py:fuzzed_front_ends:{name}", *options])


def test_a_crash_is_found_reduced_saved_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Crashes", "--count=150", f"--save={tmp_path}", "--only=legal") == 1
    told = capsys.readouterr().out
    assert "crash: language.verify: ZeroDivisionError: while" in told
    path = min(tmp_path.glob("0-*-crash.tsr"))
    title, _, program = path.read_text(encoding="utf-8").partition("\n")
    assert title.startswith("// trial ") and title.endswith("ZeroDivisionError: while")
    assert "while" in program and len(program.splitlines()) <= 13
    repeated = "--only=legal", f"--trial={path.stem.split('-')[1]}"
    assert fuzz("Crashes", *repeated) == 1
    assert fuzz("Fake", *repeated) == 0
    assert "1 trials" in capsys.readouterr().out


def test_a_mutated_text_is_reduced_to_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Crashes", "--count=300", "--only=mutant") == 1
    assert "  | while" in capsys.readouterr().out.splitlines()


def test_a_hang_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Hangs", "--count=25", "--only=mutant", "--deadline=0.05") == 1
    assert "hang: language.verify: no answer within 0.05 s" in capsys.readouterr().out


def test_a_refused_legal_program_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Refuses", "--count=60", "--only=legal") == 1
    assert "legal program refused: rejected in phase verify with types: no loops" in capsys.readouterr().out


def test_an_accepted_illegal_program_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Fake", "--count=3", "--only=illegal") == 1
    assert "illegal program accepted" in capsys.readouterr().out


def test_values_that_change_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Miscounts", "--count=4", "--only=variant") == 1
    assert "two texts of one meaning, two answers" in capsys.readouterr().out


def test_nothing_judged_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Knows", "--count=20") == 1
    assert "nothing was judged" in capsys.readouterr().out


def test_a_front_end_without_fault_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Fake", "--count=30", "--only=legal") == 0
    told = capsys.readouterr().out
    assert "30 trials" in told and "0 findings of 0 sorts" in told


@pytest.mark.parametrize(
    "options",
    [
        ("--impl=py:fuzzed_front_ends:DoesNotStart",),
        ("--impl=nonsense",),
    ],
)
def test_what_cannot_be_asked_ends_with_2(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", *options]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_trial_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz("Fake", "--seed=5", "--trial=7", "--only=legal") == 0
    told = capsys.readouterr().out
    trial, _ = Plan(5, range(0), kinds=("legal",)).trial(7)
    assert trial.subject.source in told


def test_the_smaller_form_has_the_same_problem() -> None:
    import fuzzed_front_ends as fakes  # type: ignore[import-not-found]

    session = Session(DirectTransport(fakes.GoesWrongTwice, "fake"))
    outcome = run(session, Plan(0, range(120), kinds=("legal",)))
    assert {finding.problem.name for finding in outcome.findings} == {"crash", "legal program refused"}
    for finding in outcome.findings:
        assert ("while" in finding.minimal.subject.source) is (finding.problem.name == "crash")
        again = tried(session, finding.minimal, Tally())
        assert again is not None and again.signature == finding.problem.signature


def test_features_follow_the_claims() -> None:
    hello = Hello("x", "1", capabilities={"casts": "enforced", "reductions": "unsupported", "philox": "enforced"})
    assert claimed(hello) == ("casts",)
    assert set(FEATURES) <= set(load_registry(clauses_directory()).features)


def test_every_kind_is_tried() -> None:
    made = {Plan(2, range(0)).trial(index)[0].kind for index in range(60)}
    assert made == {"legal", "variant", "illegal", "mutant"}


def test_the_harness_needs_no_hypothesis() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import tessera_conformance.cli, tessera_conformance.fuzz"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [11, 12])
def test_the_reference_is_without_findings(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["fuzz", "--impl=reference", "--count=150", f"--seed={seed}"])
    assert code == 0, capsys.readouterr().out
