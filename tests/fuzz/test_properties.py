"""Properties that answers break or keep, cases over drawn values, and the shrinking of failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.check import Check, CheckFailed, Unanswered
from tessera_conformance.dsl import tensor_of
from tessera_conformance.fuzz.drawn import judge_each
from tessera_conformance.fuzz.statements import Output, Subject
from tessera_conformance.fuzz.tree import Chooser
from tessera_conformance.fuzz.trials import SIMPLER, Tally, Trial, judge, limited, shorter
from tessera_conformance.protocol import Diagnostic, Fault, Observation, Rejected, Returned, Unsupported

SOURCE = "module m {\n  func f() { }\n}\n"
OTHER = "module m { func f() { } }"
ACCEPTED = Returned({"warnings": []})
PARSED = Returned({"modules": [{"name": "m", "declarations": [{"kind": "func", "name": "f"}]}]})
ONE, TWO = (Returned({"outputs": [tensor_of("int32", value)]}) for value in (1, 2))
NAN, OTHER_NAN = (
    Returned({"outputs": [tensor_of("fp16", 0.0).from_bits("fp16", (), bits)]}) for bits in ("7e00", "fe01")
)
CRASH = Fault("crash", "SIGSEGV")


def refused(category: str = "types", phase: str = "verify", **place: Any) -> Rejected:
    """A rejection with one diagnostic."""
    return Rejected(category, phase, "no", (Diagnostic(category, place.pop("message", "no"), **place),))


def legal(**changes: Any) -> Trial:
    known: dict[str, Any] = {"outputs": (Output("int32", ()),), "declared": [("m", [("func", "f")])], "thorough": True}
    return Trial("legal", "legal", Subject(SOURCE, "f"), **known | changes)


def variant(function: str = "f") -> Trial:
    return Trial("variant", "spaces", Subject(SOURCE, function), Subject(OTHER, function))


ILLEGAL = Trial("illegal", "a mistake", Subject(SOURCE, "f"), categories=("types", "shapes"))
MUTANT = Trial("mutant", "mutated", Subject(SOURCE), thorough=True)
RUN_MUTANT = Trial("mutant", "mutated", Subject(SOURCE, "f"))
LOWERED = Returned({"functions": [], "text": ""})


def answering(**answers: Observation | list[Observation]) -> Callable[[str, Any], Observation]:
    """Answers by method; a list is used up in turn."""
    given = {"verify": ACCEPTED, "parse": PARSED, "lower": LOWERED, "execute": ONE} | answers

    def ask(method: str, params: Any) -> Observation:
        answer = given[method.removeprefix("language.")]
        return answer.pop(0) if isinstance(answer, list) else answer

    return ask


def found(trial: Trial, **answers: Observation | list[Observation]) -> str | None:
    problem = judge(answering(**answers), trial, Tally())
    return None if problem is None else problem.name


@pytest.mark.parametrize(
    ("trial", "answers", "problem"),
    [
        (legal(), {}, None),
        (legal(), {"verify": refused()}, "legal program refused"),
        (legal(), {"parse": refused("syntax", "parse")}, "legal program not parsed"),
        (legal(), {"lower": refused()}, "legal program not lowered"),
        (legal(), {"execute": refused()}, "legal program refused"),
        (legal(), {"execute": refused("numerics", "execute")}, None),
        (legal(), {"verify": Unsupported("x")}, None),
        (legal(), {"execute": Unsupported("x")}, None),
        (legal(), {"execute": [ONE, TWO]}, "executed twice, two answers"),
        (legal(), {"execute": [ONE, refused("numerics", "execute")]}, "executed twice, two answers"),
        (legal(), {"parse": Returned({"modules": []})}, "other declarations"),
        (legal(outputs=(Output("int32", (1,)),)), {}, "other results than the types say"),
        (legal(outputs=(Output("int16", ()),)), {}, "other results than the types say"),
        (legal(outputs=()), {}, "other results than the types say"),
        (legal(outputs=(Output("int32", None),)), {}, None),
        (legal(outputs=(Output("fp16", ()),)), {"execute": [NAN, OTHER_NAN]}, None),
        (ILLEGAL, {"verify": refused("types"), "execute": refused("types")}, None),
        (ILLEGAL, {"verify": refused("shapes"), "execute": refused("shapes")}, None),
        (ILLEGAL, {"verify": refused("layouts")}, "other category"),
        (ILLEGAL, {"verify": ACCEPTED}, "illegal program accepted"),
        (ILLEGAL, {"verify": refused("types"), "execute": ONE}, "illegal program executed"),
        (ILLEGAL, {"verify": Unsupported("x")}, None),
        (ILLEGAL, {"verify": refused(phase="execute")}, "refused in another phase"),
        (variant(), {"execute": [ONE, ONE]}, None),
        (variant(), {"execute": [ONE, TWO]}, "two texts of one meaning, two answers"),
        (variant(), {"execute": [ONE, Unsupported("x")]}, None),
        (legal(), {"execute": [Unsupported("x"), ONE]}, None),
        (variant(), {"execute": [ONE, refused()]}, "two texts of one meaning, two answers"),
        (variant(), {"execute": [refused(), refused("shapes")]}, "two texts of one meaning, two answers"),
        (variant(), {"execute": [refused(line=1, column=1), refused(line=1, column=2)]}, None),
        (variant(""), {"verify": [ACCEPTED, refused()]}, "two texts of one meaning, two answers"),
        (variant(""), {"verify": [ACCEPTED, ACCEPTED]}, None),
        (MUTANT, {"verify": refused("syntax", "lex"), "parse": refused("syntax", "lex")}, None),
        (MUTANT, {"parse": refused("syntax", "parse")}, "accepted, but not parsed"),
        (MUTANT, {"verify": CRASH}, "crash"),
        (RUN_MUTANT, {}, None),
        (RUN_MUTANT, {"execute": refused("types", "call")}, None),
        (RUN_MUTANT, {"execute": refused("types", "verify")}, "accepted, but refused when executed"),
        (RUN_MUTANT, {"verify": refused("types", "verify"), "execute": refused("types", "verify")}, None),
        (RUN_MUTANT, {"execute": CRASH}, "crash"),
        (MUTANT, {"verify": Fault("hang", "no answer")}, "hang"),
        (legal(), {"execute": CRASH}, "crash"),
        (legal(), {"parse": Fault("protocol_error", "?")}, "protocol_error"),
        (variant(), {"execute": [ONE, CRASH]}, "crash"),
        (ILLEGAL, {"verify": refused(), "execute": CRASH}, "crash"),
    ],
)
def test_a_broken_property_is_a_problem(trial: Trial, answers: dict[str, Any], problem: str | None) -> None:
    assert found(trial, **answers) == problem


@pytest.mark.parametrize(
    ("place", "sound"),
    [
        ({"line": 1, "column": 1}, True),
        ({"line": 4, "column": 1}, True),
        ({"line": 5, "column": 1}, False),
        ({"line": 0, "column": 1}, False),
        ({"line": 2, "column": 15}, True),
        ({"line": 2, "column": 16}, False),
        ({"line": 2, "column": 0}, False),
        ({"line": 1, "column": 1, "end_line": 4, "end_column": 2}, True),
        ({"line": 1, "column": 1, "end_line": 4, "end_column": 3}, False),
        ({"line": 2, "column": 3, "end_line": 2, "end_column": 3}, True),
        ({"line": 2, "column": 3, "end_line": 2, "end_column": 2}, False),
        ({"line": 2, "column": 3, "end_line": 1, "end_column": 9}, False),
        ({}, True),
        ({"message": " "}, False),
    ],
)
def test_a_diagnostic_lies_inside_the_text(place: dict[str, Any], sound: bool) -> None:
    problem = found(MUTANT, verify=refused("syntax", "parse", **place), parse=refused("syntax", "parse"))
    assert (problem is None) is sound


def test_categories_are_those_of_the_specification() -> None:
    assert found(MUTANT, verify=refused("grammar", "parse")) == "diagnostic without category or message"
    warning = {"category": "syntax", "message": "odd", "severity": "warning", "line": 9, "column": 1}
    assert found(MUTANT, verify=Returned({"warnings": [warning]})) == "diagnostic outside the text"


def test_every_rank_is_judged() -> None:
    values = [{"outputs": [tensor_of("int32", value)]} for value in (1, 1)]
    trial = Trial("legal", "legal", Subject(SOURCE, "f", {}, 2), outputs=(Output("int32", ()),))
    assert found(trial, execute_ranks=Returned({"ranks": values})) is None
    wrong = [values[0], {"outputs": []}]
    assert found(trial, execute_ranks=Returned({"ranks": wrong})) == "other results than the types say"


def test_answers_are_counted() -> None:
    tally = Tally()
    judge(answering(verify=Unsupported("loops")), legal(thorough=False), tally)
    assert tally.unsupported == {"loops": 1}
    assert tally.judged == 0
    judge(answering(), legal(thorough=False), tally)
    assert tally.answers == {"verify unsupported": 1, "verify returned": 1, "execute returned": 1}
    assert tally.judged == 2


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
    """The smallest list with a number of at least 100 is [100]; its checks are kept, beside earlier passes."""
    check = Check()

    def judge_values(values: list[int]) -> None:
        check.equal(len(values) > 0, True, "there are values")
        check.true(max(values) < 100, "the largest is small", values)

    with pytest.raises(CheckFailed):
        judge_each(check, numbers, judge_values, examples=50, number=0)
    failed = [record.actual for record in check.records if not record.passed]
    assert failed == [[100]]
    assert [record.what for record in check.records[-2:]] == ["there are values", "the largest is small"]


@pytest.mark.parametrize("answer", [Unsupported("x"), Fault("crash", "it ended")])
def test_a_missing_answer_ends_the_case(answer: Unsupported | Fault) -> None:
    """The first one, whose checks are kept, with no further question."""
    asked = []

    def judge_values(values: list[int]) -> None:
        asked.append(values)
        if len(asked) == 3:
            raise Unanswered(answer)

    with pytest.raises(Unanswered) as raised:
        judge_each(Check(), numbers, judge_values, examples=50, number=0)
    assert raised.value.observation is answer
    assert len(asked) == 3


def test_an_implementation_that_fails_once_has_failed() -> None:
    check, calls = Check(), []

    def judge_values(values: list[int]) -> None:
        calls.append(values)
        check.true(len(calls) != 5, "the fifth call is right")

    with pytest.raises(CheckFailed, match="the fifth call is right"):
        judge_each(check, numbers, judge_values, examples=50, number=0)


def test_an_error_of_the_case_is_no_failure_of_the_implementation() -> None:
    def judge_values(values: list[int]) -> None:
        raise KeyError("a mistake of the case")

    with pytest.raises(KeyError):
        judge_each(Check(), numbers, judge_values, examples=5, number=0)


def test_attempts_to_shrink_are_bounded() -> None:
    asked: list[list[int]] = []

    def keeps(numbers: list[int]) -> bool:
        asked.append(numbers)
        return False

    shorter(range(1000), limited(keeps, 50), SIMPLER)
    assert len(asked) == 50


def test_what_is_not_needed_is_left_out_or_made_simple() -> None:
    def keeps(numbers: list[int]) -> bool:
        return 7 in numbers and numbers.index(7) > 0

    assert shorter([1, 2, 9, 9, 2, 1, 7, 3, 3], keeps, SIMPLER) == [0, 7]
    assert shorter([9, 7, 5], keeps) == [9, 7]
