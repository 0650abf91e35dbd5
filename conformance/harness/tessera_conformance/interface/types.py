"""The types of an interface, and their notation: `[int>=0]`, `{name: text, kind?: func/kernel}`, `tensor or null`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

BUILTINS = ("any", "bool", "int", "null", "number", "object", "text")
TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<word>\$?[^\W\d]\w*(?:/\w+)*)|"(?P<text>[^"]*)"|(?P<sign>->|>=|\.\.|[^\s\w]))"""
)


class TypeSyntaxError(ValueError):
    """A type or a call is not written as `docs/protocol.md`, "Methods", says."""


@dataclass(frozen=True)
class Builtin:
    """`int`, `text`, ...; `least` is the least number, or the least length of a text."""

    name: str
    least: float | None = None


@dataclass(frozen=True)
class Named:
    """A type that a table `[types.AREA]` declares."""

    name: str


@dataclass(frozen=True)
class Enumeration:
    """One of some words: `sum/max/min`."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """One text: `"2.0"`."""

    text: str


@dataclass(frozen=True)
class ListOf:
    """A list; `[int; 3]` has three items, `[tensor; 1..]` at least one."""

    item: Type
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class MapOf:
    """An object with any names and values of one type: `{*: tensor}`."""

    value: Type


@dataclass(frozen=True)
class Field:
    """A member of an object, or a parameter; one with a `?` may be left out."""

    name: str
    type: Type
    optional: bool = False


@dataclass(frozen=True)
class Record:
    """An object with these members and no others."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Union:
    """Exactly one of some types: `data or int or null`."""

    alternatives: tuple[Type, ...]


Type: TypeAlias = Builtin | Named | Enumeration | Constant | ListOf | MapOf | Record | Union


def read_type(text: str) -> Type:
    """The type that a notation means. Raises `TypeSyntaxError`."""
    reader = _Reader(text)
    found = reader.type()
    reader.end()
    return found


def read_fields(text: str) -> tuple[Field, ...]:
    """The fields of `name: type, name?: type`. Raises `TypeSyntaxError`."""
    reader = _Reader(f"{text})")
    found = reader.fields(")")
    reader.end()
    return found


def read_call(text: str) -> tuple[tuple[Field, ...], Type]:
    """The parameters and the result of `(name: type) -> (name: type)`, or `-> type`. Raises `TypeSyntaxError`."""
    reader = _Reader(text)
    reader.take("(")
    parameters = reader.fields(")")
    reader.take("->")
    result = Record(reader.fields(")")) if reader.taken("(") else reader.type()
    reader.end()
    return parameters, result


class _Reader:
    """Reads a notation from left to right; `tokens` are the kind and text of each that is left, the next one last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            match = TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise TypeSyntaxError(f"{text!r}: unreadable at {text[place:]!r}")
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self.tokens.reverse()

    def next(self, *kinds: str) -> str:
        """Take the next token, which is of one of these kinds."""
        if not self.tokens or self.tokens[-1][0] not in kinds:
            found = self.tokens[-1][1] if self.tokens else "the end"
            raise TypeSyntaxError(f"{self.text!r}: expected {' or '.join(kinds)}, found {found}")
        return self.tokens.pop()[1]

    def taken(self, sign: str) -> bool:
        """Take a sign, or the word `or`, if it comes next."""
        if not self.tokens or self.tokens[-1] not in (("sign", sign), ("word", sign)):
            return False
        self.tokens.pop()
        return True

    def take(self, sign: str) -> None:
        """Take a sign, which comes next."""
        if not self.taken(sign):
            found = self.tokens[-1][1] if self.tokens else "the end"
            raise TypeSyntaxError(f"{self.text!r}: expected {sign}, found {found}")

    def end(self) -> None:
        """Nothing is left."""
        if self.tokens:
            raise TypeSyntaxError(f"{self.text!r}: unexpected {self.tokens[-1][1]}")

    def type(self) -> Type:
        alternatives = [self.single()]
        while self.taken("or"):
            alternatives.append(self.single())
        return alternatives[0] if len(alternatives) == 1 else Union(tuple(alternatives))

    def single(self) -> Type:
        if self.taken("["):
            return self.list()
        if self.taken("{"):
            return self.object()
        if self.tokens and self.tokens[-1][0] == "text":
            return Constant(self.next("text"))
        word = self.next("word")
        if "/" in word:
            return Enumeration(tuple(word.split("/")))
        if word not in BUILTINS:
            return Named(word)
        return Builtin(word, _number(self.next("number")) if self.taken(">=") else None)

    def list(self) -> ListOf:
        item, least, most = self.type(), None, None
        if self.taken(";"):
            least = int(self.next("number"))
            most = None if self.taken("..") else least
        self.take("]")
        return ListOf(item, least, most)

    def object(self) -> MapOf | Record:
        if self.taken("*"):
            self.take(":")
            value = self.type()
            self.take("}")
            return MapOf(value)
        return Record(self.fields("}"))

    def fields(self, closing: str) -> tuple[Field, ...]:
        found: list[Field] = []
        while not self.taken(closing):
            if found:
                self.take(",")
            name, optional = self.next("word"), self.taken("?")
            self.take(":")
            found.append(Field(name, self.type(), optional))
        return tuple(found)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def notation(kind: Type) -> str:
    """Return the notation of a type."""
    match kind:
        case Builtin(name, least):
            return name if least is None else f"{name}>={least}"
        case Named(name):
            return name
        case Enumeration(words):
            return "/".join(words)
        case Constant(text):
            return f'"{text}"'
        case ListOf(item, least, most):
            count = "" if least is None else f"; {least}" if most == least else f"; {least}.."
            return f"[{notation(item)}{count}]"
        case MapOf(value):
            return f"{{*: {notation(value)}}}"
        case Record(fields):
            return f"{{{fields_notation(fields)}}}"
        case Union(alternatives):
            return " or ".join(map(notation, alternatives))


def fields_notation(fields: tuple[Field, ...]) -> str:
    """Return the notation of members or parameters."""
    return ", ".join(f"{each.name}{'?' * each.optional}: {notation(each.type)}" for each in fields)
