"""How deep a program may be nested, and room for passes that follow it down (AMB-LANG-144).

The grammar has no bounds, machines have. The parser does not recurse; it refuses what goes beyond the limits here, so
that later passes, which do recurse, know how far they have to go and can ask Python for the `room_for` it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from types import FrameType

from . import syntax as s

NESTING_LIMIT = 500
"""How many brackets, braces, signs and arrows may be open in one place."""

CHAIN_LIMIT = 10_000
"""How many operators and subscripts may lie inside one another in an expression, as they do in a + a + a."""

CLAUSE = "AMB-LANG-144"

STEPS = {"(": 1, "[": 1, "{": 1, "->": 1, ")": -1, "]": -1, "}": -1}
"""By how many levels the place behind a token lies deeper than the one before it."""

FRAMES_PER_LEVEL = 8
"""How many calls a pass may need for one level of the tree."""


LINKS = {
    kind: tuple(field.name for field in fields(kind) if not str(field.type).startswith(("Span", "str", "bool")))
    for kind in vars(s).values()
    if isinstance(kind, type) and issubclass(kind, s.Node)
}
"""The fields of each kind of node that may hold nodes."""


def children(node: s.Node) -> Iterator[s.Node]:
    """The nodes right under a node, in the order of its fields."""
    for name in LINKS[type(node)]:
        held = getattr(node, name)
        for item in held if isinstance(held, tuple) else (held,):
            if isinstance(item, s.Node):
                yield item


def depth_of(tree: s.Node) -> int:
    """The number of nodes on the longest way from the root to a leaf, found without recursion."""
    level = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in children(node)]
    return depth


@contextmanager
def room_for(tree: s.Node) -> Iterator[None]:
    """While it lasts, functions may call themselves once for each level of a tree, with a few more calls at each.

    Python keeps the frames of its own functions on the heap, so that only calls through C (`map`, `sorted`, `tuple`
    of a generator) need the machine's stack: they may lie inside one another as deep as `NESTING_LIMIT` lets a program
    be nested, but not once for each operator of a chain.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _frames_in_use() + FRAMES_PER_LEVEL * depth_of(tree) + before))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _frames_in_use() -> int:
    count = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        frame = frame.f_back
        count += 1
    return count
