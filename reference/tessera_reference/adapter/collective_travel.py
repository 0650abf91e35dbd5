"""The methods on the time and the credits of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..abi import Failure, Status
from ..collectives.argument_checks import require_known, require_within
from ..collectives.credits import CreditLimiter, ReadyChunk
from ..collectives.durations import algorithms
from ..collectives.graph import topology_of
from ..collectives.operations import OPERATIONS, messages
from ..collectives.transports import PATHS
from ..collectives.travel import Cut, Transfer, travel
from ..runtime.chunk_trace import chunk_trace
from .requests import checked
from .session_state import SessionState
from .statuses import statuses

__all__ = ["CollectiveTravelMethods"]

_LATEST = (1 << 63) - 1


class CollectiveTravelMethods(SessionState):
    """How the messages of collectives pass over links (collectives spec 4 and 6)."""

    @checked
    def collectives_transfers(
        self,
        *,
        operation: str,
        algorithm: str,
        count: int,
        element_bytes: int,
        topology: str,
        devices: Sequence[int] | None = None,
        root: int = 0,
        chunk: int | None = None,
        down: Sequence[str] = (),
        path: str = "auto",
        cuts: Sequence[Mapping[str, Any]] = (),
        trace: bool = False,
    ) -> dict[str, Any]:
        """All transfers, in order of arrival or loss."""
        with statuses():
            require_known("collective", "operation", operation, OPERATIONS)
            require_known("collective", "path", path, ("auto", *PATHS))
            machine, cut = topology_of(topology), frozenset(down)
            links = tuple(link.name for link in machine.links)
            failing = [Cut(**each) for each in cuts]
            for each in failing:
                require_within("collective", f"time of the cut of {each.link}", each.at, 0, _LATEST)
            for name in (*down, *(each.link for each in failing)):
                require_known("collective", "link", name, links)
            used = [each.id for each in machine.devices] if devices is None else list(devices)
            if len(set(used)) != len(used):
                raise Failure(Status.TESS_ERR_INVALID_VALUE, "collective", f"devices {used}", "each once")
            nodes = machine.by_node(used)
            used = [each for node in nodes for each in node]
            require_within("collective", "root", root, 0, len(used) - 1)
            sent = messages(operation, algorithm, len(used), count, root=root, per_node=len(nodes[0]), chunk=chunk)
            if algorithm not in (possible := algorithms(machine, used, cut)) and possible:
                given = f"algorithm {algorithm!r} for devices {used}"
                raise Failure(Status.TESS_ERR_UNSUPPORTED, operation, given, f"one of {', '.join(possible)}")
            found = travel(machine, used, sent, element_bytes, chunk=chunk, down=cut, path=path, cuts=failing)
        told = {"trace": chunk_trace(operation, found, used, element_bytes, chunk, machine.links)} if trace else {}
        duration = max((each.end for each in found), default=0)
        return {"transfers": [_told(each) for each in found], "duration": duration, **told}

    @checked
    def collectives_limiter(self, *, credits: Mapping[str, int]) -> dict[str, Any]:
        """A limiter of its own links."""
        with statuses():
            limiter = CreditLimiter(credits)
        self._limiters.append(limiter)
        return {"limiter": len(self._limiters)}

    @checked
    def collectives_acquire(self, *, limiter: int, ready: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The chunk that may be issued."""
        with statuses():
            chunks = [ReadyChunk(each["id"], tuple(each["links"])) for each in ready]
            return {"chunk": self._limiter("collectives.acquire", limiter).acquire(chunks)}

    @checked
    def collectives_release(self, *, limiter: int, chunk: str) -> dict[str, Any]:
        """A chunk has arrived."""
        with statuses():
            self._limiter("collectives.release", limiter).release(chunk)
        return {}

    def _limiter(self, function: str, number: int) -> CreditLimiter:
        require_within(function, "limiter", number, 1, len(self._limiters))
        return self._limiters[number - 1]


def _told(each: Transfer) -> dict[str, Any]:
    sent = each.sent
    place = {"step": sent.step, "source": sent.source, "target": sent.target, "first": sent.first, "count": sent.count}
    lost = {"lost": True} if each.lost else {}
    return {**place, "links": list(each.links), "start": each.start, "end": each.end, **lost}
