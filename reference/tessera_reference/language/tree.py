# ruff: noqa: D102 - the methods are named after the productions, which say what they are
"""From Lark's tree to the syntax tree: one method per production, no decisions.

Positions come from Lark's metadata, which counts the punctuation a production swallows. What a production cannot say,
that keyword arguments follow the positional ones, is checked here (AMB-LANG-14).
"""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from ..ir.diagnostics import Span
from . import syntax as s

ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


class MisplacedArgument(Exception):
    """A positional argument after a keyword argument."""

    def __init__(self, span: Span) -> None:
        self.span = span
        super().__init__(span)


def span_of(meta: Any) -> Span:
    """The span Lark recorded; an empty production has none and gets the start of the text."""
    if getattr(meta, "empty", True):
        return Span(1, 1, 1, 1)
    return Span(meta.line, meta.column, meta.end_line, meta.end_column)


def token_span(token: Token) -> Span:
    """The span of one token."""
    return Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)


def unescape(literal: str) -> str:
    """The value of a string token; the lexer let only known escapes pass."""
    parts = literal[1:-1].split("\\\\")
    for escape, character in ESCAPES.items():
        if escape != "\\":
            parts = [part.replace("\\" + escape, character) for part in parts]
    return "\\".join(parts)


@v_args(meta=True)
class TreeBuilder(Transformer[Token, s.Program]):
    """Builds frozen syntax nodes bottom up."""

    def __init__(self, filename: str) -> None:
        super().__init__(visit_tokens=False)
        self.filename = filename

    # Declarations

    def program(self, meta: Any, modules: list[s.ModuleDecl]) -> s.Program:
        return s.Program(span_of(meta), tuple(modules), self.filename)

    def module_decl(self, meta: Any, children: list[Any]) -> s.ModuleDecl:
        return s.ModuleDecl(span_of(meta), str(children[0]), tuple(children[1:]))

    def type_decl(self, meta: Any, children: list[Any]) -> s.TypeDecl:
        return s.TypeDecl(span_of(meta), str(children[0]), children[1])

    def const_decl(self, meta: Any, children: list[Any]) -> s.Let:
        return s.Let(span_of(meta), str(children[0]), children[1], children[2])

    def mesh_decl(self, meta: Any, children: list[Any]) -> s.MeshDecl:
        return s.MeshDecl(span_of(meta), str(children[0]), children[1])

    def func_decl(self, meta: Any, children: list[Any]) -> s.FunctionDecl:
        return s.FunctionDecl(span_of(meta), *self._header(children))

    def kernel_decl(self, meta: Any, children: list[Any]) -> s.KernelDecl:
        return s.KernelDecl(span_of(meta), *self._header(children))

    @staticmethod
    def _header(children: list[Any]) -> tuple[Any, ...]:
        at = next(i for i, child in enumerate(children) if isinstance(child, Token))
        name, parameters, result, after, attributes, last, *body = children[at:]
        annotations = (*children[:at], *(after or ()), *(last or ()))
        return str(name), token_span(name), parameters or (), result, attributes or (), annotations, body[0]

    def annotations(self, meta: Any, children: list[Any]) -> tuple[s.Annotation, ...]:
        return tuple(children)

    def annotation(self, meta: Any, children: list[Any]) -> s.Annotation:
        return s.Annotation(span_of(meta), *(children[0] or ((), ())))

    def param_list(self, meta: Any, children: list[s.Parameter]) -> tuple[s.Parameter, ...]:
        return tuple(children)

    def param(self, meta: Any, children: list[Any]) -> s.Parameter:
        return s.Parameter(span_of(meta), str(children[0]), children[1], children[2])

    # Attributes

    def attr_block(self, meta: Any, children: list[Any]) -> tuple[s.Attribute, ...]:
        return tuple(child for child in children if child is not None)

    def attr(self, meta: Any, children: list[Any]) -> s.Attribute:
        return s.Attribute(span_of(meta), children[0], children[1])

    def signed_int(self, meta: Any, children: list[Any]) -> s.IntLiteral:
        return s.IntLiteral(span_of(meta), "".join(child for child in children if child is not None))

    def signed_float(self, meta: Any, children: list[Any]) -> s.FloatLiteral:
        return s.FloatLiteral(span_of(meta), "".join(child for child in children if child is not None))

    def value_list(self, meta: Any, children: list[Any]) -> s.ListValue:
        return s.ListValue(span_of(meta), tuple(child for child in children if child is not None))

    # Statements

    def block(self, meta: Any, children: list[s.Statement]) -> s.Block:
        return s.Block(span_of(meta), tuple(children))

    def var_decl(self, meta: Any, children: list[Any]) -> s.Let:
        return s.Let(span_of(meta), str(children[0]), children[1], children[2])

    def assign(self, meta: Any, children: list[Any]) -> s.Assign:
        return s.Assign(span_of(meta), str(children[0]), children[1], children[2])

    def call_stmt(self, meta: Any, children: list[s.Call]) -> s.CallStatement:
        return s.CallStatement(span_of(meta), children[0])

    def if_stmt(self, meta: Any, children: list[Any]) -> s.If:
        return s.If(span_of(meta), *children)

    def for_stmt(self, meta: Any, children: list[Any]) -> s.For:
        first, second, start, stop, step, body = children
        names = (str(first),) if second is None else (str(first), str(second))
        return s.For(span_of(meta), names, start, stop, step, body)

    def while_stmt(self, meta: Any, children: list[Any]) -> s.While:
        return s.While(span_of(meta), *children)

    def return_stmt(self, meta: Any, children: list[Any]) -> s.Return:
        return s.Return(span_of(meta), tuple(child for child in children if child is not None))

    def barrier_stmt(self, meta: Any, children: list[Any]) -> s.Barrier:
        return s.Barrier(span_of(meta), children[0].value if children[0] else None)

    def assert_stmt(self, meta: Any, children: list[Any]) -> s.Assert:
        return s.Assert(span_of(meta), children[0], children[1].value if children[1] else None)

    # Expressions

    def binary(self, meta: Any, children: list[Any]) -> s.Binary:
        left, operator, right = children
        return s.Binary(span_of(meta), str(operator), left, right)

    def compare(self, meta: Any, children: list[Token]) -> str:
        return str(children[0])

    def unary(self, meta: Any, children: list[Any]) -> s.Unary:
        return s.Unary(span_of(meta), str(children[0]), children[1])

    def index(self, meta: Any, children: list[Any]) -> s.Index:
        return s.Index(span_of(meta), children[0], children[1])

    def int_literal(self, meta: Any, children: list[Token]) -> s.IntLiteral:
        return s.IntLiteral(span_of(meta), str(children[0]))

    def float_literal(self, meta: Any, children: list[Token]) -> s.FloatLiteral:
        return s.FloatLiteral(span_of(meta), str(children[0]))

    def string_literal(self, meta: Any, children: list[Token]) -> s.StringLiteral:
        return s.StringLiteral(span_of(meta), unescape(children[0]))

    def true_literal(self, meta: Any, children: list[Any]) -> s.BoolLiteral:
        return s.BoolLiteral(span_of(meta), True)

    def false_literal(self, meta: Any, children: list[Any]) -> s.BoolLiteral:
        return s.BoolLiteral(span_of(meta), False)

    def name(self, meta: Any, children: list[Token]) -> s.Name:
        return s.Name(span_of(meta), str(children[0]))

    def group(self, meta: Any, children: list[Any]) -> s.Group:
        return s.Group(span_of(meta), children[0])

    def tensor_expr(self, meta: Any, children: list[s.TensorType]) -> s.TensorExpr:
        return s.TensorExpr(span_of(meta), children[0])

    def call_expr(self, meta: Any, children: list[Any]) -> s.Call:
        callee, arguments, attributes = children
        positional, keywords = arguments or ((), ())
        return s.Call(span_of(meta), callee, positional, keywords, attributes or ())

    def qual_ident(self, meta: Any, children: list[Token | str]) -> tuple[str, ...]:
        return tuple(str(child) for child in children if child != ".")

    def arg_list(self, meta: Any, children: list[Any]) -> tuple[tuple[s.Expr, ...], tuple[s.Keyword, ...]]:
        keywords = tuple(child for child in children if isinstance(child, s.Keyword))
        first_keyword = len(children) - len(keywords)
        for child in children[first_keyword:]:
            if not isinstance(child, s.Keyword):
                raise MisplacedArgument(child.span)
        return tuple(children[:first_keyword]), keywords

    def keyword(self, meta: Any, children: list[Any]) -> s.Keyword:
        return s.Keyword(span_of(meta), children[0], children[1])

    def slice_list(self, meta: Any, children: list[Any]) -> tuple[Any, ...]:
        return tuple(children)

    def slice_range(self, meta: Any, children: list[Any]) -> s.SliceRange:
        return s.SliceRange(span_of(meta), *children)

    def word(self, meta: Any, children: list[Token]) -> str:
        return str(children[0])

    # Types

    def tensor_type(self, meta: Any, children: list[Any]) -> s.TensorType:
        *shape, dtype, layout = children
        return s.TensorType(span_of(meta), tuple(shape), str(dtype), layout)

    def scalar_type(self, meta: Any, children: list[Token]) -> s.NamedType:
        return s.NamedType(span_of(meta), str(children[0]))

    def memref_type(self, meta: Any, children: list[Any]) -> s.MemrefType:
        *shape, dtype, space = children
        return s.MemrefType(span_of(meta), tuple(shape), str(dtype), space)

    def address_space(self, meta: Any, children: list[Token]) -> str:
        return str(children[0])

    def fragment_type(self, meta: Any, children: list[Any]) -> s.FragmentType:
        m, n, k, dtype, layout = children
        return s.FragmentType(span_of(meta), str(m), str(n), str(k), str(dtype), layout)

    def mesh_type(self, meta: Any, children: list[Any]) -> s.MeshType:
        return s.MeshType(span_of(meta), *children)

    def axis_names(self, meta: Any, children: list[Token]) -> tuple[str, ...]:
        return tuple(str(child) for child in children)

    def axis_extents(self, meta: Any, children: list[Token]) -> tuple[str, ...]:
        return tuple(str(child) for child in children)

    def fn_type(self, meta: Any, children: list[Any]) -> s.FunctionType:
        return s.FunctionType(span_of(meta), children[0] or (), children[1])

    def parameter_types(self, meta: Any, children: list[Any]) -> tuple[s.TypeExpr, ...]:
        return tuple(children)

    def dim(self, meta: Any, children: list[Token]) -> s.Dimension:
        return s.Dimension(span_of(meta), str(children[0]))

    def layout(self, meta: Any, children: list[Any]) -> s.LayoutSpec:
        name, *parameters = children
        return s.LayoutSpec(span_of(meta), str(name), tuple(pair for pair in parameters if pair is not None))

    def layout_argument(self, meta: Any, children: list[Any]) -> tuple[str, str]:
        return children[0], str(children[1])
