"""The transport `cabi:`: a process loads the library and speaks the line protocol; where it ended is said."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tessera_conformance.transports import TransportFault
from tessera_conformance.transports.cabi import c_types, call_record
from tessera_conformance.transports.cabi.loading import exported_by
from tessera_conformance.transports.cabi.options import read_options
from tessera_conformance.transports.rpc import ProcessTransport

__all__ = ["CabiTransport"]

RESET_DEADLINE = 3.0
"""Seconds for the clean-up after a case: where it takes longer, it costs less to start the process anew."""
CHILD = "tessera_conformance.transports.cabi.child"


class CabiTransport(ProcessTransport):
    """Asks the library at `PATH[,header=FILE][,description=FILE][,fresh=1]`.

    Raises:
        ImplementationUnavailable: there is none, it cannot be loaded here, or exports nothing of the interface.
    """

    def __init__(self, place: str) -> None:
        super().__init__(f"cabi:{place}")
        self._options = read_options(place, self.label)
        self._exported = exported_by(self._options.library, self.label)
        self._record = Path()

    def exports(self, function: str) -> bool:
        """Whether the library exports an extension."""
        return function in self._exported

    def arguments(self, exchange: Path) -> list[str]:
        """The process that loads the library."""
        self._record = call_record.create(exchange)
        types = c_types.create(exchange, self._exported)
        return [sys.executable, "-m", CHILD, self._options.written(), str(types), str(self._record)]

    def _exchange_message(self, method: str, params: Any, deadline: float) -> Any:
        resets = method == "session.reset"
        try:
            return super()._exchange_message(method, params, min(deadline, RESET_DEADLINE) if resets else deadline)
        except TransportFault as stop:
            where = stop.fault.detail + call_record.described(self._record)
            if resets and stop.fault.kind == "hang":  # such as work that waits for ever; it says nothing of a case
                return {"rejected": {"code": "TESS_ERR_TIMEOUT", "phase": "call", "message": where}}
            stop.fault = replace(stop.fault, detail=where)
            raise
