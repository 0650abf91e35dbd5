"""An endpoint behind a socket as an adapter, so that `serve` reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.transports.hostio import HostIoTransport

DEADLINE = 30.0


class HostIoAdapter:
    """Passes the methods of `HostIoTransport` on; raises as it does."""

    def __init__(self, transport: HostIoTransport) -> None:
        self._transport = transport

    def hello(self) -> Mapping[str, Any]:
        """Return the Hello of the description."""
        hello: Mapping[str, Any] = self._transport.start(DEADLINE)
        return hello

    def session_reset(self) -> Any:
        """A new connection."""
        return self._passed("session.reset")

    def host_io_describe(self) -> Any:
        """Return the answer of the description."""
        return self._passed("host_io.describe")

    def host_io_exchange(self, **params: Any) -> Any:
        """The answers to frames. Raises `NotSupported` for what frames cannot say."""
        return self._passed("host_io.exchange", **params)

    def _passed(self, method: str, **params: Any) -> Any:
        outcome = self._transport.call(method, params, DEADLINE)
        if "unsupported" in outcome:
            raise NotSupported(outcome["unsupported"]["feature"])
        return outcome["returned"]
