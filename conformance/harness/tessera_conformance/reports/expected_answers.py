"""The answers with which a failed case of an endpoint would pass, found by judging the case with modified answers.

The messages of an endpoint are simple: an outcome, a code, two ids. The search begins with the recorded answers in the
right form. A few kinds of change suffice to correct any of them: another outcome, another code, one answer less. It
keeps changes with which the case gets further, until its failing check holds. If the case would then send a request
that it never sent, later answers are unknown, and the answers up to there are the expected ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.protocol import Fault, Returned
from tessera_conformance.reports.reproduce_endpoint import (
    ANYTHING,
    is_response,
    other_members,
    pair_of,
    summary,
    wrong_members,
)
from tessera_conformance.session import Exchange, Implementation, Session
from tessera_conformance.transports.hostio_connection import ids_of

EXCHANGE = "host_io.exchange"
MOST_TRIALS = 4000
"""The most times that a case is judged."""
FORM = "what is wrong with a response"
"""The check of each response: the number of them says nothing about the progress of a case."""

Answers = list[Any]
History = list[Answers | None]
"""The answers of each exchange; None of one that sent no frames."""
Test = Callable[[Implementation, Check], object]


class Departed(Exception):
    """The case sends another request than the recorded one, or a further one."""

    def __init__(self, beyond: bool) -> None:
        super().__init__("asks for more" if beyond else "asks for something else")
        self.beyond = beyond


class Recorded:
    """A transport that replays recorded answers."""

    label = "recorded"

    def __init__(self, hello: Mapping[str, Any], exchanges: Sequence[Exchange], history: History) -> None:
        self._hello, self._exchanges, self._history = hello, exchanges, history
        self._asked = 0

    def start(self, deadline: float) -> Any:
        """Return the recorded Hello."""
        return self._hello

    def stop(self) -> None:
        """Do nothing: no resource is open."""

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Return the next answer. Raises `Departed`."""
        number, self._asked = self._asked, self._asked + 1
        if number == len(self._exchanges):
            raise Departed(beyond=True)
        exchange, answers = self._exchanges[number], self._history[number]
        if (method, params) != (exchange.method, exchange.params):
            raise Departed(beyond=False)
        if answers is not None:
            return {"returned": {"answers": [json.dumps(answer) for answer in answers]}}
        if not isinstance(exchange.observation, Returned):
            raise Departed(beyond=True)
        return {"returned": exchange.observation.value}


class Trial(NamedTuple):
    """The progress of a case: the checks that passed, and the nearness of the failed one; greater is better."""

    done: bool
    passed: int = 0
    nearness: int = 0


class Search:
    """Judges a case again with modified answers."""

    def __init__(
        self, test: Test, hello: Mapping[str, Any], exchanges: Sequence[Exchange], level: str, seed: int = 0
    ) -> None:
        self._test, self._hello, self._exchanges, self._level, self._seed = test, hello, exchanges, level, seed
        self._trials = 0
        self._pairs = [_pairs(exchange) for exchange in exchanges]

    def expected(self) -> list[dict[str, Any] | None] | None:
        """Return summaries of answers with which the case passes, without parts that it ignores; None if not found."""
        history = [self._in_right_form(number) for number in range(len(self._exchanges))]
        best, place = self._judge(history), 0
        while not best.done:
            for changed, at in self._changes(history, place):
                trial = self._judge(changed)
                if trial > best:
                    history, best, place = changed, trial, at
                    break
            else:
                return None
        for number, answers in enumerate(history):
            alone = [*history[:number], _without_repetitions(answers or []), *history[number + 1 :]]
            if answers is not None and self._judge(alone).done:
                history = alone
        return [None if answers is None else self._judged(history, number) for number, answers in enumerate(history)]

    def _in_right_form(self, number: int) -> Answers | None:
        """Return the recorded answers as well-formed responses to each request and to no other, and the refusals."""
        exchange, pairs = self._exchanges[number], self._pairs[number]
        answers = (
            [] if exchange.method == EXCHANGE and isinstance(exchange.observation, Fault) else answers_of(exchange)
        )
        if answers is None:
            return None
        kept = [_right(answer) for answer in answers if not is_response(answer) or pair_of(answer) in pairs]
        answered = {pair_of(answer) for answer in kept if is_response(answer)}
        return [*kept, *(_response(pair, True) for pair in pairs if pair not in answered)]

    def _judge(self, history: History) -> Trial:
        """Return the progress of the case with these answers."""
        self._trials += 1
        if self._trials > MOST_TRIALS:
            return Trial(done=False, passed=-1)
        session = Session(Recorded(self._hello, self._exchanges, history))
        check = Check()
        check.asked = session.exchanges
        error: BaseException | None = None
        try:
            self._test(Implementation(session, self._level, seed=self._seed), check)
        except Departed as departed:
            if departed.beyond:
                return Trial(done=True)
            error = departed
        except Exception as raised:
            error = raised
        passed = sum(record.passed and record.what != FORM for record in check.records)
        last = check.records[-1] if check.records else None
        distance = _distance(last.actual, last.expected) if isinstance(error, CheckFailed) and last else 0
        return Trial(error is None and bool(check.records), passed, -distance)

    def _changes(self, history: History, place: int) -> Iterator[tuple[History, int]]:
        """Yield histories with one answer changed, and its position; the last exchange comes first.

        Answers are changed from the position of the previous change on: a case judges them one after the other.
        """
        for number in reversed(range(len(history))):
            answers = history[number]
            if answers is None:
                continue
            for at in (*range(place, len(answers)), *range(min(place, len(answers)))):
                for replaced in _replacements(answers[at], history):
                    changed = [*answers[:at], *replaced, *answers[at + 1 :]]
                    yield [*history[:number], changed, *history[number + 1 :]], at

    def _judged(self, history: History, number: int) -> dict[str, Any]:
        """Return the summary of an exchange, with ANYTHING in place of values that the case does not judge."""
        answers = history[number] or []
        result = summary(answers)

        def passes(changed: Answers) -> bool:
            return self._judge([*history[:number], changed, *history[number + 1 :]]).done

        if passes([response for response in answers if is_response(response)]):
            result["refusals"] = ANYTHING
        if passes([{**response, "another": 0} if is_response(response) else response for response in answers]):
            result["others"] = ANYTHING
        for place, answer in enumerate(answers):
            outcomes = result["responses"][pair_of(answer)] if is_response(answer) else []
            if len(outcomes) != 1:
                continue
            ok = outcomes[0][0]
            around = answers[:place], answers[place + 1 :]
            if passes([*around[0], _response(pair_of(answer), not ok), *around[1]]):
                outcomes[0][:2] = [ANYTHING, ANYTHING]
            elif ok or passes([*around[0], _response(pair_of(answer), False, "ANOTHER"), *around[1]]):
                outcomes[0][1] = ANYTHING
        return result


