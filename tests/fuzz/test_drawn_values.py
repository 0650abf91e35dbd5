"""Cases over drawn values: what fails is made smaller, what does not answer ends the case, and nothing is forgotten."""

from __future__ import annotations

import pytest

from tessera_conformance.check import Check, CheckFailed, Unanswered
from tessera_conformance.fuzz.choices import Chooser
from tessera_conformance.fuzz.strategies import judge_each
from tessera_conformance.observations import Fault, Unsupported


def numbers(choose: Chooser) -> list[int]:
    return [choose.below(1000) for _ in range(choose.between(1, 10))]


def test_all_values_are_judged_and_the_same_again() -> None:
    """Another number gives others."""
    seen: list[list[list[int]]] = []
    for number in (1, 1, 2):
        values: list[list[int]] = []
        judge_each(Check(), numbers, values.append, examples=30, number=number)
        seen.append(values)
    assert len(seen[0]) == 30
    assert seen[0] == seen[1] != seen[2]


def test_the_smallest_failure_is_what_the_case_reports() -> None:
    """Of lists with a number of at least 100 the smallest is [100]; its checks are kept, beside earlier passes."""
    check = Check()

    def judge(values: list[int]) -> None:
        check.equal(len(values) > 0, True, "there are values")
        check.true(max(values) < 100, "the largest is small", values)

    with pytest.raises(CheckFailed):
        judge_each(check, numbers, judge, examples=50, number=0)
    failed = [record.actual for record in check.records if not record.passed]
    assert failed == [[100]]
    assert [record.what for record in check.records[-2:]] == ["there are values", "the largest is small"]


@pytest.mark.parametrize("answer", [Unsupported("x"), Fault("crash", "it ended")])
def test_a_missing_answer_ends_the_case(answer: Unsupported | Fault) -> None:
    """The first one, whose checks are kept, with no further question."""
    asked = []

    def judge(values: list[int]) -> None:
        asked.append(values)
        if len(asked) == 3:
            raise Unanswered(answer)

    with pytest.raises(Unanswered) as raised:
        judge_each(Check(), numbers, judge, examples=50, number=0)
    assert raised.value.observation is answer
    assert len(asked) == 3


def test_an_implementation_that_fails_once_has_failed() -> None:
    check, calls = Check(), []

    def judge(values: list[int]) -> None:
        calls.append(values)
        check.true(len(calls) != 5, "the fifth call is right")

    with pytest.raises(CheckFailed, match="the fifth call is right"):
        judge_each(check, numbers, judge, examples=50, number=0)


def test_an_error_of_the_case_is_no_failure_of_the_implementation() -> None:
    def judge(values: list[int]) -> None:
        raise KeyError("a mistake of the case")

    with pytest.raises(KeyError):
        judge_each(Check(), numbers, judge, examples=5, number=0)
