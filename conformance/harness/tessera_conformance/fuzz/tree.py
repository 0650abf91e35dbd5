"""Programs as the generator makes them: types, expressions, statements and declarations (language spec, section 2.3).

The tree says what a program means; how it is spelled (names, parentheses, spaces, where an attribute is written) is for
`rendering` to choose, so that one tree has many texts of one meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Extent: TypeAlias = int | str
"""A dimension: a number, a name, or `?` with a number that tells unknown dimensions apart (AMB-LANG-122)."""


@dataclass(frozen=True)
class Type:
    """A scalar, where the shape is empty (AMB-LANG-27), or a tensor; its alias does not count in comparisons."""

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
    """A number, `true`, `false` or a string, as spelled."""

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
class Word:
    """An attribute's value that is a word, a number or a list of these, as spelled."""

    text: str


@dataclass(frozen=True)
class Attribute:
    """`name = value` in a call; where it is written is the rendering's choice, unless `fixed` to the arguments."""

    name: str
    value: Word | Var | Expr
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
    """`start:stop:step` of a slice; what is left out is None."""

    start: Expr | None = None
    stop: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True)
class Index:
    """A tensor with indices and slices in brackets."""

    base: Expr
    items: tuple[Expr | Range, ...]


@dataclass(frozen=True)
class TensorValue:
    """A tensor expression: zeros (AMB-LANG-53)."""

    type: Type


Expr: TypeAlias = Literal | Var | Unary | Binary | Call | Index | TensorValue


@dataclass(frozen=True)
class Let:
    """`let name: type = value;`, in a block or a module."""

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
    """Two blocks and a condition; an absent `else` is None."""

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
    """A condition that must hold, and perhaps what to say where it does not, as spelled."""

    condition: Expr
    message: str = ""


@dataclass(frozen=True)
class Barrier:
    """A barrier, perhaps with a label, as spelled."""

    label: str = ""


@dataclass(frozen=True)
class Raw:
    """Tokens as they are: a statement or declaration that no other node describes."""

    tokens: tuple[str, ...]


Stmt: TypeAlias = Let | Assign | If | For | While | Return | Assert | Barrier | Call | Raw
Block: TypeAlias = tuple[Stmt, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter, perhaps with a default."""

    name: str
    type: Type
    default: Expr | None = None


@dataclass(frozen=True)
class Function:
    """A func, or a kernel; without a result annotation the result follows from what is returned."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | None
    attributes: tuple[Attribute, ...]
    body: Block
    keyword: str = "func"


@dataclass(frozen=True)
class Alias:
    """`type name = ...;`, of a scalar or tensor type or of one given as tokens."""

    name: str
    meaning: Type | Raw


@dataclass(frozen=True)
class Mesh:
    """`mesh name = mesh<axes=[...], shape=[...]>;`."""

    name: str
    axes: tuple[str, ...]
    extents: tuple[int, ...]


Decl: TypeAlias = Alias | Let | Mesh | Function | Raw


@dataclass(frozen=True)
class Module:
    """A module: what stands before the functions keeps its order, functions may stand in any (AMB-LANG-97)."""

    name: str
    declarations: tuple[Decl, ...]


@dataclass(frozen=True)
class Program:
    """A program."""

    modules: tuple[Module, ...]


class Name(str):
    """A name of the program's own, which a variant may rename."""

    __slots__ = ()


LEVELS = {"@": 2, "+": 3, "-": 3, "*": 4, "/": 4}
"""Precedence of the binary operators, loosest lowest; comparisons, the loosest, are 1 (section 14.2)."""


def level_of(expr: Expr) -> int:
    """Return the precedence of an expression: a binary one 1 to 4, a sign 5, an index 6, all others 7."""
    if isinstance(expr, Binary):
        return LEVELS.get(expr.operator, 1)
    return 5 if isinstance(expr, Unary) else 6 if isinstance(expr, Index) else 7
