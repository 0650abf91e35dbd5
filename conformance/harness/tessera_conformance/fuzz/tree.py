"""The tree of a generated program, and the decisions that produce it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias, TypeVar

from tessera_conformance.dsl import DTYPES, RESERVED

# Decisions of the generator: each is a number below a bound, and 0 is always the simplest choice, so that they may come
# from a seed, a recorded tape, or hypothesis, which shrinks numbers towards 0.


T = TypeVar("T")


class Chooser:
    """Decisions by `draw`, which takes a bound, recorded on `tape`; and the stretches that made a part in `parts`."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self.tape: list[int] = []
        self.parts: list[tuple[int, int]] = []

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1; 0 is the simplest choice."""
        number = self._draw(bound)
        self.tape.append(number)
        return number

    def part(self, start: int) -> None:
        """Record that the decisions from place `start` on made one part, such as a statement, which can be left out."""
        self.parts.append((start, len(self.tape)))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, once_in: int) -> bool:
        """Return True once in `once_in` times; False is simpler."""
        return self.below(once_in) == once_in - 1

    def between(self, lowest: int, highest: int) -> int:
        """Return a number from lowest to highest, both included."""
        return lowest + self.below(highest - lowest + 1)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in some order; their own is the simplest."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in items]


def seeded(seed: str) -> Chooser:
    """Return decisions that follow from a seed, the same on every machine."""
    following = random.Random(seed).random
    return Chooser(lambda bound: int(following() * bound))


def replayed(tape: Iterable[int]) -> Chooser:
    """Return the decisions on a tape; one that is too large for its bound is reduced, and after the end all are 0."""
    rest = iter(tape)
    return Chooser(lambda bound: min(next(rest, 0), bound - 1))


# Names for what a program declares: plain ones first, then those that resemble keywords, dtypes and literals.


VALUES = ("v", "a", "T", "x", "_", "e", "x2x", "E1", "letter", "in_", "If", "opx", "axes", "shape", "X_x", "_9", "fp")
FUNCTIONS = ("f", "g", "step", "_f", "modules", "func_", "x", "Tensor", "e5")
TYPES = ("Row", "T", "x_t", "typed", "Matrix", "fp_32")
MODULES = ("m", "demo", "_", "x", "module_")
MESHES = ("g", "grid", "mesh_", "x")
AXES = ("dp", "tp", "rows", "x", "axis")
DIMENSIONS = ("N", "M", "K", "n_1", "rows")
"""Names of dimensions hold no lower-case x (AMB-LANG-121)."""

FORBIDDEN = frozenset(
    {*RESERVED, *DTYPES, "true", "false", "assert", "tensor", "memref", "fragment", "fn", "addrspace"}
)
"""Reserved words, and words that are names or not depending on what follows."""


class Names:
    """Unused names; the generator declares a name twice only to shadow it."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._taken: set[str] = set(FORBIDDEN)

    def fresh(self, stems: tuple[str, ...]) -> str:
        """Return a new name: a stem, and a number if the stem is taken."""
        stem = self._chooser.pick(stems)
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name


# Programs as the generator makes them: types, expressions, statements and declarations (language spec, section 2.3).
#
# The tree holds the meaning of a program; `rendering` chooses its spelling (names, parentheses, spaces, places of
# attributes). One tree thus has many texts of one meaning.


Extent: TypeAlias = int | str
"""A dimension: a number, a name, or `?` with a number that distinguishes unknown dimensions (AMB-LANG-122)."""


@dataclass(frozen=True)
class Type:
    """A scalar, if the shape is empty (AMB-LANG-27), or a tensor; comparisons ignore its alias.

    As an expression, a tensor type is a tensor of zeros (AMB-LANG-53).
    """

    dtype: str
    shape: tuple[Extent, ...] = ()
    layout: str = "row_major"
    alias: str = field(default="", compare=False)

    @property
    def is_static(self) -> bool:
        """True if every dimension is a number."""
        return all(isinstance(extent, int) for extent in self.shape)


