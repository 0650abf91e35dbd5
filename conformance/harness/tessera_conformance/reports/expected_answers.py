"""Answers that a script expects, with names bound to handles that only a run knows, and scripts for endpoints."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from tessera_conformance.check import Check, CheckFailed
from tessera_conformance.protocol import Fault, Returned
from tessera_conformance.reports.reproduce_template import (
    AS_EXPECTED,
    CASE,
    DIFFERS,
    NO_ANSWER,
    UNDECIDED,
    introduce,
    short,
)
from tessera_conformance.session import Exchange, Implementation, Session
from tessera_conformance.transports.hostio import Conversation, EndpointFault, ids_of, read_address

# Requests whose handles, addresses and images are those of earlier answers, told as such and not as numbers.
#
# Asked again, an implementation gives out other handles and other memory. A value of a request that an earlier answer
# gave under the same name, or that lies in memory which an earlier answer gave out, is bound to that answer: where it
# stood in the request stands `{"$from": [exchange, path], "$plus": offset}`. An address within the bytes of an
# argument buffer is told beside them: `{"$bytes": digits, "$addresses": [[place, source], ...]}`.


MEMORY = ("devPtr", "hostPtr")
"""The names of results that are memory; its size is the request's `bytes`."""
LEAST_ADDRESS = 1 << 16
"""Smaller numbers are counts and offsets, or handles by their names."""
LEAST_HANDLE = 1 << 32
"""Larger results are handles and addresses."""
ADDRESS = 8
"""The bytes of an address, little-endian, at a multiple of so many."""
LEAST_TEXT = 16
"""The characters of a text, such as an image, from which on it is no name."""
_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")

_ENDING = re.compile("Free|Destroy|Unload|Shutdown|Stop")

FieldPath = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """A place in the result of an exchange."""

    exchange: int
    path: FieldPath


