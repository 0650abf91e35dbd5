"""The lines of `run --trace`: each executed operation, or each step on a tile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ..ir.module import Instruction
from ..numerics.array import Array
from ..schedule.execution import Event


def tracer(write: Callable[[str], None]) -> Callable[[Instruction, tuple[Array, ...]], None]:
    """An observer that writes a line for every executed operation: its place, its results, a digest of their bits."""

    def observe(instruction: Instruction, results: tuple[Array, ...]) -> None:
        span = instruction.location.span
        values = [
            f"%{value.name} {array.dtype}{list(array.shape)} {digest(array)}"
            for value, array in zip(instruction.results, results, strict=True)
        ]
        write(f"{span.line}:{span.column} {instruction.operation.name} {'; '.join(values)}".rstrip())

    return observe


def event_tracer(write: Callable[[str], None]) -> Callable[[Event], None]:
    """An observer that writes a line for everything that is done with a tile: of which nest, and in which buffer."""

    def observe(event: Event) -> None:
        buffer = f" in buffer {event.slot}" if event.slot >= 0 else ""
        write(f"nest {event.nest} {event.kind} tile {list(event.tile)}{buffer}")

    return observe


def digest(array: Array) -> str:
    """Sixteen hexadecimal digits that tell arrays with different bits apart."""
    return hashlib.sha256(array.to_bits()).hexdigest()[:16]
