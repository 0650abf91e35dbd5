"""From text to syntax trees by `grammar.lark`, and parsing of whole programs (spec sections 2.1, 2.3, 12, 14)."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

import lark
from lark import Lark, Transformer
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr

from ..ir.diagnostics import Diagnostic, Rejection, Span, did_you_mean
from . import syntax as s
from .syntax import ModuleDecl, Program

# The depth to which a program may be nested, and the stack for passes that follow it down (AMB-LANG-144).
#
# The grammar sets no limit, but a machine has one. The parser does not recurse and refuses a program beyond these
# limits; later passes recurse, within the depth that `deep_recursion` allows them.


NESTING_LIMIT = 500
"""The most brackets, braces, signs and arrows that may be open at one place."""

CHAIN_LIMIT = 10_000
"""The most operators and subscripts inside one another in an expression, as they are in a + a + a."""

FRAMES_PER_LEVEL = 8  # the calls that a pass may need for one level of the tree

OPENING = frozenset("([{")
CLOSING = frozenset(")]}")
SEPARATORS = frozenset(",;:=")
PREFIXES = frozenset({"+", "-", "->"})
OPERATORS = frozenset({"+", "-", "*", "/", "@", "==", "!=", "<", ">", "<=", ">="})
COUNTED = OPENING | CLOSING | SEPARATORS | PREFIXES | OPERATORS  # the tokens that change the depth of a place


class Nesting:
    """The depth of a place in a text, counted from the tokens before it."""

    def __init__(self) -> None:
        # In the innermost bracket: its level; the level with the signs and arrows whose operand or type goes on; the
        # operators and subscripts since the last separator; the most of them in one of the brackets since then.
        self._here = (0, 0, 0, 0)
        self._outside: list[tuple[int, int, int, int]] = []  # the same for each bracket around it

    def count(self, text: str, behind_operand: bool) -> str:
        """Count one of the `COUNTED` tokens. Return the limit that it exceeds, in words."""
        bracket, level, links, inner = self._here
        if text in SEPARATORS:
            self._here = bracket, bracket, 0, 0
            return ""
        if text in OPENING:
            if text == "{":
                level, links, inner = bracket, 0, 0
            self._outside.append((bracket, level, links + behind_operand, inner))
            bracket, level, links, inner = level + 1, level + 1, 0, 0
        elif text in CLOSING and self._outside:
            inside = links + inner
            bracket, level, links, inner = self._outside.pop()
            inner = max(inner, inside)
        elif text in PREFIXES and not behind_operand:
            level += 1
        elif text in OPERATORS:
            level, links = bracket, links + behind_operand
        self._here = bracket, level, links, inner
        if level > NESTING_LIMIT:
            return f"nested more than {NESTING_LIMIT} levels deep"
        return f"a chain of more than {CHAIN_LIMIT} operators" if links + inner > CHAIN_LIMIT else ""


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspend Python's search for cycles: a growing tree has none, and each search would walk it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow functions to call themselves once for each level of a tree, with a few more calls at each.

    Python keeps the frames of its own functions on the heap, so that only calls through C (`map`, `sorted`, `tuple` of
    a generator) need the machine's stack: they may be nested as deep as `NESTING_LIMIT` allows, but not once for each
    operator of a chain.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + FRAMES_PER_LEVEL * (CHAIN_LIMIT + 10 * NESTING_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# The LALR tables of `grammar.lark`, kept in the package by `Lark.save`: computing them takes 0.15 s in each process.
#
# Before the tables, the file names the version of Lark and the digest of its grammar; where either differs, the tables
# are computed instead. `python reference/write_parse_tables.py` writes the file again. Lark saves a pickle, which is as
# trustworthy as the code beside it: it is read from this package alone.


FILE = "grammar.tables.gz"


def made_from() -> bytes:
    """Return the first line of a valid file: version of Lark, digest of the grammar."""
    digest = hashlib.sha256(_grammar().encode()).hexdigest()
    return f"lark {lark.__version__} grammar sha256:{digest}\n".encode()


def kept_parser() -> Lark | None:
    """Return the parser of the file, with its transformer; None for another grammar or Lark, or no file."""
    file = files(__package__).joinpath(FILE)
    if not file.is_file():
        return None
    content = io.BytesIO(gzip.decompress(file.read_bytes()))
    return Lark.load(content) if content.readline() == made_from() else None


def new_parser(transformer: Any) -> Lark:
    """Return a parser with tables computed from the grammar; the transformer makes nodes of its rules."""
    return Lark(
        _grammar(), start="program", parser="lalr", lexer="basic", keep_all_tokens=True, transformer=transformer
    )


def written(parser: Lark) -> bytes:
    """Return the content of the file for a parser of the current grammar."""
    tables = io.BytesIO()
    parser.save(tables)
    return gzip.compress(made_from() + tables.getvalue(), mtime=0)


def _grammar() -> str:
    return files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


# The LALR parser that Lark makes from `grammar.lark`, and the node of each rule.
#
# A method of `TreeBuilder` is named after its rule. It is called when the rule is complete, with the values of all its
# symbols: a token for a terminal, the result of the rule's own method, and None for each symbol of an absent `[...]`.


ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
"""The characters that may follow a backslash, and their meaning (AMB-LANG-05)."""

Children = Sequence[Any]


@dataclass(slots=True, eq=False)
class Token:
    """A token: its terminal of the grammar, its text and its place, which ends before `end_column`."""

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
    """Return the span from the first to the last symbol that is present."""
    first, last = children[0], children[-1]
    if first is None or last is None:
        present = [child for child in children if child is not None]
        first, last = present[0], present[-1]
    start: Any = first if isinstance(first, Token) else first.span
    end: Any = last if isinstance(last, Token) else last.span
    return Span(start.line, start.column, end.end_line, end.end_column)


def _listed(children: Children) -> tuple[Any, ...]:
    """Return the items of a list without the commas, words as their text."""
    return tuple(item.value if isinstance(item, Token) else item for item in children[::2])


def _string(token: Token | None) -> str | None:
    """Return the value of a string; the lexer reports an unknown escape."""
    return None if token is None else re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], ""), token.value[1:-1])


def _call(children: Children) -> s.Call:
    callee, _, arguments, _, attributes = children
    positional, keywords = arguments or NO_ARGUMENTS
    return s.Call(span(children), callee.items, positional, keywords, (attributes or NONE).items)


def _misplaced(children: Children) -> s.Expr:
    message, remedy = "a positional argument follows a keyword argument", "positional arguments come first"
    place, requirement = children[0].span, "the grammar of section 2.3"
    raise Rejection([Diagnostic("syntax", "parse", message, place, "", (), requirement, "AMB-LANG-14", remedy)])


def _function(kind: type[s.FunctionDecl], children: Children) -> s.FunctionDecl:
    before, _, name, _, parameters, _, result, between, attributes, after, body = children
    annotations = (before or NONE).items + (between or NONE).items + (after or NONE).items
    attributes = (attributes or NONE).items
    return kind(span(children), name.value, name.span, parameters or (), result, attributes, annotations, body)


class TreeBuilder(Transformer[Any, Any]):
    """The builder of the syntax tree from the rules of the grammar."""

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
    integer = staticmethod(lambda c: s.IntLiteral(span(c), "".join([token.value for token in c])))
    float = staticmethod(lambda c: s.FloatLiteral(span(c), "".join([token.value for token in c])))
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
    """Return Lark with the grammar, with its tables from the package."""
    return kept_parser() or new_parser(TreeBuilder())


def start_parser() -> Any:
    """Return Lark's `InteractiveParser` in its initial state; its tokens need the attributes of `Token`."""
    return lalr_parser().parse_interactive("")


