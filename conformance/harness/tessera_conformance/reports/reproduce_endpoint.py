"""Sends the frames of one conformance case to an IO_CPU endpoint again, and compares the answers with those of then.

    python THIS_FILE [unix:PATH | tcp:HOST:PORT]

Without an address the endpoint is asked for which the case was written down. Only the standard library is needed, and
an endpoint that listens. The frames and the recorded answers are at the end of this file. Exit codes: 1 when the
endpoint answers as it did when the case failed, 0 when it does so and the case passed, and 3 when it answers otherwise,
which only the suite can judge. 2 means that nobody listens, or that the endpoint ends, hangs or sends something that is
no answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
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


def essences(answers: Iterable[Any]) -> list[str]:
    """Return what distinguishes answers, in any order: their ids, their outcomes, and the names of other members."""
    texts = []
    for answer in answers:
        outcome = answer.get("completion")
        if isinstance(outcome, dict):
            judged = ("ok", "error_code")
            outcome = {name: item if name in judged else type(item).__name__ for name, item in outcome.items()}
        ids = [answer.get("correlation_id"), answer.get("request_id")]
        texts.append(json.dumps([ids, outcome, sorted(answer)], sort_keys=True))
    return sorted(texts)


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
    """Return the exit code and its meaning."""
    runs = (exchanges, CASE["answers"])
    now, then = ([None if answers is None else essences(answers) for answers in run] for run in runs)
    if now != then:
        return UNDECIDED, "the answers are others than then; only the suite can judge them"
    return AS_EXPECTED if CASE["verdict"] == "pass" else DIFFERS, "the same answers as then"


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
