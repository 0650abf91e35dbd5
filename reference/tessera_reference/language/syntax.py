"""The syntax tree of the DSL, one class per production of spec section 2.3, each with its span; its printed form."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import dataclass_transform

from ..ir.diagnostics import Span

# Literals keep their spelling: the type of their place determines their number (AMB-LANG-54). `Group` stays in the tree
# because a lint rule and the diagnostics need parentheses.


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Node:
    """Anything with a place in the source; each subclass is a frozen dataclass."""

    span: Span

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


# Types -------------------------------------------------------------------------------------------------------------


class LayoutSpec(Node):
    """`row_major` or `blocked(bm=128, bn=128)` (AMB-LANG-24)."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()


class Dimension(Node):
    """Digits, `?` or a name (AMB-LANG-08)."""

    text: str


class TensorType(Node):
    """`tensor<128x64xbf16; layout=row_major>`."""

    shape: tuple[Dimension, ...]
    dtype: str
    layout: LayoutSpec | None


class NamedType(Node):
    """A dtype, or a type alias (AMB-LANG-50)."""

    name: str


class MemrefType(Node):
    """`memref<128x64xbf16>[addrspace=shared]`."""

    shape: tuple[Dimension, ...]
    dtype: str
    address_space: str | None


class FragmentType(Node):
    """`fragment<16,16,16,bf16; layout=row_major>`."""

    m: str
    n: str
    k: str
    dtype: str
    layout: LayoutSpec | None


class MeshType(Node):
    """`mesh<axes=[dp, tp], shape=[4, 2]>`."""

    axes: tuple[str, ...]
    shape: tuple[str, ...]


class FunctionType(Node):
    """`fn(tensor<4xfp32>) -> fp32`."""

    parameters: tuple[TypeExpr, ...]
    result: TypeExpr


TypeExpr = TensorType | NamedType | MemrefType | FragmentType | MeshType | FunctionType


# Expressions and attribute values ----------------------------------------------------------------------------------


class IntLiteral(Node):
    """Decimal digits, in an attribute value with their sign."""

    text: str


class FloatLiteral(Node):
    """A decimal number with a point or an exponent, in an attribute value with its sign."""

    text: str


class StringLiteral(Node):
    """A string, its escapes resolved."""

    value: str


class BoolLiteral(Node):
    """`true` or `false`."""

    value: bool


class Name(Node):
    """A variable; in attributes a bare word."""

    text: str


class ListValue(Node):
    """`[1, 0]` in an attribute or a keyword argument."""

    items: tuple[AttributeValue, ...]


class Group(Node):
    """A parenthesized expression."""

    inner: Expr


class Unary(Node):
    """`-a` or `+a`."""

    operator: str
    operand: Expr


class Binary(Node):
    """`a + b`, with one of the eleven operators."""

    operator: str
    left: Expr
    right: Expr


