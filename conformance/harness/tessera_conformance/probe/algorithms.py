"""The orders in which algorithms of an all-reduce combine the ranks' contributions, as declared and as probed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from tessera_conformance.arithmetic.tree import Tree, TreeError
from tessera_conformance.differences import values_of
from tessera_conformance.probe.calls import AllReduceBox, Box, CannotProbe, Subject, words_of
from tessera_conformance.probe.masks import Masks
from tessera_conformance.probe.pattern import abbreviated, pattern
from tessera_conformance.probe.reveal import NotATree, reveal
from tessera_conformance.protocol import Returned, Unsupported, describe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor

# The orders of all elements of an all-reduce: a ring starts at another rank for every chunk.
#
# Every pair of ranks is masked once, and one call shows that pair for all elements.


MOST_RANKS = 16


@dataclass(frozen=True)
class Group:
    """Elements first..last, both included, and their order; None where it is no tree."""

    first: int
    last: int
    tree: Tree | None

    def sentence(self) -> str:
        """In words."""
        order = "no fixed tree" if self.tree is None else f"{pattern(self.tree)}: {abbreviated(self.tree)}"
        return f"elements {self.first} to {self.last}: {order}"

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"first": self.first, "last": self.last, "tree": self.tree.to_text() if self.tree else None}


class _Measured:
    """The counts of one element."""

    def __init__(self, terms: int, sizes: dict[tuple[int, int], int]) -> None:
        self.terms, self._sizes = terms, sizes

    def lca(self, i: int, j: int) -> int:
        size = self._sizes[min(i, j), max(i, j)]
        if not 2 <= size <= self.terms:
            raise NotATree("masks", (i, j), f"a count of {size}")
        return size


def groups_of(box: Box) -> tuple[Group, ...]:
    """Runs of elements that share an order; nothing for more ranks than `MOST_RANKS`."""
    ranks = box.subject.terms
    if ranks > MOST_RANKS:
        return ()
    try:
        masks = Masks(box)
    except NotATree:
        return ()
    counts = {pair: _counts(box, masks, pair) for pair in combinations(range(ranks), 2)}
    keys = list(zip(*counts.values(), strict=True))
    groups: list[Group] = []
    for element, key in enumerate(keys):
        if element and key == keys[element - 1]:
            groups[-1] = Group(groups[-1].first, element, groups[-1].tree)
            continue
        groups.append(Group(element, element, _tree(ranks, dict(zip(counts, key, strict=True)))))
    return tuple(groups)


def _counts(box: Box, masks: Masks, pair: tuple[int, int]) -> list[int]:
    """The sizes that a pair's mask gives, element by element; 0 where it counts nothing."""
    sizes = []
    for value in values_of(box.result(*masks.words(*pair))):
        count = None if value is None else value / masks.quantum
        sizes.append(0 if count is None or count.denominator != 1 else box.subject.terms - int(count))
    return sizes


def _tree(ranks: int, sizes: dict[tuple[int, int], int]) -> Tree | None:
    try:
        return reveal(_Measured(ranks, sizes))
    except NotATree:
        return None


# In which order each algorithm of an all-reduce combines what ranks bring: as declared, and as probed.
#
# At the level deterministic an algorithm has an order of its own, share by share (AMB-RT-26), which
# `numerics.declared` tells with the attributes `algorithm` and `per_node`; at strict every algorithm has the declared
# order of the operation. Every pair of ranks is masked once, which shows how the pair meets in all elements.


ALGORITHMS = ("ring", "tree", "halving_doubling", "hierarchical", "direct")
LEVELS = ("strict", "deterministic")
RANKS = (1, 2, 6, 7, 8)
"""One, powers of two, a prime, and a number that is neither."""

ALONE = "one term"


