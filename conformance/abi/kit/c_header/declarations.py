"""The declarations of a C header: prototypes, structures, enumerations and handles, compared as C compares types.

A header may choose the names of parameters, tags and further typedefs: a type is written out with every typedef
resolved, so that `unsigned int` is `unsigned`, an array parameter is a pointer, and a name that the specification gives
stands for the header's declaration of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from .constants import evaluate, evaluate_text
from .errors import UnreadableHeader
from .preprocessing import expanded, preprocess
from .types import FUNDAMENTAL, Types, adjusted

__all__ = ["CHeader", "Prototype", "read_header"]


@dataclass(frozen=True)
class Prototype:
    """The types of a function's result and parameters."""

    result: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class CHeader:
    """The declarations of a header; a missing one is None."""

    functions: Mapping[str, c_ast.FuncDecl]
    types: Types
    macros: Mapping[str, str]

    def prototype(self, name: str) -> Prototype | None:
        """Return the prototype of a function."""
        function = self.functions.get(name)
        return None if function is None else self._prototype(function)

    def expected(self, declaration: str) -> Prototype:
        """Return the prototype of a declaration whose types are those of the header."""
        names = sorted(self.types.typedefs.keys() | _names(declaration))
        unit = _parsed("".join(f"typedef int {name};\n" for name in names) + declaration)
        return self._prototype(unit.ext[-1].type)

    def members(self, name: str) -> tuple[tuple[str, str], ...] | None:
        """Return the members of the structure of that name and their types, in order."""
        structure = self.types.structure(name)
        if structure is None:
            return None
        return tuple((decl.name, self.types.text(decl.type)) for decl in structure.decls or ())

    def enumerators(self, name: str) -> tuple[tuple[str, int], ...] | None:
        """Return the enumerators of the enumeration of that name and their values, in order."""
        found = self.types.enumeration(name)
        return (
            None if found is None else tuple((enumerator.name, self.constants[enumerator.name]) for enumerator in found)
        )

    def is_opaque_handle(self, name: str) -> bool:
        """True if a name is a pointer to a structure that the header does not define."""
        return self.types.points_to_incomplete(name)

    def value(self, name: str) -> int | None:
        """Return the value of an enumerator, or of a macro that is an integer."""
        if name in self.constants or name not in self.macros:
            return self.constants.get(name)
        try:
            return evaluate_text(expanded(self.macros[name], self.macros), self.constants)
        except UnreadableHeader:
            return None

    @cached_property
    def constants(self) -> Mapping[str, int]:
        """Every enumerator of the header."""
        known: dict[str, int] = {}
        for enumeration in self.types.every_enumeration:
            last = -1
            for enumerator in enumeration.enumerators:
                last = last + 1 if enumerator.value is None else evaluate(enumerator.value, known)
                known[enumerator.name] = last
        return known

    def _prototype(self, function: c_ast.FuncDecl) -> Prototype:
        given = function.args.params if function.args is not None else []
        types = [
            "..." if isinstance(parameter, c_ast.EllipsisParam) else self.types.text(adjusted(parameter.type))
            for parameter in given
        ]
        return Prototype(self.types.text(function.type), () if types == ["void"] else tuple(types))


@cache
def read_header(text: str) -> CHeader:
    """Return the declarations of a header, parsed once for many cases. Raises `UnreadableHeader`."""
    preprocessed = preprocess(text)
    preamble = "".join(f"typedef int {name};" for name in sorted(FUNDAMENTAL))
    unit = _parsed(f"{preamble}\n{preprocessed.code}")
    functions = {
        declaration.name: declaration.type
        for declaration in unit.ext
        if isinstance(declaration, c_ast.Decl) and isinstance(declaration.type, c_ast.FuncDecl)
    }
    return CHeader(functions, Types.of(unit), preprocessed.macros)


def _parsed(text: str) -> c_ast.FileAST:
    try:
        return CParser().parse(text)
    except (ParseError, RecursionError, AssertionError) as error:
        raise UnreadableHeader(f"this cannot be read as C: {error}") from None


def _names(declaration: str) -> set[str]:
    """Return the names of types in a prototype of the specification, whose second word is the name of the function."""
    words = re.findall(r"\w+", declaration)
    return {word for word in words if re.match("tess[A-Z]", word) and word != words[1]} | FUNDAMENTAL
