"""The formatter: a program in its canonical spelling, with its comments (`tessera-reference fmt`; spec section 2.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Any, TypeAlias

from . import syntax as s
from .parser import ESCAPES, Lexer, Token, parse
from .syntax import Node, Program

# The canonical spelling of a syntax tree (spec section 2.3): its tokens, and the places where a line may break.
#
# Nothing here recurses: the spelling of a node contains its children as nodes, and `spelled` spells them in turn.


class Mark(Enum):
    """A mark between tokens, for grouping, spaces and breaks."""

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
"""A token or the text between tokens."""

Spelling = list[Any]
"""Parts, and nodes that are not spelled yet."""

LEVELS = ({"*", "/"}, {"+", "-"}, {"@"}, {"==", "!=", "<", ">", "<=", ">="})
"""The operators of each level of precedence (section 14.2)."""


def spelled(tree: s.Node | s.Program) -> Iterator[Part]:
    """Yield the parts of a tree from left to right."""
    pending: Spelling = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, s.Node):
            pending.extend(reversed(SPELLINGS[type(item)](item)))
        else:
            yield item


def quoted(value: str) -> str:
    """Return a string as a token."""
    letters = {character: letter for letter, character in ESCAPES.items()}
    return '"' + "".join(f"\\{letters[letter]}" if letter in letters else letter for letter in value) + '"'


def _listed(items: Iterable[s.Node | str | Spelling]) -> Spelling:
    """Return items with commas between them, each on its own line if the group is broken."""
    parts: Spelling = []
    for item in items:
        parts += [",", BREAK] if parts else []
        parts += item if isinstance(item, list) else [item]
    return parts


def _enclosed(opening: str, inner: Spelling, closing: str) -> Spelling:
    """Return a group between brackets, which is indented if it is broken."""
    return [opening, *([OPEN, INDENT, SOFT, *inner, DEDENT, SOFT, CLOSE] if inner else []), closing]


def _body(items: Sequence[s.Node], separators: Sequence[Mark]) -> Spelling:
    """Return items in braces, one a line."""
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
    """Return annotations before the function, its attributes and its block; those without a place come first."""
    places: tuple[list[s.Annotation], list[s.Annotation], list[s.Annotation]] = ([], [], [])
    for annotation in node.annotations:
        behind = annotation.span > node.name_span
        at_block = behind and bool(node.attributes) and annotation.span > node.attributes[0].span
        places[behind + at_block].append(annotation)
    return places


# Statements


def _assign(node: s.Assign) -> Spelling:
    slices = [] if node.slices is None else _enclosed("[", _listed(node.slices), "]")
    return [node.name, *slices, *_initial(node.value), ";"]


def _if(node: s.If) -> Spelling:
    otherwise = [SPACE, "else", SPACE, node.otherwise] if node.otherwise else []
    return ["if", SPACE, *_enclosed("(", [node.condition], ")"), SPACE, node.then, *otherwise]


def _for(node: s.For) -> Spelling:
    step = [":", node.step] if node.step else []
    inner = [*_listed(node.names), SPACE, "in", SPACE, node.start, ":", node.stop, *step]
    return ["for", SPACE, *_enclosed("(", inner, ")"), SPACE, node.body]


def _return(node: s.Return) -> Spelling:
    values = [SPACE, OPEN, INDENT, *_listed(node.values), DEDENT, CLOSE] if node.values else []
    return ["return", *values, ";"]


def _assert(node: s.Assert) -> Spelling:
    message: list[str] = [] if node.message is None else [quoted(node.message)]
    return ["assert", *_enclosed("(", _listed([node.condition, *message]), ")"), ";"]


# Expressions


def _binary(node: s.Binary) -> Spelling:
    """Return a chain of operators of one level as one group, which breaks before each of them."""
    level = next(level for level in LEVELS if node.operator in level)
    chain: list[s.Binary] = [node]
    while isinstance(chain[-1].left, s.Binary) and chain[-1].left.operator in level:
        chain.append(chain[-1].left)
    parts: Spelling = [OPEN, chain[-1].left, INDENT]
    for link in reversed(chain):
        parts += [BREAK, link.operator, SPACE, link.right]
    return [*parts, DEDENT, CLOSE]


def _slice_range(node: s.SliceRange) -> Spelling:
    parts: Spelling = [*([node.start] if node.start else []), ":", *([node.stop] if node.stop else [])]
    return [*parts, ":", node.step] if node.step else parts


def _call(node: s.Call) -> Spelling:
    callee = [part for word in node.callee for part in (".", word)][1:]
    return [*callee, *_arguments(node.arguments, node.keywords), *_attributes(node.attributes)]


def _named_value(node: s.Keyword | s.Attribute) -> Spelling:
    return [node.name, "=", node.value]


def _number(node: s.IntLiteral | s.FloatLiteral) -> Spelling:
    return [node.text[0], node.text[1:]] if node.text[0] in "+-" else [node.text]


# Types


def _shape(shape: Sequence[s.Dimension], dtype: str) -> Spelling:
    return [part for dimension in shape for part in (dimension.text, "x")] + [dtype]


def _laid_out(layout: s.LayoutSpec | None) -> Spelling:
    return [";", SPACE, "layout", "=", layout] if layout else []


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
    s.Annotation: lambda node: ["@", "schedule", *_arguments(node.arguments, node.keywords)],
    s.Parameter: lambda node: [node.name, ":", SPACE, node.type, *_initial(node.default)],
    s.TypeDecl: lambda node: ["type", SPACE, node.name, SPACE, "=", SPACE, node.type, ";"],
    s.MeshDecl: lambda node: ["mesh", SPACE, node.name, SPACE, "=", SPACE, node.type, ";"],
    s.Block: lambda node: _body(node.statements, [GAP] * (len(node.statements) - 1)),
    s.Let: lambda node: ["let", SPACE, node.name, ":", SPACE, node.type, *_initial(node.value), ";"],
    s.Assign: _assign,
    s.CallStatement: lambda node: [node.call, ";"],
    s.If: _if,
    s.For: _for,
    s.While: lambda node: ["while", SPACE, *_enclosed("(", [node.condition], ")"), SPACE, node.body],
    s.Return: _return,
    s.Barrier: lambda node: ["barrier", "(", *([] if node.label is None else [quoted(node.label)]), ")", ";"],
    s.Assert: _assert,
    s.Binary: _binary,
    s.Unary: lambda node: [node.operator, node.operand],
    s.Group: lambda node: _enclosed("(", [node.inner], ")"),
    s.Index: lambda node: [node.operand, *_enclosed("[", _listed(node.slices), "]")],
    s.SliceRange: _slice_range,
    s.Call: _call,
    s.Keyword: _named_value,
    s.Attribute: _named_value,
    s.ListValue: lambda node: _enclosed("[", _listed(node.items), "]"),
    s.IntLiteral: _number,
    s.FloatLiteral: _number,
    s.StringLiteral: lambda node: [quoted(node.value)],
    s.BoolLiteral: lambda node: ["true" if node.value else "false"],
    s.Name: lambda node: [node.text],
    s.TensorExpr: lambda node: [node.type],
    s.TensorType: lambda node: ["tensor", "<", *_shape(node.shape, node.dtype), *_laid_out(node.layout), ">"],
    s.NamedType: lambda node: [node.name],
    s.MemrefType: _memref_type,
    s.FragmentType: _fragment_type,
    s.MeshType: _mesh_type,
    s.FunctionType: _function_type,
    s.LayoutSpec: _layout,
}
"""The spelling of each node."""

# Comments and blank lines of a text, put into the canonical spelling at their places (spec section 2.1).
#
# The spelling has the tokens of the text in their order, so that a comment keeps its place between two of them. A
# comment at the end of a line stays after its token; one at the beginning of a line keeps its own line, or stays before
# the token that follows on the line.


CLOSING = frozenset({")", "]", "}", ",", ";", ":", ">", ".", ""})
"""The tokens whose line's comments belong to the text before them."""


