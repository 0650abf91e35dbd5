from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pytest

from tessera_reference.ir.diagnostics import Span
from tessera_reference.language import (
    CompiledModule,
    Diagnostic,
    Rejection,
    UnsupportedConstruct,
    compile_source,
    parse,
)
from tessera_reference.language.syntax import Node

HEADER = "module m {\nfunc f(A: tensor<4x8xfp32>, B: tensor<6x8xfp32>, H: tensor<4x8xbf16>, i: int32, c: bool) {\n"
"""A body stands in lines 3 and following."""

Rejects = Callable[[str], Diagnostic]
Accepts = Callable[[str], CompiledModule]


def in_function(body: str) -> str:
    return f"{HEADER}{body}\n}}\n}}\n"


@pytest.fixture
def rejects() -> Rejects:
    """The only diagnostic of an illegal program."""

    def check(source: str) -> Diagnostic:
        with pytest.raises(Rejection) as caught:
            compile_source(source, "t.tsr")
        (found,) = caught.value.diagnostics
        assert found.severity == "error"
        return found

    return check


@pytest.fixture
def rejects_body(rejects: Rejects) -> Rejects:
    return lambda body: rejects(in_function(body))


@pytest.fixture
def accepts() -> Accepts:
    return lambda source: compile_source(source, "t.tsr")


@pytest.fixture
def unsupported() -> Callable[[str], UnsupportedConstruct]:
    def check(source: str) -> UnsupportedConstruct:
        with pytest.raises(UnsupportedConstruct) as caught:
            compile_source(source, "t.tsr")
        return caught.value

    return check


@pytest.fixture
def syntax_errors() -> Callable[[str], tuple[Diagnostic, ...]]:
    """All that is wrong with a text, nothing where it parses."""

    def check(source: str) -> tuple[Diagnostic, ...]:
        refusal = None
        try:
            parse(source, "t.tsr")
        except Rejection as rejection:
            refusal = rejection
        if refusal is None:
            return ()
        assert refusal.diagnostics
        assert {found.category for found in refusal.diagnostics} == {"syntax"}
        assert {found.phase for found in refusal.diagnostics} <= {"lex", "parse"}
        return refusal.diagnostics

    return check


@pytest.fixture
def bare() -> Callable[[object], object]:
    """A tree without its places: equal for two texts that mean the same tree."""

    def strip(item: object) -> object:
        if isinstance(item, tuple):
            return tuple(strip(part) for part in item)
        if isinstance(item, Node):
            kept = (getattr(item, field.name) for field in fields(item))
            return type(item).__name__, *(strip(value) for value in kept if not isinstance(value, Span))
        return item

    return strip


@pytest.fixture
def children() -> Callable[[Node], list[Node]]:
    """The nodes right under a node, in the order of its fields."""

    def below(node: Node) -> list[Node]:
        held = [getattr(node, field.name) for field in fields(node)]
        items = [item for value in held for item in (value if isinstance(value, tuple) else (value,))]
        return [item for item in items if isinstance(item, Node)]

    return below


@pytest.fixture
def depth_of(children: Callable[[Node], list[Node]]) -> Callable[[Node], int]:
    """The number of nodes on the longest way from the root of a tree to a leaf, found without recursion."""

    def depth(tree: Node) -> int:
        level, found = [tree], 0
        while level:
            found += 1
            level = [child for node in level for child in children(node)]
        return found

    return depth
