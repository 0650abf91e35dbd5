"""Program trees rendered as tokens and text, in any spelling of the same meaning (language spec, 2.3, 14.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.tree import Chooser

# Program trees rendered as tokens, in any spelling with the same meaning (language spec, section 2.3).
#
# A style may rename the program's own names, put parentheses around any operand, and write an attribute as a keyword
# argument or in the attribute block (AMB-LANG-100), and `op.matmul` as `@` (AMB-LANG-91). None of it changes a meaning.


T = TypeVar("T")

TIGHT_BEFORE = frozenset({",", ";", ")", "]", ":", "(", "[", ".", ">"})
TIGHT_AFTER = frozenset({"(", "[", ".", "<"})


@dataclass(frozen=True)
class Style:
    """The spelling of a tree; without a chooser every attribute is in a block and no parenthesis is redundant."""

    names: Mapping[str, str] = field(default_factory=dict)
    chooser: Chooser | None = None
    parentheses: bool = False
    respelled: bool = False
    keywords: bool = False
    """Attributes may be among the arguments, which the printed grammar does not allow."""


@dataclass(frozen=True)
class Text:
    """The tokens of a text; in the plain layout, those at `tight` positions follow the token before them directly."""

    tokens: Sequence[str]
    tight: frozenset[int]


def render(program: t.Program, style: Style) -> Text:
    """Return the tokens of a program."""
    writer = _Writer(style)
    for module in program.modules:
        writer.module(module)
    return Text(writer.tokens, frozenset(writer.tight))


def names_of(program: t.Program) -> list[str]:
    """Return every name of the program's own, dimensions included, in order of appearance."""
    writer = _Writer(Style())
    for module in program.modules:
        writer.module(module)
    return list(writer.used)


