"""The documentation of the word at a place: an operation, a directive, a keyword."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ..ir.operation import OPERATIONS, SPELLINGS, Derived, Operation
from ..language.parser import Lexer, span_of

IR_NAME = re.compile(r"[A-Za-z_][\w.]*")
BRACKETS = frozenset({"<", ">", "<=", ">="})
"""The marks that compare values, or enclose the parts of a type."""


class Hover(NamedTuple):
    """Markdown about the characters from `start` up to `end`."""

    start: int
    end: int
    markdown: str


def program_hover(text: str, offset: int) -> Hover | None:
    """Return the documentation of the word or mark of a program at an offset."""
    line, column = span_of(text, offset, 1)[:2]
    tokens = list(Lexer(text))
    index = next((i for i, token in enumerate(tokens) if token.span[:2] <= (line, column) < token.span[2:]), None)
    if index is None:
        return None
    first = last = index
    while first > 1 and tokens[first - 1].value == ".":
        first -= 2
    while last + 2 < len(tokens) and tokens[last + 1].value == ".":
        last += 2
    if tokens[index].value == "@" and tokens[index + 1].value == "schedule":
        last += 1
    spelling, word = "".join(token.value for token in tokens[first : last + 1]), tokens[index]
    start, end = (offset - column + edge for edge in (word.column, word.end_column))
    if spelling in SPELLINGS and spelling not in BRACKETS:
        return Hover(start, end, about_operation(SPELLINGS[spelling], spelling))
    for name in (spelling, word.value if index == first else ""):
        if name in words() and (name != word.value or word.type != "IDENT"):
            return Hover(start, end, about_word(name))
    return None


def ir_hover(text: str, offset: int) -> Hover | None:
    """Return the documentation of the operation of IR text at an offset."""
    for match in IR_NAME.finditer(text):
        if match.start() <= offset < match.end() and match[0] in OPERATIONS:
            return Hover(*match.span(), about_operation(OPERATIONS[match[0]], match[0]))
    return None


def about_operation(declared: type[Operation], spelling: str) -> str:
    """Return the signature, the first paragraph, the effects and the clauses of an operation."""
    summary = " ".join((inspect.getdoc(declared) or "").partition("\n\n")[0].split())
    effects = ", ".join(sorted(declared.effects)) or "none"
    page = "operations" if declared.name.startswith("tessera.graph.") else "levels"
    return _markdown(signature(declared, spelling), f"{summary}\n\nEffects: {effects}.", declared.clauses, page)


def about_word(word: str) -> str:
    """Return the form, the meaning and the clauses of a keyword or directive."""
    row = words()[word]
    return _markdown(row["form"], row["meaning"], row["clauses"], row.get("page", "language"))


def _markdown(form: str, meaning: str, clauses: tuple[str, ...], page: str) -> str:
    show = f"`tessera-conformance clauses show {clauses[0]}`"
    return f"```tessera\n{form}\n```\n{meaning}\n\nClauses: {', '.join(clauses)} ({show}). Page: `docs/{page}.md`."


@cache
def words() -> Mapping[str, Any]:
    """Return the rows of `hover_words.toml`."""
    table = tomllib.loads(files(__package__).joinpath("hover_words.toml").read_text(encoding="utf-8"))
    return {word: {**row, "clauses": tuple(row["clauses"])} for word, row in table.items()}


def signature(declared: type[Operation], spelling: str) -> str:
    """Return the form of an operation: `op.softmax(x: tensor, axis=-1)`, `a + b`."""
    operands = [f"{name}{_kinds(declared, name)}" for name in declared.singles]
    if not spelling[0].isalpha():
        return f" {spelling} ".join(operands)
    rest = [f"{declared.rest}{_kinds(declared, declared.rest)}, ..."] if declared.rest else []
    return f"{spelling}({', '.join([*operands, *rest, *_attributes(declared)])})"


def _kinds(declared: type[Operation], name: str) -> str:
    kinds = [kind.__name__.lower() for kind in declared.kinds[name] if isinstance(kind, type)]
    return f": {' or '.join(kinds)}" if 1 <= len(kinds) <= 2 else ""


def _attributes(declared: type[Operation]) -> Iterator[str]:
    for field in fields(declared):  # type: ignore[arg-type]  # every operation is a dataclass
        if field.name in declared.own_attributes:
            yield f"{field.name}={_default(field.default)}"


def _default(default: Any) -> str:
    """Return an attribute's default as the language writes it."""
    if default is MISSING:
        return "..."
    if isinstance(default, Derived):
        return "inferred"
    if default is None or isinstance(default, bool):
        return str(default).lower()
    return str(getattr(default, "name", default))
