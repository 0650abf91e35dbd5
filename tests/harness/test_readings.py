"""Other readings: of accuracy, of programs and of constructs that a case leans on."""

from __future__ import annotations

import struct
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.chapters.ir.kit.open_programs import ACCEPTED, QUESTIONS, REFUSED, Meaning, Question, judge
from tessera_conformance.check import Check, CheckFailed, OtherReading, Presumption, Unanswered
from tessera_conformance.dsl import tensor_of
from tessera_conformance.protocol import Diagnostic, Fault, Hello, Observation, Rejected, Returned, Unsupported
from tessera_conformance.registry import Construct, load_registry
from tessera_conformance.reports.claim import controls, settled
from tessera_conformance.session import Exchange
from tessera_conformance.suite_run import Case, SuiteRun, absent_member
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.verdicts import after_running
from tessera_reference.adapter import ReferenceAdapter

# Presumptions, other readings and blocked cases: what counts against nobody, and what still does.

REFUSAL = Rejected("TESS_ERR_UNSUPPORTED", "call", "no streams")
HANG = Fault("hang", "no answer within 30 s")
STREAMS = Construct("tessStreamCreate", "a stream", "runtime/control/stream", methods=("runtime.tessStreamCreate",))
EMPTY = Construct("empty-body", "an empty body", "ir/control/empty-body", pattern=r"\{ *\}")
LOOPS = Construct("for", "a loop", "ir/control/for", pattern=r"\bfor\b")


def judged(act: Any, fault: Fault | None = None, unclaimed: str = "") -> Any:
    """The judgement of a case that does this with its checks."""
    check = Check()
    try:
        act(check)
    except Exception as error:
        return after_running(error, check.records, fault, unclaimed)
    return after_running(None, check.records, fault, unclaimed)


def test_a_presumption_that_does_not_hold_makes_a_case_inapplicable():
    judgement = judged(lambda check: check.given(False, "the machine has 2 devices", 1))
    assert (judgement.verdict, judgement.cause) == ("inapplicable", "presumption")
    assert judgement.reason == "presumes that the machine has 2 devices; found 1"


def test_a_presumption_does_not_hide_a_fault_or_an_earlier_failure():
    def after_a_failure(check: Check) -> None:
        with pytest.raises(CheckFailed):
            check.equal(1, 2)
        check.given(False, "the machine has 2 devices", 1)

    assert judged(after_a_failure).verdict == "fail"
    assert judged(lambda check: check.given(False, "two devices"), HANG).verdict == "hang"


def test_a_presumption_that_a_test_swallows_never_passes():
    def swallowing(check: Check) -> None:
        with pytest.raises(Presumption):
            check.given(False, "the machine has 2 devices", 1)
        check.equal(1, 1)

    assert judged(swallowing).verdict == "fail"


@pytest.mark.parametrize(("fault", "verdict"), [(None, "fail"), (HANG, "hang")])
def test_a_listed_alternative_keeps_the_verdict_and_names_its_interpretation(fault, verdict):
    judgement = judged(lambda check: check.reading("AMB-RT-49", "unrecorded events block", True), fault)
    assert (judgement.verdict, judgement.interpretation) == (verdict, "AMB-RT-49")
    assert judgement.reason == "follows another reading, AMB-RT-49: unrecorded events block"


def test_what_follows_no_alternative_is_judged_as_before():
    def act(check: Check) -> None:
        check.reading("AMB-RT-49", "unrecorded events block", False)
        check.equal(1, 2)

    judgement = judged(act)
    assert (judgement.verdict, judgement.interpretation) == ("fail", "")


def test_another_reading_is_no_failed_check_that_a_test_may_shrink():
    with pytest.raises(OtherReading) as caught:
        Check().reading("AMB-RT-49", "unrecorded events block", True)
    assert not isinstance(caught.value, CheckFailed)


def test_an_unsupported_answer_of_an_unclaimed_feature_is_unsupported():
    def act(check: Check) -> None:
        check.returns(Unsupported("abi.pack"))

    assert judged(act).verdict == "fail"
    judgement = judged(act, unclaimed="parameter-buffers")
    assert (judgement.verdict, judgement.cause) == ("unsupported", "feature")
    assert judgement.reason == "the implementation does not claim the feature parameter-buffers"


def exchange(answer: Observation, method: str = "runtime.tessStreamCreate", **params: Any) -> Exchange:
    return Exchange(method, params, answer, 0.0)


def error_of(answer: Observation) -> BaseException:
    check = Check()
    with pytest.raises((CheckFailed, Unanswered)) as caught:
        check.returns(answer)
    return caught.value


def test_a_member_that_an_answer_may_leave_out_and_a_case_takes_is_a_failure():
    answer = Returned({"payload": 1, "restored": 2})
    case = Case("collectives/a", "", [], [], exchanges=[Exchange("collectives.compress", {}, answer, 0.0)])
    error = absent_member(case, KeyError("block"))
    assert isinstance(error, CheckFailed)
    assert after_running(error, case.check.records, None).reason == (
        "the answer of collectives.compress has the member block: expected True, found the members payload, restored"
    )
    own = KeyError("blocks")
    assert absent_member(case, own) is own


def test_a_case_leans_on_the_constructs_of_the_call_on_which_it_failed():
    program = exchange(REFUSAL, "language.execute", source="module m { func f() {/* { */} } for }")
    stream, later = exchange(Rejected("X", "call", "x")), exchange(Returned({}), "runtime.tessInit")
    constructs = [STREAMS, EMPTY, LOOPS]
    assert controls(constructs, "a/case", [stream, later], error_of(stream.observation)) == [STREAMS.control]
    assert controls(constructs, "a/case", [program], error_of(REFUSAL)) == [EMPTY.control, LOOPS.control]
    assert controls(constructs, "a/case", [later], None) == []