# Text to tokens (spec sections 2.1 and 14.1).
#
# The type of a token is a terminal of `grammar.lark`. Text that is not a token is recorded as a problem, and reading
# continues after it: a word with a stray character becomes a token of type `ERROR`, a string in the wrong quotes a
# token of type `STRING`.


RESERVED = frozenset(
    "module func kernel let return if else for while in schedule dist op mesh type dtype layout precision numerics "
    "pipeline barrier shared align asm import from as".split()
)
"""The reserved words of section 2.1."""

END = "$END"  # the type of the token after the last one
ERROR = "$ERROR"  # the type of an invalid token, whose problem is already recorded
MOST_PROBLEMS = 10  # the rest of the text is not read after that many

STRAY = r"""(?:(?!!=)[^A-Za-z0-9_\s{}()\[\];:,.=<>+\-*/@?"])"""  # a character that belongs to no token

READ_AS = {"wrong_escape": "STRING", "wrong_quotes": "STRING", "stray": ERROR}
"""The type of the token that replaces a mistake; other mistakes leave no token."""

TYPES = ("tensor", "memref", "fragment", "mesh")
"""The words of types that angle brackets follow."""

CONTEXTUAL = {"tensor": "<", "memref": "<", "fragment": "<", "fn": r"\(", "assert": r"\("}
"""Words that are keywords only before this regular expression; elsewhere they are names."""

