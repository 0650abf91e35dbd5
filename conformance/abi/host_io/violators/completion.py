"""Responses and completions that break the rules of their form, or differ from time to time (D3, D4)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import endpoint
from tessera_reference.host_io.frames import RequestFailed

from .message_changes import Message, changed, completing, responding

_response = endpoint._response


def without(member: str) -> Callable[[Message], Message]:
    """Return a change that removes one member from a message."""
    return lambda message: {name: value for name, value in message.items() if name != member}


def failed(change: dict[str, Any]) -> Callable[[Message], Message]:
    """Return a change of members in completions of failures."""
    return lambda completion: completion if completion["ok"] else completion | change


def succeeded(change: dict[str, Any]) -> Callable[[Message], Message]:
    """Return a change of members in completions of successes."""
    return lambda completion: completion | change if completion["ok"] else completion


def without_nulls(completion: Message) -> Message:
    return {name: value for name, value in completion.items() if value is not None}


def renamed(clause: str, member: str, name: str, description: str, change: Callable[[str], str]) -> Violation:
    """Return a violation that does not repeat an id unchanged."""
    return responding(clause, name, description, lambda answer: answer | {member: change(answer[member])})


IDS = [
    violation
    for clause, member in {"HIO-D3-10": "correlation_id", "HIO-D3-11": "request_id"}.items()
    for violation in (
        renamed(clause, member, f"{member}_lower", "repeats it in lower case", str.lower),
        renamed(clause, member, f"{member}_stripped", "repeats it without spaces around it", str.strip),
        renamed(clause, member, f"{member}_short", "repeats 255 characters of it", lambda text: text[:255]),
        renamed(
            clause, member, f"{member}_composed", "repeats it composed", lambda text: unicodedata.normalize("NFC", text)
        ),
    )
]

COMPLETIONS = [
    completing("HIO-D4-01", "no_ok", "leaves ok out", without("ok")),
    completing("HIO-D4-03", "without_nulls", "leaves nulls out", without_nulls),
    completing("HIO-D4-03", "message_in_a_list", "has a list of messages", failed({"error_message": ["wrong"]})),
    completing("HIO-D4-04", "ok_with_a_code", "has the code OK", succeeded({"error_code": "OK"})),
    completing("HIO-D4-05", "ok_with_a_message", "has the message done", succeeded({"error_message": "done"})),
]


def numbered(clause: str, name: str, description: str, change: Callable[[Message, int], Any]) -> Violation:
    """Return a violation whose completions depend on their number in the life of the process."""
    numbers = count()
    return completing(clause, name, description, lambda completion: change(completion, next(numbers)))


def by_ids(clause: str, name: str, description: str, code: Callable[[Message], str]) -> Violation:
    """Return a violation whose error codes depend on the ids."""

    def change(answer: Message) -> None:
        if not answer["completion"]["ok"]:
            answer["completion"]["error_code"] = code(answer)

    return responding(clause, name, description, change)


def coded(pair: tuple[str, str], failure: RequestFailed | None) -> str:
    if failure is None:
        return _response(pair, failure)
    answer = endpoint.read_frame(_response(pair, failure))
    answer["completion"]["error_code"] = f"{failure.code} in {pair[1]}"
    return endpoint.write_frame(answer)


FAILURE = {"ok": False, "error_code": "BUSY", "error_message": None}
REPEATED = [
    numbered("HIO-Context-04", "codes_change_later", "has other codes after fifty",
        lambda completion, n: completion if completion["ok"] or n < 50 else completion | {"error_code": "E"}),
    by_ids("HIO-D4-07", "codes_of_flows", "names the correlation in its codes",
        lambda answer: f"BAD_{answer['correlation_id']}"),
    changed("HIO-D4-02", "coded_ids", "has the request id within its codes", ("host_io.endpoint._response", coded)),
]  # fmt: skip
