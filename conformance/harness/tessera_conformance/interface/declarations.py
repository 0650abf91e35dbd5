"""The methods of the interface with the types of their parameters and results."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from tessera_conformance.cases import chapter_files

# The types of an interface, and their notation: `[int>=0]`, `{name: text, kind?: func/kernel}`, `tensor or null`.


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
    type_ = reader.type()
    reader.end()
    return type_


def read_fields(text: str) -> tuple[Field, ...]:
    """The fields of `name: type, name?: type`. Raises `TypeSyntaxError`."""
    reader = _Reader(f"{text})")
    fields = reader.fields(")")
    reader.end()
    return fields


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
            token = self.tokens[-1][1] if self.tokens else "the end"
            raise TypeSyntaxError(f"{self.text!r}: expected {' or '.join(kinds)}, found {token}")
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
            token = self.tokens[-1][1] if self.tokens else "the end"
            raise TypeSyntaxError(f"{self.text!r}: expected {sign}, found {token}")

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
        fields: list[Field] = []
        while not self.taken(closing):
            if fields:
                self.take(",")
            name, optional = self.next("word"), self.taken("?")
            self.take(":")
            fields.append(Field(name, self.type(), optional))
        return tuple(fields)


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
    return ", ".join(f"{field.name}{'?' * field.optional}: {notation(field.type)}" for field in fields)


# Reads every `interface.toml` into areas, named types and methods, and checks that each name means something.


SESSION = Path(__file__).parent / "session.toml"


class InterfaceError(Exception):
    """An `interface.toml` says something that has no meaning."""


@dataclass(frozen=True)
class NamedType:
    """A type with a name; `where` are keywords of JSON Schema that narrow it further, `c` its structure in C."""

    name: str
    area: str
    type: Type
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    c: str = ""


@dataclass(frozen=True)
class Method:
    """A method of the protocol; `c` are the parameters of its C function."""

    area: str
    name: str
    parameters: tuple[Field, ...]
    result: Type
    clauses: tuple[str, ...] = ()
    c: str = ""
    feature: str = ""
    doc: str = ""

    @property
    def full_name(self) -> str:
        """The name in a request: `runtime.tessInit`."""
        return f"{self.area}.{self.name}"

    def parameters_of(self, *types: Type) -> tuple[str, ...]:
        """The names of the parameters that have one of these types."""
        return tuple(parameter.name for parameter in self.parameters if parameter.type in types)

    @property
    def outputs(self) -> tuple[Field, ...]:
        """The members of the result."""
        return self.result.fields if isinstance(self.result, Record) else ()


@dataclass(frozen=True)
class Area:
    """The methods and types of one schema file; `also` are parameters that every method of it takes, optionally."""

    name: str
    title: str
    also: tuple[Field, ...]
    types: Mapping[str, NamedType]
    methods: Mapping[str, Method]


@dataclass(frozen=True)
class Interface:
    """All methods and types of the protocol."""

    areas: Mapping[str, Area]
    enumerators: Mapping[str, tuple[str, ...]]

    @cached_property
    def types(self) -> Mapping[str, NamedType]:
        """Every named type; a name means the same in all areas."""
        return {name: type_ for area in self.areas.values() for name, type_ in area.types.items()}

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Every method by its name in a request."""
        return {method.full_name: method for area in self.areas.values() for method in area.methods.values()}

    @cached_property
    def c_functions(self) -> Mapping[str, Method]:
        """The functions of the host interface by name, in the specification's order."""
        return {name: method for name, method in self.areas["runtime"].methods.items() if method.c}

    def allows_null(self, declared: Type) -> bool:
        """True if a value of a type may be null."""
        match declared:
            case Named(name):
                return self.allows_null(self.types[name].type)
            case Union(alternatives):
                return any(map(self.allows_null, alternatives))
        return declared == Builtin("null")


@cache
def interface() -> Interface:
    """The interface of this suite. Raises `InterfaceError`."""
    return read_files([SESSION, *chapter_files("interface.toml").values()])


def feature_of(method: str, params: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the feature that a request needs, by the name of its method; "" if it needs none.

    `{at}` in a declared feature is the level of IR that the request asks about, `graph` where it names none.
    """
    declared = interface().methods.get(method)
    return declared.feature.format(at=params.get("at", "graph")) if declared else ""


def read_files(paths: list[Path]) -> Interface:
    """The interface that some files declare together. Raises `InterfaceError`."""
    areas: dict[str, Area] = {}
    enumerators: dict[str, tuple[str, ...]] = {}
    for path in paths:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        enumerators |= {name: tuple(text.split()) for name, text in document.pop("enumerators", {}).items()}
        try:
            areas |= {area.name: area for area in _areas(document)}
        except (TypeSyntaxError, TypeError) as error:
            raise InterfaceError(f"{path}: {error}") from None
    interface = Interface(areas, enumerators)
    _check(interface)
    return interface


def _areas(document: Mapping[str, Any]) -> Iterator[Area]:
    for name, stated in document["areas"].items():
        types = {key: _named(name, key, told) for key, told in document.get("types", {}).get(name, {}).items()}
        methods = {method: _method(name, method, told) for method, told in document.get(name, {}).items()}
        yield Area(name, stated["title"], read_fields(stated.get("also", "")), types, methods)


def _named(area: str, name: str, stated: str | Mapping[str, Any]) -> NamedType:
    whole = {"is": stated} if isinstance(stated, str) else dict(stated)
    return NamedType(name, area, read_type(whole.pop("is")), **whole)


def _method(area: str, name: str, stated: Mapping[str, Any]) -> Method:
    whole = dict(stated)
    parameters, result = read_call(whole.pop("call"))
    return Method(area, name, parameters, result, tuple(whole.pop("clauses", ())), **whole)


def _check(interface: Interface) -> None:
    names = [name for area in interface.areas.values() for name in area.types]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InterfaceError(f"declared twice: {', '.join(twice)}")
    roots = [type_.type for type_ in interface.types.values()]
    roots += [parameter.type for method in interface.methods.values() for parameter in method.parameters]
    roots += [method.result for method in interface.methods.values()]
    unknown = sorted({name for root in roots for name in _names(root)} - set(names))
    if unknown:
        raise InterfaceError(f"no type is called {', '.join(unknown)}")


def _names(root: Type) -> Iterator[str]:
    """The named types in a type."""
    match root:
        case Named(name):
            yield name
        case ListOf(item):
            yield from _names(item)
        case MapOf(value):
            yield from _names(value)
        case Record(members):
            for member in members:
                yield from _names(member.type)
        case Union(alternatives):
            for alternative in alternatives:
                yield from _names(alternative)
