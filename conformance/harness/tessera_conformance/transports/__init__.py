"""Ways to reach an implementation: in this process, or in a process of its own speaking JSON-RPC lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tessera_conformance.protocol import Fault, FaultKind
from tessera_conformance.terminal import error_text


class ImplementationUnavailable(Exception):
    """The implementation could not be found; says what was tried and how to fix it."""

    def __init__(self, tried: str, problem: str, remedy: str) -> None:
        super().__init__(error_text(tried, problem, do=remedy))


class TransportFault(Exception):
    """The implementation crashed, hung or broke the protocol during start or a call."""

    def __init__(self, kind: FaultKind, detail: str, stderr: str = "") -> None:
        super().__init__(detail)
        self.fault = Fault(kind, detail, stderr)


class Inapplicable(Exception):
    """The answer to a call would say nothing about the implementation; says why, and what would change that."""


class Lacking(Exception):
    """A kernel library lacks an operation, a dtype or an attribute that the case asks for; the case is unsupported."""


@runtime_checkable
class Transport(Protocol):
    """One way to reach an implementation. A stopped or faulted transport can be started again."""

    label: str

    def start(self, deadline: float) -> Any:
        """Start anew and return the Hello message. Raises `TransportFault`: it exited, hung or broke the protocol."""
        ...

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Return the outcome of one method within `deadline` seconds; tensors may be `Tensor` objects or messages.

        Raises `TransportFault`: the implementation exited, hung or broke the protocol; the transport needs a new start.
        """
        ...

    def stop(self) -> None:
        """Release the implementation; never raises."""
        ...
