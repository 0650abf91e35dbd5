"""The shortest ways over links, against all ways there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.mesh.topology import Link, Routes

ENDS = ("a", "b", "c", "d", "e", "f")


@st.composite
def links(draw: st.DrawFn) -> list[Link]:
    """Links between six ends, some of which have one link or none; two may join the same ends."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(ENDS), st.sampled_from(ENDS)), max_size=9))
    names = draw(st.permutations(range(len(pairs))))
    return [
        Link(f"l{name}", a, b, 1, draw(st.integers(0, 2))) for name, (a, b) in zip(names, pairs, strict=True) if a != b
    ]


def simple_ways(found: list[Link], a: str, b: str, down: frozenset[str]) -> Iterator[tuple[Link, ...]]:
    """Every way that comes to no end twice."""
    waiting: list[tuple[str, tuple[str, ...], tuple[Link, ...]]] = [(a, (a,), ())]
    while waiting:
        end, seen, way = waiting.pop()
        if end == b:
            yield way
            continue
        for link in found:
            if end in (link.a, link.b) and link.other(end) not in seen and link.name not in down:
                other = str(link.other(end))
                waiting.append((other, (*seen, other), (*way, link)))


def length(way: tuple[Link, ...]) -> tuple[int, int, list[str]]:
    """What is to be least."""
    return sum(each.latency for each in way), len(way), [each.name for each in way]


@settings(max_examples=150, deadline=None)
@given(links(), st.data())
def test_the_shortest_of_all_ways_is_taken(found: list[Link], data: st.DataObject) -> None:
    down = frozenset(data.draw(st.lists(st.sampled_from([each.name for each in found] or [""]), max_size=2)))
    routes = Routes(found)
    for a in ENDS:
        for b in ENDS:
            expected = min(simple_ways(found, a, b, down), key=length, default=None)
            assert routes.between(a, b, down) == expected


@pytest.mark.parametrize("devices", [2, 4096])
def test_a_way_across_a_switch_is_not_searched_for(devices: int) -> None:
    routes = Routes(Link(f"l{number:04}", number, "switch", 1, 5) for number in range(devices))
    found = [routes.between(number, (number + 1) % devices, frozenset()) for number in range(devices)]
    assert [[each.a for each in way or ()] for way in found] == [[n, (n + 1) % devices] for n in range(devices)]
