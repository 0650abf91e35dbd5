"""Reduction trees as values: the order in which the terms of a sum are added.

A tree is `fold`, `pairwise`, `ring(S)`, or an explicit nesting such as `((c 0 1 2 3) 4 5 6 7)`, where a leaf is its
index, `c` the start value, and a node with three or more children one fused sum. Named trees fit any number of leaves;
`over` makes them explicit. Nothing here recurses: a fold over thousands of leaves is as deep as it is long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

Name: TypeAlias = Literal["fold", "pairwise", "ring", "explicit"]

Order: TypeAlias = "Tree | str | int | Sequence[Any] | Mapping[str, Any]"
"""A tree, its text or its JSON form."""

T = TypeVar("T")

START = -1
"""The step that adds the start value."""

DEEPEST_JSON = 200
"""Deeper trees are not written as nested arrays."""

_TOKEN = re.compile(r"0|[1-9][0-9]*|.", re.DOTALL)
_RING = re.compile(r"ring\((0|[1-9][0-9]*)\)")


class TreeError(ValueError):
    """A value that is no reduction tree, or not one for these terms."""


class LeafCountError(TreeError):
    """The number of leaves of the tree is not that of the terms."""


@dataclass(frozen=True)
class Tree:
    """A reduction order.

    Explicit trees keep their nesting in `steps`, in postfix order: an index of 0 or more takes that leaf, `START` takes
    the start value, and -k joins the last k results, k being 2 or more. `first` is the leaf at which a ring begins.
    """

    name: Name
    first: int = 0
    steps: tuple[int, ...] = ()

    @classmethod
    def explicit(cls, steps: Sequence[int]) -> Tree:
        """The tree of these steps.

        Raises `TreeError`: a leaf is repeated or missing, or the steps do not leave one result.
        """
        height = 0
        for step in steps:
            height += 1 if step >= START else 1 + step
            if height < 1:
                raise TreeError("a node of the tree has too few children")
        if height != 1:
            raise TreeError(f"the steps of the tree leave {height} results instead of one")
        _require_each_leaf_once(steps)
        return cls("explicit", steps=tuple(steps))

    @classmethod
    def from_text(cls, text: str) -> Tree:
        """Return the tree of a text in the form of `to_text`.

        Raises `TreeError`: the text has another form, or a leaf is repeated or missing.
        """
        if text in ("fold", "pairwise"):
            return cls(text)  # type: ignore[arg-type]
        ring = _RING.fullmatch(text)
        return cls("ring", int(ring[1])) if ring else cls.explicit(_read(text))

    @classmethod
    def from_json(cls, value: Any) -> Tree:
        """The tree behind "fold", "pairwise", {"ring": S}, nested arrays of indices and "c", a text, or itself.

        Raises `TreeError`: the value has another form, at the named place, or a leaf is repeated or missing.
        """
        if isinstance(value, Tree):
            return value
        if isinstance(value, str):
            return cls.from_text(value)
        if isinstance(value, dict):
            if value.keys() != {"ring"} or type(value["ring"]) is not int or value["ring"] < 0:
                raise TreeError('tree: expected an object {"ring": S} with S of 0 or more')
            return cls("ring", value["ring"])
        return cls.explicit(_steps_of_json(value))

    def to_text(self) -> str:
        """`fold`, `pairwise`, `ring(S)`, or the nesting with single spaces."""
        if self.name != "explicit":
            return f"ring({self.first})" if self.name == "ring" else self.name
        words: list[list[Any]] = []  # of each leaf: the parentheses that open before it, its name, those that close
        firsts: list[list[Any]] = []  # the first leaf of each subtree so far
        for step in self.steps:
            if step >= START:
                words.append([0, "c" if step == START else step, 0])
                firsts.append(words[-1])
            else:
                del firsts[step + 1 :]
                firsts[-1][0] += 1
                words[-1][2] += 1
        return " ".join(f"{'(' * before}{name}{')' * after}" for before, name, after in words)

    def to_json(self) -> Any:
        """Return the JSON form; for a tree so deep that readers of JSON would stop, its text."""
        if self.name != "explicit":
            return {"ring": self.first} if self.name == "ring" else self.name
        if self.depth > DEEPEST_JSON:
            return self.to_text()

        def leaf(step: int) -> Any:
            return "c" if step == START else step

        return self.folded(leaf, list)

    def folded(self, leaf: Callable[[int], T], node: Callable[[list[T]], T]) -> T:
        """Fold an explicit tree from the leaves up: `leaf` of an index or `START`, `node` of its children."""
        results: list[T] = []
        for step in self.steps:
            if step >= START:
                results.append(leaf(step))
            else:
                results[step:] = [node(results[step:])]
        return results[0]

    def over(self, terms: int) -> Tree:
        """Return the explicit tree over `terms` terms; over none it is `c`, the start value alone.

        Raises `LeafCountError`: an explicit tree has another number of leaves.
        """
        if self.name == "explicit":
            if self.leaves != terms:
                raise LeafCountError(f"the tree has {self.leaves} leaves, but {terms} terms are to be added")
            return self
        if terms < 1:
            return Tree("explicit", steps=(START,))
        if self.name == "pairwise":
            return Tree("explicit", steps=tuple(_pairwise(terms)))
        order = [(self.first + k) % terms for k in range(terms)] if self.name == "ring" else list(range(terms))
        return Tree("explicit", steps=(order[0], *(step for leaf in order[1:] for step in (leaf, -2))))

    def with_start(self, terms: int) -> Tree:
        """Return the explicit tree with the start value in its place.

        If the tree does not name `c`, a fold adds it first and every other tree adds it last.
        """
        tree = self.over(terms)
        if START in tree.steps:
            return tree
        if self.name == "fold":
            return Tree("explicit", steps=(START, tree.steps[0], -2, *tree.steps[1:]))
        return Tree("explicit", steps=(*tree.steps, START, -2))

    def without_start(self) -> Tree:
        """Return an explicit tree without `c`; a node left with one child is replaced by it. `c` alone stays."""
        if START not in self.steps or self.leaves == 0:
            return self

        def leaf(step: int) -> list[int]:
            return [] if step == START else [step]

        def node(children: list[list[int]]) -> list[int]:
            left = [child for child in children if child]
            joined = [entry for child in left for entry in child]
            return [*joined, -len(left)] if len(left) > 1 else joined

        steps = self.folded(leaf, node)
        return Tree("explicit", steps=tuple(steps))

    @property
    def leaves(self) -> int:
        """Return the number of terms of an explicit tree, the start value not counted."""
        return sum(step >= 0 for step in self.steps)

    @property
    def arity(self) -> int:
        """The most children of a node of an explicit tree; 1 without nodes."""
        return max((-step for step in self.steps if step < START), default=1)

    @property
    def depth(self) -> int:
        """The most nodes between a leaf and the result of an explicit tree."""
        return self.folded(lambda leaf: 0, lambda children: 1 + max(children))

    def canonical(self) -> Tree:
        """An explicit tree with the children of every node in the order of their first leaves, `c` before all.

        Additions commute, so this is the same order of additions; where products are fused, the children of a node of
        two leaves are told apart by the arithmetic.
        """

        def node(children: list[tuple[int, list[int]]]) -> tuple[int, list[int]]:
            (first, joined), *others = sorted(children, key=lambda child: child[0])
            for _, child in others:
                joined += child
            joined.append(-len(children))
            return first, joined

        return Tree("explicit", steps=tuple(self.folded(lambda leaf: (leaf, [leaf]), node)[1]))

    def nodes(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """The nodes of an explicit tree, children before parents: the leaves below each child, `c` left out."""
        results: list[tuple[int, ...]] = []
        for step in self.steps:
            if step >= START:
                results.append((step,) if step >= 0 else ())
                continue
            children = tuple(results[step:])
            yield children
            results[step:] = [tuple(leaf for child in children for leaf in child)]

    def joints(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """Return the nodes in short: the first leaf and the number of leaves of each child that has leaves."""
        results: list[tuple[int, int]] = []
        for step in self.steps:
            if step >= START:
                results.append((step, int(step >= 0)))
                continue
            children = tuple(child for child in results[step:] if child[1])
            yield children
            first = children[0][0] if children else START
            results[step:] = [(first, sum(count for _, count in children))]

    def __str__(self) -> str:
        return self.to_text()


FOLD = Tree("fold")
PAIRWISE = Tree("pairwise")


def ring(first: int) -> Tree:
    """The fold that starts at leaf `first` and goes up cyclically."""
    return Tree("ring", first)


def _pairwise(terms: int) -> list[int]:
    rows = [[leaf] for leaf in range(terms)]
    while len(rows) > 1:
        tail = rows[len(rows) & ~1 :]
        rows = [[*left, *right, -2] for left, right in zip(rows[::2], rows[1::2], strict=False)] + tail
    return rows[0]


def _read(text: str) -> list[int]:
    """Return the steps of an explicit tree's text in the form of `to_text`."""
    steps: list[int] = []
    counts = [0]  # of the children of each open node; the first counts trees
    for token in _TOKEN.findall(text):
        if token == "(":
            counts.append(0)
        elif token == ")" and len(counts) > 1:
            steps.append(-counts.pop())
            counts[-1] += 1
        elif token == "c" or token.isdecimal():
            steps.append(START if token == "c" else int(token))
            counts[-1] += 1
    if counts != [1] or Tree("explicit", steps=tuple(steps)).to_text() != text:
        shown = text if len(text) <= 80 else f"{text[:80]}..."
        raise TreeError(
            f"tree {shown!r}: expected fold, pairwise, ring(S) or a nesting such as ((c 0 1) 2), in which a node has "
            "two or more children, with one space between them and none elsewhere"
        )
    return steps


