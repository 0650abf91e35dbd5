"""The transfers of a collective on a machine of a case: their request, and their use of links and credits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.protocol import Rejected
from tessera_conformance.session import Implementation

from .machines import machine

Transfer: TypeAlias = Mapping[str, Any]
Levels: TypeAlias = list[tuple[int, int]]
"""Times with the level from each of them on; the level before is 0."""
Direction: TypeAlias = tuple[str, Any]
"""A link, and the end at which a transfer enters it."""


def with_credits(credits: int | Mapping[str, int], **arguments: Any) -> str:
    """Return the JSON text of a machine whose links all have so many credits."""
    document = machine(**arguments)
    for link in document["links"]:
        link["credits"] = credits if isinstance(credits, int) else credits.get(link["kind"], link["credits"])
    return json.dumps(document)


def asked(impl: Implementation, check: Check, *, over: bool = False, **arguments: Any) -> Any:
    """Return the transfers of a collective on every device of a machine; `over` if it ends before a link fails."""
    usual = {"operation": "all_reduce", "algorithm": "ring", "count": 4003, "element_bytes": 4, "chunk": 250}
    answer = impl.collectives.transfers(**{**usual, **arguments})
    midway = not over and any(cut["at"] > 0 for cut in arguments.get("cuts", ()))
    failed = midway and isinstance(answer, Rejected) and answer.code == "TESS_ERR_LAUNCH_FAILED"
    check.reading("AMB-COLL-79", "a collective during which a link fails is failed", failed)
    return check.returns(answer)


def ways(topology: str, devices: Sequence[int], transfer: Transfer) -> Iterator[Direction]:
    """Yield the links of a transfer, each with the end at which it enters."""
    links = _links_of(topology)
    end: Any = devices[transfer["source"]]
    for name in transfer["links"]:
        yield name, end
        end = links[name]["b"] if links[name]["a"] == end else links[name]["a"]


@lru_cache
def _links_of(topology: str) -> Mapping[str, Any]:
    return {link["name"]: link for link in json.loads(topology)["links"]}


def most_in_flight(topology: str, devices: Sequence[int], transfers: Iterable[Transfer]) -> dict[Direction, int]:
    """Return the most simultaneous transfers on each link in each direction: from their start up to their end."""
    changes: dict[Direction, list[tuple[int, int]]] = defaultdict(list)
    for transfer in transfers:
        for way in ways(topology, devices, transfer):
            changes[way] += [(transfer["start"], 1), (transfer["end"], -1)]
    most: dict[Direction, int] = {}
    for way, found in changes.items():
        now = 0
        for _, change in sorted(found):
            now += change
            most[way] = max(most.get(way, 0), now)
    return most


def levels_of(topology: str, devices: Sequence[int], transfers: Iterable[Transfer], size: int) -> dict[str, Levels]:
    """Return the expected counters of credits and bytes for each link and direction, from the transfers."""
    changes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for transfer in transfers:
        for link, end in ways(topology, devices, transfer):
            for name, amount in (("credits", 1), ("bytes", transfer["count"] * size)):
                changes[f"{name} of {link} from {end}"][transfer["start"]] += amount
                changes[f"{name} of {link} from {end}"][transfer["end"]] -= amount
    levels: dict[str, Levels] = {}
    for name, found in changes.items():
        times = sorted(found)
        levels[name] = steps(zip(times, accumulate([found[time] for time in times]), strict=True))
    return levels


def counted(events: Iterable[Mapping[str, Any]]) -> dict[str, Levels]:
    """Return the counters of links in a trace, in order of time in picoseconds."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"] != "occupancy":
            (value,) = event["args"].values()
            found[event["name"]].append((round(event["ts"] * 10**6), value))
    return {name: steps(values) for name, values in found.items()}


def steps(values: Iterable[tuple[int, int]]) -> Levels:
    """Return times and levels, without repeated levels."""
    found: Levels = []
    for time, level in values:
        if level != (found[-1][1] if found else 0):
            found.append((time, level))
    return found


def pieces(transfers: Iterable[Transfer]) -> list[list[int]]:
    """Return the messages in order of step, source, target and place."""
    keys = ("step", "source", "target", "first", "count")
    return sorted([transfer[key] for key in keys] for transfer in transfers)