class _Writer:
    """Collects the tokens of a program."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.tokens: list[str] = []
        self.tight: set[int] = set()
        self.used: dict[str, None] = {}

    def put(self, *tokens: str) -> None:
        """Append tokens."""
        self.tokens.extend(tokens)

    def join(self, *tokens: str) -> None:
        """Append tokens that directly follow the ones before them."""
        start = len(self.tokens)
        self.tokens.extend(tokens)
        self.tight.update(range(start, len(self.tokens)))

    def separated(self, items: Sequence[T], write: Callable[[T], None]) -> None:
        """Write items with commas between them."""
        for position, item in enumerate(items):
            if position:
                self.join(",")
            write(item)

    def name(self, name: str) -> t.Name:
        """Return a name of the program's own, in the style's spelling."""
        self.used[name] = None
        return t.Name(self.style.names.get(name, name))

    def chance(self, once_in: int) -> bool:
        """Return a free decision of the style."""
        return self.style.chooser is not None and self.style.chooser.chance(once_in)

    # Declarations

    def module(self, module: t.Module) -> None:
        self.put("module", self.name(module.name), "{")
        for declaration in module.declarations:
            self.declaration(declaration)
        self.put("}")

    def declaration(self, declaration: t.Decl) -> None:
        match declaration:
            case t.Function():
                self.function(declaration)
            case t.Alias(name, meaning):
                self.put("type", self.name(name), "=")
                if isinstance(meaning, t.Type):
                    self.type(meaning)
                else:
                    self.raw(meaning)
                self.join(";")
            case t.Mesh(name, axes, extents):
                self.put("mesh", self.name(name), "=", "mesh")
                self.join("<", "axes", "=", "[", *_separated([self.name(axis) for axis in axes]), "]", ",")
                self.put("shape")
                self.join("=", "[", *_separated([str(extent) for extent in extents]), "]", ">", ";")
            case t.Let() | t.Raw():
                self.statement(declaration)

    def function(self, function: t.Function) -> None:
        self.put(function.keyword, self.name(function.name))
        self.join("(")
        self.separated(function.parameters, self.parameter)
        self.join(")")
        if function.result is not None:
            self.put("->")
            self.type(function.result)
        if function.attributes:
            self.attribute_block(function.attributes)
        self.block(function.body)

    def parameter(self, parameter: t.Parameter) -> None:
        self.put(self.name(parameter.name))
        self.join(":")
        self.type(parameter.type)
        if parameter.default is not None:
            self.put("=")
            self.expr(parameter.default)

    def type(self, type_: t.Type) -> None:
        if type_.alias:
            self.put(self.name(type_.alias))
            return
        if not type_.shape:
            self.put(type_.dtype)
            return
        shape = "x".join(self.extent(extent) for extent in type_.shape)
        self.put("tensor")
        self.join("<", f"{shape}x{type_.dtype}")
        if type_.layout != "row_major" or self.chance(8):
            self.join(";")
            self.put("layout")
            self.join("=", type_.layout)
        self.join(">")

    def extent(self, extent: t.Extent) -> str:
        if isinstance(extent, int):
            return str(extent)
        return "?" if extent.startswith("?") else self.name(extent)

    # Statements

    def block(self, block: t.Block) -> None:
        self.put("{")
        for statement in block:
            self.statement(statement)
        self.put("}")

    def statement(self, statement: t.Stmt) -> None:
        match statement:
            case t.If(condition, then, otherwise):
                self.put("if", "(")
                self.expr(condition)
                self.join(")")
                self.block(then)
                if otherwise is not None:
                    self.put("else")
                    self.block(otherwise)
            case t.For():
                self.loop(statement)
            case t.While(condition, body):
                self.put("while", "(")
                self.expr(condition)
                self.join(")")
                self.block(body)
            case t.Raw():
                self.raw(statement)
            case _:
                self.simple(statement)
                self.join(";")

    def simple(self, statement: t.Let | t.Assign | t.Return | t.Assert | t.Barrier | t.Call) -> None:
        match statement:
            case t.Let(name, type_, value):
                self.put("let", self.name(name))
                self.join(":")
                self.type(type_)
                if value is not None:
                    self.put("=")
                    self.expr(value)
            case t.Assign(name, items, value):
                self.put(self.name(name))
                if items:
                    self.items(items)
                self.put("=")
                self.expr(value)
            case t.Return(values):
                self.put("return")
                self.separated(values, self.expr)
            case t.Assert(condition, message):
                self.put("assert")
                self.join("(")
                self.expr(condition)
                if message:
                    self.join(",")
                    self.put(message)
                self.join(")")
            case t.Barrier(label):
                self.put("barrier")
                self.join("(", *([label] if label else []), ")")
            case t.Call():
                self.call(statement)

    def loop(self, loop: t.For) -> None:
        self.put("for", "(", self.name(loop.name), "in")
        self.expr(loop.start)
        self.join(":")
        self.expr(loop.stop)
        if loop.step is not None:
            self.join(":")
            self.expr(loop.step)
        self.join(")")
        self.block(loop.body)

    def raw(self, raw: t.Raw) -> None:
        """Write tokens unchanged, except names of the program's own, which are renamed with the others."""
        for token in raw.tokens:
            written = self.name(token) if isinstance(token, t.Name) else token
            previous = self.tokens[-1] if self.tokens else ""
            if token in TIGHT_BEFORE or previous in TIGHT_AFTER:
                self.join(written)
            else:
                self.put(written)

    # Expressions

    def expr(self, expr: t.Expr, lowest: int = 1) -> None:
        """Write an expression, in parentheses if it binds looser than `lowest` or if the style adds them."""
        needed = t.level_of(expr) < lowest
        literal = isinstance(expr, t.Literal)
        if needed or (self.style.parentheses and not (literal and lowest > 4) and self.chance(3)):
            self.put("(")
            start = len(self.tokens)
            self.expr(expr)
            self.tight.add(start)
            self.join(")")
            return
        match expr:
            case t.Literal(text):
                self.put(text)
            case t.Var(name):
                self.put(self.name(name))
            case t.Unary(operator, operand):
                self.put(operator)
                start = len(self.tokens)
                self.expr(operand, 5)
                self.tight.add(start)
            case t.Binary(operator, left, right):
                self.binary(operator, left, right)
            case t.Call():
                self.call(expr)
            case t.Index(base, items):
                self.expr(base, 6)
                self.items(items)
            case t.TensorValue(type_):
                self.type(t.Type(type_.dtype, type_.shape, type_.layout))

    def binary(self, operator: str, left: t.Expr, right: t.Expr) -> None:
        """Write two operands: equal levels associate to the left, and comparisons do not chain (AMB-LANG-20)."""
        if operator == "@" and self.style.respelled and self.chance(2):
            self.call(t.Call("op.matmul", (left, right)))
            return
        level = t.LEVELS.get(operator, 1)
        self.expr(left, max(level, 2))
        self.put(operator)
        self.expr(right, level + 1)

    def call(self, call: t.Call) -> None:
        """A call; its attributes are among the arguments or in the block."""
        if call.own:
            self.put(self.name(call.callee))
        else:
            first, *rest = call.callee.split(".")
            self.put(first)
            for word in rest:
                self.join(".", word)
        in_block = [
            attribute
            for attribute in call.attributes
            if not attribute.fixed and not (self.style.keywords and self.chance(2))
        ]
        self.join("(")
        start = len(self.tokens)
        parts = [*call.arguments, *(attribute for attribute in call.attributes if attribute not in in_block)]
        self.separated(parts, self.argument)
        self.tight.add(start)
        self.join(")")
        if in_block:
            self.attribute_block(in_block)

    def argument(self, part: t.Expr | t.Attribute) -> None:
        """Write an argument; named arguments of a function are its last, so that a name may be omitted."""
        if not isinstance(part, t.Attribute):
            self.expr(part)
        elif part.fixed and not self.style.keywords and not isinstance(part.value, t.Word):
            self.expr(part.value)
        else:
            self.attribute(part)

    def attribute_block(self, attributes: Sequence[t.Attribute]) -> None:
        self.put("@")
        self.join("{")
        self.separated(attributes, self.attribute)
        self.join("}")

    def attribute(self, attribute: t.Attribute) -> None:
        self.put(self.name(attribute.name) if attribute.fixed else attribute.name)
        self.join("=")
        start = len(self.tokens)
        if isinstance(attribute.value, t.Word):
            self.put(attribute.value.text)
        elif isinstance(attribute.value, t.Var) and not attribute.fixed:  # a name in an attribute block stands bare
            self.put(self.name(attribute.value.name))
        else:
            self.expr(attribute.value)
        self.tight.add(start)

    def items(self, items: Sequence[t.Expr | t.Range]) -> None:
        self.join("[")
        self.tight.add(len(self.tokens))
        self.separated(items, lambda item: self.range(item) if isinstance(item, t.Range) else self.expr(item))
        self.join("]")

    def range(self, item: t.Range) -> None:
        if item.start is not None:
            self.expr(item.start)
        self.join(":")
        if item.stop is not None:
            self.expr(item.stop)
        if item.step is not None:
            self.join(":")
            self.expr(item.step)


