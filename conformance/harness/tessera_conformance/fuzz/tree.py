"""The tree of a generated program, the decisions that produce it, and its text in any spelling of the same meaning."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias, TypeVar

from tessera_conformance.dsl import DTYPES, RESERVED

# Decisions of the generator: each is a number below a bound, and 0 is always the simplest choice, so that they may come
# from a seed, a recorded tape, or hypothesis, which shrinks numbers towards 0.


T = TypeVar("T")


class Chooser:
    """Decisions by `draw`, which takes a bound; they are recorded on `tape`."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self.tape: list[int] = []

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1; 0 is the simplest choice."""
        number = self._draw(bound)
        self.tape.append(number)
        return number

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
# The tree holds the meaning of a program; a style chooses its spelling (names, parentheses, spaces, places of
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

# Program trees rendered as text, one statement a line, in any spelling with the same meaning (section 2.3).
#
# A style may rename the program's own names, put parentheses around any operand, and write an attribute as a keyword
# argument or in the attribute block (AMB-LANG-100), and `op.matmul` as `@` (AMB-LANG-91). None of it changes a meaning.


LEVELS = {"@": 2, "+": 3, "-": 3, "*": 4, "/": 4}
"""Precedence of the binary operators, loosest lowest; comparisons, the loosest, are 1 (section 14.2)."""


@dataclass(frozen=True)
class Style:
    """The spelling of a tree; without a chooser every attribute is in a block and no parenthesis is redundant."""

    names: Mapping[str, str] = field(default_factory=dict)
    chooser: Chooser | None = None
    parentheses: bool = False
    respelled: bool = False
    keywords: bool = False
    """Attributes may be among the arguments, which the printed grammar does not allow."""


def render(program: Program, style: Style | None = None) -> str:
    """Return the text of a program, one statement a line, indented by braces."""
    return "".join(f"{line}\n" for line in _Writer(style or Style()).program(program))


def names_of(program: Program) -> list[str]:
    """Return every name of the program's own, dimensions included, in order of appearance."""
    writer = _Writer(Style())
    list(writer.program(program))
    return list(writer.used)


