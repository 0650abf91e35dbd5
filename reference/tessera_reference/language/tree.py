"""From the rules of the grammar to the syntax tree: what each rule makes, no decisions.

A maker is given the span of its construct and the values of what the grammar keeps of it, in their order; what is
optional and absent is None, a token is its text. Makers are called from the leaves up, so that nothing here recurses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..ir.diagnostics import Span
from . import syntax as s
from .lexer import ESCAPES

Maker = Callable[..., Any]
Arguments = tuple[tuple[s.Expr, ...], tuple[s.Keyword, ...]]


class MisplacedArgument(Exception):
    """A positional argument stands after a keyword argument (AMB-LANG-14)."""


def unescape(literal: str) -> str:
    """The value of a string token; the lexer let only known escapes pass."""
    return re.sub(r"\\(.)", lambda escape: ESCAPES[escape[1]], literal[1:-1])


def _module_decl(span: Span, name: str, *declarations: s.Declaration) -> s.ModuleDecl:
    return s.ModuleDecl(span, name, declarations)


def _function(kind: type[s.FunctionDecl]) -> Maker:
    def make(
        span: Span,
        before: tuple[s.Annotation, ...] | None,
        name: tuple[str, Span],
        parameters: tuple[s.Parameter, ...] | None,
        result: s.TypeExpr | None,
        between: tuple[s.Annotation, ...] | None,
        attributes: tuple[s.Attribute, ...] | None,
        after: tuple[s.Annotation, ...] | None,
        body: s.Block,
    ) -> s.FunctionDecl:
        annotations = (*(before or ()), *(between or ()), *(after or ()))
        return kind(span, *name, parameters or (), result, attributes or (), annotations, body)

    return make


def _several(_: Span, *items: Any) -> tuple[Any, ...]:
    return items


def _func_name(span: Span, name: str) -> tuple[str, Span]:
    return name, span


def _annotation(span: Span, arguments: Arguments | None) -> s.Annotation:
    return s.Annotation(span, *(arguments or ((), ())))


def _signed_integer(span: Span, sign: str | None, digits: str) -> s.IntLiteral:
    return s.IntLiteral(span, (sign or "") + digits)


def _signed_float(span: Span, sign: str | None, digits: str) -> s.FloatLiteral:
    return s.FloatLiteral(span, (sign or "") + digits)


def _value_list(span: Span, *items: s.AttributeValue) -> s.ListValue:
    return s.ListValue(span, items)


def _block(span: Span, *statements: s.Statement) -> s.Block:
    return s.Block(span, statements)


def _return_stmt(span: Span, values: tuple[s.Expr, ...] | None) -> s.Return:
    return s.Return(span, values or ())


def _barrier_stmt(span: Span, label: s.StringLiteral | None) -> s.Barrier:
    return s.Barrier(span, label.value if label else None)


def _assert_stmt(span: Span, condition: s.Expr, message: s.StringLiteral | None) -> s.Assert:
    return s.Assert(span, condition, message.value if message else None)


def _binary(span: Span, left: s.Expr, operator: str, right: s.Expr) -> s.Binary:
    return s.Binary(span, operator, left, right)


def _string(span: Span, literal: str) -> s.StringLiteral:
    return s.StringLiteral(span, unescape(literal))


def _boolean(span: Span, word: str) -> s.BoolLiteral:
    return s.BoolLiteral(span, word == "true")


def _call_expr(
    span: Span, callee: tuple[str, ...], arguments: Arguments | None, attributes: tuple[s.Attribute, ...] | None
) -> s.Call:
    return s.Call(span, callee, *(arguments or ((), ())), attributes or ())


def _qual_ident(_: Span, *words: str) -> tuple[str, ...]:
    return words[::2]


def _arg_list(_: Span, *arguments: Any) -> Arguments:
    *positional, keywords = arguments
    return tuple(positional), keywords or ()


def _tensor_type(span: Span, *parts: Any) -> s.TensorType:
    *shape, dtype, layout = parts
    return s.TensorType(span, tuple(shape), dtype, layout)


def _memref_type(span: Span, *parts: Any) -> s.MemrefType:
    *shape, dtype, space = parts
    return s.MemrefType(span, tuple(shape), dtype, space)


def _fn_type(span: Span, parameters: tuple[s.TypeExpr, ...] | None, result: s.TypeExpr) -> s.FunctionType:
    return s.FunctionType(span, parameters or (), result)


def _misplaced(span: Span, argument: s.Expr) -> s.Expr:
    raise MisplacedArgument


def _program(span: Span, *modules: s.ModuleDecl) -> tuple[Span, tuple[s.ModuleDecl, ...]]:
    return span, modules


def _layout_spec(span: Span, name: str, parameters: tuple[tuple[str, str], ...] | None) -> s.LayoutSpec:
    return s.LayoutSpec(span, name, parameters or ())


MAKERS: Mapping[str, Maker] = {
    "program": _program,
    "module_decl": _module_decl,
    "type_decl": s.TypeDecl,
    "const_decl": s.Let,
    "mesh_decl": s.MeshDecl,
    "func_decl": _function(s.FunctionDecl),
    "kernel_decl": _function(s.KernelDecl),
    "func_name": _func_name,
    "annotations": _several,
    "annotation": _annotation,
    "param_list": _several,
    "param": s.Parameter,
    "attr_block": _several,
    "attr": s.Attribute,
    "signed_integer": _signed_integer,
    "signed_float": _signed_float,
    "value_list": _value_list,
    "block": _block,
    "var_decl": s.Let,
    "assign": s.Assign,
    "if_stmt": s.If,
    "for_stmt": s.For,
    "while_stmt": s.While,
    "iter_decl": _several,
    "return_stmt": _return_stmt,
    "call_stmt": s.CallStatement,
    "barrier_stmt": _barrier_stmt,
    "assert_stmt": _assert_stmt,
    "expr_list": _several,
    "binary": _binary,
    "unary": s.Unary,
    "index": s.Index,
    "call_expr": _call_expr,
    "qual_ident": _qual_ident,
    "arg_list": _arg_list,
    "keywords": _several,
    "keyword": s.Keyword,
    "misplaced": _misplaced,
    "slice_list": _several,
    "slice_range": s.SliceRange,
    "tensor_expr": s.TensorExpr,
    "group": s.Group,
    "name": s.Name,
    "integer": s.IntLiteral,
    "float": s.FloatLiteral,
    "string": _string,
    "boolean": _boolean,
    "tensor_type": _tensor_type,
    "scalar_type": s.NamedType,
    "memref_type": _memref_type,
    "fragment_type": s.FragmentType,
    "mesh_type": s.MeshType,
    "fn_type": _fn_type,
    "type_list": _several,
    "axes": _several,
    "extents": _several,
    "dim": s.Dimension,
    "layout_spec": _layout_spec,
    "layout_arguments": _several,
    "layout_argument": _several,
}
"""What the rules of the grammar make."""