def test_a_control_case_leans_on_simpler_constructs_alone():
    program = exchange(REFUSAL, "language.execute", source="module m { func f() { } for }")
    assert controls([EMPTY, LOOPS], LOOPS.control, [program], error_of(REFUSAL)) == [EMPTY.control]
    assert controls([EMPTY, LOOPS], EMPTY.control, [program], error_of(REFUSAL)) == []


def line(
    case: str, verdict: str = "fail", leans: Any = (), disposition: str = "none", shows: str = "", cites: Any = ()
) -> dict[str, Any]:
    head = {"case": case, "verdict": verdict, "leans": list(leans), "disposition": disposition, "reason": "it fails"}
    return {**head, "interpretation": shows, "cites": list(cites)}


def test_a_case_is_blocked_where_a_control_case_on_which_it_leans_failed():
    lines = [line("c"), line("a", leans=["b", "c"]), line("b", "pass"), line("d", leans=["b"]), line("e", "pass")]
    verdicts = {entry["case"]: entry["verdict"] for entry in settled(lines)}
    assert verdicts == {"a": "inapplicable", "b": "pass", "c": "fail", "d": "fail", "e": "pass"}
    (blocked,) = (entry for entry in settled(lines) if entry["case"] == "a")
    assert (blocked["cause"], blocked["reason"]) == ("blocked", "blocked by c: it fails")


def test_a_control_case_of_another_reading_blocks_too():
    lines = [line("c", disposition="other_reading"), line("a", leans=["c"])]
    assert [entry["verdict"] for entry in settled(lines)] == ["fail", "inapplicable"]


def test_a_crash_is_blocked_and_a_known_deviation_is_not():
    lines = [line("c"), line("a", "crash", ["c"]), line("b", leans=["c"], disposition="known_deviation")]
    assert [entry["verdict"] for entry in settled(lines)] == ["fail", "inapplicable", "fail"]


def test_a_case_that_names_an_interpretation_is_blocked_by_the_case_that_shows_another_reading():
    shown = line("c", disposition="other_reading", shows="AMB-LANG-86")
    lines = [line("a", cites=["AMB-LANG-52", "AMB-LANG-86"]), shown, line("b", cites=["AMB-LANG-52"])]
    assert [entry["verdict"] for entry in settled(lines)] == ["inapplicable", "fail", "fail"]
    blocked = next(settled(lines))
    assert (blocked["cause"], blocked["reason"]) == ("blocked", "blocked by c: it fails")


# A result beyond four units of a function whose accuracy is declared worse is another reading (AMB-LANG-136).


@pytest.mark.parametrize(
    ("declared", "what", "value", "expected"),
    [
        (50.0, "fast: within 4 ulp of exp", 2.0, OtherReading),
        (50.0, "4 units in the last place of exp", 2.0, OtherReading),
        (50.0, "the derivative, within twice the error of its textbook adjoint", 2.0, OtherReading),
        (4.0, "fast: within 4 ulp of exp", 2.0, CheckFailed),
        (50.0, "fast: within the bound (any order of 9 products)", 2.0, CheckFailed),
        (50.0, "fast: within 4 ulp of exp", float("nan"), CheckFailed),
    ],
)
def test_what_is_off_is_read_by_what_is_declared(
    declared: float, what: str, value: float, expected: type[BaseException]
) -> None:
    run = SuiteRun(DirectTransport(ReferenceAdapter, "reference"), load_registry(clauses_directory()))
    run.hello = Hello("far", "1", level="fast", message={"arithmetic": {"functions": {"exp": declared}}})
    case = Case("ir/functions/exp", "", [], ["fast"])
    actual = Tensor("fp32", (1,), struct.pack("<f", value))
    with pytest.raises(CheckFailed) as failed:
        case.check.within(actual, [Fraction(1)], [Fraction(1, 1000)], what)
    assert type(run._accuracy_reading(case, failed.value)) is expected


# An open program: what each listed alternative gives is another reading; what no reading gives fails.

OTHERS = [
    pytest.param(question, alternative, meaning, id=f"{name}-{alternative}")
    for name, question in QUESTIONS.items()
    for alternative, meaning in question.alternatives.items()
]


def answering(question: Question, meaning: Meaning, category: str) -> Any:
    """An implementation that knows the twin and the program, and gives the program one meaning."""
    refusal = Rejected(category, "verify", "no", (Diagnostic(category, "no", line=3),))

    def verify(source: str) -> Any:
        return refusal if meaning == REFUSED and source == question.source else Returned({"warnings": []})

    def execute(**arguments: Any) -> Any:
        return Returned({"outputs": [tensor_of("int8", 99)] if meaning == ACCEPTED else [*meaning]})

    return SimpleNamespace(language=SimpleNamespace(verify=verify, execute=execute), level="strict")


@pytest.mark.parametrize(("question", "alternative", "meaning"), OTHERS)
def test_an_alternative_is_another_reading(question: Question, alternative: str, meaning: Meaning) -> None:
    check = Check()
    with pytest.raises(OtherReading) as other:
        judge(answering(question, meaning, question.category[0]), check, question)
    assert other.value.interpretation == question.interpretation
    assert check.records[-1].actual == alternative


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_decision_passes(question: Question) -> None:
    judge(answering(question, question.decision, question.category[0]), Check(), question)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_what_no_reading_gives_fails(question: Question) -> None:
    """Other values, or a refusal for another reason."""
    meaning: Meaning = REFUSED if question.decision == REFUSED else [tensor_of("int8", 99)]
    with pytest.raises(CheckFailed):
        judge(answering(question, meaning, "schedule"), Check(), question)