HINTS = {
    **dict.fromkeys("'`\u201c\u201d", 'strings are in double quotes: "text"'),
    **dict.fromkeys("\u2212\u2013", "did you mean '-'?"),
    "\u00d7": "did you mean '*'?",
    "!": "did you mean '!='?",
    "&&": "there is no logical 'and': nest two ifs",
    "||": "there is no logical 'or': nest two ifs",
    "%": "there is no remainder operator",
    "#": "comments begin with // or are between /* and */",
    "\0": "a NUL byte: is this a text file?",
    "\u00a0": "a no-break space: type a plain one",
    "\ufeff": "a byte order mark: save the file without it",
}
"""The remedies for characters that belong to no token."""


@cache
def spellings() -> dict[str, str]:
    """Return the spelling of each terminal that the grammar quotes, by its name."""
    quoted = [terminal for terminal in lalr_parser().terminals if isinstance(terminal.pattern, PatternStr)]
    return {terminal.name: terminal.pattern.value for terminal in quoted}


@cache
def _types() -> dict[str, str]:
    """Return the type of each word and mark that the grammar knows; other words are names."""
    quoted = {spelling: name for name, spelling in spellings().items() if spelling not in CONTEXTUAL}
    return dict.fromkeys(RESERVED, "WORD") | quoted


@cache
def _scanner() -> re.Pattern[str]:
    """Return the pattern of tokens: an alternative for each kind, named in capitals, and for each kind of mistake."""
    names = ("IDENT", "WS", "COMMENT", "FLOAT", "INT", "STRING")
    rules = {name: lalr_parser().get_terminal(name).pattern.to_regexp() for name in names}
    gap = f"(?:{rules['WS']}|{rules['COMMENT']})*+"
    marks = sorted((text for text in _types() if not text.isidentifier()), key=len, reverse=True)
    alternatives = {
        **{word.upper(): f"{word}(?={gap}{following})" for word, following in CONTEXTUAL.items()},
        "word": rf"(?>{rules['IDENT']})(?!{STRAY})",
        "newline": r"\n[ \t\r\n]*",
        "COMMENT": rules["COMMENT"],
        "open_comment": r"/\*",
        "_ATTRIBUTES": rf"@(?={gap}\{{)",  # AMB-LANG-17
        "mark": "|".join(map(re.escape, marks)),
        **{name: rules[name] for name in ("FLOAT", "INT", "STRING")},
        "end": r"\Z",
        "wrong_escape": r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"',
        "open_string": r'"',
        "wrong_quotes": r"'[^'\n]*'|`[^`\n]*`|[\u201c\u201d][^\u201c\u201d\n]*[\u201c\u201d]",
        "wrong_comment": r"#(?=[\s#!])[^\n]*",
        "wrong_space": r"\A\ufeff|[\s\u200b\u2060\ufeff]++",
        "stray": rf"[A-Za-z0-9_]*+(?:{STRAY}[A-Za-z0-9_]*+)++|[\s\S]",
    }
    return re.compile(r"[ \t\r]*+(?:" + "|".join(f"(?P<{name}>{rule})" for name, rule in alternatives.items()) + ")")


