"""An implementation behind a transport as an adapter, so that `serve`, and with it the script of a case, reaches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.adapter import MalformedAnswer, NotSupported, Refusal
from tessera_conformance.interface import interface
from tessera_conformance.protocol import read_diagnostic
from tessera_conformance.tensors import from_wire
from tessera_conformance.transports import Inapplicable, Transport, TransportFault

DEADLINE = 24 * 3600.0
"""Seconds; the deadline that counts is that of who asks."""


class PassingAdapter:
    """Passes every method on to a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def hello(self) -> Mapping[str, Any]:
        """The Hello of the implementation, which is started."""
        hello: Mapping[str, Any] = self._transport.start(DEADLINE)
        return hello

    def close(self) -> None:
        """Stop the implementation."""
        self._transport.stop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The method that `invoke` looks for: `runtime_tessInit`, `host_io_describe`."""
        area = next((each for each in interface().areas if name.startswith(f"{each}_")), None)
        if area is None:
            raise AttributeError(name)
        method = f"{area}.{name[len(area) + 1 :]}"
        return lambda **params: self._passed(method, params)

    def _passed(self, method: str, params: Mapping[str, Any]) -> Any:
        """What the implementation returned.

        Raises:
            Refusal, NotSupported: as it answered; `NotSupported` too for what says nothing of it.
            MalformedAnswer: it broke the protocol.
            TransportFault: it crashed.
        """
        try:
            outcome = from_wire(self._transport.call(method, params, DEADLINE))
        except Inapplicable as reason:
            raise NotSupported(f"{method}: {reason}") from None
        except TransportFault as stop:
            if stop.fault.kind == "protocol_error":
                raise MalformedAnswer(stop.fault.detail) from None
            raise
        if "unsupported" in outcome:
            raise NotSupported(outcome["unsupported"]["feature"])
        if "rejected" in outcome:
            rejected = outcome["rejected"]
            diagnostics = [read_diagnostic(each) for each in rejected.get("diagnostics", ())]
            raise Refusal(rejected["code"], rejected["phase"], rejected["message"], diagnostics)
        return outcome["returned"]
