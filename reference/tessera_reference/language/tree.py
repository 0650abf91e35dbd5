"""The LALR parser that Lark makes of `grammar.lark`, and the node that each rule becomes.

A method of `TreeBuilder` is named after its rule. It is called when the rule is complete, with the values of all its
symbols: a token for a terminal, what its own method made for a rule, and None for each symbol of an absent `[...]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from lark import Lark, Transformer

from ..ir.diagnostics import Diagnostic, Rejection, Span
from . import syntax as s
from .parse_tables import kept_parser, new_parser

ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
"""What stands behind a backslash, and what it means (AMB-LANG-05)."""

Children = Sequence[Any]


@dataclass(slots=True, eq=False)
class Token:
    """A token: the terminal of the grammar that it is, its text and its place, which ends before `end_column`."""

    type: str
    value: str
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.line, self.column, self.end_line, self.end_column)


class Items(NamedTuple):
    """A list of nodes or words, and its place."""

    span: Span
    items: tuple[Any, ...]


NONE = Items(Span(1, 1, 1, 1), ())
NO_ARGUMENTS: Any = ((), ())


def span(children: Children) -> Span:
    """From the first to the last symbol that is present."""
    first, last = children[0], children[-1]
    if first is None or last is None:
        present = [child for child in children if child is not None]
        first, last = present[0], present[-1]
    start: Any = first if isinstance(first, Token) else first.span
    end: Any = last if isinstance(last, Token) else last.span
    return Span(start.line, start.column, end.end_line, end.end_column)


def _listed(children: Children) -> tuple[Any, ...]:
    """The items of a list without the commas, words as their text."""
    return tuple(item.value if isinstance(item, Token) else item for item in children[::2])


def _string(token: Token | None) -> str | None:
    """The value of a string; an unknown escape is reported by the lexer."""
    return None if token is None else re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], ""), token.value[1:-1])


def _call(children: Children) -> s.Call:
    callee, _, arguments, _, attributes = children
    positional, keywords = arguments or NO_ARGUMENTS
    return s.Call(span(children), callee.items, positional, keywords, (attributes or NONE).items)


def _misplaced(children: Children) -> s.Expr:
    message, remedy = "a positional argument stands after a keyword argument", "positional arguments come first"
    place, requirement = children[0].span, "the grammar of section 2.3"
    raise Rejection([Diagnostic("syntax", "parse", message, place, "", (), requirement, "AMB-LANG-14", remedy)])


def _function(kind: type[s.FunctionDecl], children: Children) -> s.FunctionDecl:
    before, _, name, _, parameters, _, result, between, attributes, after, body = children
    annotations = (before or NONE).items + (between or NONE).items + (after or NONE).items
    attributes = (attributes or NONE).items
    return kind(span(children), name.value, name.span, parameters or (), result, attributes, annotations, body)


class TreeBuilder(Transformer[Any, Any]):
    """What the rules of the grammar make."""

    program = staticmethod(tuple)
    module_decl = staticmethod(lambda c: s.ModuleDecl(span(c), c[1].value, tuple(c[3:-1])))
    type_decl = staticmethod(lambda c: s.TypeDecl(span(c), c[1].value, c[3]))
    const_decl = var_decl = staticmethod(lambda c: s.Let(span(c), c[1].value, c[3], c[5]))
    mesh_decl = staticmethod(lambda c: s.MeshDecl(span(c), c[1].value, c[3]))

    func_decl = staticmethod(lambda c: _function(s.FunctionDecl, c))
    kernel_decl = staticmethod(lambda c: _function(s.KernelDecl, c))
    annotations = staticmethod(lambda c: Items(span(c), tuple(c)))
    annotation = staticmethod(lambda c: s.Annotation(span(c), *(c[3] or NO_ARGUMENTS)))
    param = staticmethod(lambda c: s.Parameter(span(c), c[0].value, c[2], c[4]))
    param_list = iter_decl = slice_list = type_list = axes = extents = staticmethod(_listed)
    keywords = layout_arguments = staticmethod(_listed)
    ret_ann = staticmethod(itemgetter(1))
    attr_block = staticmethod(lambda c: Items(span(c), tuple(c[2:-1:2])))
    attr = staticmethod(lambda c: s.Attribute(span(c), c[0].value, c[2]))
    value_list = staticmethod(lambda c: s.ListValue(span(c), tuple(c[1:-1:2])))

    block = staticmethod(lambda c: s.Block(span(c), tuple(c[1:-1])))
    stmt = staticmethod(itemgetter(0))
    assign = staticmethod(lambda c: s.Assign(span(c), c[0].value, c[2], c[5]))
    if_stmt = staticmethod(lambda c: s.If(span(c), c[2], c[4], c[6]))
    for_stmt = staticmethod(lambda c: s.For(span(c), c[2], c[4], c[6], c[8], c[10]))
    while_stmt = staticmethod(lambda c: s.While(span(c), c[2], c[4]))
    return_stmt = staticmethod(lambda c: s.Return(span(c), tuple(c[1::2])))
    call_stmt = staticmethod(lambda c: s.CallStatement(span(c), c[0]))
    barrier_stmt = staticmethod(lambda c: s.Barrier(span(c), _string(c[2])))
    assert_stmt = staticmethod(lambda c: s.Assert(span(c), c[2], _string(c[4])))

    binary = staticmethod(lambda c: s.Binary(span(c), c[1].value, c[0], c[2]))
    unary = staticmethod(lambda c: s.Unary(span(c), c[0].value, c[1]))
    index = staticmethod(lambda c: s.Index(span(c), c[0], c[2]))
    group = staticmethod(lambda c: s.Group(span(c), c[1]))
    call_expr = staticmethod(_call)
    qual_ident = staticmethod(lambda c: Items(span(c), _listed(c)))
    arg_list = staticmethod(lambda c: (tuple(c[:-1:2]), c[-1] or ()))
    keyword = staticmethod(lambda c: s.Keyword(span(c), c[0].value, c[2]))
    misplaced = staticmethod(_misplaced)
    slice_range = staticmethod(lambda c: s.SliceRange(span(c), c[0], c[2], c[4]))
    tensor_expr = staticmethod(lambda c: s.TensorExpr(span(c), c[0]))
    name = staticmethod(lambda c: s.Name(span(c), c[0].value))
    integer = staticmethod(lambda c: s.IntLiteral(span(c), "".join([each.value for each in c])))
    float = staticmethod(lambda c: s.FloatLiteral(span(c), "".join([each.value for each in c])))
    string = staticmethod(lambda c: s.StringLiteral(span(c), _string(c[0]) or ""))
    boolean = staticmethod(lambda c: s.BoolLiteral(span(c), c[0].value == "true"))

    tensor_type = staticmethod(lambda c: s.TensorType(span(c), tuple(c[2:-4:2]), c[-4].value, c[-2]))
    memref_type = staticmethod(lambda c: s.MemrefType(span(c), tuple(c[2:-7:2]), c[-7].value, c[-2] and c[-2].value))
    scalar_type = staticmethod(lambda c: s.NamedType(span(c), c[0].value))
    fragment_type = staticmethod(
        lambda c: s.FragmentType(span(c), c[2].value, c[4].value, c[6].value, c[8].value, c[10])
    )
    mesh_type = staticmethod(lambda c: s.MeshType(span(c), c[5], c[11]))
    fn_type = staticmethod(lambda c: s.FunctionType(span(c), c[2] or (), c[5]))
    dim = staticmethod(lambda c: s.Dimension(span(c), c[0].value))
    layout = staticmethod(itemgetter(2))
    layout_spec = staticmethod(lambda c: s.LayoutSpec(span(c), c[0].value, c[2] or ()))
    layout_argument = staticmethod(lambda c: (c[0].value, c[2].value))


@cache
def lalr_parser() -> Lark:
    """Lark with the grammar, its tables from the package."""
    return kept_parser() or new_parser(TreeBuilder())


def start_parser() -> Any:
    """Lark's `InteractiveParser`, which has read nothing; it asks of a token what `Token` has."""
    return lalr_parser().parse_interactive("")
