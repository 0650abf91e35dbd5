"""Tensors that show the order of work, and programs on them (runtime specification, 2, 6 and 12).

A program takes a `StreamFixture`, queues work and returns plain values. The same program runs by copies alone, or by
launches: `CopiedTensors` and `LaunchedTensors` append digits to a number, each in its own way. A `ProgramRunner` runs
programs in one context, each on a mesh of its own. `schedules` runs them under many schedules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .encoding import elements, packed, values_of
from .mesh_session import D2D, MeshSession, compiled, devices, meshed


@dataclass(frozen=True)
class StreamFixture(MeshSession, ABC):
    """A stream of a new mesh. A tensor holds a number to which work appends digits, which show its order."""

    extent: ClassVar[int]
    """The int32 elements of a tensor."""

    @staticmethod
    @abstractmethod
    def tensor(value: int) -> bytes:
        """Return the bytes of a tensor that holds a number."""

    @staticmethod
    @abstractmethod
    def number_of(data: bytes) -> int:
        """Return the number in these bytes of a tensor; -1 if they hold none."""

    @abstractmethod
    def digit(self, value: int, pointer: int) -> None:
        """Queue: append a digit."""

    @abstractmethod
    def move(self, source: int, target: int) -> None:
        """Queue: copy a tensor into another."""

    @abstractmethod
    def follow(self, source: int, target: int) -> None:
        """Queue: append the digit in a tensor to another."""

    @abstractmethod
    def beside(self, session: MeshSession) -> StreamFixture:
        """Return the stream of another session of the context, with tensors of the same kind."""

    def hold_up(self) -> None:
        """Queue: work that takes time and changes no tensor, so that later work runs too early unless it waits."""

    def zeros(self) -> int:
        """Return a tensor of zero, ready for all work that is queued from now on."""
        return self.full(0)

    def full(self, value: int) -> int:
        """Return a tensor of one number, ready for all work that is queued from now on."""
        pointer = self.upload(self.tensor(value))
        self.synchronize()
        return pointer

    def copy_tensor(self, dst: int, src: int, kind: int) -> None:
        """Queue: a copy of a tensor."""
        self.copy(dst, src, 4 * self.extent, kind)

    def sum_of_ranks(self, pointer: int) -> None:
        """Queue: an all-reduce over dp."""
        self.all_reduce(pointer, self.extent)

    def host_tensor(self, value: int = 0) -> int:
        """Return host memory for a tensor, with one number."""
        return self.host(self.tensor(value))

    def host_number(self, pointer: int) -> int:
        """Return the number that host memory holds."""
        return self.number_of(self.host_bytes(pointer, 4 * self.extent))

    def number(self, pointer: int) -> int:
        """Return the number that a tensor holds, on rank 0, when the stream is done."""
        return self.number_of(self.download(pointer, 4 * self.extent))

    def numbers(self, pointer: int) -> list[int]:
        """Return a tensor's contents on each rank, once all work is done; needs the feature rank-memory."""
        return [self.number_of(self.peek(rank, pointer, 4 * self.extent)) for rank in range(self.ranks)]


# By copies

PLACES = 10
"""The number of decimal digits in a copied tensor, the last of them first."""
PLACE = 32
"""The bytes of a digit: int32 elements that are all equal."""
LONG_COPY = 4 << 20
LONG_COPIES = 6
"""The size and the number of the copies that keep a stream busy."""


