"""A front end true to the printed grammar (section 2.3), which refuses what an interpretation adds to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter import language as adapter_language
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.language import parse, syntax

COMPILER: Any = sys.modules["tessera_reference.language.modules"]


def keyword_arguments(node: Any) -> Iterator[syntax.Keyword]:
    """Yield the keyword arguments of the calls in a tree."""
    if isinstance(node, syntax.Call):
        yield from node.keywords
    if is_dataclass(node):
        for field in fields(node):
            yield from keyword_arguments(getattr(node, field.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from keyword_arguments(part)


def parse_as_printed(*arguments: Any, **options: Any) -> syntax.Program:
    """Parse a program whose attributes stand in blocks; refuse a keyword argument as a syntax error."""
    program = parse(*arguments, **options)
    for keyword in keyword_arguments(program):
        message, requirement = f"{keyword.name} is no expression", "the grammar of section 2.3"
        remedy = "write attributes in a block behind the call"
        diagnostic = Diagnostic("syntax", "parse", message, keyword.span, "", (), requirement, "LANG-02.3-34", remedy)
        raise Rejection([diagnostic])
    return program


KEYWORDS = altered(
    "AMB-LANG-14",
    "refuses keyword arguments, which the printed grammar lacks",
    ("ir/constructs/*", "ir/expressions/*", "ir/softmax/*", "ir/reductions/*", "ir/collectives/*", "ir/directives/*"),
    ReferenceAdapter,
    (adapter_language, "parse", parse_as_printed),
    (COMPILER, "parse", parse_as_printed),
    name="keyword_arguments",
)
