"""Sends the frames of one conformance case to an IO_CPU endpoint again, and judges the answers.

    python THIS_FILE [unix:PATH | tcp:HOST:PORT]

Without an address the endpoint is asked for which the case was written down. Only the standard library is needed, and
an endpoint that listens. The frames, and the answers with which the case passes, are at the end of this file. Exit
codes: 0 when the answers are as expected, 1 when a difference still shows, 3 when only the suite can judge the answers.
2 means that nobody listens, or that the endpoint ends, hangs or sends something that is no answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from tessera_conformance.reports.reproduce_template import (
    AS_EXPECTED,
    CASE,
    DIFFERS,
    NO_ANSWER,
    UNDECIDED,
    introduce,
    short,
)
from tessera_conformance.transports.hostio_connection import Conversation, EndpointFault, read_address

TYPES = {"ok": (bool,), "error_code": (str, type(None)), "error_message": (str, type(None))}
"""The members of a completion, and their types."""
RESPONSE = ("correlation_id", "request_id", "completion")
ANYTHING = None
"""The expected value where the case does not look."""


def is_response(answer: Any) -> bool:
    """True if an answer has an id or a completion; any other answer refuses a malformed frame."""
    return isinstance(answer, dict) and not answer.keys().isdisjoint(RESPONSE)


def pair_of(response: Any) -> str:
    """Return the two ids of a response, as a text."""
    return json.dumps([response.get(name) for name in RESPONSE[:2]])


def wrong_members(response: Any) -> list[str]:
    """Return the members of a response that are missing, ill-typed or inconsistent with each other."""
    completion = response.get("completion")
    if not isinstance(completion, dict):
        return ["completion"]
    wrong = [name for name in RESPONSE[:2] if not isinstance(response.get(name), str)]
    wrong += [name for name, types in TYPES.items() if name not in completion or type(completion[name]) not in types]
    ok, code, message = (completion.get(name) for name in TYPES)
    agrees = (code, message) == (None, None) if ok else isinstance(code, str) and bool(code)
    return sorted({*wrong, *([] if agrees else ["error_code"])})


def other_members(response: Any) -> list[str]:
    """Return the members of a response and its completion that the document does not name."""
    completion = response.get("completion")
    return sorted({*response} - {*RESPONSE} | ({*completion} - {*TYPES} if isinstance(completion, dict) else set()))


def summary(answers: Sequence[Any]) -> dict[str, Any]:
    """Return the part of an exchange's answers that counts, in any order.

    `responses` has for each pair of ids the success, the error code and the wrong members of each response.
    """
    responses: dict[str, list[Any]] = {}
    found = [answer for answer in answers if is_response(answer)]
    for message in found:
        completion = message.get("completion")
        ok, code = [completion.get(name) for name in ("ok", "error_code")] if isinstance(completion, dict) else "??"
        responses.setdefault(pair_of(message), []).append([ok, code, wrong_members(message)])
    return {
        "responses": {pair: sorted(outcomes, key=json.dumps) for pair, outcomes in sorted(responses.items())},
        "refusals": len(answers) - len(found),
        "others": sorted({name for answer in found for name in other_members(answer)}),
    }


def differences(expected: dict[str, Any], now: dict[str, Any], codes: dict[str, Any]) -> Iterator[str]:
    """Yield the differences of a summary from the expected one; `codes` maps each expected code to the actual one."""
    for name in ("refusals", "others"):
        if expected[name] is not ANYTHING and now[name] != expected[name]:
            yield f"{name}: expected {short(expected[name])}, found {short(now[name])}"
    for pair in sorted({*expected["responses"], *now["responses"]}):
        expected_responses, actual = (one["responses"].get(pair, []) for one in (expected, now))
        if len(expected_responses) != len(actual):
            yield f"ids {pair}: expected {len(expected_responses)} responses, found {len(actual)}"
            continue
        for (ok, code, _), (found_ok, found_code, found_wrong) in zip(expected_responses, actual, strict=True):
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
    """Run the case again, judge the answers, and print the result."""
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