@dataclass(frozen=True)
class Comment:
    """A comment between two tokens."""

    text: str
    own_line: bool
    """True if it has a line of its own."""
    after_blank: bool = False
    """True if a blank line precedes it."""
    tight: bool = False
    """True if no space separates it from the bracket before it."""

    @property
    def ends_line(self) -> bool:
        """True if a new line follows."""
        return self.own_line or self.text.startswith("//") or "\n" in self.text


@dataclass(frozen=True)
class BlankLine:
    """A blank line before the next token."""


OPENING = frozenset("([<")

BLANKS = frozenset({SPACE, BREAK, LINE, GAP, APART})

Woven: TypeAlias = Part | Comment | BlankLine


def woven(parts: Iterable[Part], tokens: Sequence[Token], comments: Sequence[Token]) -> Iterator[Woven]:
    """Yield the parts of a spelling with the comments and blank lines of the text that has these tokens."""
    text = _Text(tokens, comments)
    marks: list[Mark] = [LINE]
    for part in parts:
        if isinstance(part, Mark):
            marks.append(part)
            continue
        yield from text.between(part, marks)
        yield part
        marks = []
    yield from text.between("", marks)


class _Text:
    """The tokens and comments of a text that are not yet spelled."""

    def __init__(self, tokens: Sequence[Token], comments: Sequence[Token]) -> None:
        self._tokens = tokens
        self._comments = comments
        self._token = 0
        self._comment = 0
        self._end_line = 0
        """The line in which the last token ends."""

    def between(self, part: str, marks: Sequence[Mark]) -> Iterator[Woven]:
        """Yield the marks, comments and blank lines before the next part."""
        while unspelled := self._unspelled(part):
            self._token += unspelled
        token = self._tokens[self._token]
        comments = []
        while self._comment < len(self._comments) and self._comments[self._comment].span < token.span:
            comments.append(self._comments[self._comment])
            self._comment += 1
        yield from self._placed(comments, marks, token)
        assert token.type == "STRING" or token.value == part or {token.value, part} == {",", ";"}, (
            f"{part!r} is spelled where the text has {token.value!r}"
        )
        self._end_line = token.end_line
        self._token += 1

    def _unspelled(self, part: str) -> int:
        """Return the number of tokens without a spelling: an empty attribute block, a colon without its step."""
        values = [token.value for token in self._tokens[self._token : self._token + 3]]
        if values == ["@", "{", "}"]:
            return 3
        return int(values[0] == ":" and part in (",", "]"))

    def _placed(self, comments: list[Token], marks: Sequence[Mark], token: Token) -> Iterator[Woven]:
        if not comments and not (GAP in marks or APART in marks):
            yield from marks
            return
        trailing, own, leading = self._divided(comments, token)
        before = self._tokens[self._token - 1].value if self._token else ""
        tight = before in OPENING and not BLANKS & set(marks)
        yield from (Comment(_tidy(comment), own_line=False, tight=tight) for comment in trailing)
        end_line = trailing[-1].end_line if trailing else self._end_line
        place = marks.index(DEDENT) if DEDENT in marks else len(marks)
        is_listed = bool({GAP, APART, LINE} & set(marks))
        blank_allowed = GAP in marks
        yield from marks[:place]
        for comment in own:
            blank = is_listed and blank_allowed and comment.line > end_line + 1
            yield Comment(_tidy(comment), own_line=True, after_blank=blank)
            end_line, blank_allowed = comment.end_line, True
        first = leading[0] if leading else token
        if is_listed and blank_allowed and first.line > end_line + 1 and place == len(marks) and token.value:
            yield BlankLine()
        yield from marks[place:]
        yield from (Comment(_tidy(comment), own_line=False, tight=tight) for comment in leading)

    def _divided(self, comments: list[Token], token: Token) -> tuple[list[Token], list[Token], list[Token]]:
        """Return comments that end the last token's line, those in between, and those on the next token's line."""
        rest = list(comments)
        leading: list[Token] = []
        line = token.line
        while rest and token.value not in CLOSING and rest[-1].value.startswith("/*") and rest[-1].line == line:
            leading.insert(0, rest.pop())
        trailing: list[Token] = []
        while rest and rest[0].line == self._end_line:
            trailing.append(rest.pop(0))
        return trailing, rest, leading


