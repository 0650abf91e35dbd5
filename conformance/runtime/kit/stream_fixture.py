"""Streams with kernels whose effects show the order of work, and programs on them (runtime specification, 6 and 12).

A program takes a `StreamFixture`, queues work and returns plain values. A `ProgramRunner` runs programs in one
context, each on a mesh of its own. Running them under many schedules is in `schedules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.session import Implementation

from .encoding import elements, packed, values_of
from .mesh_session import MeshSession, compiled, devices, meshed

EXTENT = 2
"""The elements of a tensor of the fixture's kernels."""
SIZE = 4 * EXTENT

STREAM_KERNELS = """module streams {
  kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; }
  kernel move(x: tensor<2xint32>, y: tensor<2xint32>) { y = x; }
  kernel follow(x: tensor<2xint32>, y: tensor<2xint32>) { y = y * 10 + x; }
}
"""
"""`digit` appends a decimal digit and `follow` what another tensor holds, so that the order of launches shows."""


@dataclass(frozen=True)
class StreamFixture(MeshSession):
    """A stream of a new mesh, with kernels on small tensors of int32, all of whose elements are equal."""

    kernels: Mapping[str, int] = field(default_factory=dict)

    def zeros(self) -> int:
        """A tensor of zeros, which everything queued from now on may use."""
        return self.full(0)

    def full(self, value: int) -> int:
        """A tensor of one value, which everything queued from now on may use."""
        pointer = self.upload(elements("int32", *[value] * EXTENT))
        self.synchronize()
        return pointer

    def digit(self, value: int, pointer: int) -> None:
        """Queue: append a digit."""
        self.launch(self.kernels["digit"], packed(("int32", value), ("ptr", pointer)))

    def move(self, source: int, target: int) -> None:
        """Queue: a kernel copies a tensor."""
        self.launch(self.kernels["move"], packed(("ptr", source), ("ptr", target)))

    def follow(self, source: int, target: int) -> None:
        """Queue: append what a tensor holds, a digit, to another."""
        self.launch(self.kernels["follow"], packed(("ptr", source), ("ptr", target)))

    def copy_tensor(self, dst: int, src: int, kind: int) -> None:
        """Queue: a copy of a tensor."""
        self.copy(dst, src, SIZE, kind)

    def sum_of_ranks(self, pointer: int) -> None:
        """Queue: an all-reduce over dp."""
        self.all_reduce(pointer, EXTENT)

    def host_tensor(self, value: int = 0) -> int:
        """Host memory for a tensor, with one value."""
        return self.host(elements("int32", *[value] * EXTENT))

    def host_number(self, pointer: int) -> int:
        """What host memory holds in every element; -1 where they differ."""
        return _number(self.host_bytes(pointer, SIZE))

    def number(self, pointer: int) -> int:
        """What a tensor holds in every element, on rank 0, when the stream is done; -1 where they differ."""
        return _number(self.download(pointer, SIZE))

    def numbers(self, pointer: int) -> list[int]:
        """What a tensor holds on each rank, once all work is done; needs the feature rank-memory."""
        return [_number(self.peek(rank, pointer, SIZE)) for rank in range(self.ranks)]


def _number(data: bytes) -> int:
    found = {int(value) for value in values_of("int32", data)}
    return found.pop() if len(found) == 1 else -1


def with_kernels(session: MeshSession, kernels: Mapping[str, int]) -> StreamFixture:
    """The stream of a session, with kernels of its context."""
    return StreamFixture(**vars(session), kernels=kernels)


Program: TypeAlias = Callable[[StreamFixture], Any]
"""Queues work, waits for it and returns plain values."""


@dataclass(frozen=True)
class ProgramRunner:
    """A context with the kernels of `STREAM_KERNELS`, in which programs run, each on a mesh of its own."""

    impl: Implementation
    check: Check
    context: int
    kernels: Mapping[str, int]

    def run(self, program: Program, ranks: int = 1) -> Any:
        """What a program returns."""
        session = meshed(self.impl, self.check, self.context, devices(self.impl, self.check, ranks))
        result = program(with_kernels(session, self.kernels))
        session.destroy_mesh()
        return result


def program_runner(impl: Implementation, check: Check) -> ProgramRunner:
    """A new context, its kernels loaded."""
    image = compiled(impl, check, STREAM_KERNELS)
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    loaded = check.returns(impl.runtime.tessModuleLoad(context=context, image=image), "tessModuleLoad succeeds")
    names = ("digit", "move", "follow")
    found = [impl.runtime.tessKernelGet(module=loaded["module"], name=name) for name in names]
    kernels = [check.returns(each, "tessKernelGet succeeds")["kernel"] for each in found]
    return ProgramRunner(impl, check, context, dict(zip(names, kernels, strict=True)))
