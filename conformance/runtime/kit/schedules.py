"""Programs run under one schedule after another: drawn from seeds, or all that there are (runtime spec, 6 and 12).

A program queues work on a `Desk` and gives what it finds. The same must be found under every schedule. Exploring goes
depth first through the choices that the machine reports, and stops at `MOST` schedules (AMB-RT-80, AMB-RT-140).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pytest

from tessera_conformance.check import Check
from tessera_conformance.marks import feature
from tessera_conformance.session import Implementation

from .arguments import elements, packed, values_of
from .programs import DTYPE_IDS, SUM, MeshSession, compiled, devices, meshed

EXTENT = 2
"""The elements of a tensor of `DESK_KERNELS`."""
SIZE = 4 * EXTENT

DESK_KERNELS = """module desk {
  kernel digit(v: int32, x: tensor<2xint32>) { x = x * 10 + v; }
  kernel move(x: tensor<2xint32>, y: tensor<2xint32>) { y = x; }
  kernel follow(x: tensor<2xint32>, y: tensor<2xint32>) { y = y * 10 + x; }
}
"""
"""`digit` appends a decimal digit and `follow` what another tensor holds, so that the order of launches shows."""

BLOCKS = 8
SEEDS_OF_A_BLOCK = 25
"""Together two hundred seeds, in as many cases as there are blocks."""
TIMED_BLOCKS = 2
"""In these work takes time; in the others everything can happen at once, in any order."""

MOST = 150
"""So many schedules are explored at most."""


@dataclass(frozen=True)
class Desk:
    """A stream of a new mesh, with kernels and memory to try an order with."""

    session: MeshSession
    kernels: Mapping[str, int]

    def another(self, priority: int = 0) -> Desk:
        """A desk with another stream of the same mesh."""
        return replace(self, session=self.session.another_stream(priority))

    def zeros(self) -> int:
        """A tensor of zeros, which everything queued from now on may use."""
        return self.holding(0)

    def holding(self, value: int) -> int:
        """A tensor of one value, which everything queued from now on may use."""
        pointer = self.session.upload(elements("int32", *[value] * EXTENT))
        self.session.synchronize()
        return pointer

    def digit(self, value: int, pointer: int) -> None:
        """Queue: append a digit."""
        self.session.launch(self.kernels["digit"], packed(("int32", value), ("ptr", pointer)))

    def move(self, source: int, target: int) -> None:
        """Queue: a kernel copies a tensor."""
        self.session.launch(self.kernels["move"], packed(("ptr", source), ("ptr", target)))

    def follow(self, source: int, target: int) -> None:
        """Queue: append what a tensor holds, a digit, to another."""
        self.session.launch(self.kernels["follow"], packed(("ptr", source), ("ptr", target)))

    def copy(self, dst: int, src: int, kind: int) -> None:
        """Queue: a copy of a tensor."""
        self.session.copy(dst, src, SIZE, kind)

    def sum_of_ranks(self, pointer: int) -> None:
        """Queue: an all-reduce over dp."""
        whole = {"mesh": self.session.mesh, "buffer": pointer, "count": EXTENT, "dtype": DTYPE_IDS["int32"]}
        self.session.ask("tessAllReduce", **whole, op=SUM, axis="dp", stream=self.session.stream)

    def event(self) -> int:
        """A new event."""
        return int(self.session.ask("tessEventCreate")["event"])

    def record(self, event: int) -> None:
        """Queue: record an event."""
        self.session.ask("tessEventRecord", event=event, stream=self.session.stream)

    def wait(self, event: int) -> None:
        """Queue: wait for an event."""
        self.session.ask("tessStreamWaitEvent", stream=self.session.stream, event=event)

    def synchronize(self) -> None:
        """Wait until everything on the stream is done."""
        self.session.synchronize()

    def host(self) -> int:
        """Host memory for a tensor, of zeros."""
        return self.session.host(bytes(SIZE))

    def host_number(self, pointer: int) -> int:
        """What host memory holds in every element; -1 where they differ."""
        return _number(self.session.host_bytes(pointer, SIZE))

    def number(self, pointer: int) -> int:
        """What a tensor holds in every element, on rank 0, when the stream is done; -1 where they differ."""
        return _number(self.session.download(pointer, SIZE))

    def numbers(self, pointer: int) -> list[int]:
        """What a tensor holds on each rank, once all work is done; needs the feature rank-memory."""
        return [_number(self.session.peek(rank, pointer, SIZE)) for rank in range(self.session.ranks)]


def _number(data: bytes) -> int:
    found = {int(value) for value in values_of("int32", data)}
    return found.pop() if len(found) == 1 else -1


Program: TypeAlias = Callable[[Desk], Any]
"""Queues work, waits for it and gives plain values."""


@dataclass(frozen=True)
class Workshop:
    """A context with the kernels of `DESK_KERNELS`, which programs are run in, each on a mesh of its own."""

    impl: Implementation
    check: Check
    context: int
    kernels: Mapping[str, int]

    def run(self, program: Program, ranks: int = 1) -> Any:
        """What a program finds."""
        session = meshed(self.impl, self.check, self.context, devices(self.impl, self.check, ranks))
        found = program(Desk(session, self.kernels))
        session.ask("tessMeshDestroy", mesh=session.mesh)
        return found

    def schedule(self, **how: Any) -> None:
        """Set how choices are made from now on; needs the feature schedule-control."""
        self.check.returns(self.impl.runtime.tessxSetSchedule(**how), "tessxSetSchedule succeeds")

    def choices(self) -> tuple[list[int], list[int]]:
        """The choices made under the schedule, and of how many."""
        told = self.check.returns(self.impl.runtime.tessxGetSchedule(), "tessxGetSchedule succeeds")
        return list(told["choices"]), list(told["widths"])


def workshop(impl: Implementation, check: Check) -> Workshop:
    """A new context, its kernels loaded."""
    image = compiled(impl, check, DESK_KERNELS)
    context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
    loaded = check.returns(impl.runtime.tessModuleLoad(context=context, image=image), "tessModuleLoad succeeds")
    names = ("digit", "move", "follow")
    found = [impl.runtime.tessKernelGet(module=loaded["module"], name=name) for name in names]
    kernels = [check.returns(each, "tessKernelGet succeeds")["kernel"] for each in found]
    return Workshop(impl, check, context, dict(zip(names, kernels, strict=True)))


def seeded(test: Any) -> Any:
    """Mark a test that takes a `block` of seeds, and `untimed`: of 200 schedules time orders 50, the others nothing."""
    blocks = [pytest.param(block, block >= TIMED_BLOCKS, id=f"{block}") for block in range(BLOCKS)]
    return feature("schedule-control")(pytest.mark.parametrize(("block", "untimed"), blocks)(test))


def under_seeds(shop: Workshop, program: Program, wanted: Any, block: int, untimed: bool, ranks: int = 1) -> None:
    """A program finds the same under each seed of a block; a seed under which it does not is named."""
    for seed in range(SEEDS_OF_A_BLOCK * block, SEEDS_OF_A_BLOCK * (block + 1)):
        shop.schedule(policy="seeded", seed=seed, untimed=untimed)
        shop.check.equal(shop.run(program, ranks), wanted, f"what is found under seed {seed}")


def explored(shop: Workshop, program: Program, ranks: int = 1) -> Iterator[tuple[list[int], Any]]:
    """Every schedule of a program, by its choices, and what it finds under it; `MOST` of them at most."""
    record: list[int] | None = []
    for _ in range(MOST):
        if record is None:
            return
        shop.schedule(policy="replay", choices=record, untimed=True)
        found = shop.run(program, ranks)
        choices, widths = shop.choices()
        yield choices, found
        record = following(choices, widths)


def following(choices: list[int], widths: list[int]) -> list[int] | None:
    """The record that comes next, depth first; None after the last."""
    for place in reversed(range(len(choices))):
        if choices[place] + 1 < widths[place]:
            return [*choices[:place], choices[place] + 1]
    return None


def under_every_schedule(shop: Workshop, program: Program, wanted: Any, ranks: int = 1) -> None:
    """A program finds the same under each schedule; one under which it does not is named by its choices."""
    for choices, found in explored(shop, program, ranks):
        shop.check.equal(found, wanted, f"what is found under the schedule {choices}")
