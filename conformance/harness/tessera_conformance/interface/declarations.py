"""Reads every `interface.toml` into areas, named types and methods, and checks that each name means something."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tessera_conformance.interface.types import (
    Builtin,
    Field,
    ListOf,
    MapOf,
    Named,
    Record,
    Type,
    TypeSyntaxError,
    Union,
    read_call,
    read_fields,
    read_type,
)
from tessera_conformance.locations import rooms

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
    """A method of the protocol; `c` are the parameters of the C function that it stands for."""

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
        return tuple(each.name for each in self.parameters if each.type in types)

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
        return {name: each for area in self.areas.values() for name, each in area.types.items()}

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Every method by its name in a request."""
        return {each.full_name: each for area in self.areas.values() for each in area.methods.values()}

    @cached_property
    def c_functions(self) -> Mapping[str, Method]:
        """The functions of the host interface by name, in the specification's order."""
        return {name: each for name, each in self.areas["runtime"].methods.items() if each.c}

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
    return read_files([SESSION, *rooms("interface.toml").values()])


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
            areas |= {each.name: each for each in _areas(document)}
        except (TypeSyntaxError, TypeError) as error:
            raise InterfaceError(f"{path}: {error}") from None
    found = Interface(areas, enumerators)
    _check(found)
    return found


def _areas(document: Mapping[str, Any]) -> Iterator[Area]:
    for name, stated in document["areas"].items():
        types = {each: _named(name, each, told) for each, told in document.get("types", {}).get(name, {}).items()}
        methods = {each: _method(name, each, told) for each, told in document.get(name, {}).items()}
        yield Area(name, stated["title"], read_fields(stated.get("also", "")), types, methods)


def _named(area: str, name: str, stated: str | Mapping[str, Any]) -> NamedType:
    whole = {"is": stated} if isinstance(stated, str) else dict(stated)
    return NamedType(name, area, read_type(whole.pop("is")), **whole)


def _method(area: str, name: str, stated: Mapping[str, Any]) -> Method:
    whole = dict(stated)
    parameters, result = read_call(whole.pop("call"))
    return Method(area, name, parameters, result, tuple(whole.pop("clauses", ())), **whole)


def _check(found: Interface) -> None:
    names = [name for area in found.areas.values() for name in area.types]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InterfaceError(f"declared twice: {', '.join(twice)}")
    roots = [each.type for each in found.types.values()]
    roots += [each.type for method in found.methods.values() for each in method.parameters]
    roots += [method.result for method in found.methods.values()]
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
            for each in members:
                yield from _names(each.type)
        case Union(alternatives):
            for alternative in alternatives:
                yield from _names(alternative)