_PIECES = re.compile(r"complex(?:64|128)(?![A-Za-z0-9_])|x|[0-9]+|[A-Za-wyz_][A-Za-wyz0-9_]*")


def as_accepted(word: Token, accepted: Collection[str]) -> Token:
    """Return a word as the parser accepts it: an unreserved word of the grammar is a name elsewhere (AMB-LANG-02)."""
    if word.type in accepted:
        return word
    others = ("WORD",) if word.value in RESERVED else ("IDENT",) if word.type == "X" else ("IDENT", "SHAPE_NAME")
    return next((replace(word, type=kind) for kind in others if kind in accepted), word)


class Lexer:
    """The tokens of a text, read once, the last of type `END`; its faults are in `problems`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []
        self.comments: list[Token] = []
        self.cut_short = False
        """True if reading ended before the text: something is never closed, or there are too many faults."""
        self.doubtful_line: int | None = None
        """The line of the first string that spans lines or is never closed, after which quotes may be out of step."""

    def __iter__(self) -> Iterator[Token]:
        types = _types()
        line, before_line = 1, -1  # the number of the line, and the index of the character before it
        in_shape = False  # True within the shape of a tensor or memref
        in_type = False  # True between the angle brackets of a type
        before = ""  # the word or mark before
        for match in _scanner().finditer(self.source):
            kind = match.lastgroup or ""
            text, end = match[kind], match.end()
            start = end - len(text)
            first_line, column = line, start - before_line
            if "\n" in text:
                line += text.count("\n")
                before_line = start + text.rindex("\n")
                if kind == "newline":
                    continue
            end_column = end - before_line
            if kind == "mark" and in_type and text == ">=":  # the end of a type, and the `=` of a declaration
                in_type = in_shape = False
                yield Token(types[">"], ">", first_line, column, line, column + 1)
                yield Token(types["="], "=", first_line, column + 1, line, end_column)
            elif kind == "mark" or (kind == "word" and not in_shape):
                in_shape = in_shape and text in "<?"
                in_type = (in_type and text not in (">", "{", "}")) or (text == "<" and before in TYPES)
                before = text
                yield Token(types.get(text, "IDENT"), text, first_line, column, line, end_column)
            elif kind == "word":
                yield from _pieces(text, line, column)
            elif kind == "COMMENT":
                self.comments.append(Token(kind, text, first_line, column, line, end_column))
            elif kind.isupper():
                in_shape = kind in ("TENSOR", "MEMREF") or (in_shape and kind == "INT")
                before = text
                if kind == "STRING" and line > first_line:
                    self.doubtful_line = self.doubtful_line or first_line
                yield Token(kind, text, first_line, column, line, end_column)
            elif kind != "end":
                self._report(kind, text, start)
                if kind in READ_AS:
                    yield Token(READ_AS[kind], text, first_line, column, line, end_column)
                if self.cut_short:
                    break
        yield Token(END, "", line, end - before_line, line, end - before_line)

    def _report(self, kind: str, text: str, start: int) -> None:
        """Record the fault of a text that is not a token, by its kind."""
        if kind == "open_comment":
            self._problem("this comment is never closed", start, 1, "LANG-14.1-10", "close it with */")
        elif kind == "open_string":
            first = self.doubtful_line
            remedy = 'close it with "' + (f", or the one that begins in line {first}" if first else "")
            self._problem("this string is never closed", start, 1, "LANG-14.1-04", remedy)
            self.doubtful_line = first or self.problems[-1].span.line
        elif kind == "wrong_escape":
            for match in re.finditer(r"\\([\s\S])", text):
                if match[1] not in ESCAPES:
                    message = f"unknown escape {match[0] if match[0].isprintable() else repr(match[0])} in a string"
                    self._problem(message, start + match.start(), 2, "LANG-14.1-04", r"escapes: \\ \" \n \r \t")
        else:
            stray = re.search(STRAY, text)
            at = stray.start() if stray else 0
            remedy = HINTS.get(text[at : at + 2], HINTS.get(text[at], ""))
            self._problem(f"unexpected character {text[at]!r}", start + at, 1, "LANG-14.1-01", remedy)
        self.cut_short = kind in ("open_comment", "open_string") or len(self.problems) >= MOST_PROBLEMS

    def _problem(self, message: str, start: int, length: int, clause: str, remedy: str) -> None:
        """Record the fault of some characters of the text."""
        span, requirement = span_of(self.source, start, length), "a token of section 14.1"
        self.problems.append(Diagnostic("syntax", "lex", message, span, "", (), requirement, clause, remedy))


def _pieces(word: str, line: int, column: int) -> Iterator[Token]:
    """Yield a word of a shape, split at each x (AMB-LANG-06)."""
    types = _types()
    for match in _PIECES.finditer(word):
        text, start = match[0], column + match.start()
        kind = "INT" if text.isdigit() else types.get(text, "SHAPE_NAME")
        yield Token(kind, text, line, start, line, start + len(text))


def span_of(text: str, start: int, length: int) -> Span:
    """Return the place of some characters of a line."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return Span(line, column, line, column + length)


