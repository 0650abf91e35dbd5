"""`smoke` asks about what is claimed, and says of each answer whether it is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tessera_conformance.cli import main

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FAKES)


def smoke(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and what was said of each method."""
    code = main(["smoke", *options])
    told: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        method, _, what = line.partition(" ")
        told.setdefault(method, []).append(what.strip())
    return code, told


def test_every_document_that_is_claimed_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "--impl=reference")
    assert code == 0
    assert {"language.execute", "numerics.evaluate", "abi.parameter_layout", "tessMemcpyAsync"} < told.keys()
    assert {"collectives.all_reduce", "host_io.describe", "wsp.execute"} < told.keys()
    assert all(
        answer.startswith("right, ")
        for method, answers in told.items()
        for answer in answers[method == "session.open" :]
    )


def test_what_is_not_claimed_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "py:echo:Echo")
    assert set(told) == {"session.open", "language.parse", "language.verify", "language.execute"}


def test_a_wrong_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Echo hands back its input, where A + A was asked for."""
    code, told = smoke(capsys, "py:echo:Echo")
    assert code == 1
    (answer,) = told["language.execute"]
    assert answer.startswith("wrong, A + A: ") and "3f800000" in answer and "40000000" in answer


def test_an_unknown_feature_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = smoke(capsys, "py:claims_a_typo:ClaimsATypo", "--door=operations")
    assert code == 1
    assert re.search(
        "wrong: .*'extra_dtypes', which is no feature .did you mean 'extra-dtypes'", told["session.open"][1]
    )


def test_by_operations_no_program_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    _, told = smoke(capsys, "--impl=reference", "--door=operations")
    assert not [method for method in told if method.startswith("language.")]
    assert told["numerics.evaluate"] == ["right, an addition"]


@pytest.mark.parametrize("options", [[], ["reference", "--impl=reference"]])
def test_one_implementation_is_named(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["smoke", *options]) == 2
    assert "name one implementation, --impl=IMPL" in capsys.readouterr().err