class _Writer:
    """Writes declarations and statements as lines, and what they consist of as text."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.used: dict[str, None] = {}

    def name(self, name: str) -> str:
        """Return a name of the program's own, in the style's spelling."""
        self.used[name] = None
        return self.style.names.get(name, name)

    def chance(self, once_in: int) -> bool:
        """Return a free decision of the style."""
        return self.style.chooser is not None and self.style.chooser.chance(once_in)

    # Declarations

    def program(self, program: Program) -> Iterator[str]:
        for module in program:
            yield f"module {self.name(module.name)} {{"
            for declaration in module.declarations:
                yield from (f"  {line}" for line in self.declaration(declaration))
            yield "}"

    def declaration(self, declaration: Decl) -> Iterator[str]:
        match declaration:
            case Function(name, parameters, result, attributes, body, keyword):
                heading = f"{keyword} {self.name(name)}({', '.join(map(self.declared, parameters))})"
                heading += "" if result is None else f" -> {self.type(result)}"
                yield from self.block(heading + self.attribute_block(attributes), body)
            case Alias(name, meaning):
                yield f"type {self.name(name)} = {meaning if isinstance(meaning, str) else self.type(meaning)};"
            case Mesh(name, axes, extents):
                shape = ",".join(map(str, extents))
                yield f"mesh {self.name(name)} = mesh<axes=[{','.join(map(self.name, axes))}], shape=[{shape}]>;"
            case _:
                yield from self.statement(declaration)

    def declared(self, let: Let) -> str:
        """Return a parameter, or a declaration without its word."""
        declared = f"{self.name(let.name)}: {self.type(let.type)}"
        return declared if let.value is None else f"{declared} = {self.expr(let.value)}"

    def type(self, type_: Type) -> str:
        if type_.alias:
            return self.name(type_.alias)
        if not type_.shape:
            return type_.dtype
        extents = "x".join(map(self.extent, type_.shape))
        has_layout = type_.layout != "row_major" or self.chance(8)
        return f"tensor<{extents}x{type_.dtype}{f'; layout={type_.layout}' if has_layout else ''}>"

    def extent(self, extent: Extent) -> str:
        if isinstance(extent, int):
            return str(extent)
        return "?" if extent.startswith("?") else self.name(extent)

    # Statements

    def block(self, heading: str, block: Block) -> Iterator[str]:
        yield f"{heading} {{"
        for statement in block:
            yield from (f"  {line}" for line in self.statement(statement))
        yield "}"

    def statement(self, statement: Stmt) -> Iterator[str]:
        match statement:
            case Let():
                yield f"let {self.declared(statement)};"
            case Assign(name, items, value):
                yield f"{self.name(name)}{self.items(items)} = {self.expr(value)};"
            case If(condition, then, otherwise):
                yield from self.block(f"if ({self.expr(condition)})", then)
                if otherwise is not None:
                    yield from self.block("else", otherwise)
            case For(name, start, stop, step, body):
                bounds = (start, stop) if step is None else (start, stop, step)
                yield from self.block(f"for ({self.name(name)} in {':'.join(map(self.expr, bounds))})", body)
            case While(condition, body):
                yield from self.block(f"while ({self.expr(condition)})", body)
            case Return(values):
                yield f"return {', '.join(map(self.expr, values))};" if values else "return;"
            case Assert(condition, message):
                yield f"assert({self.expr(condition)}{', ' if message else ''}{message});"
            case Call():
                yield f"{self.call(statement)};"
            case Raw(text):
                yield text

    # Expressions

    def expr(self, expr: Expr, lowest: int = 1) -> str:
        """Return an expression, in parentheses if it binds looser than `lowest` or if the style adds them.

        Binary operators have levels 1 to 4, a sign 5, an index 6, all others 7. Equal levels associate to the left,
        and comparisons do not chain (AMB-LANG-20).
        """
        level = LEVELS.get(expr.operator, 1) if isinstance(expr, Binary) else 5 if isinstance(expr, Unary) else 6
        may_have_more = self.style.parentheses and not (isinstance(expr, Literal) and lowest > 4)
        if level < lowest or (may_have_more and self.chance(3)):
            return f"({self.expr(expr)})"
        match expr:
            case Literal(text):
                return text
            case Var(name):
                return self.name(name)
            case Unary(operator, operand):
                return f"{operator}{self.expr(operand, 5)}"
            case Binary(operator, left, right):
                if operator == "@" and self.style.respelled and self.chance(2):
                    return self.call(Call("op.matmul", (left, right)))
                return f"{self.expr(left, max(level, 2))} {operator} {self.expr(right, level + 1)}"
            case Call():
                return self.call(expr)
            case Index(base, items):
                return f"{self.expr(base, 6)}{self.items(items)}"
            case Type():
                return self.type(replace(expr, alias=""))

    def call(self, call: Call) -> str:
        """Return a call; its attributes are among the arguments or in the block."""
        callee = self.name(call.callee) if call.own else call.callee
        in_block = [
            attribute
            for attribute in call.attributes
            if not attribute.fixed and not (self.style.keywords and self.chance(2))
        ]
        arguments = [self.expr(argument) for argument in call.arguments]
        arguments += [self.argument(attribute) for attribute in call.attributes if attribute not in in_block]
        return f"{callee}({', '.join(arguments)}){self.attribute_block(in_block)}"

    def argument(self, attribute: Attribute) -> str:
        """Return an argument; named arguments of a function are its last, so that a name may be omitted."""
        bare = attribute.fixed and not self.style.keywords
        return self.expr(attribute.value) if bare else self.attribute(attribute)

    def attribute_block(self, attributes: Sequence[Attribute]) -> str:
        return f" @{{{', '.join(map(self.attribute, attributes))}}}" if attributes else ""

    def attribute(self, attribute: Attribute) -> str:
        value = attribute.value
        if attribute.fixed:
            return f"{self.name(attribute.name)}={self.expr(value)}"
        assert isinstance(value, Var | Literal)
        return f"{attribute.name}={self.name(value.name) if isinstance(value, Var) else value.text}"

    def items(self, items: Sequence[Expr | Range]) -> str:
        return f"[{', '.join(map(self.item, items))}]" if items else ""

    def item(self, item: Expr | Range) -> str:
        if not isinstance(item, Range):
            return self.expr(item)
        start, stop, step = ("" if part is None else self.expr(part) for part in (item.start, item.stop, item.step))
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


# The tokens of a text, and the text with any space, newline and comment between them that section 14.1 allows.


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|[\w?]+|->|[=!<>]=|\S', re.DOTALL)
"""A token; the extents and the dtype of a tensor type are one."""

GAPS = (
    " ",
    "",
    "  ",
    "\n",
    "\t",
    "\r\n",
    " /* c */ ",
    " // c\n",
    " /**/",
    " /* \" ' { ; // */ ",
    ' // /* " } \\ é\n',
    "\n/* two\n * lines **/\n",
)
"""Texts allowed between two tokens; a comment never touches the token before it."""
ENDINGS = ("", "\n", " // the end of the text ends a comment", "/* */")


def odd(text: str, chooser: Chooser) -> str:
    """Return the tokens of a text with random gaps that keep them apart, mostly single blanks."""
    parts: list[str] = []
    previous = ""
    for token in TOKEN.findall(text):
        gap = chooser.pick(GAPS) if chooser.below(4) == 3 else " "
        joined = previous and TOKEN.findall(previous + token) != [previous, token]
        parts += (" " if joined and not gap else gap, token)
        previous = token
    return "".join(parts) + chooser.pick(ENDINGS)
