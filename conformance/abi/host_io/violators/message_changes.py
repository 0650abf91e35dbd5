"""Shared by the violators of the messages: requests read as others, or refused, and changed responses."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.host_io import endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed

Message: TypeAlias = dict[str, Any]

_request_of = endpoint.request_of
_response = endpoint._response


def changed(clause: str, name: str, description: str, *substitutions: tuple[Any, str, Any]) -> Violation:
    """A violation that replaces attributes of modules or classes."""
    return replaced(clause, description, ReferenceAdapter, *substitutions, name=name)


def read_as(clause: str, name: str, description: str, change: Callable[[Message], Any]) -> Violation:
    """Requests are read as others, which `change` makes of them in place, or returns; the ids of a response stay."""

    def request_of(value: Message, **options: Any) -> Any:
        own = deepcopy(value)
        return _request_of(change(own) or own, **options)

    return changed(clause, name, description, (endpoint, "request_of", request_of))


def refusing(clause: str, name: str, description: str, when: Callable[[Message], Any]) -> Violation:
    """Some sound requests are refused."""

    def request_of(value: Message, **options: Any) -> Any:
        request = _request_of(value, **options)
        if when(value):
            raise RequestFailed(ErrorCode.UNSUPPORTED, "not this")
        return request

    return changed(clause, name, description, (endpoint, "request_of", request_of))


def responding(clause: str, name: str, description: str, change: Callable[[Message], Any]) -> Violation:
    """Responses are changed, in place or by returning another one; a text stands for no JSON of a response."""

    def response(pair: tuple[str, str], failure: RequestFailed | None) -> str:
        answer = endpoint.read_frame(_response(pair, failure))
        other = change(answer)
        return other if isinstance(other, str) else endpoint.write_frame(other or answer)

    return changed(clause, name, description, (endpoint, "_response", response))


def completing(clause: str, name: str, description: str, change: Callable[[Message], Any]) -> Violation:
    """Completions are changed, in place or by returning another one."""

    def within(answer: Message) -> None:
        answer["completion"] = change(answer["completion"]) or answer["completion"]

    return responding(clause, name, description, within)