def function_of(item: pytest.Function) -> Test:
    """Return the test of a collected case, with the values that `parametrize` lists."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}

    def test(impl: Implementation, check: Check) -> object:
        return item.obj(impl=impl, check=check, **parameters)

    return test


def answers_of(exchange: Exchange) -> Answers | None:
    """Return the recorded answers of an exchange of frames; None of another exchange."""
    if exchange.method != EXCHANGE or not isinstance(exchange.observation, Returned):
        return None
    return [json.loads(text) for text in exchange.observation.value["answers"]]


def _pairs(exchange: Exchange) -> list[str]:
    """Return the ids of the requests of an exchange, as texts."""
    frames = exchange.params.get("frames", ()) if exchange.method == EXCHANGE else ()
    read = (ids_of(frame.encode("utf-8", "surrogatepass")) for frame in frames)
    return [json.dumps(list(pair)) for pair in read if pair is not None]


def _response(pair: str, ok: bool, code: str = "REFUSED") -> dict[str, Any]:
    correlation, request = json.loads(pair)
    completion = {"ok": ok, "error_code": None if ok else code, "error_message": None if ok else "refused"}
    return {"correlation_id": correlation, "request_id": request, "completion": completion}


def _replacements(answer: Any, history: History) -> Iterator[Answers]:
    """Yield replacements of one answer: the other outcome, another code of the history, nothing."""
    if is_response(answer):
        completion = answer["completion"]
        yield [_response(pair_of(answer), not completion["ok"])]
        responses = (one for answers in history for one in answers or () if is_response(one))
        codes = [one["completion"]["error_code"] for one in responses if not one["completion"]["ok"]]
        for code in dict.fromkeys(codes) if not completion["ok"] else ():
            yield [_response(pair_of(answer), False, code)]
    yield []


def _right(answer: Any) -> Any:
    """Return an answer; a response with missing, ill-typed, inconsistent or unknown members is made anew."""
    if not is_response(answer) or not (wrong_members(answer) or other_members(answer)):
        return answer
    completion = answer["completion"] if isinstance(answer.get("completion"), dict) else {}
    code = completion.get("error_code")
    code = code if isinstance(code, str) and code else "REFUSED"
    return _response(pair_of(answer), bool(completion.get("ok")), code)


def _without_repetitions(answers: Answers) -> Answers:
    """Return the first response to each request: a case that does not count responses expects no more."""
    pairs = [pair_of(answer) if is_response(answer) else None for answer in answers]
    return [one for place, one in enumerate(answers) if pairs[place] is None or pairs[place] not in pairs[:place]]


def _distance(actual: Any, expected: Any) -> int:
    """Return the number of elements in which two lists differ; 1 of two other values."""
    if not (isinstance(actual, list | tuple) and isinstance(expected, list | tuple)):
        return 1
    if len(actual) == len(expected):
        return sum(one != other for one, other in zip(actual, expected, strict=True))
    here, there = (Counter(map(repr, answers)) for answers in (actual, expected))
    return len(actual) + len(expected) - 2 * (here & there).total()
