"""A running IO_CPU endpoint behind a socket, called in its own frames: `hostio:unix:PATH` or `hostio:tcp:HOST:PORT`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tessera_conformance.documents import NoDocument, read_file
from tessera_conformance.schemas import first_problem
from tessera_conformance.transports import ImplementationUnavailable, TransportFault
from tessera_conformance.transports.hostio_connection import Conversation, EndpointFault, read_address

# The description of an endpoint behind a socket by its vendor: a TOML or JSON file (`docs/host_io.md`).


class Description(NamedTuple):
    """The Hello of an endpoint, and its answer to `host_io.describe`."""

    hello: Mapping[str, Any]
    endpoint: Mapping[str, Any]


LEAST = {
    "devices": [{"name": "sip:0", "sip": 0}],
    "places": [{"sip": 0, "cube": 0, "pe": pe} for pe in range(2)],
    "memories": [{"kind": "HBM", "base": 0, "bytes": 1 << 20}],
    "builtins": [],
}
"""The default endpoint: two PEs with HBM of 1 MiB at 0 on one device, and no kernel."""


def described(
    *, name: Any = "endpoint", version: Any = "unknown", features: Iterable[str] = (), **endpoint: Any
) -> Description:
    """Return the description of an endpoint of the document `host_io` alone, completed from `LEAST`."""
    hello = {
        "protocol": {"minimum": 1, "maximum": 1},
        "implementation": {"name": name, "version": version},
        "documents": ["host_io"],
        "capabilities": dict.fromkeys(features, "enforced"),
    }
    return Description(hello, {**LEAST, **endpoint})


def read_description(path: str) -> Description:
    """Return the description in a file. Raises `NoDocument`."""
    document = read_file(Path(path))
    if not isinstance(document, dict):
        raise NoDocument(f"{path}: expected an object")
    features = document.get("features", [])
    if not (isinstance(features, list) and all(isinstance(feature, str) for feature in features)):
        raise NoDocument(f"{path}: features: expected a list of texts")
    description = described(**document)
    for schema, name, value in (
        ("tessera:protocol/session", "open.result", description.hello),
        ("tessera:protocol/host_io", "describe.result", description.endpoint),
    ):
        problem = first_problem(schema, name, value)
        if problem is not None:
            raise NoDocument(f"{path}: {problem}")
    return description


# A running IO_CPU endpoint behind a socket, called in its own frames: `hostio:unix:PATH` or `hostio:tcp:HOST:PORT`.
#
# A line is a frame. Only frames cross the wire, so that of the area `host_io` there are `exchange`, without buffers and
# seeds, and `describe`, which the description answers. Every case has a connection of its own. An endpoint that exits,
# hangs or sends something else than JSON objects is a fault of its case. The next case connects again (AMB-HIO-58 to
# -62).


class HostIoTransport:
    """Connects to the endpoint at `ADDRESS` or `ADDRESS,description=FILE`.

    Raises `ImplementationUnavailable`: the address is malformed, or the description cannot be read.
    """

    def __init__(self, place: str) -> None:
        self.label = f"hostio:{place}"
        address, _, path = place.partition(",description=")
        remedy = "use hostio:unix:PATH or hostio:tcp:HOST:PORT, with ,description=FILE behind it where there is one"
        try:
            self._conversation = Conversation(read_address(address))
            remedy = "correct the description; docs/host_io.md has one"
            self._description = read_description(path) if path else described()
        except ValueError as problem:  # `NoDocument` is one
            raise ImplementationUnavailable(self.label, str(problem), remedy) from None

    def start(self, deadline: float) -> Any:
        """Connect, and return the Hello made from the description."""
        try:
            self._conversation.connect(time.monotonic() + deadline)
        except EndpointFault as fault:
            raise TransportFault(fault.kind, str(fault)) from None
        return self._description.hello

    def stop(self) -> None:
        """Close the connection."""
        self._conversation.close()

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Answer one method."""
        if not self._conversation.open:
            raise TransportFault("crash", "the connection is not open")
        limit = time.monotonic() + deadline
        try:
            if method == "session.reset":
                self._conversation.require_nothing_unread()
                self._conversation.connect(limit)
                return {"returned": {}}
            if method == "host_io.describe":
                return {"returned": self._description.endpoint}
            if method == "host_io.exchange":
                return self._exchange(params, limit)
        except EndpointFault as fault:
            self.stop()
            raise TransportFault(fault.kind, str(fault)) from None
        return _unsupported(method)

    def _exchange(self, params: Mapping[str, Any], limit: float) -> Any:
        """Send frames and return the answers."""
        frames = params["frames"]
        if params.get("buffers"):
            return _unsupported("host-buffer-ref")
        if params.get("seed") is not None:
            return _unsupported("delivery-order")
        if any("\n" in frame for frame in frames):
            return _unsupported("host_io.exchange")  # it would be two frames
        return {"returned": {"answers": self._conversation.exchange(frames, limit)}}


def _unsupported(feature: str) -> dict[str, Any]:
    return {"unsupported": {"feature": feature}}
