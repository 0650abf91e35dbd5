"""Types of C, written out with every typedef resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pycparser import c_ast

from .errors import UnreadableHeader

__all__ = ["FUNDAMENTAL", "Types", "adjusted"]

FUNDAMENTAL = {"size_t", "ptrdiff_t", "wchar_t", "intptr_t", "uintptr_t", "bool"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Types of the standard headers, which are not resolved further."""

DEEPEST = 64
"""The longest chain of typedefs that stand for one another."""


def adjusted(node: Any) -> Any:
    """Return the type of a parameter in a call: an array is a pointer, and the parameter's own const is dropped."""
    if isinstance(node, c_ast.ArrayDecl):
        return c_ast.PtrDecl([], node.type)
    if isinstance(node, c_ast.TypeDecl):
        return c_ast.TypeDecl(node.declname, [], None, node.type)
    return c_ast.PtrDecl([], node.type) if isinstance(node, c_ast.PtrDecl) else node


@dataclass(frozen=True)
class Types:
    """The typedefs of a header and its structures by tag; a structure or an enumeration may have a typedef only."""

    typedefs: Mapping[str, Any]
    structures: Mapping[str, c_ast.Struct]
    enumerations: Mapping[str, c_ast.Enum]
    every_enumeration: Sequence[c_ast.EnumeratorList]

    @classmethod
    def of(cls, unit: c_ast.FileAST) -> Types:
        """Return the types that a header declares."""
        answer = _Collector()
        answer.visit(unit)
        return cls(answer.typedefs, answer.structures, answer.enumerations, answer.values)

    def structure(self, name: str) -> c_ast.Struct | None:
        """Return the structure of a typedef or tag; None if it is not defined."""
        node = self._meant(name)
        if isinstance(node, c_ast.Struct) and node.decls is None:
            node = self.structures.get(node.name)
        return node if isinstance(node, c_ast.Struct) else None

    def enumeration(self, name: str) -> Sequence[c_ast.Enumerator] | None:
        """Return the enumerators of a typedef's enumeration."""
        node = self._meant(name)
        if isinstance(node, c_ast.Enum) and node.values is None:
            node = self.enumerations.get(node.name)
        return node.values.enumerators if isinstance(node, c_ast.Enum) else None

    def points_to_incomplete(self, name: str) -> bool:
        """True if a typedef is a pointer to a structure without members."""
        node = self._meant(name)
        if not isinstance(node, c_ast.PtrDecl):
            return False
        inner = node.type.type if isinstance(node.type, c_ast.TypeDecl) else None
        if isinstance(inner, c_ast.IdentifierType) and len(inner.names) == 1:
            inner = self._meant(inner.names[0])
        return isinstance(inner, c_ast.Struct) and inner.decls is None and inner.name not in self.structures

    def text(self, node: Any, depth: int = 0) -> str:
        """Return the canonical spelling of a type. Raises `UnreadableHeader` for typedefs that stand for each other."""
        if depth > DEEPEST:
            raise UnreadableHeader("a typedef stands for itself")
        match node:
            case c_ast.PtrDecl():
                return f"{self.text(node.type, depth + 1)}*{''.join(f' {qual}' for qual in sorted(node.quals))}"
            case c_ast.ArrayDecl():
                extent = node.dim.value if isinstance(node.dim, c_ast.Constant) else "?"
                return f"{self.text(node.type, depth + 1)}[{extent}]"
            case c_ast.TypeDecl():
                return self._declared(node, depth)
            case c_ast.FuncDecl():
                given = node.args.params if node.args is not None else []
                types = ", ".join(self.text(parameter.type, depth + 1) for parameter in given)
                return f"{self.text(node.type, depth + 1)}({types})"
            case c_ast.Typename():
                return self.text(node.type, depth + 1)
            case _:
                raise UnreadableHeader(f"an unexpected type: {type(node).__name__}")

    def _declared(self, node: c_ast.TypeDecl, depth: int) -> str:
        qualifiers = "".join(f"{qual} " for qual in sorted(node.quals))
        inner = node.type
        if isinstance(inner, c_ast.Struct | c_ast.Enum | c_ast.Union):
            return f"{qualifiers}{type(inner).__name__.lower()} {inner.name or node.declname}"
        words = inner.names
        if len(words) == 1 and words[0] in self.typedefs and words[0] not in FUNDAMENTAL:
            meant = self.text(self.typedefs[words[0]], depth + 1)
            pointer = meant.endswith("*")
            return f"{meant}{' ' * bool(qualifiers)}{qualifiers}".strip() if pointer else f"{qualifiers}{meant}"
        return f"{qualifiers}{_fundamental(words)}"

    def _meant(self, name: str) -> Any:
        """Return the type behind a name: a structure, an enumeration, or the declaration of another type."""
        for _ in range(DEEPEST):
            node = self.typedefs.get(name)
            if not isinstance(node, c_ast.TypeDecl):
                return node
            inner = node.type
            if not isinstance(inner, c_ast.IdentifierType) or len(inner.names) != 1:
                return inner
            name = inner.names[0]
        raise UnreadableHeader(f"the typedef {name} stands for itself")


class _Collector(c_ast.NodeVisitor):  # type: ignore[misc]
    def __init__(self) -> None:
        self.typedefs: dict[str, Any] = {}
        self.structures: dict[str, c_ast.Struct] = {}
        self.enumerations: dict[str, c_ast.Enum] = {}
        self.values: list[c_ast.EnumeratorList] = []

    def visit_Typedef(self, node: c_ast.Typedef) -> None:  # noqa: N802, the names that pycparser looks for
        self.typedefs[node.name] = node.type
        self.generic_visit(node)

    def visit_Struct(self, node: c_ast.Struct) -> None:  # noqa: N802
        if node.name is not None and node.decls is not None:
            self.structures[node.name] = node
        self.generic_visit(node)

    def visit_Enum(self, node: c_ast.Enum) -> None:  # noqa: N802
        if node.values is not None:
            self.values.append(node.values)
            if node.name is not None:
                self.enumerations[node.name] = node


_SIZES = ("char", "double", "float", "long", "short")
_WORDS = {*_SIZES, "int", "signed", "unsigned"}


def _fundamental(words: Sequence[str]) -> str:
    """Return the canonical spelling of a type of the language: `unsigned int` for `unsigned`, `long` for `long int`."""
    if not _WORDS.issuperset(words):
        return "_Bool" if words == ["bool"] else " ".join(words)
    sign = ["unsigned"] if "unsigned" in words else ["signed"] if "signed" in words and "char" in words else []
    return " ".join([*sign, *(sorted(word for word in words if word in _SIZES) or ["int"])])
