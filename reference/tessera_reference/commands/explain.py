"""What a program consists of and what it does, in words: `tessera-reference explain` and `run --trace`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

from ..ir.module import Function, Instruction, Module
from ..ir.operation import Operation
from ..numerics.array import Array
from ..schedule.execution import Event


def explain(module: Module) -> Iterator[str]:
    """Each function with its signature, and each operation in it: how often, what it does, effects, clauses, lines."""
    for name, mesh in module.meshes.items():
        yield f"mesh @{name}: {mesh}, {mesh.size} ranks"
    for function in module.functions.values():
        kind = "kernel" if function.kernel else "func"
        yield f"{kind} {signature(function)}"
        instructions = list(function.body.walk())
        counts = Counter(instruction.operation.name for instruction in instructions)
        for operation_name, count in sorted(counts.items()):
            places = [each for each in instructions if each.operation.name == operation_name]
            yield f"  {count:>4} x {operation_name}: {summary(type(places[0].operation))}"
            lines = sorted({each.location.span.line for each in places})
            shown = ", ".join(map(str, lines[:8])) + ", ..." * (len(lines) > 8)
            effects = ", ".join(sorted(places[0].operation.effects)) or "none"
            clauses = ", ".join(places[0].operation.clauses)
            yield f"         effects: {effects}; line {shown}; {clauses}"


def signature(function: Function) -> str:
    """`name(A: type, ...) -> type`."""
    parameters = ", ".join(f"{value.name}: {value.type}" for value in function.parameters)
    results = ", ".join(map(str, function.results))
    return f"@{function.name}({parameters})" + (f" -> {results}" if results else "")


def summary(operation: type[Operation]) -> str:
    """The first sentence of an operation's documentation."""
    return " ".join((operation.__doc__ or "").partition("\n\n")[0].split())


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
