"""The LALR parser that Lark makes of `grammar.lark`, and the node that each rule becomes.

A method of `TreeBuilder` is named after its rule. It is called when the rule is complete, with the values of all its
symbols: a token for a terminal, what its own method made for a rule, and None for each symbol of an absent `[...]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

from lark import Lark, Transformer

from ..ir.diagnostics import Diagnostic, Rejection, Span
from . import syntax as s

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


def _rule(make: Callable[[Span, Children], Any]) -> Any:
    """The method of a rule, from the span and the symbols of its text to its value."""
    return staticmethod(lambda children: make(span(children), children))


def _node(kind: type[s.Node], *fields: int) -> Any:
    """The method of a rule whose node has the symbols at these places as its fields, tokens as their text."""

    def make(children: Children) -> s.Node:
        return kind(span(children), *[each.value if isinstance(each := children[i], Token) else each for i in fields])

    return staticmethod(make)


def _listed(children: Children) -> tuple[Any, ...]:
    """The items of a list without the commas, words as their text."""
    return tuple(item.value if isinstance(item, Token) else item for item in children[::2])


def _string(token: Token | None) -> str | None:
    """The value of a string; an unknown escape is reported by the lexer."""
    return None if token is None else re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], ""), token.value[1:-1])


def _call(place: Span, children: Children) -> s.Call:
    callee, _, arguments, _, attributes = children
    positional, keywords = arguments or NO_ARGUMENTS
    return s.Call(place, callee.items, positional, keywords, (attributes or NONE).items)


def _misplaced(children: Children) -> s.Expr:
    message, remedy = "a positional argument stands after a keyword argument", "positional arguments come first"
    place, requirement = children[0].span, "the grammar of section 2.3"
    raise Rejection([Diagnostic("syntax", "parse", message, place, "", (), requirement, "AMB-LANG-14", remedy)])


def _function(kind: type[s.FunctionDecl], place: Span, children: Children) -> s.FunctionDecl:
    before, _, name, _, parameters, _, result, between, attributes, after, body = children
    annotations = (before or NONE).items + (between or NONE).items + (after or NONE).items
    attributes = (attributes or NONE).items
    return kind(place, name.value, name.span, parameters or (), result, attributes, annotations, body)


class TreeBuilder(Transformer[Any, Any]):
    """What the rules of the grammar make."""

    program = staticmethod(tuple)
    module_decl = _rule(lambda span, c: s.ModuleDecl(span, c[1].value, tuple(c[3:-1])))
    type_decl = _node(s.TypeDecl, 1, 3)
    const_decl = var_decl = _node(s.Let, 1, 3, 5)
    mesh_decl = _node(s.MeshDecl, 1, 3)

    func_decl = _rule(lambda span, c: _function(s.FunctionDecl, span, c))
    kernel_decl = _rule(lambda span, c: _function(s.KernelDecl, span, c))
    annotations = _rule(lambda span, c: Items(span, tuple(c)))
    annotation = _rule(lambda span, c: s.Annotation(span, *(c[3] or NO_ARGUMENTS)))
    param = _node(s.Parameter, 0, 2, 4)
    param_list = iter_decl = slice_list = type_list = axes = extents = staticmethod(_listed)
    keywords = layout_arguments = staticmethod(_listed)
    ret_ann = staticmethod(itemgetter(1))
    attr_block = _rule(lambda span, c: Items(span, tuple(c[2:-1:2])))
    attr = _node(s.Attribute, 0, 2)
    value_list = _rule(lambda span, c: s.ListValue(span, tuple(c[1:-1:2])))

    block = _rule(lambda span, c: s.Block(span, tuple(c[1:-1])))
    stmt = staticmethod(itemgetter(0))
    assign = _node(s.Assign, 0, 2, 5)
    if_stmt = _node(s.If, 2, 4, 6)
    for_stmt = _node(s.For, 2, 4, 6, 8, 10)
    while_stmt = _node(s.While, 2, 4)
    return_stmt = _rule(lambda span, c: s.Return(span, tuple(c[1::2])))
    call_stmt = _node(s.CallStatement, 0)
    barrier_stmt = _rule(lambda span, c: s.Barrier(span, _string(c[2])))
    assert_stmt = _rule(lambda span, c: s.Assert(span, c[2], _string(c[4])))

    binary = _node(s.Binary, 1, 0, 2)
    unary = _node(s.Unary, 0, 1)
    index = _node(s.Index, 0, 2)
    group = _node(s.Group, 1)
    call_expr = _rule(_call)
    qual_ident = _rule(lambda span, c: Items(span, _listed(c)))
    arg_list = staticmethod(lambda children: (tuple(children[:-1:2]), children[-1] or ()))
    keyword = _node(s.Keyword, 0, 2)
    misplaced = staticmethod(_misplaced)
    slice_range = _node(s.SliceRange, 0, 2, 4)
    tensor_expr = _node(s.TensorExpr, 0)
    name = _node(s.Name, 0)
    integer = _rule(lambda span, c: s.IntLiteral(span, "".join([each.value for each in c])))
    float = _rule(lambda span, c: s.FloatLiteral(span, "".join([each.value for each in c])))
    string = _rule(lambda span, c: s.StringLiteral(span, _string(c[0]) or ""))
    boolean = _rule(lambda span, c: s.BoolLiteral(span, c[0].value == "true"))

    tensor_type = _rule(lambda span, c: s.TensorType(span, tuple(c[2:-4:2]), c[-4].value, c[-2]))
    memref_type = _rule(lambda span, c: s.MemrefType(span, tuple(c[2:-7:2]), c[-7].value, c[-2] and c[-2].value))
    scalar_type = _node(s.NamedType, 0)
    fragment_type = _node(s.FragmentType, 2, 4, 6, 8, 10)
    mesh_type = _node(s.MeshType, 5, 11)
    fn_type = _rule(lambda span, c: s.FunctionType(span, c[2] or (), c[5]))
    dim = _node(s.Dimension, 0)
    layout = staticmethod(itemgetter(2))
    layout_spec = _rule(lambda span, c: s.LayoutSpec(span, c[0].value, c[2] or ()))
    layout_argument = staticmethod(lambda children: (children[0].value, children[2].value))


@cache
def lalr_parser() -> Lark:
    """Lark with the grammar; building it takes a tenth of a second, once."""
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="program", parser="lalr", lexer="basic", keep_all_tokens=True, transformer=TreeBuilder())


def start_parser() -> Any:
    """Lark's `InteractiveParser`, which has read nothing; it asks of a token what `Token` has."""
    return lalr_parser().parse_interactive("")
