"""The methods of messages between host and IO_CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..host_io.endpoint import MOST_SUNK, Endpoint, timeline
from ..host_io.frames import RequestFailed
from ..host_io.machine import MOST_PLACES, MachineSize, Place, components, description, traced
from ..mesh.engine import Seeded
from ..numerics.errors import InvalidArgument
from ..runtime.bridged import run_example
from .messages import checked, message
from .session_state import SessionState


class HostIoMethods(SessionState):
    """The methods of an endpoint, which is new after every reset."""

    @checked
    def host_io_describe(self) -> dict[str, Any]:
        """Return the endpoint's devices and limits."""
        return description(self.endpoint.machine)

    @checked
    def host_io_open(self, *, machine: Mapping[str, int]) -> dict[str, Any]:
        """Replace the endpoint by one of another size."""
        size = MachineSize(**machine)
        if min(machine.values()) < 1 or size.sips * size.cubes * size.pes > MOST_PLACES:
            raise InvalidArgument(
                "host_io.open", "machine", dict(machine), f"at least one of each, and at most {MOST_PLACES} PEs"
            )
        self.endpoint = Endpoint(size)
        return {}

    @checked
    def host_io_exchange(
        self, *, frames: Sequence[str], buffers: Sequence[Mapping[str, Any]] | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """Return the answers to some frames, and the bytes of reads."""
        endpoint = self.endpoint
        buffers_by_pair = endpoint.share({_pair(buffer): buffer["data"] for buffer in buffers or ()})
        answers = endpoint.exchange(frames, None if seed is None else Seeded(seed))
        sinks = [
            {"correlation_id": correlation, "request_id": request, "data": data.hex()}
            for (correlation, request), data in buffers_by_pair.items()
        ]
        return {"answers": answers, "sinks": sinks}

    @checked
    def host_io_memory(self, *, place: Place, pa: int, nbytes: int) -> dict[str, Any]:
        """Return bytes of a PE's memory."""
        machine = self.endpoint.machine
        try:
            machine.require(place, pa, nbytes)
        except RequestFailed as failure:
            raise InvalidArgument(
                "host_io.memory", "pa", pa, f"bytes of one memory of a PE: {failure.reason}"
            ) from None
        if nbytes > MOST_SUNK:
            raise InvalidArgument("host_io.memory", "nbytes", nbytes, f"at most {MOST_SUNK}")
        return {"data": machine.space(place).read(pa, nbytes).hex()}

    @checked
    def host_io_fail(self, *, places: Sequence[Place]) -> dict[str, Any]:
        """Let PEs fail from now on."""
        machine = self.endpoint.machine
        for number, target in enumerate(places):
            if not machine.has(target):
                raise InvalidArgument("host_io.fail", f"places[{number}]", target._asdict(), "a PE of the machine")
        machine.failing = frozenset(places)
        return {}

    @checked
    def host_io_trace(self, *, correlation_id: str, request_id: str) -> dict[str, Any]:
        """Return the hops of an answered request."""
        answered = self.endpoint.journal.get((correlation_id, request_id))
        if answered is None:
            raise InvalidArgument(
                "host_io.trace", "request_id", request_id, "that of an answered request of the correlation_id"
            )
        trace = traced(answered.journey)
        return {**message(trace), "latency": trace.latency}

    @checked
    def host_io_components(self) -> dict[str, Any]:
        """Return the modelled components."""
        return {"components": [asdict(component) for component in components().values()]}

    @checked
    def host_io_timeline(self) -> dict[str, Any]:
        """Return the answered requests as a trace."""
        return {"trace": timeline(self.endpoint.machine, self.endpoint.journal)}

    @checked
    def host_io_runtime_frames(self, *, program: str) -> dict[str, Any]:
        """Send the frames of an example; return them, and whether both ways yield the same bytes."""
        comparison = run_example(program, self.endpoint)
        return {"frames": [exchange.frame for exchange in comparison.exchanges], "outputs_equal": comparison.equal}


def _pair(buffer: Mapping[str, Any]) -> tuple[str, str]:
    return buffer["correlation_id"], buffer["request_id"]
