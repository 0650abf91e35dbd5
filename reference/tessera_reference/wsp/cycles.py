"""A cycle in a graph of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

__all__ = ["first_cycle"]


def first_cycle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """The first cycle of a depth-first walk from each node in turn; empty where there is none."""
    finished: set[str] = set()
    for start in graph:
        path: dict[str, Iterator[str]] = {}
        if start not in finished:
            path[start] = iter(graph[start])
        while path:
            node, ways = next(reversed(path.items()))
            for each in ways:
                if each in path:
                    names = list(path)
                    return names[names.index(each) :]
                if each not in finished and each in graph:
                    path[each] = iter(graph[each])
                    break
            else:
                finished.add(node)
                del path[node]
    return []
