"""Program trees rendered as text, in any spelling of the same meaning (language spec, sections 2.3 and 14.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.tree import Chooser

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


def render(program: t.Program, style: Style | None = None) -> str:
    """Return the text of a program, one statement a line, indented by braces."""
    return "".join(f"{line}\n" for line in _Writer(style or Style()).program(program))


def names_of(program: t.Program) -> list[str]:
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

    def program(self, program: t.Program) -> Iterator[str]:
        for module in program:
            yield f"module {self.name(module.name)} {{"
            for declaration in module.declarations:
                yield from (f"  {line}" for line in self.declaration(declaration))
            yield "}"

    def declaration(self, declaration: t.Decl) -> Iterator[str]:
        match declaration:
            case t.Function(name, parameters, result, attributes, body, keyword):
                heading = f"{keyword} {self.name(name)}({', '.join(map(self.declared, parameters))})"
                heading += "" if result is None else f" -> {self.type(result)}"
                yield from self.block(heading + self.attribute_block(attributes), body)
            case t.Alias(name, meaning):
                yield f"type {self.name(name)} = {meaning if isinstance(meaning, str) else self.type(meaning)};"
            case t.Mesh(name, axes, extents):
                shape = ",".join(map(str, extents))
                yield f"mesh {self.name(name)} = mesh<axes=[{','.join(map(self.name, axes))}], shape=[{shape}]>;"
            case _:
                yield from self.statement(declaration)

    def declared(self, let: t.Let) -> str:
        """Return a parameter, or a declaration without its word."""
        declared = f"{self.name(let.name)}: {self.type(let.type)}"
        return declared if let.value is None else f"{declared} = {self.expr(let.value)}"

    def type(self, type_: t.Type) -> str:
        if type_.alias:
            return self.name(type_.alias)
        if not type_.shape:
            return type_.dtype
        extents = "x".join(map(self.extent, type_.shape))
        has_layout = type_.layout != "row_major" or self.chance(8)
        return f"tensor<{extents}x{type_.dtype}{f'; layout={type_.layout}' if has_layout else ''}>"

    def extent(self, extent: t.Extent) -> str:
        if isinstance(extent, int):
            return str(extent)
        return "?" if extent.startswith("?") else self.name(extent)

    # Statements

    def block(self, heading: str, block: t.Block) -> Iterator[str]:
        yield f"{heading} {{"
        for statement in block:
            yield from (f"  {line}" for line in self.statement(statement))
        yield "}"

    def statement(self, statement: t.Stmt) -> Iterator[str]:
        match statement:
            case t.Let():
                yield f"let {self.declared(statement)};"
            case t.Assign(name, items, value):
                yield f"{self.name(name)}{self.items(items)} = {self.expr(value)};"
            case t.If(condition, then, otherwise):
                yield from self.block(f"if ({self.expr(condition)})", then)
                if otherwise is not None:
                    yield from self.block("else", otherwise)
            case t.For(name, start, stop, step, body):
                bounds = (start, stop) if step is None else (start, stop, step)
                yield from self.block(f"for ({self.name(name)} in {':'.join(map(self.expr, bounds))})", body)
            case t.While(condition, body):
                yield from self.block(f"while ({self.expr(condition)})", body)
            case t.Return(values):
                yield f"return {', '.join(map(self.expr, values))};" if values else "return;"
            case t.Assert(condition, message):
                yield f"assert({self.expr(condition)}{', ' if message else ''}{message});"
            case t.Call():
                yield f"{self.call(statement)};"
            case t.Raw(text):
                yield text

    # Expressions

    def expr(self, expr: t.Expr, lowest: int = 1) -> str:
        """Return an expression, in parentheses if it binds looser than `lowest` or if the style adds them.

        Binary operators have levels 1 to 4, a sign 5, an index 6, all others 7. Equal levels associate to the left,
        and comparisons do not chain (AMB-LANG-20).
        """
        level = LEVELS.get(expr.operator, 1) if isinstance(expr, t.Binary) else 5 if isinstance(expr, t.Unary) else 6
        may_have_more = self.style.parentheses and not (isinstance(expr, t.Literal) and lowest > 4)
        if level < lowest or (may_have_more and self.chance(3)):
            return f"({self.expr(expr)})"
        match expr:
            case t.Literal(text):
                return text
            case t.Var(name):
                return self.name(name)
            case t.Unary(operator, operand):
                return f"{operator}{self.expr(operand, 5)}"
            case t.Binary(operator, left, right):
                if operator == "@" and self.style.respelled and self.chance(2):
                    return self.call(t.Call("op.matmul", (left, right)))
                return f"{self.expr(left, max(level, 2))} {operator} {self.expr(right, level + 1)}"
            case t.Call():
                return self.call(expr)
            case t.Index(base, items):
                return f"{self.expr(base, 6)}{self.items(items)}"
            case t.Type():
                return self.type(replace(expr, alias=""))

    def call(self, call: t.Call) -> str:
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

    def argument(self, attribute: t.Attribute) -> str:
        """Return an argument; named arguments of a function are its last, so that a name may be omitted."""
        bare = attribute.fixed and not self.style.keywords
        return self.expr(attribute.value) if bare else self.attribute(attribute)

    def attribute_block(self, attributes: Sequence[t.Attribute]) -> str:
        return f" @{{{', '.join(map(self.attribute, attributes))}}}" if attributes else ""

    def attribute(self, attribute: t.Attribute) -> str:
        value = attribute.value
        if attribute.fixed:
            return f"{self.name(attribute.name)}={self.expr(value)}"
        assert isinstance(value, t.Var | t.Literal)
        return f"{attribute.name}={self.name(value.name) if isinstance(value, t.Var) else value.text}"

    def items(self, items: Sequence[t.Expr | t.Range]) -> str:
        return f"[{', '.join(map(self.item, items))}]" if items else ""

    def item(self, item: t.Expr | t.Range) -> str:
        if not isinstance(item, t.Range):
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
