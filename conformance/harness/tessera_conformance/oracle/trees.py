"""Reduction trees, and reductions along them: deliberately a second, independent implementation.

`arithmetic/tree.py` reads trees for the probe and the replay. The oracle, which judges those, shares no code with them
(`tests/oracle/test_independence.py`); that both read every tree alike is tested in `tests/oracle/test_trees.py`.

A tree is `fold`, `pairwise` or `ring(S)`, or explicit: a leaf is its index, a node lists its children, `c` is the start
value. Explicit trees come as text, `((c 0 1) 2)`, or nested arrays, `[["c", 0, 1], 2]`. A node of three or more
children adds them exactly and rounds once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tessera_conformance.oracle.errors import BadArgument

Tree: TypeAlias = str | int | Sequence[Any] | Mapping[str, Any]
"""A tree in words, as text or as JSON."""
Node: TypeAlias = Any
"""An index, `c`, or a list of nodes."""
START = "c"

_FORMS = "fold, pairwise, ring(S), or a nesting that names each leaf once"


def grown(tree: Tree, count: int, *, start: bool) -> Node:
    """The nodes of a tree over `count` leaves, at least one, with a place for the start value where there is one.

    Where the tree does not name the start value, a fold takes it first and every other tree adds it last.

    Raises:
        BadArgument: no such tree, or an explicit one that does not fit the leaves.
    """
    if tree == "pairwise":
        return [_pairwise(count), START] if start else _pairwise(count)
    order = _order(tree, count)
    if order is not None:
        leaves = ([START] if start and tree == "fold" else []) + order
        node: Node = leaves[0]
        for leaf in leaves[1:]:
            node = [node, leaf]
        return [node, START] if start and tree != "fold" else node
    node = _parsed(tree) if isinstance(tree, str) else tree
    named = sorted(map(str, _leaves(node)))
    wanted = sorted(map(str, range(count)))
    if named not in (wanted, sorted([*wanted, START])):
        raise BadArgument("tree", tree, f"{_FORMS}; it names other leaves than 0 to {count - 1}")
    return [node, START] if start and START not in named else node


def reduced(
    node: Node,
    leaf: Callable[[int], Any],
    start: Any,
    combine: Callable[[list[Any]], Any],
) -> Any:
    """What the tree gives: `combine` of the children at every node, from the leaves up."""
    results: list[Any] = []
    work: list[tuple[Node, bool]] = [(node, False)]
    while work:
        item, ready = work.pop()
        if isinstance(item, str):
            results.append(start)
        elif isinstance(item, int):
            results.append(leaf(item))
        elif ready:
            children = results[-len(item) :]
            del results[-len(item) :]
            results.append(combine(children))
        else:
            work.append((item, True))
            work += [(child, False) for child in reversed(item)]
    return results[0]


def _order(tree: Tree, count: int) -> list[int] | None:
    """The order of the leaves of a fold or a ring; None for other trees."""
    if tree == "fold":
        return list(range(count))
    ring = re.fullmatch(r"ring\((\d+)\)", tree) if isinstance(tree, str) else None
    if isinstance(tree, Mapping):
        if set(tree) != {"ring"} or type(tree["ring"]) is not int:
            raise BadArgument("tree", tree, _FORMS)
        first = tree["ring"]
    elif ring:
        first = int(ring[1])
    else:
        return None
    return [(first + place) % count for place in range(count)]


def _pairwise(count: int) -> Node:
    nodes: list[Node] = list(range(count))
    while len(nodes) > 1:
        tail = nodes[len(nodes) & ~1 :]
        nodes = [list(pair) for pair in zip(nodes[::2], nodes[1::2], strict=False)] + tail
    return nodes[0]


def _parsed(text: str) -> Node:
    """The nesting that a text spells."""
    stack: list[list[Node]] = [[]]
    for token in re.findall(r"[()]|[^()\s]+", text):
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            node = stack.pop()
            stack[-1].append(node)
        elif token == START or token.isdecimal():
            stack[-1].append(START if token == START else int(token))
        else:
            raise BadArgument("tree", text, _FORMS)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise BadArgument("tree", text, _FORMS)
    return stack[0][0]


def _leaves(node: Node) -> Iterator[Any]:
    work = [node]
    while work:
        item = work.pop()
        if isinstance(item, list | tuple):
            if len(item) < 2:
                raise BadArgument("tree", item, f"{_FORMS}; a node has two or more children")
            work.extend(item)
        elif item == START or (type(item) is int and item >= 0):
            yield item
        else:
            raise BadArgument("tree", item, _FORMS)
