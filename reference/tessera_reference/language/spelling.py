"""The canonical spelling of a syntax tree (spec section 2.3): its tokens, and where a line may be broken between them.

Nothing here recurses: the spelling of a node has its children in it as they are, and `spelled` spells them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

from . import syntax as s
from .tree import ESCAPES


class Mark(Enum):
    """What stands between tokens."""

    SPACE = "a blank"
    BREAK = "a blank, or a new line if the group is broken"
    SOFT = "nothing, or a new line if the group is broken"
    LINE = "a new line"
    GAP = "a new line, between the items of a list that may have blank lines between them"
    APART = "a blank line"
    OPEN = "the beginning of a group, broken only if it does not fit its line"
    CLOSE = "the end of a group"
    INDENT = "lines from here on are indented further, if the group is broken"
    DEDENT = "the end of that"


SPACE, BREAK, SOFT, LINE, GAP, APART = Mark.SPACE, Mark.BREAK, Mark.SOFT, Mark.LINE, Mark.GAP, Mark.APART
OPEN, CLOSE, INDENT, DEDENT = Mark.OPEN, Mark.CLOSE, Mark.INDENT, Mark.DEDENT

Part = str | Mark
"""A token or what stands between tokens."""

Spelling = list[Any]
"""Parts, and nodes that are yet to be spelled."""

LEVELS = ({"*", "/"}, {"+", "-"}, {"@"}, {"==", "!=", "<", ">", "<=", ">="})
"""The operators of each level of precedence (section 14.2)."""


def spelled(tree: s.Node | s.Program) -> Iterator[Part]:
    """The parts of a tree from left to right."""
    pending: Spelling = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, s.Node):
            pending.extend(reversed(SPELLINGS[type(item)](item)))
        else:
            yield item


def quoted(value: str) -> str:
    """A string as a token."""
    letters = {character: letter for letter, character in ESCAPES.items()}
    return '"' + "".join(f"\\{letters[each]}" if each in letters else each for each in value) + '"'


def _listed(items: Iterable[s.Node | str | Spelling]) -> Spelling:
    """Items with commas between them, each on a line of its own if the group is broken."""
    parts: Spelling = []
    for item in items:
        parts += [",", BREAK] if parts else []
        parts += item if isinstance(item, list) else [item]
    return parts


def _enclosed(opening: str, inner: Spelling, closing: str) -> Spelling:
    """A group between brackets, which is indented if it is broken."""
    return [opening, *([OPEN, INDENT, SOFT, *inner, DEDENT, SOFT, CLOSE] if inner else []), closing]


def _body(items: Sequence[s.Node], separators: Sequence[Mark]) -> Spelling:
    """Items in braces, one a line."""
    if not items:
        return ["{", INDENT, DEDENT, "}"]
    parts: Spelling = ["{", INDENT, LINE, items[0]]
    for separator, item in zip(separators, items[1:], strict=True):
        parts += [separator, item]
    return [*parts, DEDENT, LINE, "}"]


def _attributes(attributes: Sequence[s.Attribute]) -> Spelling:
    return [SPACE, "@", *_enclosed("{", _listed(attributes), "}")] if attributes else []


def _arguments(positional: Sequence[s.Node], keywords: Sequence[s.Node]) -> Spelling:
    return _enclosed("(", _listed([*positional, *keywords]), ")")


def _initial(value: s.Node | None) -> Spelling:
    return [] if value is None else [SPACE, "=", SPACE, value]


# Declarations


def _program(node: s.Program) -> Spelling:
    parts: Spelling = []
    for module in node.modules:
        parts += [APART, module] if parts else [module]
    return [*parts, GAP] if parts else parts


def _module(node: s.ModuleDecl) -> Spelling:
    functions = [isinstance(declaration, s.FunctionDecl) for declaration in node.declarations]
    separators = [APART if one or other else GAP for one, other in pairwise(functions)]
    return ["module", SPACE, node.name, SPACE, *_body(node.declarations, separators)]


def _function(node: s.FunctionDecl) -> Spelling:
    before, between, after = _annotation_places(node)
    parts: Spelling = [part for annotation in before for part in (annotation, LINE)]
    parts += ["kernel" if isinstance(node, s.KernelDecl) else "func", SPACE, node.name]
    parts += _enclosed("(", _listed(node.parameters), ")")
    parts += [SPACE, "->", SPACE, node.result] if node.result else []
    parts += [part for annotation in between for part in (SPACE, annotation)]
    parts += _attributes(node.attributes)
    parts += [part for annotation in after for part in (SPACE, annotation)]
    return [*parts, SPACE, node.body]


def _annotation_places(node: s.FunctionDecl) -> tuple[list[s.Annotation], list[s.Annotation], list[s.Annotation]]:
    """The annotations before the function, before its attributes and before its block; those without a place first."""
    places: tuple[list[s.Annotation], list[s.Annotation], list[s.Annotation]] = ([], [], [])
    for annotation in node.annotations:
        behind = annotation.span > node.name_span
        at_block = behind and bool(node.attributes) and annotation.span > node.attributes[0].span
        places[behind + at_block].append(annotation)
    return places


def _annotation(node: s.Annotation) -> Spelling:
    return ["@", "schedule", *_arguments(node.arguments, node.keywords)]


def _parameter(node: s.Parameter) -> Spelling:
    return [node.name, ":", SPACE, node.type, *_initial(node.default)]


def _type_decl(node: s.TypeDecl) -> Spelling:
    return ["type", SPACE, node.name, SPACE, "=", SPACE, node.type, ";"]


def _mesh_decl(node: s.MeshDecl) -> Spelling:
    return ["mesh", SPACE, node.name, SPACE, "=", SPACE, node.type, ";"]


# Statements


def _block(node: s.Block) -> Spelling:
    return _body(node.statements, [GAP] * (len(node.statements) - 1))


def _let(node: s.Let) -> Spelling:
    return ["let", SPACE, node.name, ":", SPACE, node.type, *_initial(node.value), ";"]


def _assign(node: s.Assign) -> Spelling:
    slices = [] if node.slices is None else _enclosed("[", _listed(node.slices), "]")
    return [node.name, *slices, *_initial(node.value), ";"]


def _call_statement(node: s.CallStatement) -> Spelling:
    return [node.call, ";"]


def _if(node: s.If) -> Spelling:
    otherwise = [SPACE, "else", SPACE, node.otherwise] if node.otherwise else []
    return ["if", SPACE, *_enclosed("(", [node.condition], ")"), SPACE, node.then, *otherwise]


def _for(node: s.For) -> Spelling:
    step = [":", node.step] if node.step else []
    inner = [*_listed(node.names), SPACE, "in", SPACE, node.start, ":", node.stop, *step]
    return ["for", SPACE, *_enclosed("(", inner, ")"), SPACE, node.body]


def _while(node: s.While) -> Spelling:
    return ["while", SPACE, *_enclosed("(", [node.condition], ")"), SPACE, node.body]


def _return(node: s.Return) -> Spelling:
    values = [SPACE, OPEN, INDENT, *_listed(node.values), DEDENT, CLOSE] if node.values else []
    return ["return", *values, ";"]


def _barrier(node: s.Barrier) -> Spelling:
    return ["barrier", "(", *([] if node.label is None else [quoted(node.label)]), ")", ";"]


def _assert(node: s.Assert) -> Spelling:
    message: list[str] = [] if node.message is None else [quoted(node.message)]
    return ["assert", *_enclosed("(", _listed([node.condition, *message]), ")"), ";"]


# Expressions


def _binary(node: s.Binary) -> Spelling:
    """A chain of operators of one level is one group, broken before each of them."""
    level = next(level for level in LEVELS if node.operator in level)
    chain: list[s.Binary] = [node]
    while isinstance(chain[-1].left, s.Binary) and chain[-1].left.operator in level:
        chain.append(chain[-1].left)
    parts: Spelling = [OPEN, chain[-1].left, INDENT]
    for link in reversed(chain):
        parts += [BREAK, link.operator, SPACE, link.right]
    return [*parts, DEDENT, CLOSE]


def _unary(node: s.Unary) -> Spelling:
    return [node.operator, node.operand]


def _group(node: s.Group) -> Spelling:
    return _enclosed("(", [node.inner], ")")


def _index(node: s.Index) -> Spelling:
    return [node.operand, *_enclosed("[", _listed(node.slices), "]")]


def _slice_range(node: s.SliceRange) -> Spelling:
    parts: Spelling = [*([node.start] if node.start else []), ":", *([node.stop] if node.stop else [])]
    return [*parts, ":", node.step] if node.step else parts


def _call(node: s.Call) -> Spelling:
    callee = [part for word in node.callee for part in (".", word)][1:]
    return [*callee, *_arguments(node.arguments, node.keywords), *_attributes(node.attributes)]


def _named_value(node: s.Keyword | s.Attribute) -> Spelling:
    return [node.name, "=", node.value]


def _list_value(node: s.ListValue) -> Spelling:
    return _enclosed("[", _listed(node.items), "]")


def _number(node: s.IntLiteral | s.FloatLiteral) -> Spelling:
    return [node.text[0], node.text[1:]] if node.text[0] in "+-" else [node.text]


def _string(node: s.StringLiteral) -> Spelling:
    return [quoted(node.value)]


def _boolean(node: s.BoolLiteral) -> Spelling:
    return ["true" if node.value else "false"]


def _name(node: s.Name) -> Spelling:
    return [node.text]


def _tensor_expr(node: s.TensorExpr) -> Spelling:
    return [node.type]


# Types


def _shape(shape: Sequence[s.Dimension], dtype: str) -> Spelling:
    return [part for dimension in shape for part in (dimension.text, "x")] + [dtype]


def _laid_out(layout: s.LayoutSpec | None) -> Spelling:
    return [";", SPACE, "layout", "=", layout] if layout else []


def _tensor_type(node: s.TensorType) -> Spelling:
    return ["tensor", "<", *_shape(node.shape, node.dtype), *_laid_out(node.layout), ">"]


def _named_type(node: s.NamedType) -> Spelling:
    return [node.name]


def _memref_type(node: s.MemrefType) -> Spelling:
    space = ["[", "addrspace", "=", node.address_space, "]"] if node.address_space else []
    return ["memref", "<", *_shape(node.shape, node.dtype), ">", *space]


def _fragment_type(node: s.FragmentType) -> Spelling:
    sizes = [part for size in (node.m, node.n, node.k) for part in (size, ",")]
    return ["fragment", "<", *sizes, node.dtype, *_laid_out(node.layout), ">"]


def _mesh_type(node: s.MeshType) -> Spelling:
    axes, extents = _enclosed("[", _listed(node.axes), "]"), _enclosed("[", _listed(node.shape), "]")
    return ["mesh", "<", "axes", "=", *axes, ",", SPACE, "shape", "=", *extents, ">"]


def _function_type(node: s.FunctionType) -> Spelling:
    return ["fn", *_enclosed("(", _listed(node.parameters), ")"), SPACE, "->", SPACE, node.result]


def _layout(node: s.LayoutSpec) -> Spelling:
    pairs = [[name, "=", size] for name, size in node.parameters]
    return [node.name, *(_enclosed("(", _listed(pairs), ")") if pairs else [])]


SPELLINGS: dict[type[s.Node], Callable[[Any], Spelling]] = {
    s.Program: _program,
    s.ModuleDecl: _module,
    s.FunctionDecl: _function,
    s.KernelDecl: _function,
    s.Annotation: _annotation,
    s.Parameter: _parameter,
    s.TypeDecl: _type_decl,
    s.MeshDecl: _mesh_decl,
    s.Block: _block,
    s.Let: _let,
    s.Assign: _assign,
    s.CallStatement: _call_statement,
    s.If: _if,
    s.For: _for,
    s.While: _while,
    s.Return: _return,
    s.Barrier: _barrier,
    s.Assert: _assert,
    s.Binary: _binary,
    s.Unary: _unary,
    s.Group: _group,
    s.Index: _index,
    s.SliceRange: _slice_range,
    s.Call: _call,
    s.Keyword: _named_value,
    s.Attribute: _named_value,
    s.ListValue: _list_value,
    s.IntLiteral: _number,
    s.FloatLiteral: _number,
    s.StringLiteral: _string,
    s.BoolLiteral: _boolean,
    s.Name: _name,
    s.TensorExpr: _tensor_expr,
    s.TensorType: _tensor_type,
    s.NamedType: _named_type,
    s.MemrefType: _memref_type,
    s.FragmentType: _fragment_type,
    s.MeshType: _mesh_type,
    s.FunctionType: _function_type,
    s.LayoutSpec: _layout,
}
"""How each node is spelled."""
