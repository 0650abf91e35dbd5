"""Errors of running kernels, as types with fields: which threads, which element, what they did.

The interpreter reports each as a diagnostic of category tile, at the instruction that failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..numerics.errors import NumericsFailure

Access = Literal["reads", "writes"]
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Who:
    """One thread of a block, a warp of it, or, with neither known, several of its threads."""

    block: Place
    thread: Place | None = None
    warp: int | None = None

    def __str__(self) -> str:
        inside = "several threads"
        if self.thread is not None:
            inside = f"thread {self.thread}"
        elif self.warp is not None:
            inside = f"warp {self.warp}"
        return f"{inside} of block {self.block}"


@dataclass(frozen=True)
class Address:
    """An element, or, where the indices name none, the indices."""

    memory: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.memory}[{', '.join(map(str, self.indices))}]"


class KernelFault(NumericsFailure):
    """Base of the errors of a running kernel."""

    requirement: ClassVar[str] = ""
    clause: ClassVar[str] = ""
    remedy: ClassVar[str] = ""


class OutOfBounds(KernelFault):
    """`who` accesses `address`, outside a memory of this shape."""

    requirement = "indices from 0 up to the extent of each dimension"
    clause = "LANG-08.3-01"

    def __init__(self, who: Who, address: Address, shape: tuple[int, ...]) -> None:
        super().__init__(who, address, shape)
        self.who, self.address, self.shape = who, address, shape

    def __str__(self) -> str:
        return f"{self.who} goes to {self.address}, out of bounds: the shape is {list(self.shape)}"


class Misaligned(KernelFault):
    """`who` accesses `address`, whose first byte `offset` is no multiple of `alignment`."""

    requirement = "addresses that are multiples of what is moved at once"
    clause = "LANG-07.3-01"

    def __init__(self, who: Who, address: Address, offset: int, alignment: int) -> None:
        super().__init__(who, address, offset, alignment)
        self.who, self.address, self.offset, self.alignment = who, address, offset, alignment

    def __str__(self) -> str:
        return f"{self.who} goes to {self.address}, byte {self.offset}: not aligned to {self.alignment} bytes"


class Uninitialised(KernelFault):
    """`who` reads `address`, which nothing has written."""

    requirement = "elements that were written before"
    clause = "LANG-08.3-01"

    def __init__(self, who: Who, address: Address) -> None:
        super().__init__(who, address)
        self.who, self.address = who, address

    def __str__(self) -> str:
        return f"{self.who} reads {self.address}, which nothing has written"


class Unwritten(KernelFault):
    """The grid has ended, and `address`, an element of its results, was never written."""

    requirement = "every element of a result written"
    clause = "LANG-08.2-03"

    def __init__(self, address: Address, count: int) -> None:
        super().__init__(address, count)
        self.address, self.count = address, count

    def __str__(self) -> str:
        more = f", nor {self.count - 1} more" if self.count > 1 else ""
        return f"{self.address} was never written{more}"


class EarlyRead(KernelFault):
    """`who` accesses `address`, to which `copier` copies asynchronously, without `missing` in between."""

    requirement = "a wait of the copying thread, then a barrier, before others touch what it copies"
    clause = "LANG-07.2-04"

    def __init__(self, who: Who, access: Access, address: Address, copier: Who, missing: str) -> None:
        super().__init__(who, access, address, copier, missing)
        self.who, self.access, self.address, self.copier, self.missing = who, access, address, copier, missing

    def __str__(self) -> str:
        return f"{self.who} {self.access} {self.address}, which {self.copier} copies to, without {self.missing} between"


class Race(KernelFault):
    """`who` and `other` access `address` unordered, and at least one of them writes."""

    requirement = "a barrier between threads of a block, and no element that two blocks share and one writes"
    clause = "LANG-08.3-02"

    def __init__(self, who: Who, access: Access, address: Address, other: Who, before: Access) -> None:
        super().__init__(who, access, address, other, before)
        self.who, self.access, self.address, self.other, self.before = who, access, address, other, before

    def __str__(self) -> str:
        between = "in another block" if self.who.block != self.other.block else "without a barrier between"
        return f"race: {self.who} {self.access} {self.address}, which {self.other} {self.before} {between}"


class PartialBarrier(KernelFault):
    """`missing` does not arrive at a barrier of its block."""

    requirement = "a barrier that all threads of the block reach"
    clause = "LANG-08.3-02"

    def __init__(self, missing: Who, arrived: int, threads: int) -> None:
        super().__init__(missing, arrived, threads)
        self.missing, self.arrived, self.threads = missing, arrived, threads

    def __str__(self) -> str:
        return f"{self.arrived} of {self.threads} threads come to the barrier: {self.missing} does not"


class PartialWarp(KernelFault):
    """`missing` does not take part in `what`, which needs its whole warp; None where the block has no such thread."""

    requirement = "an operation that all lanes of the warp reach"
    clause = "LANG-07.2-03"

    def __init__(self, missing: Who | None, warp: int, what: str) -> None:
        super().__init__(missing, warp, what)
        self.missing, self.warp, self.what = missing, warp, what

    def __str__(self) -> str:
        why = f"{self.missing} does not" if self.missing else "the block has no more threads"
        return f"only part of warp {self.warp} comes to {self.what}: {why}"


class NotUniform(KernelFault):
    """`what` is `first` in one thread and `value` in `who`, but must be the same in all."""

    requirement = "one value in all threads that take part"
    clause = "LANG-08.2-03"

    def __init__(self, what: str, first: int, value: int, who: Who) -> None:
        super().__init__(what, first, value, who)
        self.what, self.first, self.value, self.who = what, first, value, who

    def __str__(self) -> str:
        return f"{self.what} differs between threads: {self.first}, and {self.value} in {self.who}"


class AbsentLane(KernelFault):
    """`who` exchanges with lane `source` of its warp, which is `why`: inactive, missing, or outside the mask."""

    requirement = "lanes that are active and in the mask"
    clause = "LANG-07.2-06"

    def __init__(self, who: Who, source: int, why: str) -> None:
        super().__init__(who, source, why)
        self.who, self.source, self.why = who, source, why

    def __str__(self) -> str:
        return f"{self.who} reads lane {self.source} of its warp, which is {self.why}"
