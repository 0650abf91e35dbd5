"""Responses to other requests, pairs in use, tags with an effect (D3, Verification)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.host_io import endpoint
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import InvalidFrame
from tessera_reference.mesh.engine import Choices

from .message_changes import Message, changed

Pair = tuple[str, str]

_ids_of = endpoint.ids_of
_read = endpoint._read
_exchange = Endpoint.exchange
_require_room = Endpoint._require_room
_run = Endpoint._run
_drain = Endpoint.drain
_submit = Endpoint.submit
_request_of = endpoint.request_of


# Matching


def answered(clause: str, name: str, description: str, change: Callable[[list[Message]], Any]) -> Violation:
    """Return a violation that changes the answers of an exchange, in place or by returning others."""

    def exchange(self: Endpoint, frames: Iterable[str | bytes], choices: Choices | None = None) -> list[str]:
        answers = [endpoint.read_frame(frame) for frame in _exchange(self, frames, choices)]
        return [endpoint.write_frame(answer) for answer in change(answers) or answers]

    return changed(clause, name, description, ("host_io.endpoint.Endpoint.exchange", exchange))


def by_request_id(answers: list[Message]) -> None:
    known = {answer["request_id"]: answer["correlation_id"] for answer in answers if "request_id" in answer}
    for answer in answers:
        if "request_id" in answer:
            answer["correlation_id"] = known[answer["request_id"]]


def sorted_ids(answers: list[Message]) -> None:
    pairs = sorted((answer["correlation_id"], answer["request_id"]) for answer in answers if "request_id" in answer)
    for completion, pair in zip((answer for answer in answers if "request_id" in answer), pairs, strict=True):
        completion["correlation_id"], completion["request_id"] = pair


def in_order_of_sending(self: Endpoint, choices: Choices) -> list[str]:
    pairs = list(self._pending)
    answers = [endpoint.read_frame(frame) for frame in _drain(self, choices)]
    named = zip(pairs, answers, strict=True)
    return [endpoint.write_frame(answer | {"correlation_id": pair[0], "request_id": pair[1]}) for pair, answer in named]


MATCHING = [
    answered("HIO-D3-04", "by_request_id", "matches by the request id alone", by_request_id),
    answered("HIO-Verification-02", "sorted_ids", "hands ids out in sorted order", sorted_ids),
    changed("HIO-Verification-02", "ids_in_order_of_sending", "answers out of order under ids in order",
        ("host_io.endpoint.Endpoint.drain", in_order_of_sending)),
]  # fmt: skip


# Pairs in use


def in_use(clause: str, name: str, description: str, require: Callable[[Endpoint, Pair], None]) -> Violation:
    """Return a violation with another rule about pairs in use."""
    return changed(clause, name, description, ("host_io.endpoint.Endpoint._require_room", require))


def any_case(self: Endpoint, pair: Pair) -> None:
    same = [
        request
        for request in self._pending
        if (request[0].lower(), request[1].lower()) == (pair[0].lower(), pair[1].lower())
    ]
    _require_room(self, same[0] if same else pair)


def acts_before(self: Endpoint, frame: str | bytes) -> str | None:
    reply = _submit(self, frame)
    if reply and "DUPLICATE_REQUEST" in reply:
        message = _read(frame)
        _run(self, _request_of(message), _ids_of(message), len(frame))
    return reply


def only_the_first_time(answers: list[Message]) -> None:
    seen: dict[Pair, int] = {}
    for answer in answers:
        if "request_id" in answer:
            pair = answer["correlation_id"], answer["request_id"]
            seen[pair] = seen.get(pair, 0) + 1
            if seen[pair] == 2:
                answer["completion"] = {"ok": True, "error_code": None, "error_message": None}


IN_USE = [
    in_use("HIO-D3-06", "any_case", "compares ids without case", any_case),
    changed("HIO-D3-06", "acts_before", "acts before it refuses a pair in use",
        ("host_io.endpoint.Endpoint.submit", acts_before)),
    answered("HIO-D3-06", "only_the_first_time", "refuses a pair in use once", only_the_first_time),
]  # fmt: skip


# Tags


def _tag(frame: str | bytes) -> str:
    try:
        return str(_read(frame).get("timestamp_tag") or "")
    except InvalidFrame:
        return ""


class TaggedChoices:
    """Choices whose start depends on the tags of requests."""

    def __init__(self, choices: Choices, tags: int) -> None:
        self.choices, self.tags = choices, tags

    def pick(self, count: int) -> int:
        """Return the choice, one further for each tag."""
        return (self.choices.pick(count) + self.tags) % count


def order_of_tags(self: Endpoint, frames: Iterable[str | bytes], choices: Choices | None = None) -> list[str]:
    listed = list(frames)
    tags = sum(bool(_tag(answer)) for answer in listed)
    return _exchange(self, listed, None if choices is None else TaggedChoices(choices, tags))  # type: ignore[arg-type]


TAGS = [
    changed("HIO-D3-09", "order_of_tags", "completes in an order that depends on tags",
        ("host_io.endpoint.Endpoint.exchange", order_of_tags)),
]  # fmt: skip
