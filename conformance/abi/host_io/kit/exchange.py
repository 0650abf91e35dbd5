"""The host's side of an exchange: frames are sent, and every answer is judged by the published schema (D3, D4).

A case begins with `connected(impl, check)`. An answer without any id refuses a frame that could not be read
(AMB-HIO-55); every other one is a response, and must follow the schema. Members of a response that the schema does not
name are ignored here, and judged in one case (AMB-HIO-53).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Implementation

from .messages import Machine, Message, Messages, Place

__all__ = ["SCHEMA", "SUCCESS", "Answers", "Completion", "Host", "Pair", "Reading", "connected", "pair_of"]

SCHEMA = "tessera:host_io"
SUCCESS = {"ok": True, "error_code": None, "error_message": None}
"""The completion of a request that was done."""
Pair: TypeAlias = tuple[str, str]
"""Correlation id and request id, which identify the request of a response (AMB-HIO-12)."""
Completion: TypeAlias = Mapping[str, Any]


class Reading(NamedTuple):
    """A listed alternative of an interpretation, and the names of the wrong requests that it accepts.

    With `whole`, an implementation that follows it accepts all of them.
    """

    interpretation: str
    alternative: str
    accepts: Collection[str]
    whole: bool = False


@dataclass(frozen=True)
class Answers:
    """The completions and pairs, in order of arrival."""

    responses: Sequence[tuple[Pair, Completion]]
    refusals: Sequence[Any]
    """Answers to frames that could not be read."""
    sinks: Mapping[Pair, bytes]
    """The bytes that reads brought to the host, if the endpoint returns them."""
    members: Collection[str]
    """Members of responses and completions that the schema does not name."""

    def of(self, message: Message) -> list[Completion]:
        """Return the completions under the ids of a request."""
        return [completion for pair, completion in self.responses if pair == pair_of(message)]


class Host(Messages):
    """Builds requests and sends them to the endpoint."""

    def __init__(self, impl: Implementation, check: Check, machine: Machine) -> None:
        super().__init__(machine)
        self.impl = impl
        self.check = check
        self._deployed: list[Message] = []

    def exchange(self, *frames: Message | str, **options: Any) -> Answers:
        """Send frames, texts unchanged, with `options` of `host_io.exchange`. Check that every response is valid."""
        texts = [frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False) for frame in frames]
        result = self.check.returns(self.impl.host_io.exchange(frames=texts, **options), "the frames are answered")
        answers = [_read(self.check, answer) for answer in result["answers"]]
        refusals = [answer for answer in answers if not _has_ids(answer)]
        responses = [answer for answer in answers if _has_ids(answer)]
        members = sorted({name for response in responses for name in _unnamed(response)})
        responses = [_named(response) for response in responses]
        for response in responses:
            self.check.equal(first_problem(SCHEMA, "response", response), None, "what is wrong with a response")
        sinks = {pair_of(sink): bytes.fromhex(sink["data"]) for sink in result.get("sinks", ())}
        return Answers(
            [(pair_of(response), response["completion"]) for response in responses], refusals, sinks, members
        )

    def completions(self, *messages: Message, **options: Any) -> list[Completion]:
        """Return the completions of requests with different ids, in order; check that each has one response.

        The requests are sent together, or as many at a time as the endpoint keeps.
        """
        depth = self.machine.queue_depth or len(messages)
        return [
            completion
            for first in range(0, len(messages), depth)
            for completion in self._together(messages[first : first + depth], **options)
        ]

    def _together(self, messages: Sequence[Message], **options: Any) -> list[Completion]:
        answers = self.exchange(*messages, **options)
        self.check.equal(len(answers.refusals), 0, "the frames that could not be read")
        expected = sorted(pair_of(message) for message in messages)
        self.check.equal(sorted(pair for pair, _ in answers.responses), expected, "the ids of the responses")
        by_pair = dict(answers.responses)
        return [by_pair[pair_of(message)] for message in messages]

    def accepted(self, *messages: Message, what: str = "the request") -> None:
        """Check that every request succeeds."""
        for completion in self.completions(*messages):
            self.check.equal(dict(completion), SUCCESS, f"the completion of {what}")

    def refused(self, wrong: Mapping[str, Message], sound: Message, *readings: Reading) -> None:
        """Check that each wrong request is refused, and the sound one beside it succeeds; names describe the mistakes.

        Requests that a reading accepts are judged last: an endpoint that accepts them follows that reading.
        """
        sent = [message for broken in wrong.values() for message in (self.another(broken), self.another(sound))]
        completions = self.completions(*sent)
        for name, twin in zip(wrong, completions[1::2], strict=True):
            self.check.equal(dict(twin), SUCCESS, f"the completion of the sound request beside one, {name}")
        taken = {name: completion["ok"] for name, completion in zip(wrong, completions[::2], strict=True)}
        read_otherwise = {name for reading in readings for name in reading.accepts}
        for name in [name for name in wrong if name not in read_otherwise]:
            self.check.equal(taken.pop(name), False, f"success of a request, {name}")
        for reading in readings:
            accepted = [taken[name] for name in reading.accepts if name in taken]
            follows = all(accepted) if reading.whole else any(accepted)
            self.check.reading(reading.interpretation, reading.alternative, follows and bool(accepted))
        for name, ok in taken.items():
            self.check.equal(ok, False, f"success of a request, {name}")

    def deploy(self, place: Place | None = None, **members: Any) -> Message:
        """Return a KernelRef of a binary that a pattern wrote: a kernel that computes nothing (AMB-HIO-56).

        A case that needs a kernel presumes that this one is launched, by itself, with a tensor, or with every option.
        """
        kernel = self.binary(place, **members)
        if kernel not in self._deployed:
            self.written(kernel, place)
            one = self.arguments(["tensor"])
            stated = {"grid": {}, "meta": {}, "failure_policy": "fail_fast", "debug_label": "x", "timestamp_tag": "x"}
            trials = [self.launch(kernel), self.launch(kernel, one), self.launch(kernel, one, **stated)]
            launched = any(completion["ok"] for completion in self.completions(*trials))
            self.check.given(launched, "a kernel whose binary a pattern wrote is launched (AMB-HIO-56)")
            self._deployed.append(kernel)
        return kernel

    def written(self, kernel: Message, place: Place | None = None) -> Message:
        """Return the same KernelRef, whose binary a pattern writes."""
        pa, nbytes = kernel["deploy_pa"], kernel["nbytes_code"]
        self.accepted(self.write(place, dst_pa=pa, nbytes=nbytes), what="the write that deploys a kernel")
        return kernel

    def builtin_launch(self) -> Message:
        """Return a launch of a built-in kernel that takes the usual arguments; others may want more than is described.

        A case that needs one presumes that the endpoint describes it.
        """
        self.check.given(bool(self.machine.builtins), "the endpoint has a built-in kernel", self.machine.builtins)
        for name, parameters in self.machine.builtins.items():
            message = self.launch(self.builtin(name), self.arguments(parameters))
            if self.completions(message)[0]["ok"]:
                return self.another(message)
        self.check.true(False, "a described built-in kernel takes arguments of 64 bytes", self.machine.builtins)
        raise AssertionError("a check that cannot pass raises")


def connected(impl: Implementation, check: Check) -> Host:
    """Return the host of an endpoint in its initial state."""
    return Host(impl, check, Machine.of(check.returns(impl.host_io.describe(), "the endpoint tells what it has")))


def pair_of(message: Mapping[str, Any]) -> Pair:
    """Return the ids of a request or a response."""
    return message["correlation_id"], message["request_id"]


COMPLETION = tuple(SUCCESS)
RESPONSE = ("correlation_id", "request_id", "completion")


def _named(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with the members of the schema alone."""
    named = {name: value for name, value in response.items() if name in RESPONSE}
    completion = named.get("completion")
    if isinstance(completion, dict):
        named["completion"] = {name: value for name, value in completion.items() if name in COMPLETION}
    return named


def _unnamed(response: Mapping[str, Any]) -> set[str]:
    """Return the other members of a response and of its completion."""
    completion = response.get("completion")
    return {*response} - {*RESPONSE} | ({*completion} - {*COMPLETION} if isinstance(completion, dict) else set())


def _has_ids(answer: Any) -> bool:
    return isinstance(answer, dict) and bool({"correlation_id", "request_id", "completion"} & answer.keys())


def _read(check: Check, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        check.true(False, "an answer is a JSON text", text[:200])
