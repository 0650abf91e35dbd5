"""Links between the parts of a machine, and the shortest way from one to another (collectives spec 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain

__all__ = ["KINDS", "End", "Link", "Routes"]

End = int | str
"""Where a link ends: the id of a device, or the name of a node (its host), of a switch or of a NIC."""

KINDS = ("nvlink", "pcie", "rdma", "network")
"""The transports of links (collectives spec 3.2)."""

_MOST_KEPT = 65536


@dataclass(frozen=True)
class Link:
    """A link that carries `bandwidth` bytes a second each way, the first of them after `latency` picoseconds.

    `credits` chunks may be in flight on it at a time, each way (AMB-COLL-17).
    """

    name: str
    a: End
    b: End
    bandwidth: int
    latency: int
    kind: str = "pcie"
    credits: int = 1

    def other(self, end: End) -> End:
        """The end that is not this one."""
        return self.b if end == self.a else self.a


class Routes:
    """The shortest ways over links, found once: of least latency, then of fewest links, then first by their names."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._at: dict[End, list[Link]] = {}
        self._joining: dict[tuple[End, End], list[Link]] = {}
        for link in links:
            self._at.setdefault(link.a, []).append(link)
            self._at.setdefault(link.b, []).append(link)
            self._joining.setdefault((link.a, link.b), []).append(link)
            self._joining.setdefault((link.b, link.a), []).append(link)
        for each in self._at.values():
            each.sort(key=lambda link: link.latency)
        self._found: dict[tuple[End, End, frozenset[str]], tuple[Link, ...] | None] = {}

    def between(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """The links on the way, or None where every way needs one that is down."""
        key = (a, b, down)
        if key not in self._found:
            if len(self._found) >= _MOST_KEPT:
                self._found.clear()
            self._found[key] = self._by_only_links(a, b, down)
        return self._found[key]

    def _by_only_links(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """Every way from or to an end that has one link goes over it, so that only what is between is searched."""
        before, after = self._only_link(a), self._only_link(b)
        if a == b or before is None or after is None or before is after:
            return self._search(a, b, down)
        if before.name in down or after.name in down:
            return None
        inner = (before.other(a), after.other(b), down)
        if inner not in self._found:
            self._found[inner] = self._search(*inner)
        between = self._found[inner]
        return None if between is None else (before, *between, after)

    def _only_link(self, end: End) -> Link | None:
        links = self._at.get(end, ())
        return links[0] if len(links) == 1 else None

    def _search(self, a: End, b: End, down: frozenset[str]) -> tuple[Link, ...] | None:
        """Dijkstra's algorithm; ties are decided by the names of the links, which no two routes share.

        Once a way is known, ends that are no nearer than it is long are left out: a switch may have thousands.
        """
        waiting: list[tuple[int, int, tuple[str, ...], End, tuple[Link, ...]]] = [(0, 0, (), a, ())]
        done: set[End] = set()
        known: tuple[int, int] | None = None
        while waiting:
            latency, hops, names, end, way = heappop(waiting)
            if end == b:
                return way
            if end in done:
                continue
            done.add(end)
            last = [link for link in self._joining.get((end, b), ()) if link.name not in down]
            for link in chain(last, self._at.get(end, ())):
                reached = latency + link.latency, hops + 1
                other = link.other(end)
                if other == b and link.name not in down:
                    known = min(known or reached, reached)
                elif known is not None and reached >= known:
                    break
                if link.name not in down and other not in done:
                    heappush(waiting, (*reached, (*names, link.name), other, (*way, link)))
        return None