@dataclass(frozen=True)
class Row:
    """Elements first..last, both included, of an all-reduce by one algorithm: the declared and the probed order.

    `declared` is None where nothing is declared; `probed` where the elements have no tree. A rank that is alone has a
    tree of one leaf, and `probed` is None where it does not get back its own input.
    """

    algorithm: str
    level: str
    ranks: int
    per_node: int | None
    first: int
    last: int
    declared: Tree | None
    probed: Tree | None

    @property
    def verdict(self) -> str:
        """Return the verdict on the declared order."""
        if self.declared is None:
            return "nothing declared"
        return "agrees" if self.probed == self.declared else "differs"

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable table."""
        trees = {name: tree and tree.to_text() for name, tree in (("declared", self.declared), ("probed", self.probed))}
        return {**vars(self), **trees, "verdict": self.verdict}


class _AlgorithmBox(AllReduceBox):
    """The sum over ranks by one algorithm, through `collectives.run`."""

    method = "collectives.run"

    def __init__(self, session: Session, subject: Subject, level: str, request: Mapping[str, Any]) -> None:
        super().__init__(session, subject, level)
        self.asked = request
        self.options = {"operation": "all_reduce", **request}


def probe_algorithms(session: Session, dtype: str = "fp32", ranks: Sequence[int] = RANKS) -> list[Row]:
    """Every algorithm at both levels over so many ranks, of two elements a share and one more.

    `hierarchical` has as many ranks on a node as the least prime that divides their number, if it is not that number.

    Raises:
        CannotProbe: a number of ranks or a dtype that cannot be probed, or no answer; `collectives.run` is not
            supported.
    """
    if beyond := [count for count in ranks if not 1 <= count <= MOST_RANKS]:
        raise CannotProbe(f"{beyond[0]} ranks: expected 1 to {MOST_RANKS}")
    return [
        row
        for count in ranks
        for algorithm in ALGORITHMS
        for level in LEVELS
        for row in _rows(session, dtype, count, algorithm, level)
    ]


def _rows(session: Session, dtype: str, ranks: int, algorithm: str, level: str) -> Iterator[Row]:
    """The runs of elements that share both orders."""
    per_node = _least_factor(ranks) if algorithm == "hierarchical" else None
    request = {"algorithm": algorithm, **({"per_node": per_node} if per_node else {})}
    elements = 2 * ranks + 1
    probed = _probed(session, dtype, ranks, level, request)
    declared = [_declared(session, dtype, ranks, level, request, element) for element in range(elements)]
    first = 0
    for last in range(elements):
        if last + 1 == elements or (declared[last + 1], probed[last + 1]) != (declared[last], probed[last]):
            yield Row(algorithm, level, ranks, per_node, first, last, declared[last], probed[last])
            first = last + 1


def _probed(session: Session, dtype: str, ranks: int, level: str, request: Mapping[str, Any]) -> list[Tree | None]:
    """The tree of each element, None where it has none."""
    elements = 2 * ranks + 1
    if ranks == 1:
        return [_alone(session, dtype, level, request)] * elements
    box = _AlgorithmBox(session, Subject("all_reduce", (ranks, elements), dtype), level, request)
    trees: list[Tree | None] = [None] * elements
    for group in groups_of(box):
        for element in range(group.first, group.last + 1):
            trees[element] = group.tree.canonical() if group.tree and box.ranks_agree else None
    return trees


def _alone(session: Session, dtype: str, level: str, request: Mapping[str, Any]) -> Tree | None:
    """A rank that is alone keeps its own input, bit by bit: small whole numbers."""
    words = words_of([Fraction(1), Fraction(-2), Fraction(3)], dtype)
    contribution = Tensor.from_words(dtype, (3,), words.tolist())
    params = {"operation": "all_reduce", "inputs": [contribution], "op": "sum", "level": level, **request}
    observation = session.call("collectives.run", params)
    if not isinstance(observation, Returned):
        raise CannotProbe(f"collectives.run of one rank: {describe(observation)}")
    outputs = observation.value.get("outputs")
    return Tree.explicit([0]) if outputs == [contribution] else None


def _declared(
    session: Session, dtype: str, ranks: int, level: str, request: Mapping[str, Any], element: int
) -> Tree | None:
    """Return the declared tree of an element; None where there is none."""
    params: dict[str, Any] = {"operation": "all_reduce", "dtype": dtype, "shapes": [[2 * ranks + 1]] * ranks}
    params |= {"element": element, **({"attributes": dict(request)} if level == "deterministic" else {})}
    observation = session.call("numerics.declared", params)
    if isinstance(observation, Unsupported):
        return None
    if not isinstance(observation, Returned):
        raise CannotProbe(f"numerics.declared of all_reduce: {describe(observation)}")
    try:
        return Tree.from_json(observation.value.get("tree")).over(ranks).canonical()
    except TreeError as error:
        raise CannotProbe(f"numerics.declared of all_reduce by {request['algorithm']}: {error}") from None


def _least_factor(ranks: int) -> int | None:
    """The least factor of a number beside 1 and itself."""
    return next((factor for factor in range(2, ranks) if ranks % factor == 0), None)


def as_table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as lines of a Markdown table."""
    yield "| ranks | algorithm | level | elements | declared | probed | verdict |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        name = f"`{row.algorithm}`" + (f", {row.per_node} a node" if row.per_node else "")
        elements = f"{row.first} to {row.last}" if row.first != row.last else str(row.first)
        declared = f"`{abbreviated(row.declared)}`" if row.declared else "nothing"
        probed = f"{_order(row.probed)}: `{abbreviated(row.probed)}`" if row.probed else "no tree"
        cells = (str(row.ranks), name, row.level, elements, declared, probed, row.verdict)
        yield f"| {' | '.join(cells)} |"


def _order(tree: Tree) -> str:
    return ALONE if tree.leaves == 1 else pattern(tree)