def _tidy(comment: Token) -> str:
    text = comment.value
    return text.rstrip() if text.startswith("//") else text


# Spelled parts to lines: a group that does not fit its line breaks at all its places (as by Oppen and Wadler).


WIDTH = 100
"""The columns of a line, where it has a place to break."""

INDENTATION = "  "

NO_BLANK_BEFORE = frozenset({")", "]", ",", ";", ":", ">", "."})


NEW_LINES = frozenset({Mark.LINE, Mark.GAP, Mark.APART})


class _Space(IntEnum):
    """The space before the next token: the widest that any mark requests."""

    NONE = 0
    BLANK = 1
    NEW_LINE = 2
    BLANK_LINE = 3


def written(parts: Iterable[Woven]) -> str:
    """Return the text of the parts, ending with a new line unless it is empty."""
    return _Writer(list(parts)).write()


class _Writer:
    def __init__(self, parts: list[Woven]) -> None:
        self._parts = parts
        self._widths = _measure(parts)
        self._out: list[str] = []
        self._column = 0
        self._indentation = 0
        self._broken = [True]
        """True for each open group that is broken; outside all groups lines are broken."""
        self._space = _Space.NONE
        self._after_comment = False

    def write(self) -> str:
        for index, part in enumerate(self._parts):
            if isinstance(part, str):
                self._token(part)
            elif isinstance(part, Comment):
                self._comment(part)
            elif isinstance(part, BlankLine):
                self._wish(_Space.BLANK_LINE)
            else:
                self._mark(part, index)
        return "".join([*self._out, "\n"]) if self._out else ""

    def _mark(self, mark: Mark, index: int) -> None:
        match mark:
            case Mark.OPEN:
                self._broken.append(self._broken[-1] and not self._fits(index))
            case Mark.CLOSE:
                self._broken.pop()
            case Mark.INDENT:
                self._indentation += self._broken[-1]
            case Mark.DEDENT:
                self._indentation -= self._broken[-1]
            case Mark.SPACE:
                self._wish(_Space.BLANK)
            case Mark.BREAK:
                self._wish(_Space.NEW_LINE if self._broken[-1] else _Space.BLANK)
            case Mark.SOFT:
                self._wish(_Space.NEW_LINE if self._broken[-1] else _Space.NONE)
            case Mark.LINE | Mark.GAP:
                self._wish(_Space.NEW_LINE)
            case Mark.APART:
                self._wish(_Space.BLANK_LINE)

    def _wish(self, space: _Space) -> None:
        self._space = max(self._space, space)

    def _fits(self, index: int) -> bool:
        column = self._indentation * len(INDENTATION)
        if self._space < _Space.NEW_LINE:
            column = self._column + self._space
        return column + self._widths[index] <= WIDTH

    def _token(self, text: str) -> None:
        if self._after_comment and text in NO_BLANK_BEFORE and self._space == _Space.BLANK:
            self._space = _Space.NONE
        self._after_comment = False
        self._write(text)

    def _comment(self, comment: Comment) -> None:
        if comment.own_line:
            self._wish(_Space.BLANK_LINE if comment.after_blank else _Space.NEW_LINE)
        elif not comment.tight:
            self._wish(_Space.BLANK)
        self._write(comment.text)
        self._space = _Space.NEW_LINE if comment.ends_line else _Space.BLANK
        self._after_comment = True

    def _write(self, text: str) -> None:
        if self._out and self._space >= _Space.NEW_LINE:
            self._out.append("\n\n" if self._space == _Space.BLANK_LINE else "\n")
            self._out.append(INDENTATION * self._indentation)
            self._column = self._indentation * len(INDENTATION)
        elif self._out and self._space == _Space.BLANK:
            self._out.append(" ")
            self._column += 1
        self._space = _Space.NONE
        self._out.append(text)
        self._column = len(text) - text.rindex("\n") - 1 if "\n" in text else self._column + len(text)


