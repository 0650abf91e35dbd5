"""Orders of reduction as values, and their written forms: ((c 0 1) 2), and JSON, [["c", 0, 1], 2]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import InvalidArgument, LeafCount, MalformedTree, TooLarge

# The two written forms of an explicit reduction tree: text, ((c 0 1) 2), and JSON, [["c", 0, 1], 2].
#
# Both are read into the same flat sequence of tokens, "(" and ")" around the children of a node, leaves and "c", and
# refused with the place of the fault. Nothing recurses: ten thousand levels are read as easily as ten.


Token: TypeAlias = int | str

START = "c"
"""The start value, as a child."""

LIMIT = 10**9
"""The number that indices of leaves stay below."""

_WORD = re.compile(r"0|[1-9][0-9]{0,8}|[()c]")
_CLOSE = object()
_END = ""


def tokens_of_text(text: str) -> tuple[Token, ...]:
    """Read the text of an explicit tree. Raises `MalformedTree`, which names the column, counted from 1."""
    return _checked(_words(text))


def tokens_of_json(value: object) -> tuple[Token, ...]:
    """Read an explicit tree from nested lists. Raises `MalformedTree`, which names the path, such as $[1][0]."""
    return _checked(_nested(value))


def text_of_tokens(tokens: tuple[Token, ...]) -> str:
    """Write an explicit tree: a space between children, none beside a parenthesis that encloses them."""
    pieces: list[str] = []
    for before, token in zip(("(", *tokens), tokens, strict=False):
        pieces += ["" if before == "(" or token == ")" else " ", str(token)]
    return "".join(pieces)


def is_index(value: object) -> TypeGuard[int]:
    """True if a value is the index of a leaf."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """The place of an item of nested lists: an index of the list around it."""

    index: int = 0
    around: _Path | None = None

    def refusal(self, problem: str) -> MalformedTree:
        indices, place = [], self
        while place.around is not None:
            indices.append(place.index)
            place = place.around
        return MalformedTree(problem, path="$" + "".join(f"[{index}]" for index in reversed(indices)))


Refusal: TypeAlias = Callable[[str], MalformedTree]
"""The error about a token at its place, from its problem."""


def _words(text: str) -> Iterator[tuple[Token, Refusal]]:
    """Yield every token of a text, then an empty one for its end."""
    before, at = "(", 0
    while at < len(text):
        spaced = text[at] == " "
        at += spaced
        word = _WORD.match(text, at)
        refusal = partial(MalformedTree, text=text, column=at + 1)
        if word is None:
            raise refusal("expected a leaf, c, ( or )")
        if spaced != (before != "(" and word[0] != ")"):
            raise refusal("no space belongs before this" if spaced else "expected a space before this")
        yield (int(word[0]) if word[0].isdigit() else word[0]), refusal
        before, at = word[0], word.end()
    yield _END, partial(MalformedTree, text=text, column=len(text) + 1)


def _nested(value: object) -> Iterator[tuple[Token, Refusal]]:
    """Yield every token of nested lists, then an empty one for the end."""
    waiting: list[tuple[object, _Path]] = [(value, _Path())]
    while waiting:
        item, place = waiting.pop()
        if item is _CLOSE:
            yield ")", place.refusal
        elif isinstance(item, list | tuple):
            yield "(", place.refusal
            waiting.append((_CLOSE, place))
            waiting += [(child, _Path(i, place)) for i, child in enumerate(item)][::-1]
        elif is_index(item) or item == START:
            yield item, place.refusal
        else:
            raise place.refusal('expected "fold", "pairwise", {"ring": S}, a leaf, "c", or a list of two or more')
    yield _END, _Path().refusal


def _checked(placed: Iterator[tuple[Token, Refusal]]) -> tuple[Token, ...]:
    """Check that the tokens are one nesting, in which every leaf of 0..n-1 occurs once and c at most once."""
    tokens: list[Token] = []
    refusals: dict[Token, Refusal] = {}
    children = [0]  # the number of children of each open node; the first entry counts whole trees
    for token, refusal in placed:
        if token == _END:
            if children != [1]:
                raise refusal("expected " + ("a child or )" if len(children) > 1 else "a tree"))
        elif token == ")":
            if len(children) == 1:
                raise refusal("nothing is open that this could close")
            if children.pop() < 2:
                raise refusal("a node has two or more children")
        elif children == [1]:
            raise refusal("the tree has ended before this")
        elif token in refusals:
            raise refusal(f"{'c' if token == START else f'leaf {token}'} occurs here a second time")
        else:
            children[-1] += 1
            if token == "(":
                children.append(0)
            else:
                refusals[token] = refusal
        tokens.append(token)
    leaves = [token for token in refusals if isinstance(token, int)]
    for leaf in leaves:
        if leaf >= len(leaves):
            raise refusals[leaf](f"leaf {leaf} of a tree of {len(leaves)}, whose leaves are 0 to {len(leaves) - 1}")
    return tuple(tokens[:-1])


# Orders of reduction, as values.
#
# Reference arithmetic ("sums and all-reduce"; "a reduction tree is a value"). A tree determines which partial results
# are combined; `node_arithmetic` defines the computation of one node. In text and in JSON:
#
# fold             ((x0 + x1) + x2) + ...
# pairwise         adjacent pairs, an odd tail kept unchanged, repeated until one is left: the canonical order.
# Never padded, so that a sum of -0 stays -0 (AMB-RT-24).
# ring(S)          {"ring": S}: a fold that begins at leaf S mod n and goes up cyclically
# ((c 0 1) 2)      [["c", 0, 1], 2], or the text itself: an explicit nesting. A leaf is its index, `c` the start
# value, such as the C operand of a matmul; a node of three or more children is one fused addition.
#
# Nothing here recurses, so a tree may be as deep as it has leaves.


Values: TypeAlias = npt.NDArray[Any]
Combine: TypeAlias = Callable[[Values, Values], Values]
T = TypeVar("T")

MOST_LEAVES = 1 << 24
"""The most leaves of an explicit nesting: a gibibyte of tokens."""

_RING = re.compile(r"ring\((0|[1-9][0-9]{0,8})\)")


@dataclass(frozen=True, slots=True)
class Tree:
    """An order of reduction: `fold`, `pairwise` and `ring`, over any number of leaves, or one explicit nesting.

    `tokens` holds an explicit nesting as written: "(" and ")" around children, indices of leaves, and "c".
    """

    form: Literal["fold", "pairwise", "ring", "explicit"]
    first: int = 0
    tokens: tuple[Token, ...] = ()

    @classmethod
    def ring(cls, first: int) -> Tree:
        """Return the fold that begins at leaf `first` mod n and goes up cyclically. Raises `InvalidArgument`."""
        if not is_index(first):
            raise InvalidArgument("ring", "first", first, f"a whole number below {LIMIT}")
        return cls("ring", first)

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Read a tree from its text. Raises `MalformedTree`, which names the column."""
        if text in _NAMED:
            return _NAMED[text]
        if (ring := _RING.fullmatch(text)) is not None:
            return cls.ring(int(ring[1]))
        return cls("explicit", 0, tokens_of_text(text))

    @classmethod
    def from_json(cls, value: object) -> Tree:
        """Read a tree from its JSON form. Raises `MalformedTree`, which names the place, as $[1][0]."""
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, dict):
            first = value.get("ring")
            if len(value) != 1 or not is_index(first):
                raise MalformedTree('an object is {"ring": S}, S a whole number', path="$")
            return cls.ring(first)
        return cls("explicit", 0, tokens_of_json(value))

    def to_json(self) -> Any:
        """Return the JSON form: a name, {"ring": S}, nested lists, or the text of a tree too deep for those."""
        if self.form == "explicit":
            if self._depth() > _DEEPEST_JSON:
                return str(self)
            nested: Any = self.evaluate(_itself, _itself, START)
            return nested
        return {"ring": self.first} if self.form == "ring" else self.form

    def __str__(self) -> str:
        if self.form == "explicit":
            return text_of_tokens(self.tokens)
        return f"ring({self.first})" if self.form == "ring" else self.form

    def _depth(self) -> int:
        """Return the depth of an explicit nesting."""
        return max(accumulate((token == "(") - (token == ")") for token in self.tokens))

    def require_leaves(self, n: int) -> None:
        """Raise `LeafCount` unless an explicit nesting has `n` leaves, `TooLarge` for `n` above `MOST_LEAVES`."""
        if self.form == "explicit":
            leaves = sum(isinstance(token, int) for token in self.tokens)
            if leaves != n:
                raise LeafCount(n, leaves)
        elif n > MOST_LEAVES:
            raise TooLarge("reduction tree", "leaves", n, MOST_LEAVES)

    def over(self, n: int, start: bool = False) -> Tree:
        """Return the explicit nesting of this tree over `n` leaves; with `start`, one that names the start value.

        A fold that does not name it takes it first, other trees take it last, as (T c). Over no leaves the nesting is
        `c` alone. Raises as `require_leaves` does.
        """
        self.require_leaves(n)
        if self.form == "explicit":
            tokens = self.tokens
        elif n == 0:
            tokens = (START,)
        elif self.form == "fold":
            tokens = _folded([START, *range(n)] if start else list(range(n)))
        elif self.form == "ring":
            tokens = _folded([(self.first + i) % n for i in range(n)])
        else:
            tokens = _paired(n)
        if start and START not in tokens:
            tokens = ("(", *tokens, START, ")")
        return Tree("explicit", 0, tokens)

    def evaluate(self, leaf: Callable[[int], T], node: Callable[[list[T]], T], start: T) -> T:
        """Evaluate an explicit nesting from its leaves up, children from left to right; see `over`.

        `leaf` returns the value of a leaf, called once, when it is needed; `node` combines two or more children.
        """
        open_nodes: list[list[T]] = [[]]
        for token in self.tokens:
            if token == "(":
                open_nodes.append([])
            elif token == ")":
                children = open_nodes.pop()
                open_nodes[-1].append(node(children))
            else:
                open_nodes[-1].append(leaf(token) if isinstance(token, int) else start)
        return open_nodes[0][0]


