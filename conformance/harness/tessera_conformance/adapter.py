"""The base of Python adapters, and the function that calls one.

An adapter is an object with `hello()` and one method for each protocol method it implements. Its name has an underscore
for the point: `language.execute` is `language_execute(self, *, source, function, inputs, level="strict")`. It returns
the result of that method as the protocol describes it, with `Tensor` objects for tensors, or raises `Refusal` or
`NotSupported`. A result without members may be None. A method that it does not have reads as unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from tessera_conformance.protocol import Diagnostic, Rejected, Returned, Unsupported, read_diagnostic

__all__ = ["Adapter", "Diagnostic", "MalformedAnswer", "NotSupported", "Refusal", "invoke"]


@runtime_checkable
class Adapter(Protocol):
    """The required methods of an adapter; all others are found by name."""

    def hello(self) -> Mapping[str, Any]:
        """Identity and claims, as `session.open` returns them."""
        ...


class Refusal(Exception):
    """Raised by an adapter when the implementation refuses a request.

    Diagnostics are `Diagnostic` objects, or mappings with the fields that the protocol gives them.
    """

    def __init__(
        self, code: str, phase: str, message: str, diagnostics: Sequence[Diagnostic | Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        entries = [entry if isinstance(entry, Diagnostic) else read_diagnostic(entry) for entry in diagnostics]
        self.outcome = Rejected(code, phase, message, tuple(entries))


class NotSupported(Exception):
    """Raised by an adapter when the implementation lacks a feature."""

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.outcome = Unsupported(feature)


class MalformedAnswer(Exception):
    """Raised by an adapter if the implementation's output makes no answer; reads as a protocol error."""


def stop_of(outcome: Mapping[str, Any]) -> Refusal | NotSupported | None:
    """Return the exception that an adapter raises for the message of an outcome; None if the call returned."""
    if "unsupported" in outcome:
        return NotSupported(outcome["unsupported"]["feature"])
    if "rejected" in outcome:
        rejected = outcome["rejected"]
        return Refusal(rejected["code"], rejected["phase"], rejected["message"], rejected.get("diagnostics", ()))
    return None


def invoke(adapter: Adapter, method: str, params: Mapping[str, Any]) -> Returned | Rejected | Unsupported:
    """Call one protocol method on an adapter. Exceptions other than `Refusal` and `NotSupported` pass through."""
    handler = getattr(adapter, method.replace(".", "_", 1), None)
    if method == "session.reset" and handler is None:
        return Returned({})
    if handler is None:
        return Unsupported(method)
    try:
        value = handler(**params)
        return Returned({} if value is None else value)
    except (Refusal, NotSupported) as stop:
        return stop.outcome
