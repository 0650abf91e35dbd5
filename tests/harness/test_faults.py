"""Every fault of an implementation becomes an observation of its own kind, and the session goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_conformance.observations import Fault, Rejected, Unsupported
from tessera_conformance.session import Session

OpenSession = Callable[..., Session]

PARSE = ("language.parse", {"source": "module m {}"})


@pytest.mark.parametrize(
    ("fake", "kind", "detail"),
    [
        ("dies_at_start", "crash", "at start: session.open: the implementation ended with exit code 7"),
        ("speaks_another_protocol", "protocol_error", "speaks protocol 7 to 9, the harness 1"),
        ("answers_with_wrong_id", "protocol_error", "carries id 3, expected 2"),
        ("splits_a_message_over_lines", "protocol_error", "not JSON"),
        ("sends_text", "protocol_error", "not JSON: 'INFO: compiling ...'"),
        ("crashes_in_a_call", "crash", "signal SIGSEGV"),
        ("dies_with_last_words", "crash", "ended with exit code 9"),
        ("returns_nothing", "protocol_error", "None is not of type 'object'"),
        ("answers_with_expectations", "protocol_error", "language.parse: message"),
        ("answers_with_malformed_tensors", "protocol_error", "takes 8 bytes, but 2 were given"),
        ("closes_its_output", "protocol_error", "closed its output"),
    ],
)
def test_a_fault_is_named(fake_session: OpenSession, fake: str, kind: str, detail: str) -> None:
    observation = fake_session(fake).call(*PARSE)
    assert isinstance(observation, Fault)
    assert (observation.kind, detail in observation.detail) == (kind, True), observation.detail


def test_stderr_of_a_dead_implementation_is_kept(fake_session: OpenSession) -> None:
    observation = fake_session("dies_at_start").call(*PARSE)
    assert isinstance(observation, Fault)
    assert "cannot find libacme.so.3" in observation.stderr


def test_last_words_on_standard_output_are_kept(fake_session: OpenSession) -> None:
    observation = fake_session("dies_with_last_words").call(*PARSE)
    assert isinstance(observation, Fault)
    assert "BAD TERMINATION\nEXIT CODE: 9" in observation.stderr


def test_a_hang_is_ended_at_its_deadline(fake_session: OpenSession) -> None:
    session = fake_session("hangs", deadline=0.3)
    for _ in range(2):
        observation = session.call(*PARSE)
        assert isinstance(observation, Fault)
        assert (observation.kind, observation.detail) == ("hang", "language.parse: no answer within 0.3 s")


def test_a_hang_at_start_is_tried_twice_and_not_again(fake_session: OpenSession) -> None:
    session = fake_session("hangs_at_start", start_deadline=0.2)
    details = [observation.detail for _ in range(4) if isinstance(observation := session.call(*PARSE), Fault)]
    assert details == ["at start: session.open: no answer within 0.2 s"] * 4


def test_an_extra_answer_is_found_at_the_next_message(fake_session: OpenSession) -> None:
    session = fake_session("answers_twice")
    assert isinstance(session.call(*PARSE), Unsupported)
    fault = session.reset()
    assert fault is not None
    assert fault.kind == "protocol_error"
    assert "unsolicited" in fault.detail


@pytest.mark.parametrize("fake", ["splits_a_message_over_writes", "floods_stderr"])
def test_what_the_protocol_allows_is_no_fault(fake_session: OpenSession, fake: str) -> None:
    session = fake_session(fake)
    for _ in range(3):
        assert session.call(*PARSE) == Rejected("syntax", "parse", "no")
        assert session.reset() is None


def test_a_method_that_is_not_implemented_is_unsupported(fake_session: OpenSession) -> None:
    assert fake_session("implements_no_method").call(*PARSE) == Unsupported("language.parse")


def test_a_crash_that_comes_back_is_told_from_one_that_does_not(
    fake_session: OpenSession, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = fake_session("crashes_in_a_call").call(*PARSE)
    monkeypatch.setenv("CRASH_ONCE", f"{tmp_path}/crashed")
    session = fake_session("crashes_once")
    once = session.call(*PARSE)
    assert isinstance(always, Fault)
    assert isinstance(once, Fault)
    assert (always.reproducible, once.reproducible) == (True, False)
    assert session.call(*PARSE) == Rejected("syntax", "parse", "no")


def test_after_a_crash_the_earlier_calls_are_replayed(
    fake_session: OpenSession, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new process is given every call since the last reset before the crashed one is tried again."""
    monkeypatch.setenv("LOG", f"{tmp_path}/log")
    session = fake_session("logs_and_crashes_on_verify")
    session.call("language.parse", {"source": "first"})
    session.call("language.parse", {"source": "second"})
    session.call("language.verify", {"source": "third"})
    with open(f"{tmp_path}/log", encoding="utf-8") as log:
        assert log.read().split() == ["first", "second", "third"] * 2