def _separated(tokens: Sequence[str]) -> list[str]:
    """Tokens with a comma between any two."""
    return [part for token in tokens for part in (",", token)][1:]


# Tokens rendered as text: in the plain layout, or with any space, newline and comment that section 14.1 allows.


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
FUSING = frozenset({(">", "="), ("<", "="), ("=", "="), ("/", "/"), ("/", "*"), ("-", ">")})
"""Adjacent characters that would form another token."""


def plain(text: Text) -> str:
    """Return the plain layout: one statement a line, indented by braces."""
    lines: list[str] = []
    line: list[str] = []
    depth, previous, in_attributes = 0, "", False
    for place, token in enumerate(text.tokens):
        in_attributes = in_attributes or (token == "{" and previous == "@")
        if token == "}" and not in_attributes:
            _end(lines, line, depth)
            depth -= 1
        close = place in text.tight or previous in ("(", "[")
        line.append(token if not line or close else f" {token}")
        follows = text.tokens[place + 1] if place + 1 < len(text.tokens) else ""
        if (token == ";" and follows != "layout") or (token in ("{", "}") and not in_attributes and follows != ";"):
            _end(lines, line, depth)
            depth += token == "{"
        in_attributes = in_attributes and token != "}"
        previous = token
    _end(lines, line, depth)
    return "\n".join(lines) + "\n" if lines else ""


def odd(text: Text, chooser: Chooser) -> str:
    """Return the tokens with random gaps that keep them apart, mostly single blanks."""
    parts: list[str] = []
    previous = ""
    for token in text.tokens:
        gap = GAPS[chooser.below(len(GAPS))] if chooser.below(4) == 3 else " "
        if not gap and _touches(previous, token):
            gap = " "
        parts += (gap, token)
        previous = token
    return "".join(parts) + chooser.pick(ENDINGS)


def _touches(left: str, right: str) -> bool:
    """True if two tokens need a gap between them."""
    if not left:
        return False
    last, first = left[-1], right[0]
    return (_in_word(last) and _in_word(first)) or (last, first) in FUSING


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _end(lines: list[str], line: list[str], depth: int) -> None:
    if line:
        lines.append("  " * depth + "".join(line))
        line.clear()
