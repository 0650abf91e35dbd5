"""Writes the page of operations, operations.md, from their declarations: `python docs/draw_operations.py`."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import tessera_reference.graph  # noqa: F401  # declares every operation
from tessera_reference.graph import elementwise
from tessera_reference.ir.operation import OPERATIONS, Composite, Derived, Operation, Role, Stepwise
from tessera_reference.ir.types import LAYOUTS
from tessera_reference.numerics.formats import DType

PAGE = Path(__file__).parent / "operations.md"

INTRODUCTION = """# Operations

Every operation of Graph IR as the reference has it, by family: how the language writes it, what it takes and gives, and
what its gradient is. An operand is written by position, an attribute by name, in parentheses or in the attribute
block; one without a default has to be given. The texts name a few of these operations; the others are features that
an implementation may claim (AMB-LANG-101).

This page is written by `python docs/draw_operations.py` from the declarations in `reference/tessera_reference/graph`.
"""

KINDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a word",
    DType: "a dtype",
    tuple: "a list",
}


def page() -> str:
    """The whole page."""
    families: dict[str, list[type[Operation]]] = {}
    for declared in of_graph():
        families.setdefault(declared.__module__, []).append(declared)
    parts = [INTRODUCTION, *(family(name, families[name]) for name in sorted(families))]
    return "\n".join(parts)


def of_graph() -> list[type[Operation]]:
    """The operations of Graph IR; whatever else has been imported, those of other levels are not among them."""
    return [declared for name, declared in OPERATIONS.items() if name.startswith("tessera.graph.")]


def family(module: str, operations: list[type[Operation]]) -> str:
    """The operations of one module, in the order in which it declares them."""
    title = module.rpartition(".")[2].replace("_", " ").capitalize()
    return "\n".join([f"## {title}\n", f"{text_of(sys.modules[module])}\n", *map(described, operations)])


def described(declared: type[Operation]) -> str:
    """One operation."""
    lines = [f"### {heading(declared)}\n", f"{text_of(declared)}\n", *(f"- {line}" for line in facts(declared)), ""]
    return "\n".join(lines)


def heading(declared: type[Operation]) -> str:
    """Return the spelling in the language; where only statements and expressions mean it, the name in the IR."""
    return ", ".join(f"`{spelling}`" for spelling in declared.spellings) or f"`{declared.name}`"


def facts(declared: type[Operation]) -> Iterator[str]:
    """Return the facts that take a line each."""
    yield f"in the IR: `{declared.name}`"
    for name, role in declared.roles.items():
        if role in (Role.OPERAND, Role.OPERANDS):
            yield f"operand `{name}`: {kinds_text(declared, name)}{', any number of them' * (role is Role.OPERANDS)}"
    for field in fields(declared):  # type: ignore[arg-type]  # every operation is a dataclass
        if declared.roles[field.name] is Role.ATTRIBUTE:
            yield f"attribute `{field.name}`: {hint_text(declared.hints[field.name])}{default_text(field.default)}"
    yield f"result: {sentence(declared.infer)}"
    yield f"gradient: {gradient_text(declared)}"
    if declared.regions:
        yield f"regions: {', '.join(declared.regions)}"
    yield f"effects: {', '.join(sorted(declared.effects)) or 'none'}"
    if any(role in (Role.OPERAND, Role.OPERANDS) for role in declared.roles.values()):
        yield f"layouts: {', '.join(layout for layout in LAYOUTS if layout in declared.layouts)}"
    yield f"clauses: {', '.join(declared.clauses)}"


def kinds_text(declared: type[Operation], name: str) -> str:
    """Return the words for the types of an operand."""
    hint = declared.hints[name]
    inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
    kinds = get_args(inner) if isinstance(inner, UnionType) else (inner,)
    if len(kinds) > 2:
        return "a value of any type"
    return " or ".join(f"a {kind.__name__.lower()}" if isinstance(kind, type) else "anything" for kind in kinds)


def hint_text(hint: Any) -> str:
    """Return the words for the values of an attribute."""
    if isinstance(hint, UnionType):
        return " or ".join(hint_text(argument) for argument in get_args(hint) if argument is not NoneType)
    if get_origin(hint) is tuple and get_args(hint)[0] in (int, str):
        return f"a list of {'integers' if get_args(hint)[0] is int else 'words'}"
    return KINDS.get(get_origin(hint) or hint, "a value")


def default_text(default: Any) -> str:
    """Return the words for a default."""
    if default is MISSING:
        return ""
    if isinstance(default, Derived):
        return ", by default what follows from the operands"
    if default is None:
        return ", by default none"
    if isinstance(default, bool):
        return f", by default `{str(default).lower()}`"
    return f", by default `{default.name if isinstance(default, DType) else default}`"


def gradient_text(declared: type[Operation]) -> str:
    """Return the words for the source of the derivative (AMB-LANG-59)."""
    if not declared.is_differentiable():
        return "none; a `grad` that would have to go through it is refused (LANG-05.5-02)"
    if issubclass(declared, elementwise.ElementaryFunction):
        return f"`{formulas()[declared.name.rpartition('.')[2]]}`"
    if declared.adjoint is not Operation.adjoint:
        return sentence(getattr(declared, "pullback", declared.adjoint))
    if issubclass(declared, Composite):
        return "that of the operations it stands for"
    assert issubclass(declared, Stepwise)
    return "that of what it runs"


@cache
def formulas() -> Mapping[str, str]:
    """Return the gradient of each elementary function as its table writes it."""
    source = ast.walk(ast.parse(inspect.getsource(elementwise)))
    table = next(
        statement.value
        for statement in source
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Dict)
    )
    rows = zip(elementwise.FUNCTIONS, table.values, strict=True)
    return {name: ast.unparse(row.elts[1].body) for name, row in rows}  # type: ignore[attr-defined]  # pairs, lambdas


def text_of(documented: Any) -> str:
    """A docstring as Markdown: what is no code is meant literally."""
    parts = (inspect.getdoc(documented) or "").split("`")
    return "`".join(part if code % 2 else literal(part) for code, part in enumerate(parts))


def literal(text: str) -> str:
    """Text without the signs that Markdown takes for markup."""
    return text.replace("*", r"\*").replace("<", r"\<").replace("|", r"\|")


def sentence(documented: Any) -> str:
    """Return a docstring on one line, as a phrase that follows a colon."""
    return " ".join(text_of(documented).split()).removeprefix("Return ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
