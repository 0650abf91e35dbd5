"""A kernel that is ready to run: its instructions as calls, its values as slots of a frame (spec section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ..ir.module import Instruction, Value
from ..ir.types import Fragment
from ..numerics.formats import DType

Call: TypeAlias = Callable[..., Any]

Part = Literal["a", "b", "c"]


@dataclass(frozen=True)
class FragmentUse:
    """One of the operands of mma.sync; an accumulator has its dtype."""

    part: Part
    accum: DType | None = None

    def shape(self, fragment: Fragment) -> tuple[int, int]:
        """Rows and columns."""
        return {
            "a": (fragment.m, fragment.k),
            "b": (fragment.k, fragment.n),
            "c": (fragment.m, fragment.n),
        }[self.part]

    def __str__(self) -> str:
        return f"an accumulator of {self.accum}" if self.part == "c" and self.accum else self.part.upper()


class Step(NamedTuple):
    """An instruction: the function to call with the block and the operands' slots, and the slots of its results."""

    call: Call
    operands: tuple[int, ...]
    results: tuple[int, ...]
    instruction: Instruction
    regions: tuple[Code, ...]


@dataclass(frozen=True)
class Code:
    """A region's instructions, and the slots of its arguments and of the values that it yields."""

    steps: tuple[Step, ...]
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A whole kernel; `places` is the size of its frame, `written` the parameters that it stores to."""

    code: Code
    places: int
    uses: Mapping[Value, FragmentUse]
    written: frozenset[Value]