@dataclass
class Sources:
    """All that the exchanges so far gave out."""

    named: dict[tuple[str, Any], Source] = field(default_factory=dict)
    blocks: list[tuple[int, int, Source]] = field(default_factory=list)
    """The first address and the number of bytes of each piece of memory."""

    def add(self, number: int, exchange: Exchange) -> None:
        """Remember what an exchange gave."""
        if not isinstance(exchange.observation, Returned):
            return
        for path, value in _leaves(exchange.observation.value):
            name = path[-1] if path else ""
            self.named[str(name), value] = Source(number, path)
            if name in MEMORY and isinstance(value, int):
                size = exchange.params.get("bytes", 0)
                self.blocks.append((value, size if isinstance(size, int) else 0, Source(number, path)))

    def bind(self, name: str, value: Any) -> Any:
        """Return a value of a request, bound where an earlier answer gave it."""
        if isinstance(value, Mapping):
            return {key: self.bind(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.bind(name, item) for item in value]
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        source = self.named.get((name, value))
        if source is not None and (isinstance(value, int) or len(value) >= LEAST_TEXT):
            return {"$from": [source.exchange, list(source.path)], "$plus": 0}
        if isinstance(value, int):
            return self._address(value) or value
        return self._addresses_in(value)

    def _address(self, value: int) -> dict[str, Any] | None:
        if value < LEAST_ADDRESS:
            return None
        for start, size, source in reversed(self.blocks):
            if start <= value <= start + size:
                return {"$from": [source.exchange, list(source.path)], "$plus": value - start}
        return None

    def _addresses_in(self, text: str) -> Any:
        if not self.blocks or len(text) % (2 * ADDRESS) or not _DIGITS.fullmatch(text):
            return text
        data = bytes.fromhex(text)
        found: list[list[Any]] = []
        for place in range(0, len(data), ADDRESS):
            source = self._address(int.from_bytes(data[place : place + ADDRESS], "little"))
            if source is not None:
                found.append([place, source])
        return {"$bytes": text, "$addresses": found} if found else text


def bound_requests(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return the parameters of each exchange with what earlier answers gave bound to them."""
    sources = Sources()
    requests = []
    for number, exchange in enumerate(exchanges):
        requests.append({name: sources.bind(name, value) for name, value in exchange.params.items()})
        sources.add(number, exchange)
    return requests


def given_out(exchanges: Sequence[Exchange]) -> list[list[FieldPath]]:
    """Return for each exchange the paths of what it gave out: handles, which are large numbers, and memory."""
    results = (
        exchange.observation.value if isinstance(exchange.observation, Returned) else {} for exchange in exchanges
    )
    return [[path for path, value in _leaves(result) if path and _is_given_out(path[-1], value)] for result in results]


def given_twice(exchanges: Sequence[Exchange]) -> bool:
    """Tell whether a handle or memory was given out again before its end: no request says which of the two it means."""
    live: set[int] = set()
    for exchange in exchanges:
        if isinstance(exchange.observation, Returned):
            if _ENDING.search(exchange.method):
                live -= {value for value in exchange.params.values() if isinstance(value, int)}
            results = ((path, value) for path, value in _leaves(exchange.observation.value) if len(path) == 1)
            given = [value for path, value in results if isinstance(value, int) and _is_given_out(path[0], value)]
            if len({*given} & live) or len({*given}) < len(given):
                return True
            live |= {value for value in given if value}
    return False


def _is_given_out(name: Any, value: int | str) -> bool:
    return isinstance(value, int) and (name in MEMORY or value >= LEAST_HANDLE)


def _leaves(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield the numbers and texts inside a result with their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif isinstance(value, int | str) and not isinstance(value, bool):
        yield path, value


# Sends the frames of one conformance case to an IO_CPU endpoint again, and judges the answers.
#
# python THIS_FILE [unix:PATH | tcp:HOST:PORT]
#
# Without an address the endpoint is asked for which the case was written down. Only the standard library is needed,
# and an endpoint that listens. The frames, and the answers with which the case passes, stand at the end of this file.
# Exit codes: 0 when the answers are those, 1 when a difference still shows, 2 when nobody listens, or the endpoint
# ends, hangs or sends what is no answer, 3 when only the suite can judge the answers.


TYPES = {"ok": (bool,), "error_code": (str, type(None)), "error_message": (str, type(None))}
"""The members of a completion, and their types."""
RESPONSE = ("correlation_id", "request_id", "completion")
ANYTHING = None
"""Stands in what is expected where the case does not look."""


def is_response(answer: Any) -> bool:
    """True of an answer with an id or a completion; any other one refuses a frame that could not be read."""
    return isinstance(answer, dict) and not answer.keys().isdisjoint(RESPONSE)


def pair_of(response: Any) -> str:
    """The two ids of a response, as a text."""
    return json.dumps([response.get(name) for name in RESPONSE[:2]])


def wrong_members(response: Any) -> list[str]:
    """The members that a response lacks, that are of another type, or do not agree with each other."""
    completion = response.get("completion")
    if not isinstance(completion, dict):
        return ["completion"]
    wrong = [name for name in RESPONSE[:2] if not isinstance(response.get(name), str)]
    wrong += [name for name, types in TYPES.items() if name not in completion or type(completion[name]) not in types]
    ok, code, message = (completion.get(name) for name in TYPES)
    agrees = (code, message) == (None, None) if ok else isinstance(code, str) and bool(code)
    return sorted({*wrong, *([] if agrees else ["error_code"])})


def other_members(response: Any) -> list[str]:
    """The members of a response and its completion that the document does not name."""
    completion = response.get("completion")
    return sorted({*response} - {*RESPONSE} | ({*completion} - {*TYPES} if isinstance(completion, dict) else set()))


def summary(answers: Sequence[Any]) -> dict[str, Any]:
    """Return the part of an exchange's answers that counts, in whatever order they came.

    `responses` has for each pair of ids the success, the error code and the wrong members of each response.
    """
    responses: dict[str, list[Any]] = {}
    found = [answer for answer in answers if is_response(answer)]
    for each in found:
        completion = each.get("completion")
        ok, code = [completion.get(name) for name in ("ok", "error_code")] if isinstance(completion, dict) else "??"
        responses.setdefault(pair_of(each), []).append([ok, code, wrong_members(each)])
    return {
        "responses": {pair: sorted(outcomes, key=json.dumps) for pair, outcomes in sorted(responses.items())},
        "refusals": len(answers) - len(found),
        "others": sorted({name for each in found for name in other_members(each)}),
    }


def differences(expected: dict[str, Any], now: dict[str, Any], codes: dict[str, Any]) -> Iterator[str]:
    """Say where a summary is not as expected; `codes` has the code that stands for each expected one until now."""
    for name in ("refusals", "others"):
        if expected[name] is not ANYTHING and now[name] != expected[name]:
            yield f"{name}: expected {short(expected[name])}, found {short(now[name])}"
    for pair in sorted({*expected["responses"], *now["responses"]}):
        wanted, found = (one["responses"].get(pair, []) for one in (expected, now))
        if len(wanted) != len(found):
            yield f"ids {pair}: expected {len(wanted)} responses, found {len(found)}"
            continue
        for (ok, code, _), (found_ok, found_code, found_wrong) in zip(wanted, found, strict=True):
            if found_wrong:
                yield f"ids {pair}: wrong members {', '.join(found_wrong)}"
            elif ok is not ANYTHING and ok != found_ok:
                yield f"ids {pair}: expected ok {short(ok)}, found {short(found_ok)} ({short(found_code)})"
            elif code is not ANYTHING and codes.setdefault(code, found_code) != found_code:
                yield f"ids {pair}: expected the code {short(codes[code])} again, found {short(found_code)}"


def exchange_all(address: str) -> list[Any]:
    """Send the frames of each exchange on one connection, print them and return the answers by exchange."""
    start, call = CASE["deadlines"]
    conversation = Conversation(read_address(address))
    exchanges: list[Any] = []
    try:
        conversation.connect(time.monotonic() + start)
        for request in CASE["requests"]:
            frames = request["params"].get("frames") if request["method"] == "host_io.exchange" else None
            exchanges.append(None)
            if frames is not None:
                for frame in frames:
                    print(f"send     {short(frame)}")
                exchanges[-1] = [json.loads(text) for text in conversation.exchange(frames, time.monotonic() + call)]
                for answer in exchanges[-1]:
                    print(f"came     {short(answer)}")
        conversation.require_nothing_unread()
    finally:
        conversation.close()
    return exchanges


def judge_all(exchanges: Sequence[Any]) -> tuple[int, str]:
    """Print each difference from what is expected, and return the exit code and its meaning."""
    now = [None if answers is None else summary(answers) for answers in exchanges]
    if CASE["expected"] is None:
        then = [None if answers is None else summary(answers) for answers in CASE["answers"]]
        if now == then:
            return DIFFERS, "the same answers as then"
        return UNDECIDED, "the answers are others than then; only the suite can judge them"
    codes: dict[str, Any] = {}
    wrong = [
        f"exchange {number}: {difference}"
        for number, (expected, found) in enumerate(zip(CASE["expected"], now, strict=True))
        if expected is not None and found is not None
        for difference in differences(expected, found, codes)
    ]
    for difference in wrong:
        print(f"check    {difference}")
    return (DIFFERS, "a difference still shows") if wrong else (AS_EXPECTED, "as expected")


def main() -> int:
    """Ask, judge, and say what was found."""
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return AS_EXPECTED
    introduce()
    address = sys.argv[1] if len(sys.argv) > 1 else CASE["address"]
    print(f"endpoint {address}")
    try:
        code, result = judge_all(exchange_all(address))
    except EndpointFault as stop:
        code, result = NO_ANSWER, f"{stop.kind}: {stop}"
    except ValueError as problem:
        code, result = NO_ANSWER, f"{problem}: expected unix:PATH or tcp:HOST:PORT"
    print(f"result   {result}")
    return code


if __name__ == "__main__":
    sys.exit(main())

# The answers of an endpoint with which a case that failed passes, found by judging the case again from changed ones.
#
# The messages of an endpoint say little: whether a request was done, a code, two ids. So a few changes of the
# recorded answers are enough to mend any of them: another outcome, another code, one response too many or too few, a
# member. Changes are kept that bring the case further, until its failing check holds. Where the case would then send
# what it never sent, nobody knows the rest, and what was sent is expected to be answered so.


EXCHANGE = "host_io.exchange"
MOST_TRIALS = 4000
"""The most times that a case is judged again."""
FORM = "what is wrong with a response"
"""The check of each response: how many there are says nothing of how far a case comes."""

Answers = list[Any]
History = list[Answers | None]
"""The answers of each exchange; None of one that sent no frames."""
Test = Callable[[Implementation, Check], object]


class Departed(Exception):
    """The case asks for something else than it did, or for more."""

    def __init__(self, beyond: bool) -> None:
        super().__init__("asks for more" if beyond else "asks for something else")
        self.beyond = beyond


class Recorded:
    """A transport that answers from a history."""

    label = "recorded"

    def __init__(self, hello: Mapping[str, Any], exchanges: Sequence[Exchange], history: History) -> None:
        self._hello, self._exchanges, self._history = hello, exchanges, history
        self._asked = 0

    def start(self, deadline: float) -> Any:
        """The Hello."""
        return self._hello

    def stop(self) -> None:
        """Nothing is open."""

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """The next answer. Raises `Departed`."""
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


@dataclass(frozen=True)
class Trial:
    """The progress of a case: the checks that passed, and the distance of the one that failed."""

    done: bool
    passed: int = 0
    distance: int = 0

    def better_than(self, other: Trial) -> bool:
        """True where this one came further."""
        return (self.done, self.passed, -self.distance) > (other.done, other.passed, -other.distance)


class Search:
    """Judges a case again from changed answers."""

    def __init__(self, test: Test, hello: Mapping[str, Any], exchanges: Sequence[Exchange], level: str) -> None:
        self._test, self._hello, self._exchanges, self._level = test, hello, exchanges, level
        self._trials = 0
        self._pairs = [_pairs(exchange) for exchange in exchanges]

    def expected(self) -> list[dict[str, Any] | None] | None:
        """Summaries of the answers with which the case passes, without what it does not look at; None if not found."""
        history = [self._recorded(number) for number in range(len(self._exchanges))]
        best, place = self._judge(history), 0
        while not best.done:
            for changed, at in self._changes(history, place):
                trial = self._judge(changed)
                if trial.better_than(best):
                    history, best, place = changed, trial, at
                    break
            else:
                return None
        for number, answers in enumerate(history):
            alone = [*history[:number], _without_repetitions(answers or []), *history[number + 1 :]]
            if answers is not None and self._judge(alone).done:
                history = alone
        return [None if answers is None else self._judged(history, number) for number, answers in enumerate(history)]

    def _recorded(self, number: int) -> Answers | None:
        exchange = self._exchanges[number]
        if exchange.method != EXCHANGE:
            return None
        if isinstance(exchange.observation, Returned):
            return answers_of(exchange)
        if isinstance(exchange.observation, Fault):
            return [_response(pair, True) for pair in self._pairs[number]]
        return None

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
            self._test(Implementation(session, self._level), check)
        except Departed as departed:
            if departed.beyond:
                return Trial(done=True)
            error = departed
        except Exception as raised:
            error = raised
        passed = sum(record.passed and record.what != FORM for record in check.records)
        last = check.records[-1] if check.records else None
        distance = _distance(last.actual, last.expected) if isinstance(error, CheckFailed) and last else 0
        return Trial(error is None and bool(check.records), passed, distance)

    def _changes(self, history: History, place: int) -> Iterator[tuple[History, int]]:
        """Yield histories with one change, and its place; the last exchange comes first, changes of many answers too.

        Single answers are changed from a place on, that of the change before: a case looks at one after the other.
        """
        for number in reversed(range(len(history))):
            answers = history[number]
            if answers is None:
                continue
            for change in (_form_mended, _without_other_members, self._only_and_all(number), _without_repetitions):
                if (changed := change(deepcopy(answers))) != answers:
                    yield [*history[:number], changed, *history[number + 1 :]], place
            for at in sorted(range(len(answers)), key=lambda at: (at < place, at)):
                for replaced in _replacements(answers[at], history):
                    changed = [*answers[:at], *replaced, *answers[at + 1 :]]
                    yield [*history[:number], changed, *history[number + 1 :]], at

    def _only_and_all(self, number: int) -> Callable[[Answers], Answers]:
        """Add a response to each request that has none, and leave out those to requests that there are not."""

        def mended(answers: Answers) -> Answers:
            asked = self._pairs[number]
            kept = [answer for answer in answers if not is_response(answer) or pair_of(answer) in asked]
            answered = Counter(pair_of(each) for each in kept if is_response(each))
            return [*kept, *(_response(pair, True) for pair in asked if not answered[pair])]

        return mended

    def _judged(self, history: History, number: int) -> dict[str, Any]:
        """The summary of an exchange, with ANYTHING where other answers let the case pass too."""
        answers = history[number] or []
        told = summary(answers)

        def passes(changed: Answers) -> bool:
            return self._judge([*history[:number], changed, *history[number + 1 :]]).done

        if passes([each for each in answers if is_response(each)]):
            told["refusals"] = ANYTHING
        if passes([{**each, "another": 0} if is_response(each) else each for each in answers]):
            told["others"] = ANYTHING
        for place, answer in enumerate(answers):
            outcomes = told["responses"][pair_of(answer)] if is_response(answer) else []
            if len(outcomes) != 1:
                continue
            ok = outcomes[0][0]
            around = answers[:place], answers[place + 1 :]
            if passes([*around[0], _response(pair_of(answer), not ok), *around[1]]):
                outcomes[0][:2] = [ANYTHING, ANYTHING]
            elif ok or passes([*around[0], _response(pair_of(answer), False, "ANOTHER"), *around[1]]):
                outcomes[0][1] = ANYTHING
        return told


def function_of(item: pytest.Function) -> Test:
    """The test of a collected case, with the values that `parametrize` lists."""
    listed = item.callspec.params if hasattr(item, "callspec") else {}

    def test(impl: Implementation, check: Check) -> object:
        return item.obj(impl=impl, check=check, **listed)

    return test


def answers_of(exchange: Exchange) -> Answers | None:
    """The recorded answers of an exchange of frames, None of any other."""
    if exchange.method != EXCHANGE or not isinstance(exchange.observation, Returned):
        return None
    return [json.loads(text) for text in exchange.observation.value["answers"]]


def _pairs(exchange: Exchange) -> list[str]:
    """The ids of the requests of an exchange, as texts."""
    frames = exchange.params.get("frames", ()) if exchange.method == EXCHANGE else ()
    read = (ids_of(frame.encode("utf-8", "surrogatepass")) for frame in frames)
    return [json.dumps(list(pair)) for pair in read if pair is not None]


def _response(pair: str, ok: bool, code: str = "REFUSED") -> dict[str, Any]:
    correlation, request = json.loads(pair)
    completion = {"ok": ok, "error_code": None if ok else code, "error_message": None if ok else "refused"}
    return {"correlation_id": correlation, "request_id": request, "completion": completion}


def _replacements(answer: Any, history: History) -> Iterator[Answers]:
    """Yield replacements of one answer: the other outcome, another code that came, nothing."""
    if is_response(answer) and not wrong_members(answer):
        completion = answer["completion"]
        yield [_response(pair_of(answer), not completion["ok"])]
        came = [failure["completion"]["error_code"] for failure in _failures(history)]
        for code in dict.fromkeys(came) if not completion["ok"] else ():
            yield [_response(pair_of(answer), False, code)]
    yield []


def _failures(history: History) -> Iterator[Any]:
    for answers in history:
        for answer in answers or ():
            if is_response(answer) and not wrong_members(answer) and not answer["completion"]["ok"]:
                yield answer


def _form_mended(answers: Answers) -> Answers:
    """Each response with the members that it has to have, which agree with each other."""
    return [_mended(answer) if is_response(answer) and wrong_members(answer) else answer for answer in answers]


def _mended(response: Any) -> Any:
    completion = response.get("completion")
    ok, code = (completion.get(name) if isinstance(completion, dict) else None for name in ("ok", "error_code"))
    return _response(pair_of(response), bool(ok), code if isinstance(code, str) and code else "REFUSED")


def _without_other_members(answers: Answers) -> Answers:
    for answer in answers:
        for name in other_members(answer) if is_response(answer) else ():
            answer.pop(name, None)
            if isinstance(answer.get("completion"), dict) and name not in TYPES:
                answer["completion"].pop(name, None)
    return answers


def _without_repetitions(answers: Answers) -> Answers:
    """One response to each request, the first: where a case does not count them, more are expected of nobody."""
    seen: set[str] = set()
    kept = []
    for answer in answers:
        if not is_response(answer) or pair_of(answer) not in seen:
            kept.append(answer)
        if is_response(answer):
            seen.add(pair_of(answer))
    return kept


def _distance(actual: Any, expected: Any) -> int:
    """Return the number of elements in which two lists differ; 1 of two other values."""
    if not (isinstance(actual, list | tuple) and isinstance(expected, list | tuple)):
        return 1
    if len(actual) == len(expected):
        return sum(one != other for one, other in zip(actual, expected, strict=True))
    here, there = (Counter(map(repr, each)) for each in (actual, expected))
    return len(actual) + len(expected) - 2 * (here & there).total()
