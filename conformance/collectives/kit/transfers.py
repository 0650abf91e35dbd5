"""The transfers of a collective on a machine of a case: asked for, and what they show of links and credits."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .machines import machine

Transfer: TypeAlias = Mapping[str, Any]
Direction: TypeAlias = tuple[str, Any]
"""A link, and the end at which it is entered."""


def with_credits(credits: int | Mapping[str, int], **made: Any) -> str:
    """The JSON text of a machine whose links all have so many credits."""
    document = machine(**made)
    for link in document["links"]:
        link["credits"] = credits if isinstance(credits, int) else credits.get(link["kind"], link["credits"])
    return json.dumps(document)


def asked(impl: Implementation, check: Check, **given: Any) -> Any:
    """The transfers of a collective on every device of a machine."""
    usual = {"operation": "all_reduce", "algorithm": "ring", "count": 4003, "element_bytes": 4, "chunk": 250}
    return check.returns(impl.collectives.transfers(**{**usual, **given}))


def ways(topology: str, devices: Sequence[int], transfer: Transfer) -> Iterator[Direction]:
    """The links of a transfer, each with the end at which it is entered."""
    links = {each["name"]: each for each in json.loads(topology)["links"]}
    end: Any = devices[transfer["source"]]
    for name in transfer["links"]:
        yield name, end
        end = links[name]["b"] if links[name]["a"] == end else links[name]["a"]


def most_in_flight(topology: str, devices: Sequence[int], transfers: Iterable[Transfer]) -> dict[Direction, int]:
    """The most transfers at one time on each link each way: from their start up to their end."""
    changes: dict[Direction, list[tuple[int, int]]] = defaultdict(list)
    for each in transfers:
        for way in ways(topology, devices, each):
            changes[way] += [(each["start"], 1), (each["end"], -1)]
    most: dict[Direction, int] = {}
    for way, found in changes.items():
        now = 0
        for _, change in sorted(found):
            now += change
            most[way] = max(most.get(way, 0), now)
    return most


def pieces(transfers: Iterable[Transfer]) -> list[list[int]]:
    """What travels, in order of step, source, target and place."""
    keys = ("step", "source", "target", "first", "count")
    return sorted([each[key] for key in keys] for each in transfers)