def _steps_of_json(value: Any) -> list[int]:
    steps: list[int] = []
    waiting: list[tuple[Any, str]] = [(value, "")]  # values to read, last first, and where they stand
    while waiting:
        entry, place = waiting.pop()
        if entry == "c" and isinstance(entry, str):
            steps.append(START)
        elif type(entry) is int and (entry >= 0 or place == "node"):
            steps.append(entry)
        elif isinstance(entry, list | tuple) and len(entry) >= 2:
            waiting.append((-len(entry), "node"))
            waiting += [(child, f"{place}[{k}]") for k, child in reversed(list(enumerate(entry)))]
        else:
            forms = '"fold", "pairwise", {"ring": S}, ' if not place else ""
            raise TreeError(f'tree{place}: expected {forms}a leaf number, "c", or an array of two or more of these')
    return steps


def _require_each_leaf_once(steps: Sequence[int]) -> None:
    leaves: set[int] = set()
    problem = "leaf {} {}: name 0..n-1 once each, c at most once"
    for step in steps:
        if step in leaves:
            raise TreeError(problem.format("c" if step == START else step, "stands in the tree twice"))
        if step >= START:
            leaves.add(step)
    count = len(leaves - {START})
    missing = next((leaf for leaf in range(count) if leaf not in leaves), None)
    if missing is not None or (count == 0 and len(steps) > 1):
        raise TreeError(problem.format(missing or 0, "is missing"))
