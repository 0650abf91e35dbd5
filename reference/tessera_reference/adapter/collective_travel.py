"""The method that tells when the messages of a collective travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..abi import Failure, Status
from ..collectives.argument_checks import require_known, require_within
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


def _told(each: Transfer) -> dict[str, Any]:
    sent = each.sent
    place = {"step": sent.step, "source": sent.source, "target": sent.target, "first": sent.first, "count": sent.count}
    lost = {"lost": True} if each.lost else {}
    return {**place, "links": list(each.links), "start": each.start, "end": each.end, **lost}