# The meaning of a set of expected kinds, tried in order: a phrase replaces its kinds wherever all are expected.
PHRASES: tuple[tuple[str, frozenset[str]], ...] = (
    ("an operator", frozenset({"+", "*", "@"})),
    ("an expression", frozenset({"IDENT", "INT", "FLOAT", "STRING", "(", "+", "op", "tensor"})),
    ("a statement", frozenset({"IDENT", "let", "return", "barrier"})),
    ("a declaration", frozenset({"func", "kernel", "type"})),
    ("a type", frozenset({"IDENT", "tensor", "memref"})),
    ("a value", frozenset({"IDENT", "INT", "STRING", "["})),
    ("a dimension", frozenset({"INT", "?"})),
)

CLOSERS = frozenset({";", ")", "}", "]", ",", ":"})  # shown beside a phrase
IMPLIED = frozenset({"-", "/", "WORD"})  # included in another kind's name
STATEMENT_WORDS = ("let", "return", "if", "else", "for", "while")
LONGEST = 60  # the rest of a token is not shown

NAMES = {
    "IDENT": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
    "STRING": "a string",
    "SHAPE_NAME": "a dtype",
    "_ATTRIBUTES": "'@{'",
    "+": "'+' or '-'",
    "*": "'*' or '/'",
    END: "the end of the text",
}
"""The names of expected kinds in messages; other kinds are shown as they are spelled."""


def unexpected(token: Token, previous: Token, following: Token, types: AbstractSet[str]) -> Diagnostic:
    """Return a finding at a token that cannot follow the previous one; `types` are those of the tokens that can."""
    expected = {spellings().get(kind, kind) for kind in types}
    text = token.value if len(token.value) <= LONGEST else f"{token.value[:LONGEST]}..."
    actual = f"the reserved word {text!r}" if text in RESERVED else repr(text)
    span = token.span
    if token.type == END:
        actual = "the end of the text"
        line, column = previous.span[2:]
        span = Span(line, column, line, column + 1)
    message, remedy = (
        f"found {actual}, expected {_expectation(expected)}",
        _remedy(token, previous, following, expected),
    )
    return Diagnostic("syntax", "parse", message, span, "", (), "the grammar of section 2.3", "LANG-02.3-01", remedy)


def beyond_limit(excess: str, span: Span) -> Diagnostic:
    """Return a finding at the token that exceeds a limit of this parser."""
    requirement = (
        f"at most {NESTING_LIMIT} brackets, braces, signs and arrows open in one place and {CHAIN_LIMIT} operators and "
        "subscripts inside one another, as this parser has it"
    )
    clause, remedy = "AMB-LANG-144", "name a part of it with let"
    return Diagnostic("syntax", "parse", excess, span, "", (), requirement, clause, remedy)


