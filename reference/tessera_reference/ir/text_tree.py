"""What IR text says, before anything in it has a meaning: operations in blocks, names, attributes and types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .diagnostics import Location
from .types import Type


@dataclass(slots=True)
class Name:
    """A value's name, without its `%`, and where it stands."""

    text: str
    start: int
    type: Type | None = None
    """Of a block's argument."""
    label: str = ""
    """Of an operand written `%wrt(%x)`."""
    count: int = 1
    """Of a result written `%x:2`, which names that many."""


@dataclass(slots=True)
class Given:
    """An attribute's value and where the attribute stands."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Signature:
    """A type attribute, `(T, T) -> (T)`."""

    operands: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(slots=True)
class TextBlock:
    """A region; it has one block."""

    arguments: list[Name] = field(default_factory=list)
    operations: list[TextOperation] = field(default_factory=list)
    end: int = 0
    """Where its closing brace stands."""


@dataclass(slots=True)
class TextOperation:
    """An operation as it is written; `start` and `end` enclose what stands before its regions."""

    name: str
    start: int
    end: int
    results: list[Name]
    operands: list[Name]
    regions: list[TextBlock] = field(default_factory=list)
    attributes: dict[str, Given] = field(default_factory=dict)
    operand_types: tuple[Type, ...] | None = None
    result_types: tuple[Type, ...] | None = None
    location: Location | None = None

    def walk(self) -> Iterator[TextOperation]:
        """It and every operation in its regions."""
        pending = [self]
        while pending:
            operation = pending.pop()
            yield operation
            pending += [inner for block in operation.regions for inner in block.operations]