def _measure(parts: list[Woven]) -> dict[int, float]:
    """Return for each group, by its first part, the columns it takes on one line together with its tail."""
    widths: dict[int, float] = {}
    tails = _tails(parts)
    open_groups: list[tuple[int, int, int]] = []
    width = forced = 0
    for index, part in enumerate(parts):
        if part is Mark.OPEN:
            open_groups.append((index, width, forced))
        elif part is Mark.CLOSE:
            start, before, forced_before = open_groups.pop()
            widths[start] = width - before + tails[index] if forced == forced_before else math.inf
        elif part in NEW_LINES or (isinstance(part, Comment) and part.ends_line):
            forced += 1
        else:
            width += _width(part)
    return widths


def _tails(parts: list[Woven]) -> list[int]:
    """Return for each part the columns from its end to the next place where a line may break."""
    tails = [0] * len(parts)
    for index in range(len(parts) - 1, 0, -1):
        part = parts[index]
        stops = isinstance(part, Comment) or part in NEW_LINES or part in (Mark.BREAK, Mark.SOFT)
        tails[index - 1] = 0 if stops else tails[index] + _width(part)
    return tails


def _width(part: Woven) -> int:
    if isinstance(part, str):
        return len(part)
    if isinstance(part, Comment):
        return len(part.text) + 1
    return int(part in (Mark.SPACE, Mark.BREAK))


# The formatter: a program in its canonical spelling, with its comments (`tessera-reference fmt`).
#
# Two blanks of indentation, one statement a line, blanks around operators and after commas, one blank line around
# functions, no more than one anywhere; lists and chains of operators beyond 100 columns are broken. Parentheses,
# numbers and words stay as written. The output parses to the same tree, and formats to itself.


def format_program(program: Program | str, filename: str = "<source>") -> str:
    """Return the formatted text of a program, of a text with its comments. Raises `Rejection` for invalid text."""
    if isinstance(program, Node):
        return written(spelled(program))
    tree = parse(program, filename)
    lexer = Lexer(program)
    tokens = list(lexer)
    return written(woven(spelled(tree), tokens, lexer.comments))