def _remedy(token: Token, previous: Token, following: Token, expected: AbstractSet[str]) -> str:
    """Return the remedy of a mistake that is common in texts from other languages, or ""."""
    text, is_name = token.value, token.value.isidentifier() and token.value not in RESERVED
    before, (line, column) = previous.value, previous.span[2:]
    if text in ("==", "!=", "<", ">", "<=", ">=") and "@" in expected:
        return "comparisons do not chain (AMB-LANG-20): put the first into parentheses or a let"
    if is_name and (remedy := did_you_mean(text, filter(str.isalpha, sorted(expected)))):
        return remedy
    if before in ("if", "for", "while", "assert") and "(" in expected:
        return f"parentheses are missing: {before} (...)"
    if before in ("break", "continue"):
        return f"there is no '{before}': a loop ends by its condition, or by return"
    if text == "=" and ":" in expected:
        return "let names a type: let name: type = value;"
    if text == "{" and ";" in expected:
        return "a call ends with ';': only if, else, for and while have a block"
    if text == "*" == before:
        return "there is no '**': op.pow(x, y)"
    if text == "if" and before == "else":
        return "else takes a block: else { if (...) { ... } }"
    if text.isidentifier() and before[:1].isdigit() and (line, column) == token.span[:2]:
        return "integers are decimal (LANG-02.1-02)" if before == "0" else "a number ends with its last digit"
    if text == "," and following.value == "layout":
        return "a layout comes after a semicolon: tensor<128x64xbf16; layout=row_major>"
    if text == "," and "x" in expected:
        return "dimensions are joined by x: tensor<128x64xbf16> (AMB-LANG-09)"
    if text == "*" and following.value == "/" and following.span[:2] == token.span[2:]:
        return "comments do not nest (LANG-14.1-10): one ends at its first */"
    if text in "+-*/@" and following.value == "=" and "=" in expected:
        return f"there is no '{text}=': assign the whole expression"
    if text == "." and following.type == "INT":
        return "digits come before a point: 0.5"
    if before.isidentifier() and expected >= {"(", ".", "=", "["}:
        if len(before) > len("if") and (remedy := did_you_mean(before, STATEMENT_WORDS)):
            return remedy
        if text in OPERATORS:
            return "a statement assigns or calls: bind the value with let"
        if is_name or text == ":":
            return "variables are declared with let: let name: type = value;"
    if ";" in expected and token.line > line:
        return "is a ';' missing at the end of the line before?"
    return ""


def _expectation(kinds: AbstractSet[str]) -> str:
    """Return expected kinds as a phrase: first those that close the construct, then those that continue it."""
    phrase = next((phrase for phrase, group in PHRASES if group <= kinds), None)
    named = kinds & CLOSERS if phrase else kinds - IMPLIED
    words = sorted(NAMES.get(kind, repr(kind)) for kind in named)
    words = [*words, phrase] if phrase == "an operator" else [phrase, *words] if phrase else words
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# The place to continue reading after a syntax error, so that one pass reports several (spec section 12).
#
# The rest of the smallest statement, declaration or heading around the error is cut out of the tokens: up to its `;`,
# its block, the end of the block around it, or a line that begins with another statement or declaration. Missing tokens
# are put in, so that the following text is in the right block. If the text has too many opening or too many closing
# braces, the first of them at or after the error counts as the mistake.

STATEMENTS = frozenset({"LET", "RETURN", "IF", "FOR", "WHILE", "BARRIER", "ASSERT"})
DECLARATIONS = frozenset({"FUNC", "KERNEL", "TYPE", "MESH"})
WITH_BLOCK = frozenset({"MODULE", "FUNC", "KERNEL", "IF", "FOR", "WHILE"})
ROOTS = frozenset({"op", "dist", "schedule", "numerics"})
BRACES = {"LBRACE": 1, "RBRACE": -1}
ENDS = {"_ATTRIBUTES": "RBRACE", "TENSOR": "MORETHAN", "MEMREF": "MORETHAN", "FRAGMENT": "MORETHAN"}
"""The tokens that end an attribute block or a type, whose braces and semicolons are not those of statements."""