_DEEPEST_JSON = 200

FOLD = Tree("fold")
PAIRWISE = Tree("pairwise")
_NAMED = {"fold": FOLD, "pairwise": PAIRWISE}


def pairwise(values: Values, axis: int = -1, add: Combine = np.add) -> Values:
    """Combine along `axis`, which is dropped, over the canonical tree; +0 for no elements.

    Every node is computed by `add`, elementwise, hence rounded in the type of `values`.
    """
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.size == 0:
        return np.zeros(row.shape[1:], row.dtype)
    with np.errstate(all="ignore"):
        while (n := row.shape[0]) > 1:
            pairs = add(row[0 : n - 1 : 2], row[1:n:2])
            row = np.concatenate([pairs, row[n - 1 :]]) if n % 2 else pairs
    return row[0, ...]


def fold(values: Values, axis: int = -1, add: Combine = np.add) -> Values:
    """Combine along `axis`, which is dropped, from first to last: ((x[0] + x[1]) + x[2]) + ...; +0 for no elements."""
    row = np.moveaxis(np.asarray(values), axis, 0)
    if row.size == 0:
        return np.zeros(row.shape[1:], row.dtype)
    total = row[0, ...]
    with np.errstate(all="ignore"):
        for k in range(1, row.shape[0]):
            total = np.asarray(add(total, row[k, ...]))
    return total


def _itself(item: Any) -> Any:
    return item


def _folded(leaves: Sequence[Token]) -> tuple[Token, ...]:
    tokens: list[Token] = [*"(" * (len(leaves) - 1), *leaves[:1]]
    for leaf in leaves[1:]:
        tokens += [leaf, ")"]
    return tuple(tokens)


def _paired(n: int) -> tuple[Token, ...]:
    row: list[list[Token]] = [[i] for i in range(n)]
    while len(row) > 1:
        tail = row[len(row) // 2 * 2 :]
        row = [["(", *a, *b, ")"] for a, b in zip(row[0::2], row[1::2], strict=False)] + tail
    return tuple(row[0])
