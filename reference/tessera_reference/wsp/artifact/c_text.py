"""Small pieces of C."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NUMBER", "array", "block", "text"]

NUMBER = "uint32_t"


def text(value: str) -> str:
    """A string literal; names and paths need no escapes."""
    return f'"{value}"'


def array(kind: str, name: str, values: Sequence[object]) -> tuple[list[str], str]:
    """The definition of a constant array, and how it is referred to; C has no arrays without elements."""
    if not values:
        return [], "NULL"
    lines = [f"static const {kind} {name}[] = {{"]
    width = 16
    for start in range(0, len(values), width):
        lines.append(f"    {', '.join(map(str, values[start : start + width]))},")
    return [*lines, "};"], name


def block(head: str, lines: Sequence[str]) -> list[str]:
    """Lines in braces after a head."""
    return [f"{head} {{", *(f"    {each}" for each in lines), "}"]