class SliceRange(Node):
    """`[start]:[stop][:step]` (AMB-LANG-23)."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None


class Index(Node):
    """`X[i, a:b]`."""

    operand: Expr
    slices: tuple[Expr | SliceRange, ...]


class TensorExpr(Node):
    """A tensor type in expression position."""

    type: TensorType


class Attribute(Node):
    """`name=value`, in an attribute block."""

    name: str
    value: AttributeValue


class Keyword(Node):
    """`name=value`, among the arguments (AMB-LANG-14)."""

    name: str
    value: Expr | ListValue


class Call(Node):
    """`op.softmax(X, axis=1) @{...}`; the callee is its dotted name."""

    callee: tuple[str, ...]
    arguments: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    attributes: tuple[Attribute, ...]

    @property
    def named(self) -> tuple[Keyword | Attribute, ...]:
        """All entries given by name, in either place."""
        return (*self.keywords, *self.attributes)


Literal = IntLiteral | FloatLiteral | StringLiteral | BoolLiteral
Expr = Literal | Name | Group | Unary | Binary | Index | TensorExpr | Call
AttributeValue = Literal | Name | ListValue


# Statements --------------------------------------------------------------------------------------------------------


class Block(Node):
    """`{ ... }`."""

    statements: tuple[Statement, ...]


class Let(Node):
    """`let name: type = value;`, as a statement or a declaration."""

    name: str
    type: TypeExpr
    value: Expr | None


class Assign(Node):
    """`name[slices] = value;`."""

    name: str
    slices: tuple[Expr | SliceRange, ...] | None
    value: Expr


class CallStatement(Node):
    """A call for its effect."""

    call: Call


class If(Node):
    """`if (condition) {...} else {...}`."""

    condition: Expr
    then: Block
    otherwise: Block | None


class For(Node):
    """`for (i in start:stop:step) {...}`; two names parse and mean nothing (AMB-LANG-28)."""

    names: tuple[str, ...]
    start: Expr
    stop: Expr
    step: Expr | None
    body: Block


class While(Node):
    """`while (condition) {...}`."""

    condition: Expr
    body: Block


class Return(Node):
    """`return a, b;`."""

    values: tuple[Expr, ...]


class Barrier(Node):
    """`barrier("label");`."""

    label: str | None


class Assert(Node):
    """`assert(condition, "message");`."""

    condition: Expr
    message: str | None


Statement = Let | Assign | CallStatement | If | For | While | Return | Barrier | Assert


# Declarations ------------------------------------------------------------------------------------------------------


class Parameter(Node):
    """`name: type = default`."""

    name: str
    type: TypeExpr
    default: Expr | None


class Annotation(Node):
    """`@schedule(...)` (AMB-LANG-16)."""

    arguments: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]


class FunctionDecl(Node):
    """A `func`; a `kernel` is its subclass. `name_span` is the span of its name."""

    name: str
    name_span: Span
    parameters: tuple[Parameter, ...]
    result: TypeExpr | None
    attributes: tuple[Attribute, ...]
    annotations: tuple[Annotation, ...]
    body: Block


class KernelDecl(FunctionDecl):
    """A `kernel`, an entry point for a device."""


class TypeDecl(Node):
    """`type name = type;`."""

    name: str
    type: TypeExpr


class MeshDecl(Node):
    """`mesh name = mesh<...>;`."""

    name: str
    type: MeshType


Declaration = FunctionDecl | KernelDecl | TypeDecl | Let | MeshDecl


class ModuleDecl(Node):
    """`module name { ... }`."""

    name: str
    declarations: tuple[Declaration, ...]


class Program(Node):
    """A possibly empty list of modules (LANG-02.3-01), and the file they came from."""

    modules: tuple[ModuleDecl, ...]
    filename: str


def children(node: Node) -> list[Node]:
    """Return the nodes directly in a node, in order."""
    values = [getattr(node, field.name) for field in fields(node)]
    items = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [item for item in items if isinstance(item, Node)]


# The syntax tree as text for people: one node a line, with its span (`tessera-reference print --level=ast`).


def print_tree(program: Program) -> str:
    """Return each node with its place, its own fields, and its children below it, under the name of their field."""
    lines = []
    pending: list[tuple[int, str, Node]] = [(0, "", program)]
    while pending:
        depth, label, node = pending.pop()
        own, children = [], []
        for field in fields(node):
            value = getattr(node, field.name)
            items = value if isinstance(value, tuple) else (value,)
            if any(isinstance(item, Node) for item in items):
                children += [(depth + 1, f"{field.name}: ", item) for item in items]
            elif field.name != "span" and value not in (None, ()):
                own.append(f" {field.name}={place(value) if isinstance(value, Span) else repr(value)}")
        lines.append(f"{'  ' * depth}{label}{type(node).__name__} {place(node.span)}{''.join(own)}\n")
        pending.extend(reversed(children))
    return "".join(lines)


def place(span: Span) -> str:
    """Return a span as line:column-line:column."""
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