@dataclass(frozen=True)
class CopiedTensors(StreamFixture):
    """Three copies on the device append a digit: the others into a spare tensor, the digit, all of it back."""

    extent = PLACES * PLACE // 4
    table: int = 0
    """Device memory with the digits 0 to 9, one behind the other."""
    spare: int = 0
    """A tensor that only this stream uses."""
    long: int = 0
    """Device memory of two long copies; only the second half is read."""
    room: int = 0
    """The device memory that the long copies of this stream write."""

    @classmethod
    def of(cls, session: MeshSession, long: bool) -> Self:
        """Return the stream of a session; with `long`, long copies can keep it busy."""
        table = session.upload(b"".join(elements("int32", *[digit] * (PLACE // 4)) for digit in range(10)))
        room = doubled(session, 2 * LONG_COPY) if long else 0
        session.synchronize()
        return cls(**vars(session), table=table, spare=session.allocate(4 * cls.extent), long=room, room=room)

    def another_stream(self, priority: int = 0) -> Self:
        """Return the same with a new stream of the mesh."""
        room = self.allocate(LONG_COPY) if self.long else 0
        return replace(super().another_stream(priority), spare=self.allocate(4 * self.extent), room=room)

    def beside(self, session: MeshSession) -> CopiedTensors:
        """Return the stream of another session, with tables of its own."""
        return CopiedTensors.of(session, bool(self.long))

    @staticmethod
    def tensor(value: int) -> bytes:
        """Return the number in the place of the last digit, whatever its size."""
        return elements("int32", *[value] * (PLACE // 4)) + bytes((PLACES - 1) * PLACE)

    @staticmethod
    def number_of(data: bytes) -> int:
        """Return the number: each place counts ten times as much as the one before it."""
        total = 0
        for place in range(PLACES):
            digits = {int(value) for value in values_of("int32", data[place * PLACE : (place + 1) * PLACE])}
            if len(digits) != 1:
                return -1
            total += digits.pop() * 10**place
        return total

    def digit(self, value: int, pointer: int) -> None:
        """Queue: append a digit."""
        self._append(self.table + value * PLACE, pointer)

    def move(self, source: int, target: int) -> None:
        """Queue: copy a tensor."""
        self.copy_tensor(target, source, D2D)

    def follow(self, source: int, target: int) -> None:
        """Queue: append the digit in a tensor to another."""
        self._append(source, target)

    def _append(self, digit: int, pointer: int) -> None:
        self.copy(self.spare + PLACE, pointer, (PLACES - 1) * PLACE, D2D)
        self.copy(self.spare, digit, PLACE, D2D)
        self.copy_tensor(pointer, self.spare, D2D)

    def hold_up(self) -> None:
        """Queue: some long copies on the device."""
        for _ in range(LONG_COPIES if self.long else 0):
            self.copy(self.room, self.long + LONG_COPY, LONG_COPY, D2D)


def doubled(session: MeshSession, size: int) -> int:
    """Return device memory of so many bytes, a power of two; queue copies on the device that fill it."""
    pointer, written = session.allocate(size), 1 << 16
    session.write(pointer, bytes(written))
    while written < size:
        session.copy(pointer + written, pointer, written, D2D)
        written *= 2
    return pointer


# By launches

STREAM_KERNELS = """module streams {
  kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; }
  kernel move(x: tensor<2xint32>, y: tensor<2xint32>) { y = x; }
  kernel follow(x: tensor<2xint32>, y: tensor<2xint32>) { y = y * 10 + x; }
}
"""


@dataclass(frozen=True)
class LaunchedTensors(StreamFixture):
    """Small tensors of int32, all of whose elements are the number; each step is one launch."""

    extent = 2
    kernels: Mapping[str, int] = field(default_factory=dict)

    def beside(self, session: MeshSession) -> LaunchedTensors:
        """Return the stream of another session, with the same kernels."""
        return LaunchedTensors(**vars(session), kernels=self.kernels)

    @staticmethod
    def tensor(value: int) -> bytes:
        """Return the number in every element."""
        return elements("int32", value, value)

    @staticmethod
    def number_of(data: bytes) -> int:
        """Return the value of every element."""
        numbers = {int(value) for value in values_of("int32", data)}
        return numbers.pop() if len(numbers) == 1 else -1

    def digit(self, value: int, pointer: int) -> None:
        """Queue: append a digit."""
        self.launch(self.kernels["digit"], packed(("int32", value), ("ptr", pointer)))

    def move(self, source: int, target: int) -> None:
        """Queue: a kernel copies a tensor."""
        self.launch(self.kernels["move"], packed(("ptr", source), ("ptr", target)))

    def follow(self, source: int, target: int) -> None:
        """Queue: append the digit in a tensor to another."""
        self.launch(self.kernels["follow"], packed(("ptr", source), ("ptr", target)))


Program: TypeAlias = Callable[[Any], Any]
"""Takes a `StreamFixture`, queues work, waits for it and returns plain values."""


@dataclass(frozen=True)
class ProgramRunner:
    """A context that runs programs, each on a mesh of its own: by launches of its kernels, or by copies."""

    impl: Implementation
    check: Check
    context: int
    kernels: Mapping[str, int] | None = None
    long: bool = False

    def run(self, program: Program, ranks: int = 1) -> Any:
        """Return the program's result."""
        session = meshed(self.impl, self.check, self.context, devices(self.impl, self.check, ranks))
        result = program(self.on(session))
        session.close_mesh()
        return result

    def on(self, session: MeshSession) -> StreamFixture:
        """Return the stream of a session, with tensors."""
        if self.kernels is None:
            return CopiedTensors.of(session, self.long)
        return LaunchedTensors(**vars(session), kernels=self.kernels)


def by_copies(impl: Implementation, check: Check, long: bool = True) -> ProgramRunner:
    """Return a new context whose programs need only streams, events, memory and copies; `long` to keep streams busy."""
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    return ProgramRunner(impl, check, context, long=long)


def by_launches(impl: Implementation, check: Check) -> ProgramRunner:
    """Return a new context with the kernels of `STREAM_KERNELS`."""
    image = compiled(impl, check, STREAM_KERNELS)
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    loaded = check.returns(impl.runtime.tessModuleLoad(context=context, image=image), "tessModuleLoad succeeds")
    names = ("digit", "move", "follow")
    answers = [impl.runtime.tessKernelGet(module=loaded["module"], name=name) for name in names]
    kernels = [check.returns(answer, "tessKernelGet succeeds")["kernel"] for answer in answers]
    return ProgramRunner(impl, check, context, dict(zip(names, kernels, strict=True)))
