"""The units of a plan: what stands in a queue, and which units must have ended before it starts (COLL-08-09, -10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Fold", "Options", "Part", "Unit"]


@dataclass(frozen=True)
class Options:
    """What a plan is made for."""

    tile: int | None = None
    """Bytes of the tiles in which tensors are produced; an element where left out."""
    max_inflight: int | None = None
    """Chunks under way at a time, of all collectives; any number where left out."""
    depth: int | None = None
    """Buffers of a collective; one for each chunk where left out."""


@dataclass(frozen=True)
class Part:
    """Where a tensor lies in a fused collective: its elements, row-major."""

    value: str
    first: int
    count: int


@dataclass(frozen=True)
class Fold:
    """A scaling or cast that a collective does: `by` is a value or a dtype."""

    kind: str
    at: str
    by: str


@dataclass(frozen=True)
class Unit:
    """A tile's worth of compute, a wait, or one chunk of a collective."""

    id: int
    queue: Literal["compute", "comm"]
    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    after: tuple[int, ...]
    chunk: tuple[int, int] | None = None
    buffer: int | None = None
    wire: str | None = None
    reduces_in: str | None = None
    parts: tuple[Part, ...] = ()
    folds: tuple[Fold, ...] = ()

    def __str__(self) -> str:
        left = f"{', '.join(self.results)} = " if self.results else ""
        text = f"{self.id} {self.queue}: {left}{self.op}({', '.join(self.operands)})"
        if self.chunk is not None:
            text += f" [{self.chunk[0]}:{sum(self.chunk)}]"
        text += "" if self.buffer is None else f" buffer {self.buffer}"
        text += "" if self.wire is None else f" over {self.wire}"
        text += "" if self.reduces_in is None else f" in {self.reduces_in}"
        text += "".join(f" {each.value}[{each.first}:{each.first + each.count}]" for each in self.parts)
        text += "".join(f" {each.kind} {each.at} by {each.by}" for each in self.folds)
        return text + (f" after {', '.join(map(str, self.after))}" if self.after else "")
