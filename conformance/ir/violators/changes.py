"""Helpers of violators: substitutes made of what they replace, and adapters that cache programs and results."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around, Violation, replaced
from tessera_conformance.strength.violation import Substitution
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.ir import operation
from tessera_reference.language import CompiledModule

_COMPILED: dict[str, CompiledModule] = {}
_ANSWERS: dict[tuple[Any, ...], dict[str, Any]] = {}


class CompilesOnce(ReferenceAdapter):
    """The reference with cached compiled programs: a change of the arithmetic leaves the front end alone."""

    def _compile(self, source: str) -> CompiledModule:
        if source not in _COMPILED:
            _COMPILED[source] = super()._compile(source)  # type: ignore[misc]
        return _COMPILED[source]

    def language_execute(self, **request: Any) -> dict[str, Any]:
        """Return the results of a function, without warnings of what a change computes."""
        with np.errstate(all="ignore"):
            answer: dict[str, Any] = super().language_execute(**request)  # type: ignore[misc]
            return answer


class KeepsOthers(CompilesOnce):
    """The reference with some operations changed: results of programs without them come from a cache."""

    def __init__(self, operations: Collection[str]) -> None:
        super().__init__()
        self.calls = [f"op.{name}(" for name in operations]

    def language_execute(self, **request: Any) -> dict[str, Any]:
        """Return the results of a function, from the cache if it calls no changed operation."""
        execute = partial(super().language_execute, **request)
        source, function, inputs = request["source"], request["function"], request["inputs"]
        others = request.keys() - {"source", "function", "inputs", "level"}
        if others or any(call in source for call in self.calls):
            return execute()
        key = (source, function, *sorted((name, given.data) for name, given in inputs.items()))
        if key not in _ANSWERS:
            _ANSWERS[key] = execute()
        return _ANSWERS[key]


def changed(
    clause: str, name: str, description: str, *substitutions: Substitution, only: Collection[str] = ()
) -> Violation:
    """Return a violation of the arithmetic that replaces attributes; `only` names the operations that this changes."""
    make = partial(KeepsOthers, only) if only else CompilesOnce
    return replaced(clause, description, make, *substitutions, name=name)


def instead(
    clause: str,
    name: str,
    description: str,
    places: str | tuple[str, ...],
    substitute: Any,
    *others: Any,
    make: Any = make,
) -> Violation:
    """Return a violation with one substitute in one place or several, and others; `make` makes its adapter."""
    places = (places,) if isinstance(places, str) else places
    return replaced(clause, description, make, *((place, substitute) for place in places), *others, name=name)


def around(change: Callable[..., Any]) -> Around:
    """Return a substitute that calls `change` with what it replaces, and then with its own arguments."""
    return Around(lambda usual: lambda *arguments, **named: change(usual, *arguments, **named))


def wrapped(
    clause: str,
    name: str,
    description: str,
    places: str | tuple[str, ...],
    change: Callable[..., Any],
    make: Any = make,
) -> Violation:
    """Return a violation that calls `change` with what it replaces, and then with the arguments."""
    return instead(clause, name, description, places, around(change), make=make)


def finding(
    clause: str, name: str, description: str, place: str, attribute: str, change: Callable[[Any], Any]
) -> Violation:
    """Return a violation of a method that finds `change(self)` in an attribute of `self` while it runs."""

    def method(usual: Callable[..., Any], self: Any, *arguments: Any, **named: Any) -> Any:
        with mock.patch.object(self, attribute, change(self)):
            return usual(self, *arguments, **named)

    return wrapped(clause, name, description, place, method)


def breaks(clause: str, description: str, how: Any, *rest: Any, make: Any = make) -> Callable[[Any], Violation]:
    """Return a decorator that makes of a function the violation of its name.

    `how` names what the function replaces, which it gets before its arguments, or makes rows with a change.
    """

    def made(function: Any) -> Violation:
        if isinstance(how, str):
            return wrapped(clause, function.__name__, description, how, function, make)
        violation: Violation = how(clause, function.__name__, description, function, *rest)
        return violation

    return made


def after(change: Callable[[Any], Any]) -> Around:
    """Return a substitute that changes the result of what it replaces."""
    return around(lambda usual, *arguments, **named: change(usual(*arguments, **named)))


def where_refused(answer: Callable[..., Any], which: Callable[..., bool] = lambda refusal, *_, **named: True) -> Around:
    """Return a substitute that answers where what it replaces refuses, as far as `which` holds of the refusal."""

    def change(usual: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return usual(*arguments, **named)
        except (Refusal, operation.Refusal) as refusal:
            if not which(refusal, *arguments, **named):
                raise
            return answer(*arguments, **named)

    return around(change)


def nothing(*arguments: Any, **named: Any) -> None:
    """Accept everything."""