class Edit(NamedTuple):
    """Tokens that replace those from `start` up to `stop`."""

    start: int
    stop: int
    given: str = ""  # their types


def resumption(tokens: Sequence[Token], error: int) -> Edit | None:
    """Return the edit of the tokens to continue after a wrong one; None where no place to continue follows."""
    depth, start, end = _around(tokens, error)
    missing = sum(BRACES.get(token.type, 0) for token in tokens)  # closing braces, or opening ones if it is negative
    if missing < 0 and 0 < start == error and tokens[error - 1].type == "RBRACE":
        return Edit(error - 1, error)
    in_attributes = end == "RBRACE"
    with_block = any(token.type in WITH_BLOCK for token in tokens[start:error])
    for index in range(error, len(tokens) - 1):
        kind, begins_line = tokens[index].type, tokens[index].line > tokens[index - 1].end_line
        ends_line = tokens[index + 1].line > tokens[index].line or tokens[index + 1].type in ("RBRACE", END)
        opens_block = missing < 0 and with_block and begins_line
        target_depth = _depth_of_item(tokens, index, depth + opens_block)
        if BRACES.get(kind, 0) * missing > 0:
            missing -= BRACES[kind]  # one too many
        elif in_attributes or kind == "_ATTRIBUTES":
            in_attributes = kind != "RBRACE"
        elif kind == "LBRACE":
            return Edit(start, index, _headings(depth, depth + 1).removesuffix("LBRACE"))
        elif kind == "RBRACE" and depth:
            return Edit(start, index) if index > start else None
        elif kind == "SEMICOLON" and depth and not with_block and ends_line:
            return Edit(start, index + 1)
        elif target_depth is not None and target_depth > depth and (opens_block or (index == start and not depth)):
            return Edit(start, index, _headings(depth, target_depth))
        elif target_depth is not None and target_depth <= depth - (index == start) and (begins_line or index == start):
            return Edit(start, index, "RBRACE " * (depth - target_depth))
        with_block |= kind in WITH_BLOCK
    return None


def _around(tokens: Sequence[Token], error: int) -> tuple[int, int, str]:
    """Return the open blocks at a token, the start of its item in the innermost, and the end of its attributes."""
    depth, start, end = 0, 0, ""
    for index, token in enumerate(tokens[:error]):
        kind = token.type
        if end:
            end = "" if kind == end else end
        elif kind in ENDS:
            end = ENDS[kind]
        elif kind in BRACES or kind == "SEMICOLON":
            depth += BRACES.get(kind, 0)
            start = index + 1
    return depth, start, end


def _depth_of_item(tokens: Sequence[Token], index: int, depth: int) -> int | None:
    """Return the depth of the statement or declaration that begins with a token, if one does."""
    token, following = tokens[index], tokens[index + 1].value
    if token.type == "MODULE":
        return 0
    if (token.type in DECLARATIONS and following != "<") or (token.type == "LET" and depth < 2):
        return 1
    is_name = token.value.isidentifier() and (token.value not in RESERVED or token.value in ROOTS)
    begins = token.type in STATEMENTS or (is_name and following in ("=", "(", ".", "["))
    return max(depth, 2) if begins else None


def _headings(depth: int, target: int) -> str:
    """Return headings that open blocks around a statement or declaration, until `target` blocks are open."""
    kinds = ("MODULE IDENT LBRACE", "FUNC IDENT LPAR RPAR LBRACE", "IF LPAR IDENT RPAR LBRACE")
    return " ".join(kinds[min(level, 2)] for level in range(depth, target))


def made(kind: str) -> Token:
    """Return a token that is not in the text."""
    return Token(kind, spellings().get(kind, ""), 0, 0, 1, 1)


