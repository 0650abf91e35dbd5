"""Writing the body of one kernel as LLVM IR: names, lines, basic blocks, and what the body needs declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from ...ir.module import Block, Value
from ...ir.types import Type
from .types import llvm_type


class Emitted(Protocol):
    """An operation that can be written as LLVM IR."""

    def emit(self, text: Writer, *operands: Any) -> Any:
        """Write it; the name of its result, or a tuple of names, given those of its operands."""


@dataclass(frozen=True)
class Entry:
    """What the operations of a kernel see of its entry."""

    vendor: str
    """`nvidia`, `amd`, or `host` for native code, where a thread is one call."""
    warp: int
    block: tuple[int, int, int]
    hidden: Mapping[str, str] = field(default_factory=dict)
    """The names of hidden parameters."""

    @property
    def is_host(self) -> bool:
        """Whether this is native code, whose pointers are plain."""
        return self.vendor == "host"


class Writer:
    """The lines of one kernel, written from the first to the last."""

    def __init__(self, entry: Entry, kernel: str) -> None:
        self.entry = entry
        self.kernel = kernel
        self.lines: list[str] = []
        self.declarations: dict[str, None] = {}
        self.globals: dict[str, None] = {}
        self.label = "entry"
        self._names: dict[Value, str] = {}
        self._regions: tuple[Block, ...] = ()
        self._count = 0

    def fresh(self, hint: str = "") -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{hint}{self._count}"

    def type(self, type_: Type) -> str:
        """A type as it is spelt here."""
        return llvm_type(type_, self.entry.is_host)

    def value(self, instruction: str) -> str:
        """Append an instruction with a result; its name."""
        name = f"%v{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def later(self) -> int:
        """Leave a line open, which `fill` writes: a phi names values that come after it."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, line: int, instruction: str) -> None:
        """Write a line that was left open."""
        self.lines[line] = f"  {instruction}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def call(self, result: str, function: str, *arguments: str) -> str:
        """Call a function or intrinsic, declaring it; arguments are `type name`. What it returns."""
        types = ", ".join(_type_of(argument) for argument in arguments)
        self.declarations[f"declare {result} @{function}({types})"] = None
        call = f"call {result} @{function}({', '.join(arguments)})"
        if result == "void":
            self.do(call)
            return ""
        return self.value(call)

    def region(self, index: int, *arguments: str) -> tuple[str, ...]:
        """Write a region of the instruction that is being written; the names of what it yields."""
        return self.block(self._regions[index], arguments)

    def block(self, block: Block, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Write the instructions of a block; the names of what it hands back."""
        self._names.update(zip(block.arguments, arguments, strict=True))
        outer = self._regions
        for instruction in block.instructions:
            self._regions = instruction.regions
            operation = cast(Emitted, instruction.operation)
            made = operation.emit(self, *[self._names[operand] for operand in instruction.operands])
            self._names.update(zip(instruction.results, made if isinstance(made, tuple) else (made,), strict=True))
        self._regions = outer
        return tuple(self._names[result] for result in block.results)


def _type_of(argument: str) -> str:
    """The type of `type name`."""
    return argument.rpartition(" ")[0]