@dataclass(frozen=True)
class Literal:
    """A number, `true`, `false`, a string, or an attribute's word or list, as spelled."""

    text: str


@dataclass(frozen=True)
class Var:
    """A name in an expression."""

    name: str


@dataclass(frozen=True)
class Unary:
    """A sign before an operand."""

    operator: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    """Two operands and an operator between them."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Attribute:
    """`name = value` in a call; the rendering chooses its place, unless it is `fixed` to the arguments.

    The value is a literal or a name that is written as it is; that of a `fixed` one may be any expression.
    """

    name: str
    value: Expr
    fixed: bool = False


@dataclass(frozen=True)
class Call:
    """A call of an operation, or of a function of the program where `own`."""

    callee: str
    arguments: tuple[Expr, ...]
    attributes: tuple[Attribute, ...] = ()
    own: bool = False


@dataclass(frozen=True)
class Range:
    """`start:stop:step` of a slice; an omitted part is None."""

    start: Expr | None = None
    stop: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True)
class Index:
    """A tensor with indices and slices in brackets."""

    base: Expr
    items: tuple[Expr | Range, ...]


def integer(value: int) -> Expr:
    """Return an integer as a literal, with a sign before it if it is negative."""
    return Unary("-", Literal(str(-value))) if value < 0 else Literal(str(value))


Expr: TypeAlias = Literal | Var | Unary | Binary | Call | Index | Type


@dataclass(frozen=True)
class Let:
    """`let name: type = value;`, in a block or a module, or a parameter, perhaps with a default."""

    keyword: ClassVar[str] = "const"
    name: str
    type: Type
    value: Expr | None = None


@dataclass(frozen=True)
class Assign:
    """`name = value;` or `name[items] = value;`."""

    name: str
    items: tuple[Expr | Range, ...]
    value: Expr


@dataclass(frozen=True)
class If:
    """Two blocks and a condition; a missing `else` is None."""

    condition: Expr
    then: Block
    otherwise: Block | None = None


@dataclass(frozen=True)
class For:
    """A loop over a range; `step` may be left out."""

    name: str
    start: Expr
    stop: Expr
    step: Expr | None
    body: Block


@dataclass(frozen=True)
class While:
    """A loop with a condition."""

    condition: Expr
    body: Block


@dataclass(frozen=True)
class Return:
    """The end of a function, with its values."""

    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Assert:
    """A condition that must hold, and an optional message, as spelled."""

    condition: Expr
    message: str = ""


@dataclass(frozen=True)
class Raw:
    """The text of a statement or declaration that no other node describes."""

    text: str


Stmt: TypeAlias = Let | Assign | If | For | While | Return | Assert | Call | Raw
Block: TypeAlias = list[Stmt]
"""Statements in order; `mutations` changes them in a copy of the program."""


@dataclass(frozen=True)
class Function:
    """A func or a kernel; without an annotation its result type follows from the returned values."""

    name: str
    parameters: tuple[Let, ...]
    result: Type | None
    attributes: tuple[Attribute, ...]
    body: Block
    keyword: str = "func"


@dataclass(frozen=True)
class Alias:
    """`type name = ...;`, of a scalar or tensor type or of one given as text."""

    keyword: ClassVar[str] = "type"
    name: str
    meaning: Type | str


@dataclass(frozen=True)
class Mesh:
    """`mesh name = mesh<axes=[...], shape=[...]>;`."""

    keyword: ClassVar[str] = "mesh"
    name: str
    axes: tuple[str, ...]
    extents: tuple[int, ...]


Decl: TypeAlias = Alias | Let | Mesh | Function | Raw


@dataclass(frozen=True)
class Module:
    """A module: declarations before the functions keep their order, functions may be in any (AMB-LANG-97)."""

    name: str
    declarations: list[Decl]


Program: TypeAlias = tuple[Module, ...]
"""A program."""