# Parsing: text to `Program` (spec sections 2.1, 2.3, 14).
#
# Lark's LALR parser receives one token after another and builds the syntax tree from its leaves up, without recursion.
# It stops at the first wrong token. To find several, the tokens around that one are edited and all are read again.


MOST_EDITS = 5 * MOST_PROBLEMS  # the rest of the text is not read after that many


class Stop(NamedTuple):
    """The place at which the parser stops."""

    at: int  # the index of the token that it refuses
    finding: Diagnostic | None = None  # the fault; None for a token that cannot follow those before it
    final: bool = False  # True if nothing after it can be read


def parse(source: str, filename: str = "<source>") -> Program:
    """Return the syntax tree of `source`. Raises `Rejection` with its faults, each of phase lex or parse."""
    lexer = Lexer(source)
    with without_collection():
        modules = _read(start_parser(), lexer)
    if isinstance(modules, Stop) or lexer.problems:
        raise Rejection([replace(finding, filename=filename) for finding in _diagnose(source)])
    return Program(span(modules) if modules else Span(1, 1, 1, 1), modules, filename)


def _read(parser: Any, tokens: Iterable[Token]) -> tuple[ModuleDecl, ...] | Stop:
    """Return the modules of a program from all its tokens, or the place at which the parser stops."""
    feed, choices = parser.feed_token, parser.choices
    nesting = Nesting()
    modules: tuple[ModuleDecl, ...] = ()
    for index, token in enumerate(tokens):
        text, kind = token.value, token.type
        if text in COUNTED and kind != "_ATTRIBUTES" and (excess := nesting.count(text, "STAR" in choices())):
            return Stop(index, beyond_limit(excess, token.span), final=True)
        if kind != "IDENT" and text.isidentifier():
            token = as_accepted(token, choices())
        try:
            modules = feed(token)
        except UnexpectedToken:
            return Stop(index)
        except Rejection as misplaced:
            return Stop(index, misplaced.diagnostics[0])
    return modules


def _diagnose(source: str) -> list[Diagnostic]:
    """Return the faults of an invalid text, in its order, ten findings at most."""
    lexer = Lexer(source)
    tokens = list(lexer)
    problems = {problem.span: problem for problem in lexer.problems}
    lexical = [span[:2] for span in problems]
    for edits in range(MOST_EDITS):
        stop = _read(start_parser(), tokens)
        if not isinstance(stop, Stop) or len(problems) >= MOST_PROBLEMS:
            break
        token = tokens[stop.at]
        hidden = token.type == END and (lexer.cut_short or edits > 0)  # an edit or the cut may have caused it
        if not hidden and not any(token.span[:2] <= place < token.span[2:] for place in lexical):
            finding = stop.finding or _unexpected(tokens, stop.at)
            if not (lexer.cut_short and lexer.doubtful_line and finding.span.line >= lexer.doubtful_line):
                problems.setdefault(finding.span, finding)
        edit = None if stop.final else resumption(tokens, stop.at)
        if edit is None:
            break
        tokens[edit.start : edit.stop] = map(made, edit.given.split())
    return sorted(problems.values(), key=lambda finding: finding.span)[:MOST_PROBLEMS]


def _unexpected(tokens: Sequence[Token], at: int) -> Diagnostic:
    """Return the finding at a token that cannot follow those before it, with those that can."""
    parser = start_parser()
    _read(parser, tokens[:at])
    previous = next((token for token in reversed(tokens[:at]) if token.line), made(""))
    following = tokens[min(at + 1, len(tokens) - 1)]
    return unexpected(tokens[at], previous, following, parser.accepts())


def decode(data: bytes, filename: str = "<source>") -> str:
    """Return the text of a file's bytes. Raises `Rejection` at the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before, message = data[: error.start].decode("utf-8"), f"the byte 0x{data[error.start]:02x} is not UTF-8"
        span, remedy = span_of(before, len(before), 1), "save the file as UTF-8"
        finding = Diagnostic("syntax", "lex", message, span, filename, (), "text in UTF-8", "AMB-LANG-145", remedy)
        raise Rejection([finding]) from None
