"""The syntax tree as a person reads it: one node a line, with its span (`tessera-reference print --level=ast`)."""

from __future__ import annotations

from dataclasses import fields

from ..ir.diagnostics import Span
from .syntax import Node, Program


def print_tree(program: Program) -> str:
    """Each node with its place, its own fields, and its children below it, under the name of their field."""
    lines = []
    pending: list[tuple[int, str, Node]] = [(0, "", program)]
    while pending:
        depth, label, node = pending.pop()
        own, children = [], []
        for field in fields(node):
            held = getattr(node, field.name)
            items = held if isinstance(held, tuple) else (held,)
            if any(isinstance(item, Node) for item in items):
                children += [(depth + 1, f"{field.name}: ", item) for item in items]
            elif field.name != "span" and held not in (None, ()):
                own.append(f" {field.name}={place(held) if isinstance(held, Span) else repr(held)}")
        lines.append(f"{'  ' * depth}{label}{type(node).__name__} {place(node.span)}{''.join(own)}\n")
        pending.extend(reversed(children))
    return "".join(lines)


def place(span: Span) -> str:
    """A span as line:column-line:column."""
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
